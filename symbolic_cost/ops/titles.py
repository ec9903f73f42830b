"""Ops and parts under other names of axes, so that one declaration serves several towers."""

from collections.abc import Iterable, Mapping

from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.records import replace


def retitled(ops: Iterable[Op], names: Mapping[str, str]) -> tuple[Op, ...]:
    """Return ops whose axes have other names.

    For example a layer of source positions r, l, t becomes one of target positions o, m, u.

    Args:
        ops: declared ones.
        names: new ones, by axis; other axes keep theirs.
    """

    def axes(old: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(axis, axis) for axis in old)

    def operand(old: Operand) -> Operand:
        return replace(old, axes=axes(old.axes))

    return tuple(op.mapped(operand, axes) for op in ops)
