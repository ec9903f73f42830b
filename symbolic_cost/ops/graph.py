"""Models: parts in order, what they hand to each other, and the sizes of their axes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property

from sympy import Expr, Integer, Symbol

from symbolic_cost.algebra import add, mul
from symbolic_cost.axes import At, Axis, Glossary, Role
from symbolic_cost.checking import checked
from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import InputError, PatternError, quote, refuse, unknown
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import (
    OUTSIDE,
    Part,
    text_of,
    unlinked_repeats,
)
from symbolic_cost.ops.pattern import Operand, is_tied
from symbolic_cost.ops.sizes import may_be_positive
from symbolic_cost.ops.stored import Stored
from symbolic_cost.records import dataclass, replace

ALL = "all"
"""What is trained where nothing is said."""

Weights = tuple[tuple[Op, Operand], ...]
"""Weights, each with its op."""


@checked
@dataclass(frozen=True)
class Model(NotebookTable):
    """Parts and the sizes of their axes.

    Args:
        parts: in the order in which they run.
        padded: axes that are padded to a multiple of the degree that splits them (vocabulary).
        means: axes whose size is a mean, which need not be whole (tokens per expert).
        bindings: numbers of a preset, by symbol name.
        family: what it is one of ("llama"); empty if nothing is known of it.
        axes: the glossary, which gives every axis its role; without one, placements by name are
            all that can be asked.
        trains: which of its weights are trained.
        stored: formats of weights in few bits, by part and tensor; held so where not trained.
        unread: why these are not known, where a configuration says more than was understood.
        notes: what of the file that it was read from is not understood.
        routed: groups of experts, and how many of them the experts of a token lie in.
        origin: the model all of whose weights are trained, where this one is made of it.
        fixed: numbers that its ops depend on, by symbol name, where it is declared for these.
        at: declares it for others.
        before: tokens of a sequence that are in the cache before its own.

    Raises:
        PatternError: an axis of an op that the glossary lacks.
    """

    name: str
    parts: tuple[Part, ...]
    sizes: Mapping[str, Expr]
    padded: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    bindings: Mapping[str, int] = field(default_factory=dict)
    source: str = "definition"
    family: str = ""
    axes: Glossary = field(default_factory=dict)
    trains: str = ALL
    origin: Model | None = field(default=None, repr=False, compare=False)
    stored: Mapping[tuple[str, str], Stored] = field(default_factory=dict)
    unread: str = ""
    notes: tuple[str, ...] = ()
    routed: tuple[int, int] = (1, 1)
    fixed: Mapping[str, int] = field(default_factory=dict)
    before: Expr = Integer(0)
    at: Callable[[Mapping[str, int | Fraction]], Model] | None = field(
        default=None, repr=False, compare=False
    )

    def __repr__(self) -> str:
        return f"<Model {self.name}, {len(self.parts)} parts>"

    def __post_init__(self) -> None:
        """Check that every axis of every op has a role, where there is a glossary."""
        problems = [
            f"model {self.name!r}: axis {name!r} of {where} is not in the glossary of axes"
            for name, where in self._first_uses.items()
            if self.axes and name not in self.axes
        ]
        problems += self._unlinked()
        refuse(problems, PatternError)
        refuse(self._sizeless())

    def _sizeless(self) -> Iterator[str]:
        """Say which sizes are none: zero, negative or complex numbers, and those of no number."""
        yield from (
            f"model {self.name!r}: axis {axis} has size {quote(length)}: "
            "a positive number or a symbol is accepted"
            for axis, length in self.sizes.items()
            if not may_be_positive(length)
        )

    @cached_property
    def symbols(self) -> frozenset[Symbol]:
        """Symbols of its sizes and repetitions."""
        exprs = (*self.sizes.values(), *(part.repeat for part in self.parts))
        return frozenset(symbol for expr in exprs for symbol in expr.free_symbols)

    @cached_property
    def read_symbols(self) -> frozenset[Symbol]:
        """Symbols that a cost may have: of the axes that ops run over or name, and repetitions.

        The keys that a query sees at most, as in a window, are an axis that no op runs over.
        """
        stages = (one for part in self.parts for op in part.ops for one in op.stages)
        named = (getattr(one, name) for one in stages for name in one.axis_fields)
        seen = {one for one in named if isinstance(one, str) and one in self.sizes}
        used = [self.sizes[axis] for axis in (*self.axis_names, *seen)]
        exprs = (*used, *(part.repeat for part in self.parts))
        return frozenset(symbol for expr in exprs for symbol in expr.free_symbols)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Every axis of every op once."""
        return tuple(self._first_uses)

    def placed(self, *places: At) -> tuple[Axis, ...]:
        """Return the axes that some places mean, in the order of the places."""
        known = [self.axes[name] for name in self.axis_names if name in self.axes]
        return tuple(axis for place in places for axis in known if axis in place)

    @cached_property
    def unseen(self) -> frozenset[str]:
        """Positions of towers that see nothing, whose weights alone are there: no images."""
        none = {axis.name for axis in self.placed(At(Role.BATCH)) if self.sizes[axis.name] == 0}
        parts = [self._axes_of(part) for part in self.parts] if none else []
        working = frozenset().union(*(axes for axes in parts if not axes & none))
        tokens = {axis.name for axis in self.placed(At(Role.TOKEN))}
        return frozenset(tokens & frozenset().union(*parts)) - working

    @cached_property
    def follows(self) -> bool:
        """Whether its tokens follow others in a cache: a step of generation, which nobody trains.

        There are more keys than new tokens, or it was declared so, as one that keeps states alone.
        """
        if self.before != 0:
            return True
        sides = (
            zip(op.inputs[0].axes, op.outputs[0].axes, strict=True)
            for part in self.parts
            for op in part.ops
            if op.caches() and op.inputs  # states that no op makes are there
        )
        keys = {axis.name for axis in self.placed(At(Role.KEY_TOKEN))}
        return any(
            after in keys and self.sizes[before] != self.sizes[after]
            for pairs in sides
            for before, after in pairs
        )

    def check_trains(self) -> None:
        """Refuse a step of generation where a training step is asked for.

        Raises:
            InputError: its tokens follow others in a cache.
        """
        if self.follows:
            raise InputError(
                f"model {self.name!r} runs on tokens that follow others in a cache: a step of "
                "generation has no memory or time of training; serve-plan and sc.serving say what "
                "an engine holds and takes"
            )

    @cached_property
    def grouped(self) -> Mapping[str, str]:
        """By the axis of heads of keys and values, that of the query heads which share one."""
        ops = (op for part in self.parts for op in part.ops)
        operands = {operand.axes for op in ops for operand in (*op.inputs, *op.outputs)}
        heads, groups = (
            [axis.name for axis in self.placed(At(role))] for role in (Role.HEAD, Role.GROUP)
        )
        return {
            head: group
            for head in heads
            for group in groups
            if any(head in axes and group in axes for axes in operands)
        }

    def size(self, *places: At) -> Expr:
        """Return the product of the sizes of the axes that some places mean; one without any."""
        return mul(*(self.sizes[axis.name] for axis in self.placed(*places)))

    @property
    def work(self) -> tuple[str, Expr]:
        """What is worked off, and how much: tokens of every sequence, or samples where none are.

        Tokens are positions of the residual stream, those of a source and of a target together,
        but not again those that a part makes of others; patches of images are none, nor is what
        towers see whose samples are others, images. For example T5 takes b (l + l_t) tokens, Flux
        b (l + r) though it joins both, ResNet and CLIP b samples, LLaVA b l tokens.
        """
        batches = [axis.name for axis in self.placed(At(Role.BATCH, ("",)))]
        apart = len({self.sizes[name] for name in batches}) > 1
        parts = [self._axes_of(part) for part in self.parts]
        known = {axis for axes in parts if not apart or batches[-1] in axes for axis in axes}
        residual, query, patch = (
            [axis for axis in self.placed(At(Role.TOKEN, (copy,))) if axis.name in known]
            for copy in ("residual", "query", "patch")
        )
        stream = [axis for axis in residual or query if axis.name not in self._remade]
        samples = self.sizes[batches[-1]] if batches else Integer(1)
        if patch or not stream:
            return "samples", samples
        return "tokens", samples * add(*(self.sizes[axis.name] for axis in stream))

    @property
    def _remade(self) -> frozenset[str]:
        """Positions that begin in a part which takes those of another stream."""
        positions = {axis.name for axis in self.placed(At(Role.TOKEN))}
        begun: set[str] = set()
        remade: set[str] = set()
        for part in self.parts:
            fresh = (self._axes_of(part) & positions) - begun
            taken = {axis for operand in part.inputs.values() for axis in operand.axes}
            remade |= fresh if taken & begun else set()
            begun |= fresh
        return frozenset(remade)

    @staticmethod
    def _axes_of(part: Part) -> frozenset[str]:
        operands = (o for op in part.ops for o in (*op.inputs, *op.outputs))
        return frozenset(axis for operand in operands for axis in operand.axes)

    def submodel(self, parts: Iterable[Part]) -> Model:
        """Return the model of some of its parts; what the others hand on comes from outside.

        For example the last stage of a pipeline holds blocks and the head: the blocks take from
        the stage before what the embedding hands on where both are on one rank.

        Args:
            parts: of the model, by path, in any order; how often they occur may differ.

        Raises:
            InputError: every part that the model does not have.
        """
        place = {part.path: index for index, part in enumerate(self.parts)}
        wanted = tuple(parts)
        refuse(unknown("part", p.path, place) for p in wanted if p.path not in place)
        held = tuple(sorted(wanted, key=lambda part: place[part.path]))
        paths = {part.path for part in held}
        sources = self.sources
        ports = {
            part.path: {
                port: source if source in paths else OUTSIDE
                for port, source in sources[part.path].items()
            }
            for part in held
        }
        return replace(self, parts=tuple(replace(p, takes=ports[p.path]) for p in held))

    @cached_property
    def sources(self) -> dict[str, dict[str, str]]:
        """Return the source of every port by part, that of the part before by its path."""
        sources: dict[str, dict[str, str]] = {}
        before = OUTSIDE
        for part in self.parts:
            sources[part.path] = {port: source or before for port, source in part.takes.items()}
            before = part.path if part.results else before
        return sources

    def _unlinked(self) -> Iterator[str]:
        """Say which ports get what they do not take."""
        handed: dict[str, tuple[Operand, ...]] = {}
        sources = self.sources
        for part in self.parts:
            for port, operand in part.inputs.items():
                source = sources[part.path][port]
                if source == OUTSIDE:
                    continue
                if source not in handed:
                    yield (
                        f"part {part.path!r} takes {port!r} from {source!r}: parts before it are "
                        f"{', '.join(handed) or 'none'}"
                    )
                elif all(other.axes != operand.axes for other in handed[source]):
                    other = ", ".join(text_of(result) for result in handed[source])
                    yield (
                        f"part {part.path!r} takes {text_of(operand)} and {source!r} hands on "
                        f"{other}"
                    )
            if part.results:
                handed[part.path] = part.results
            yield from unlinked_repeats(part)

    @cached_property
    def learned(self) -> tuple[tuple[Part, Weights], ...]:
        """The parts that hold weights, each with those that it keeps.

        A weight that several ops use stands once, as of blocks that run in turns. So does a tied
        one: all blocks of ALBERT share theirs, beside a block that occurs once.
        """
        found: set[tuple[str, str]] = set()
        held: dict[tuple[str, bool], tuple[Part, list[tuple[Op, Operand]]]] = {}
        for part in self.parts:
            for op in part.ops:
                for weight in op.weights:
                    shared = is_tied(weight)
                    key = ("" if shared else part.path, weight.tensor)
                    if weight.needs_gradient and key not in found:
                        found.add(key)
                        once = shared and part.repeat != 1
                        own = replace(part, repeat=Integer(1)) if once else part
                        held.setdefault((part.path, once), (own, []))[1].append((op, weight))
        return tuple((part, tuple(weights)) for part, weights in held.values())

    @cached_property
    def _first_uses(self) -> dict[str, str]:
        """Return the path of the op that uses an axis first, by the axis."""
        uses: dict[str, str] = {}
        for part in self.parts:
            for op in part.ops:
                for axis in op.axes:
                    uses.setdefault(axis, f"{part.path}.{op.path}")
        return uses
