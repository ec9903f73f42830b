"""Chinchilla: the tables of three approaches, the closed form, and the fifty models.

The models are declared op by op: relative positions add one projection and two vectors to each
attention, feed-forward layers have no bias, the token table is tied.

Source: hoffmann-2022, Tables 2, 3, A3, A4 and A9, Appendices D and F.
"""

import math
from collections.abc import Mapping
from functools import cache
from statistics import linear_regression

from sympy import Expr

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.layers.norm import layer_norm
from symbolic_cost.ledger import Quantity
from symbolic_cost.ops.declare import Model, axes, einsum, lookup
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.part import fragment
from symbolic_cost.published.cases import Values, Work, numbered
from symbolic_cost.published.contract import printed_data
from symbolic_cost.scaling.declared import law
from symbolic_cost.scaling.law import Constants
from symbolic_cost.scaling.optimum import Optimum, optimum
from symbolic_cost.symbols import V, b, e, f, h, l, n_layers, q

_LEFT_OUT = "67B"
"""The row of Table A3 that lies 10 % off the line through the other eight."""

AXES = axes(
    "b batch, r token residual, l token query, v vocabulary, e hidden, h head, d width, f inner"
)
_SIZES = {"b": b, "r": l, "l": l, "v": V, "e": e, "h": h, "d": q, "f": f}


@cache
def parameters() -> Expr:
    """Return the parameters of a member, in e, f, h, q, n_layers and V [1]."""
    block = (
        *(einsum(name, f"x[b l e], *w[e h d] + *bias[h d] -> {name}[b l h d]") for name in "qkv"),
        einsum("distance", "positions[l e], *w[e h d] -> p[l h d]"),
        einsum("content", "k[b l h d], *u[h d] -> by_content[b l h]"),
        einsum("place", "p[l h d], *u[h d] -> by_place[l h]"),
        einsum("proj", "context[b l h d], *w[h d e] + *bias[e] -> y[b l e]"),
        einsum("fc1", "y[b l e], *w[e f] -> u[b l f]"),
        einsum("fc2", "u[b l f], *w[f e] -> z[b l e]"),
    )
    parts = (
        fragment("embedding", (lookup("token", "!ids[b l]:index, *table[v e] -> x[b l e]"),)),
        fragment("block", block, repeat=n_layers),
        fragment("norms", (layer_norm("norm"),), repeat=2 * n_layers + 1),
    )
    model = Model("chinchilla", parts, _SIZES, source="hoffmann-2022", axes=AXES)
    return cost(model, MODEL_FLOP).total(Quantity.PARAMETER)


def _member(inputs: Values) -> Values:
    numbers = numbered("e=d f=ffw q=kv h=heads n_layers=layers V", inputs.get)
    return {"parameters": int(parameters().xreplace(numbers))}


@cache
def power_law(table: str) -> Mapping[str, float]:
    """Return N = G (C/6)**a through the rows of a table, by least squares of ln C on ln N.

    The exponent between the first and the last row stands beside it.
    """
    data = printed_data("chinchilla_2022.toml")[table]
    rows = [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]
    used = [row for row in rows if row["size"] != _LEFT_OUT or "approach3" not in table]
    sizes, flop = ([math.log(float(row[name])) for row in used] for name in "NC")
    ends = (sizes[-1] - sizes[0]) / (flop[-1] - flop[0])
    slope, start = linear_regression(sizes, flop)
    return {"a": 1 / slope, "G": math.exp(-(start - math.log(6)) / slope), "exponent": ends}


def _closed(inputs: Values) -> Values:
    flop = float(inputs["C"])
    return _split_and_losses(inputs, "", flop) | _split_and_losses(inputs, "_tex", flop)


def _split_and_losses(inputs: Values, suffix: str, flop: float) -> dict[str, float]:
    """Return the split under one set of constants, and two losses."""
    own = {
        name: float(inputs.get(name + suffix, inputs[name]))
        for name in ("E", "A", "B", "alpha", "beta")
    }
    chosen = law("chinchilla").with_constants(Constants("given", own, "inputs"))
    best: Optimum = optimum(chosen, flop)
    losses = {"L_gopher": (280e9, 300e9), "L_chinchilla": (70e9, 1.4e12)}
    values = {
        "a": best.exponents["N"],
        "b": best.exponents["D"],
        "N": best.values["N"],
        "D": best.values["D"],
        "excess": -(best.excess or 0.0),
        **{name: chosen.at({"N": N, "D": D})["loss"] for name, (N, D) in losses.items()},
    }
    return {name + suffix: value for name, value in values.items()}


_A3 = "chinchilla-tableA3-approach3"
work = Work(
    "chinchilla-2022",
    {
        "chinchilla-table3-more": lambda _: power_law("chinchilla-table3"),
        "chinchilla-tableA3-approach2-more": lambda _: power_law("chinchilla-tableA3-approach2"),
        _A3: lambda _: power_law(_A3),
        f"{_A3}-more": lambda _: power_law(_A3),
        "chinchilla-closed-form": _closed,
        "chinchilla-tableA9": _member,
        "chinchilla-tableA4": _member,
    },
)
