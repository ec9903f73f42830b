"""Gradients that products return to autograd though they have added them to others.

Nobody reads them: one of each shape of a weight is there from the first backward pass on, experts
and blocks share theirs. For example blocks of 80 layers have four, and a head of their stage one.
Weights at different places of a block are taken to differ in shape: a shared expert as large as a
routed one has its own here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.axes import At, Role
from symbolic_cost.extrema import Min
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import Phase, Row
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op, Use
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.table import Divided
from symbolic_cost.parallel.units import Standing
from symbolic_cost.parallel.workspace import workspace_row

Shape: TypeAlias = tuple[str, tuple[str, ...]]
"""The place of an op within its block, and the axes of its weight."""


def unused_gradients(divided: Divided, stage: Stage, parts: Iterable[Standing]) -> Row:
    """Return the row of what the products of a stage return, those of routers aside [byte]."""
    model, share, rules = divided.model, divided.share(stage), divided.conventions
    counter = Counter(share.sizes, divided.placement, rules, share.padded, share.means)
    experts = _names(model, At(Role.EXPERT))
    routed = _names(model, At(Role.EXPERT, ("scored",)))
    stands: Mapping[Shape, list[Expr]] = grouped(
        ((op.path, weight.axes), one.there)
        for one in parts
        for op, weight in _products(one)
        if routed.isdisjoint(weight.axes)
    )
    sizes = (
        mul(_once(there), counter.elements(tuple(a for a in axes if a not in experts)))
        for (_, axes), there in stands.items()
    )
    return workspace_row("unused_gradients", Phase.STATE, mul(rules.sizes.value, add(*sizes)))


def _products(one: Standing) -> Iterator[tuple[Op, Operand]]:
    """Yield the weights of products that learn, each with its op."""
    rows, path = one.backward.executed.once, one.part.path
    learning = {row.path for row in rows if row.phase is Phase.BACKWARD_WEIGHT}
    for op in one.part.ops:
        if op.use is Use.PRODUCT and op.movable and f"{path}.{op.path}" in learning:
            yield from ((op, weight) for weight in op.weights if weight in op.pattern.inputs)


def _names(model: Model, at: At) -> set[str]:
    return {axis.name for axis in model.placed(at)}


def _once(there: list[Expr]) -> Expr:
    """Return one where any of the parts is there."""
    return Integer(1) if Integer(1) in there else Min(Integer(1), add(*there))
