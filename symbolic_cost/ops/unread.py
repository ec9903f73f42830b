"""Ops whose result no loss reads: they run forward, and nothing flows back through them.

For example a pooler that a model runs under a head of tokens, which does not look at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from symbolic_cost.conventions.questions import Role
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.op import AxesMap, Kernel, Op, OperandMap
from symbolic_cost.ops.pattern import Operand, Pattern
from symbolic_cost.ops.view import View
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Unread(Op):
    """An op without a backward pass, else as it is; see `unread`."""

    inner: Op

    def summing_space(self, operand: Operand) -> tuple[str, ...]:
        """Return the space of the op."""
        return self.inner.summing_space(operand)

    def kernels(self) -> tuple[Kernel, ...]:
        """Return the passes forward."""
        return tuple(each for each in self.inner.kernels() if each.phase is Phase.FORWARD)

    def saves(self) -> tuple[Operand, ...]:
        """Return none: nothing runs backward."""
        return ()

    def caches(self) -> tuple[Operand, ...]:
        """Return what the op keeps."""
        return self.inner.caches()

    def mapped_fields(self, operand: OperandMap, axes: AxesMap) -> dict[str, Any]:
        """Return the op on other operands."""
        return {"inner": self.inner.mapped(operand, axes)}


def _of_inner(name: str) -> property:
    return property(lambda self: getattr(self.inner, name), doc=f"{name} of the op.")


for _name in ("kind", "units", "use", "movable", "bulk", "pairs", "row_axes", "whole_axes",
              "forward_reductions"):  # fmt: skip
    setattr(Unread, _name, _of_inner(_name))


def unread(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Return ops through which nothing flows back."""
    return tuple(_constant(op) if isinstance(op, View) else _unread(op) for op in ops)


def _constant(op: Op) -> Op:
    inputs = tuple(replace(operand, constant=True) for operand in op.pattern.inputs)
    return replace(op, pattern=replace(op.pattern, inputs=inputs))


def _unread(op: Op) -> Op:
    inputs = tuple(
        operand if operand.is_weight else replace(operand, constant=True)
        for operand in op.pattern.inputs
    )
    pattern = replace(op.pattern, inputs=inputs)
    return Unread(op.path, pattern, op, core=op.core)


@dataclass(frozen=True)
class Stored(Op):
    """Weights that no forward pass of this model meets; see `stored`."""

    def kernels(self) -> tuple[Kernel, ...]:
        """Return none."""
        return ()

    def saves(self) -> tuple[Operand, ...]:
        """Return none."""
        return ()


def stored(name: str, **weights: str) -> Stored:
    """Declare weights that are kept and not used: `stored("contact", w="h", bias="one")`."""
    operands = (
        Operand(f"{name}.{weight}", tuple(axes.split()), Role.WEIGHT)
        for weight, axes in weights.items()
    )
    return Stored(name, Pattern(f"stored {name}", tuple(operands), (), ()))


def unused_weights(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Return the weights of layers that do not run, but for those that others share."""
    weights = ((op.path, weight) for op in ops for weight in op.weights)
    return tuple(
        stored(f"{path}{place}", w=" ".join(weight.axes))
        for place, (path, weight) in enumerate(weights)
        if not weight.tensor.startswith("@")
    )


@dataclass(frozen=True)
class Kept(Stored):
    """States that generation keeps of layers that do not run; see `unused_states`."""

    held: tuple[Operand, ...] = ()

    def caches(self) -> tuple[Operand, ...]:
        """Return the states."""
        return self.held

    def mapped_fields(self, operand: OperandMap, axes: AxesMap) -> dict[str, Any]:
        """Return the op with states on other axes."""
        held = tuple(map(operand, self.held))
        return {**super().mapped_fields(operand, axes), "held": held}


def unused_states(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Return what layers that do not run would keep for the next step."""
    return tuple(
        Kept(op.path, Pattern(f"kept {op.path}", (), (), ()), op.caches())
        for op in ops
        if op.caches()
    )
