"""A strategy: the degree of every mesh axis, and what is kept in shards."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from itertools import chain, starmap
from typing import Any

from sympy import Expr, Integer, Mul, Symbol

from symbolic_cost.axes import At, Axis
from symbolic_cost.checking import checked
from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import (
    PlacementError,
    UnknownNameError,
    refuse,
    unknown,
)
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.placement import STORED, Placement
from symbolic_cost.parallel.catalogue import DATA_AXES, STRATEGIES
from symbolic_cost.parallel.coverage import SHARED_HEADS, Exempt, Repeated, coverage, meeting
from symbolic_cost.parallel.degrees import (
    KEY_COPIES,
    degree_problems,
    reshard_problems,
)
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import exact

_LEVELS = {0: (), 1: ("optimizer",), 2: ("weight_gradient", "optimizer"), 3: STORED}


@checked
@dataclass(frozen=True)
class Strategy(NotebookTable):
    """Degrees by strategy name; see `STRATEGIES`.

    Args:
        degrees: a positive integer or a symbol, or a tuple of one per mesh axis of the name; an
            empty tuple for a name without mesh axes (sp).
        zero: 0, or what data-parallel ranks keep in shards: 1 optimizer states, 2 gradients as
            well, 3 weights as well.
        panels: steps in which 2D and 2.5D products move their operands.
        copies: tensor-parallel ranks that hold the same key/value heads, each for a part of the
            query heads that share them; more than one where tp exceeds the key/value heads.
        reshard: ranks whose shards weights of zero=3 are again after forward: 0 for all that keep
            shards, 1 for none, so that weights stay whole until backward is done with them.
        shared: axes of the heads of which there are copies, where others are as many as ranks;
            all heads of keys and values unless given.

    Raises:
        InputError: every name, degree and combination that is refused.
    """

    degrees: Mapping[str, Any] = field(default_factory=dict)
    zero: int = 0
    panels: Expr | int = 1
    copies: Expr | int = 1
    shared: tuple[str, ...] = ()
    reshard: int = 0

    def __post_init__(self) -> None:
        degrees = {name: d if isinstance(d, tuple) else (d,) for name, d in self.degrees.items()}
        problems = degree_problems(degrees, self.zero, self.panels, self.copies)
        refuse([*problems, *reshard_problems(self.reshard, self.zero)])
        ordered = {name: tuple(map(exact, degrees[name])) for name in STRATEGIES if name in degrees}
        object.__setattr__(self, "degrees", ordered)

    def __contains__(self, name: str) -> bool:
        return name in self.degrees

    @cached_property
    def mesh(self) -> Mapping[str, Expr]:
        """Ranks by mesh axis, innermost first; expert-parallel ranks are data-parallel ones.

        For example tp=16 on 8 key/value heads is a mesh of kv=2 neighbours that hold the same head
        and tp=8 heads.
        """
        per_mesh = {
            mesh: degree
            for name, degrees in self.degrees.items()
            for mesh, degree in zip(STRATEGIES[name].meshes, degrees, strict=True)
        }
        if self.copies != 1:
            per_mesh = {
                KEY_COPIES: exact(self.copies),
                **per_mesh,
                "tp": per_mesh["tp"] / self.copies,
            }
        return per_mesh | ({"dp": per_mesh["dp"] / per_mesh["ep"]} if "ep" in per_mesh else {})

    @cached_property
    def ranks(self) -> Expr:
        """Ranks of one replica of the whole mesh [rank]."""
        return Mul(*self.mesh.values())

    def degree(self, mesh: str) -> Expr:
        """Return the ranks of a mesh axis, one where the strategy has none [rank].

        Raises:
            UnknownNameError: no strategy has such a mesh axis.
        """
        if mesh in self.mesh:
            return self.mesh[mesh]
        meshes = {one for entry in STRATEGIES.values() for one in entry.meshes} | {KEY_COPIES}
        if mesh not in meshes:
            raise UnknownNameError(unknown("mesh axis", mesh, meshes))
        return Integer(1)

    def numbered(self, numbers: Mapping[str, int | Fraction]) -> Strategy:
        """Return the same strategy with a number for every degree whose symbol has one."""

        def number(symbol: Symbol, degree: Expr) -> Expr:
            return exact(numbers.get(symbol.name, degree)) if degree == symbol else degree

        degrees = self._by_degree(number)
        return self if degrees == self.degrees else replace(self, degrees=degrees)

    def resized(self, symbol: str, size: int) -> Strategy:
        """Return the strategy with another degree, by the name of its symbol."""
        degrees = self._by_degree(lambda one, degree: size if one.name == symbol else degree)
        return replace(self, degrees=degrees, copies=1, shared=())

    def _by_degree(self, read: Callable[[Symbol, Expr], Any]) -> dict[str, tuple[Any, ...]]:
        """Return what stands for each degree, by its symbol and value."""
        return {
            name: tuple(starmap(read, zip(STRATEGIES[name].meshes.values(), ranks, strict=True)))
            for name, ranks in self.degrees.items()
        }

    def _named(self) -> dict[str, Expr]:
        """Return every degree, by the name of its symbol."""
        pairs = self._by_degree(lambda symbol, degree: (symbol.name, degree))
        return dict(chain.from_iterable(pairs.values()))

    def symbols(self) -> frozenset[str]:
        """Return the names of the symbols of all degrees."""
        return frozenset(self._named())

    def bindings(self) -> dict[str, int]:
        """Return the degrees that are numbers, by the name of their symbol."""
        return {name: int(degree) for name, degree in self._named().items() if degree.is_Integer}

    def model(self, model: Model) -> Model:
        """Return a model whose ops have axes of their own where the strategy needs them.

        Raises:
            PlacementError: the model has axes that a strategy cannot place.
        """
        problems = [
            f"{name}: model {model.name!r} has axis {axis.name} ({axis.role}): {reason}"
            for name in self.degrees
            for place, reason in STRATEGIES[name].lacks.items()
            for axis in model.placed(place)
        ]
        if problems:
            raise PlacementError(problems)
        for name in self.degrees:
            rewrite = STRATEGIES[name].rewrite
            try:
                model = model if rewrite is None else rewrite(model)
            except PlacementError as error:
                texts = [f"{name}: model {model.name!r}: {text}" for text in error.problems]
                raise PlacementError(texts) from error
        return model

    def placement(self, model: Model) -> Placement:
        """Return which axes of a model are split over which mesh axes.

        Args:
            model: as declared, or as `Strategy.model` gives it.

        Raises:
            PlacementError: a strategy finds none of its axes in the model, or leaves work whole
                that it does not exempt.
        """
        placement = self._placed(model)
        self._check_apart(model)
        coverage(model, placement, self._leaves(placement))
        return placement

    def repeated(self, model: Model) -> tuple[Repeated, ...]:
        """Return the ops that ranks of a mesh axis run alike; arguments and errors as above."""
        placement = self._placed(model)
        return coverage(model, placement, self._leaves(placement))

    def _check_apart(self, model: Model) -> None:
        """Refuse a strategy that splits an axis beside one that a strategy it needs splits.

        Raises:
            PlacementError: with the first op that has both, as of routed positions and heads.
        """
        pairs = ((name, other) for name in self.degrees for other in STRATEGIES[name].needs)
        for name, other in pairs:
            for mesh, group in STRATEGIES[name].places.items():
                others = STRATEGIES[other].places.get(mesh, ())
                said = meeting(model, model.placed(*group), model.placed(*others))
                if said and other in self.degrees:
                    raise PlacementError(
                        f"{name}: {said}, which {other} splits over the same ranks: {other} "
                        f"without {name} is accepted"
                    )

    def _meshes(self, mesh: str, axis: Axis, model: Model) -> tuple[str, ...]:
        """Return the mesh axes for a place; ranks that share key/value heads split all else."""
        shared = axis.name in self._shared(model)
        return (mesh,) if self.copies == 1 or mesh != "tp" or shared else (KEY_COPIES, mesh)

    def _shared(self, model: Model) -> Collection[str]:
        return [heads for heads in model.grouped if heads in self.shared or not self.shared]

    def _leaves(self, placement: Placement) -> dict[tuple[str, str], tuple[Exempt, ...]]:
        """Return what the ranks of every strategy's mesh axes may repeat."""
        leaves = {
            (name, mesh): STRATEGIES[name].leaves
            for name in self.degrees
            for mesh in STRATEGIES[name].meshes
            if mesh in placement.degrees
        }
        if KEY_COPIES in placement.degrees:
            leaves["tp", KEY_COPIES] = (*STRATEGIES["tp"].leaves, SHARED_HEADS)
        return leaves

    def _placed(self, model: Model) -> Placement:
        problems = []
        axes: dict[str, tuple[str, ...]] = {}
        for name in self.degrees:
            entry = STRATEGIES[name]
            places = [place for group in entry.places.values() for place in group]
            missing = [place for place in entry.requires if not model.placed(place)]
            if places and (missing or not model.placed(*places)):
                problems.append(_lacking(name, model, missing or places))
            for mesh, group in entry.places.items():
                for axis in dict.fromkeys(model.placed(*group)):  # places may overlap
                    if axis.name in model.unseen:
                        continue
                    outer = axes.get(axis.name, ())
                    inmost = any(axis in place for place in entry.inmost)
                    inner = self._meshes(mesh, axis, model)
                    axes[axis.name] = (*inner, *outer) if inmost else (*outer, *inner)
            if self.copies != 1 and name == "tp":
                groups = (model.grouped[heads] for heads in self._shared(model))
                axes |= dict.fromkeys(groups, (KEY_COPIES,))
        if problems:
            raise PlacementError(problems)
        degrees = {mesh: degree for mesh, degree in self.mesh.items() if mesh != "pp"}
        grid = tuple(mesh for name in self.degrees for mesh in STRATEGIES[name].stored)
        shards = tuple(mesh for mesh in DATA_AXES if mesh in degrees)
        levels = dict.fromkeys(_LEVELS[self.zero], shards)
        whole = shards if self.reshard else ()
        stored = {what: grid + levels.get(what, ()) for what in STORED}
        return Placement(degrees, axes, stored, whole)

    def __str__(self) -> str:
        return strategy_text(self)


def strategy_text(strategy: Strategy, write: Callable[[Any], str] = str) -> str:
    """Return a strategy as `parse_strategy` reads it, its degrees as `write` prints them."""
    parts = [f"{n}={'x'.join(map(write, d))}" if d else n for n, d in strategy.degrees.items()]
    parts += [f"zero={strategy.zero}"] if strategy.zero else []
    parts += [f"reshard={strategy.reshard}"] if strategy.reshard else []
    parts += [f"panels={write(strategy.panels)}"] if strategy.panels != 1 else []
    return ",".join(parts + ([f"{KEY_COPIES}={strategy.copies}"] if strategy.copies != 1 else []))


def _lacking(name: str, model: Model, places: Iterable[At]) -> str:
    wanted = ", ".join(dict.fromkeys(map(str, places)))
    if not model.axes:
        return f"{name}: model {model.name!r} gives its axes no roles (Model(axes=...)): {wanted}"
    return f"{name}: model {model.name!r} has none of its axes ({wanted})"
