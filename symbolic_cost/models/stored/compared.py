"""What a checkpoint stores beside what its configuration declares."""

from collections import Counter
from math import prod

from symbolic_cost.models.bound import bound
from symbolic_cost.models.stored.header import Header, numbered
from symbolic_cost.ops.graph import Model


def difference(header: Header, model: Model, declared: int) -> str:
    """Say by name which tensors only one of both has; empty if all parameters are accounted for.

    Args:
        header: of the checkpoint.
        model: as declared, its sizes bound.
        declared: its parameters.
    """
    if header.packed():
        return "quantised: several parameters stand in one element; not compared"
    if header.count == declared:
        return ""
    missing = Counter(_weights(model))
    left = []
    for tensor in header.parameters:
        if missing[tensor.count] > 0:
            missing[tensor.count] -= 1
        else:
            left.append(tensor.name)
    parts = [f"{header.count} parameters are stored, {declared} declared"]
    if left:
        parts.append(f"without a declared weight of as many elements: {numbered(left)}")
    gone = ", ".join(f"{times} of {count}" for count, times in missing.items() if times > 0)
    return "; ".join([*parts, *([f"declared and not stored: {gone} elements"] if gone else [])])


def _weights(model: Model) -> dict[int, int]:
    """Return how many weights have how many elements."""
    sized = bound(model)
    counts: Counter[int] = Counter()
    for part in sized.parts:
        weights = {
            operand.tensor: operand.axes
            for op in part.ops
            for operand in (*op.pattern.inputs, *op.pattern.biases)
            if operand.is_weight
        }
        for axes in weights.values():
            counts[prod(int(sized.sizes[axis]) for axis in axes)] += int(part.repeat)
    return counts
