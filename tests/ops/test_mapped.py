"""One pass over ops: every class says once what stands under other axes and tensors."""

from dataclasses import fields, replace

import pytest

from symbolic_cost.models.catalog import model
from symbolic_cost.ops.joined import joined
from symbolic_cost.ops.op import Op

MODELS = ("gpt2", "llama", "gpt_oss", "deepseek_v3", "t5", "mamba", "mamba2", "lstm", "resnet-18")


def all_classes(base=Op):
    for each in base.__subclasses__():
        yield each
        yield from all_classes(each)


def ops():
    """One op of every class and name of a few models."""
    declared = (op for name in MODELS for part in model(name).parts for op in part.ops)
    return list({(type(op), op.path): op for op in declared}.values())


OPS = [*ops(), joined("join", "text[b m], image[b n] -> both[b j]")]


def under(op, names):
    return op.mapped(
        lambda operand: replace(operand, axes=tuple(names[axis] for axis in operand.axes)),
        lambda axes: tuple(names.get(axis, axis) for axis in axes),
    )


def texts(value):
    """Every text in the fields of an op, operands, works and kernels in it."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from texts(each)
    elif hasattr(value, "__dataclass_fields__"):
        for item in fields(value):
            yield from texts(getattr(value, item.name))


@pytest.mark.parametrize("op", OPS, ids=lambda op: f"{type(op).__name__}-{op.path}")
def test_every_field_that_names_an_axis_is_mapped(op):
    names = {axis: f"{axis}_other" for axis in op.axes}
    names |= {op.window: "w_other"} if isinstance(getattr(op, "window", None), str) else {}
    moved = under(op, names)
    assert moved.axes == tuple(names[axis] for axis in op.axes)
    assert not set(op.axes) & set(texts(moved.kernels()))
    assert under(moved, {new: old for old, new in names.items()}) == op


def test_the_classes_of_the_models_are_most_of_all():
    missing = {each.__name__ for each in all_classes()} - {type(op).__name__ for op in OPS}
    of_configurations = {"UnusedWeight", "Solve", "Stored", "Kept", "Unread"}  # of no named model
    assert missing <= {"TransposedConv", "Update", "Fused", *of_configurations}


def test_a_group_is_renamed_inside_too():
    cell = next(op for op in OPS if type(op).__name__ == "Recurrent")
    moved = cell.renamed("deep", {})
    inside = {each.tensor for op in moved.ops for each in (*op.inputs, *op.weights, *op.outputs)}
    assert {each.tensor for each in (*moved.inputs, *moved.weights, *moved.outputs)} <= inside
