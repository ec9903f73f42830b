"""Towers: a model as one part of another, under names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sympy import Expr

from symbolic_cost.axes import Glossary
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import OUTSIDE, Part, Place, retitled
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.unread import unused_weights
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Tower:
    """Parts of a model below a path, their axes named after it.

    For example part "block" of tower "vision" is "vision.block", and its axis e is "e_vision".

    Args:
        last: path of its last part.
    """

    name: str
    parts: tuple[Part, ...]
    sizes: Mapping[str, Expr]
    axes: Glossary

    @property
    def last(self) -> str:
        """Path of the last part."""
        return self.parts[-1].path


def tower(model: Model, name: str) -> Tower:
    """Return a model as a tower.

    Args:
        model: with numbers for sizes.
        name: of the tower.
    """
    names = {axis: f"{axis}_{name}" for axis in model.sizes}
    sizes = {names[axis]: size for axis, size in model.sizes.items()}
    axes = {
        names[axis]: replace(model.axes[axis], name=names[axis])
        for axis in model.sizes
        if axis in model.axes
    }
    return Tower(name, below(model.parts, name, names), sizes, axes)


def kept(model: Model, name: str) -> Tower:
    """Return the weights of a model as a tower that does not run."""
    parts = tuple(replace(part, ops=unused_weights(part.ops)) for part in model.parts)
    return tower(replace(model, parts=parts), name)


def below(parts: tuple[Part, ...], name: str, names: Mapping[str, str]) -> tuple[Part, ...]:
    """Return parts below a path, under other names of axes; they stand before the blocks."""
    before = OUTSIDE
    below_parts = []
    for part in parts:
        takes = {
            port: source if source == OUTSIDE else f"{name}.{source}" if source else before
            for port, source in part.takes.items()
        }
        ops = tuple(_apart(op, name) for op in retitled(part.ops, names))
        moved = replace(part, path=f"{name}.{part.path}", ops=ops, takes=takes, place=Place.END)
        below_parts.append(moved)
        before = moved.path if moved.results else before
    return tuple(below_parts)


def _apart(op: Op, name: str) -> Op:
    """Return an op whose shared tensors are those of its tower."""

    def own(operand: Operand) -> Operand:
        shared = operand.tensor.startswith("@")
        return operand.renamed(f"@{name}.{operand.tensor[1:]}") if shared else operand

    return op.mapped(own)
