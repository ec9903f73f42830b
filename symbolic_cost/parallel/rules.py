"""Strategies that give some ops axes of their own; see `relabel`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.view import View
from symbolic_cost.parallel.axes import HEADS, INNER, KEYS, whole
from symbolic_cost.parallel.relabel import relabel


def exchange_heads(model: Model) -> Model:
    """Give the attention core all positions of some heads (Ulysses)."""
    return relabel(model, _exchanged)


def two_dimensions(model: Model) -> Model:
    """Let products with weights sum over whole axes, and look tables up in one piece (SUMMA)."""
    return relabel(model, _whole_inputs)


def three_dimensions(model: Model) -> Model:
    """Let products take the rows of a plane, and split rows inside layers in another way."""
    return relabel(model, _planes, _between_planes)


def keep_key_shards(model: Model) -> Model:
    """Save shards of the keys and values that come round, and no copies (ring attention)."""
    parts = tuple(
        replace(part, ops=tuple(map(_in_shards, _uncopied(part.ops)))) for part in model.parts
    )
    return replace(model, parts=parts)


def _uncopied(ops: tuple[Op, ...]) -> Iterator[Op]:
    """Yield ops that take keys and values themselves where they took copies."""
    sources: dict[str, Operand] = {}
    for op in ops:
        if op.repeats and set(KEYS) & set(op.outputs[0].axes):
            sources[op.outputs[0].tensor] = op.inputs[0]
            continue
        inputs = tuple(sources.get(each.tensor, each) for each in op.pattern.inputs)
        yield replace(op, pattern=replace(op.pattern, inputs=inputs))


def _in_shards(op: Op) -> Op:
    if isinstance(op, View) and set(KEYS) & set(op.outputs[0].axes):
        return replace(op, regathered=True)
    return op


def _exchanged(op: Op) -> dict[str, str]:
    if not set(KEYS) & set(op.axes):
        return {}
    return {axis: f"{axis}_core" for axis in ("l", *HEADS)}


def _whole_inputs(op: Op) -> dict[str, str]:
    if isinstance(op, Lookup):
        return {"v": whole("v")}
    if not isinstance(op, Einsum) or not op.weights:
        return {}
    return {axis: whole(axis) for axis in _summed(op)}


def _planes(op: Op) -> dict[str, str]:
    if isinstance(op, Lookup):
        return {"v": whole("v")}
    if isinstance(op, Einsum) and op.weights:
        return {"b": "b_plane"}
    return {"b": "b_inner"} if set(INNER) & set(op.axes) else {}


def _between_planes(result: Operand) -> dict[str, str]:
    return {"b_plane": "b_inner" if set(INNER) & set(result.axes) else "b"}


def _summed(op: Einsum) -> list[str]:
    return [axis for axis in op.axes if axis not in op.result.axes]
