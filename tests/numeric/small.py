"""A model of few ops, for tests that are not about a real one."""

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import dropout
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.placement import Placement
from symbolic_cost.symbols import V, b, e, f, h, l, m1, n_layers

MODEL = Model(
    "small",
    (
        fragment(
            "block",
            (
                einsum("heads", "x[b l e], *w[e h d] -> q[b l h d]"),
                einsum("fc", "x[b l e], *w[e f] -> u[b l f]"),
                dropout("drop", "u[b l f] -> y[b l f]"),
            ),
            n_layers,
        ),
        fragment("head", (einsum("logits", "x[b l e], *w[e v] -> logits[b l v]"),)),
    ),
    {"b": b, "l": l, "e": e, "h": h, "d": e / h, "f": f, "v": V},
)
AXES = {"h": ("tp",), "f": ("tp",), "v": ("tp",)}
TP = Placement({"tp": m1}, AXES)


def small(conventions=STANDARD, placement=TP):
    """The table of the model."""
    return cost(MODEL, conventions, placement)
