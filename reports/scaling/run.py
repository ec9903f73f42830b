"""How the FLOP and parameters of a GPT scale with its sequence length and its width.

Writes Markdown to standard output; `make reports` approves it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Expr

import symbolic_cost as sc

e, h, l = sc.symbols.e, sc.symbols.h, sc.symbols.l
Unit = sc.units.Unit

GPT3_175B = {"n_layers": 96, "e": 12288, "h": 96, "b": 1, "l": 2048, "V": 50257}
"""Sizes of Brown et al. 2020, Table 2.1, one sequence per microbatch; f = 4 e = 49152."""

MODEL = sc.GPT(f=4 * e).model()
CORE, MLP = "block.attention.core", "block.mlp"
INTRODUCTION = (
    "One rank, an MLP four times as wide as the model, 2 FLOP per multiply-accumulate of matrix "
    "products alone (`model-flop`). Numbers are those of GPT-3 175B with one sequence of 2048 "
    "tokens."
)


def report() -> str:
    """Return the report as Markdown."""
    table = sc.cost(MODEL, sc.preset("model-flop"))
    costs = {
        "Forward FLOP": (table.total("flop", phase="forward"), Unit.FLOP),
        "Training FLOP": (table.total("flop"), Unit.FLOP),
        "Parameters": (table.total("parameter"), Unit.ELEMENT),
    }
    lines = ["# How a GPT scales", "", INTRODUCTION]
    for title, (cost, unit) in costs.items():
        lines += ["", f"## {title}", "", *_growth_of(cost, unit)]
    lines += ["", "## Where the attention core overtakes the MLP", "", *_crossovers(), ""]
    lines += [sc.where_plain([h, *(cost for cost, _ in costs.values())])]
    return "\n".join(lines) + "\n"


def _growth_of(cost: Expr, unit: sc.units.Unit) -> Iterator[str]:
    """Say how one cost grows with the sequence length and with the width."""
    yield "| | formula | GPT-3 175B |"
    yield "|---|---|---|"
    yield _line("total", sc.factored(cost), unit)
    for symbol in (l, e):
        yield _line(f"derivative in {symbol}", sc.derivative(cost, symbol), unit)
        yield _line(f"elasticity in {symbol}", sc.elasticity(cost, symbol), Unit.RATIO)
        yield _line(f"leading term in {symbol}", sc.leading_term(cost, symbol), unit)
    together = {l: 1, e: 1}
    yield _line(
        f"leading term in l and e together, power {sc.exponent(cost, together)}",
        sc.leading_term(cost, together),
        unit,
    )


def _crossovers() -> Iterator[str]:
    """Say at which sequence length the attention core costs as much as the MLP."""
    yield "| conventions | l | GPT-3 175B |"
    yield "|---|---|---|"
    for name in ("model-flop", "standard"):
        table = sc.cost(MODEL, sc.preset(name))
        core, mlp = (table.total("flop", path=path) for path in (CORE, MLP))
        for length in sc.crossover(core, mlp, l):
            yield _line(name, length, Unit.RATIO)


def _line(label: str, formula: Expr, unit: sc.units.Unit) -> str:
    number = sc.value(sc.bind(formula, GPT3_175B))
    shown = sc.units.human(number, unit) if unit is not Unit.RATIO else f"{float(number):.6g}"
    return f"| {label} | `{sc.plain(formula)}` | {shown} |"


if __name__ == "__main__":
    print(report(), end="")
