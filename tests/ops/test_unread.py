"""Ops that nothing reads run forward alone; stored weights do no work."""

import symbolic_cost as sc
from symbolic_cost.axes import axes
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import OUTSIDE, Part
from symbolic_cost.ops.unread import stored, unread
from symbolic_cost.ops.view import view
from symbolic_cost.symbols import b, e, f

AXES = axes("b batch, e hidden, f inner, g hidden")
OPS = (
    view("same", "x[b e] -> y[b g]"),
    einsum("fc", "y[b g], *w[g f] + *bias[f] -> u[b f]"),
    pointwise("act", "u[b f] -> a[b f]", "gelu"),
)


def table(ops, **options):
    part = Part("layer", ops, takes={"x": OUTSIDE})
    model = Model("m", (part,), {"b": b, "e": e, "g": e, "f": f}, axes=AXES)
    return sc.cost(model, sc.preset("torch-flop-counter"), **options)


def test_unread_ops_have_no_backward():
    plain, blind = table(OPS), table(unread(OPS))
    assert blind.total("flop") == plain.total("flop", phase="forward")
    assert blind.total("parameter") == plain.total("parameter")
    assert blind.total("saved") == 0


def test_stored_weights_count_and_do_nothing():
    rows = table((*OPS, stored("kept", w="e f", bias="f")))
    plain = table(OPS)
    assert rows.total("parameter") - plain.total("parameter") == e * f + f
    assert rows.total("flop") == plain.total("flop")
