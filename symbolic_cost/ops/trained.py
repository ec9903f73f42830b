"""Which weights are trained: where gradients flow, and the model without those that nothing needs.

A tensor needs a gradient if a trained weight stands before it. So backward stops below the lowest
trained weight, a frozen product has no weight gradient and keeps no input for one, and a tower
without trained weights has no backward at all. What is not needed is marked as a constant; every
cost follows from the marks.

For example, of embedding -> 32 blocks -> head with adapters in the blocks alone, the first block
gets a constant x: its first products have no gradient of x. The other 31 need theirs. The block is
declared once more for that, as `block.first`, which hands all its streams on to them.

Where kinds of layers alternate and the first that is trained is not of the first kind, as many of
the others as stand before it have no backward: of linear, linear, full, linear, full with adapters
in the full ones, the first two; the third linear one has a backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.errors import refuse
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.fused import Fused
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import OUTSIDE, Part, Place
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.stored import Stored
from symbolic_cost.ops.unread import Unread
from symbolic_cost.records import dataclass

Key = tuple[str, str]
"""A weight: the path of its part, empty where the whole model shares it, and its tensor."""


def key_of(part: Part, weight: Operand) -> Key:
    """Return what names a weight of a part."""
    return ("" if weight.tensor.startswith("@") else part.path, weight.tensor)


def trained_parameters(model: Model) -> Expr:
    """Return how many parameters are trained [element], each once."""
    sizes: dict[Key, Expr] = {}
    for part in model.parts:
        for op in part.ops:
            for weight in op.weights:
                key, tied = key_of(part, weight), weight.tensor.startswith("@")
                if weight.needs_gradient:
                    count = mul(*(model.sizes[axis] for axis in weight.axes))
                    sizes[key] = count if tied else mul(part.repeat, count)
    return add(*sizes.values())


def training_all_but(model: Model, fixed: Callable[[str, str], bool]) -> Model:
    """Return a model whose layers were made with weights that never learn.

    Args:
        model: trained as a whole.
        fixed: whether a weight is one of these, by the path of its part and its tensor.
    """
    weights = ((part, weight) for part in model.parts for op in part.ops for weight in op.weights)
    learning = (key_of(part, w) for part, w in weights if not fixed(part.path, w.tensor))
    return training_only(model, frozenset(learning))


def training_only(model: Model, learning: frozenset[Key]) -> Model:
    """Return a model of which these weights alone are trained.

    Raises:
        InputError: kinds of layers that are trained behind others that are not, in no known order.
    """
    marks = _Marks(learning, dict.fromkeys(_shared(model), False), model.stored)
    flows: dict[str, bool] = {OUTSIDE: True}
    results: dict[tuple[str, tuple[str, ...]], bool] = {}
    frozen: dict[str, str] = {}
    problems: list[str] = []
    parts: list[Part] = []
    lowest: int | None = None
    for part, sources in zip(model.parts, model.sources.values(), strict=True):
        # A decode step lacks the encoder whose memory it takes; it has no backward either.
        entry = {
            port: results.get((source, _axes_of(part, port)), flows.get(source, True))
            for port, source in sources.items()
        }
        streams = [port for port in part.streams if sources[port] != OUTSIDE]
        below = 0
        if part.layers:
            if lowest is None:
                lowest = -1 if all(entry[port] for port in streams) else marks.lowest(model.parts)
            below = sum(layer < lowest for layer in part.layers)
            entry |= dict.fromkeys(streams, below == 0 and lowest not in part.layers)
        flowing = marks.through(part, entry)
        starts = not all(entry[port] for port in streams)
        goes_on = below < len(part.layers) if below else _hands_on(part, flowing)
        if part.repeat != 1 and starts and goes_on:
            first_of = Place.LEADING if part.is_block else Place.END
            ahead = replace(
                part, path=f"{part.path}.first", repeat=Integer(below or 1), place=first_of
            )
            parts.append(marks.marked(ahead, flowing, of=part))
            takes = {**part.takes, **dict.fromkeys(streams, ahead.path)}
            flowing = marks.through(part, {**entry, **dict.fromkeys(streams, True)})
            part = replace(part, repeat=part.repeat - ahead.repeat, takes=takes, place=part.stands)  # noqa: PLW2901 - what is left of it
        parts.append(marks.marked(part, flowing, of=part))
        joined = any(flows[one.path] for one in model.parts if one.joins == part.path)
        handed = flows[part.path] = _hands_on(part, flowing) or joined
        for result in part.results:
            place, learns = (part.path, result.axes), flowing.get(result.tensor, False) or joined
            results[place] = learns or results.get(place, False)
        if part.stands is Place.BLOCK and not part.layers:
            before = frozen.get(sources.get(part.stream, OUTSIDE), "")
            frozen[part.path] = before or ("" if handed else part.path)
            if before and handed:
                said = f"train: {part.path} learns and {before} does not: which of these layers "
                problems.append(f"{said}come first is not declared; weights of both are accepted")
    refuse(problems)
    return replace(model, parts=_without_tables(parts))


def _axes_of(part: Part, port: str) -> tuple[str, ...]:
    """Return the axes of a port, which tell which of several results of a part it takes."""
    return part.inputs[port].axes if port in part.inputs else ()


def _hands_on(part: Part, flowing: Mapping[str, bool]) -> bool:
    return any(flowing.get(result.tensor, False) for result in part.results)


def _shared(model: Model) -> set[str]:
    """Return the tensors, weights aside, that the whole model shares."""
    results = (operand for part in model.parts for op in part.ops for operand in op.outputs)
    return {operand.tensor for operand in results if operand.tensor.startswith("@")}


@dataclass
class _Marks:
    """Says which operands need gradients.

    Args:
        learning: the trained weights.
        shared: whether gradients flow to tensors that the whole model shares.
        stored: formats of weights that are frozen.
    """

    learning: frozenset[Key]
    shared: dict[str, bool]
    stored: Mapping[Key, Stored]

    def through(self, part: Part, entry: Mapping[str, bool]) -> dict[str, bool]:
        """Return which tensors of a part need gradients, by name."""
        flowing = {**self.shared, **entry}
        for op in part.ops:
            needs = (
                not isinstance(op, Unread)
                and not (isinstance(op, Einsum) and op.frozen)
                and (
                    any(flowing.get(o.tensor, False) and o.needs_gradient for o in op.inputs)
                    or any(
                        weight.needs_gradient and key_of(part, weight) in self.learning
                        for weight in op.weights
                    )
                )
            )
            flowing |= {result.tensor: needs for result in op.outputs}
        self.shared |= {name: flowing[name] for name in self.shared if name in flowing}
        return flowing

    def lowest(self, parts: Iterable[Part]) -> int:
        """Return the first layer that learns, of kinds that alternate; one that is none if none."""
        learning = [
            part.layers[0]
            for part in parts
            if part.layers and _hands_on(part, self.through(part, dict.fromkeys(part.takes, False)))
        ]
        return min(learning, default=sum(len(part.layers) for part in parts))

    def marked(self, part: Part, flowing: Mapping[str, bool], of: Part) -> Part:
        """Return a part with everything constant that needs no gradient; see `through`."""

        def mark(operand: Operand) -> Operand:
            if not operand.is_weight:
                needs = flowing.get(operand.tensor, True)
                return operand if needs else replace(operand, constant=True)
            key = key_of(of, operand)
            if key in self.learning:
                return operand
            return replace(operand, constant=True, stored=self.stored.get(key))

        return replace(part, ops=tuple(_mapped(op, mark) for op in part.ops))


def _mapped(op: Op, mark: Callable[[Operand], Operand]) -> Op:
    """Return an op on marked operands; of a kernel, which makes all gradients, the border."""
    if _is_source(op):
        return op
    marked = op.mapped(mark)
    if not isinstance(op, Fused) or not isinstance(marked, Fused):
        return marked
    inner = tuple(one.mapped(lambda o: mark(o) if o.is_weight else o) for one in op.ops)
    return replace(marked, ops=inner)


def _is_source(op: Op) -> bool:
    """Whether an op takes constants alone and has no weights: angles of positions, an order."""
    return not op.weights and all(operand.constant for operand in op.inputs)


def _without_tables(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts in which tables of constants are constant where no gradient meets them."""
    listed = tuple(parts)
    alive = {p.path: any(op.live for op in p.ops if not _is_source(op)) for p in listed}
    met = {
        operand.tensor
        for part in listed
        for op in part.ops
        if op.live and not _is_source(op)
        for operand in op.inputs
    }

    def unmet(part: Part, op: Op) -> bool:
        shared = any(result.tensor.startswith("@") for result in op.outputs)
        used = any(result.tensor in met for result in op.outputs)
        return _is_source(op) and not (used or (alive[part.path] and not shared))

    def constant(operand: Operand) -> Operand:
        return replace(operand, constant=True)

    return tuple(
        replace(part, ops=tuple(op.mapped(constant) if unmet(part, op) else op for op in part.ops))
        for part in listed
    )
