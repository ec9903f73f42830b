"""Activation memory, model and hardware FLOP of GPT blocks with recomputation.

All six rows of Table 2 come from the one declared block, by strategy and recompute policy alone.
Inputs are named as in this library or as in the paper's Table 3; see `Training.NAMES`.

Source: korthikanti-2022, Table 2 (Eq 1 to 6), Eq 7 to 9, Tables 3 and 5, sections 4 and 5,
appendix B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sympy import Expr, expand

from symbolic_cost.emit.formulas import plain
from symbolic_cost.ledger import Quantity
from symbolic_cost.numeric.binding import bind
from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.korthikanti_2022.inputs import Training
from symbolic_cost.published.korthikanti_2022.printed import EQUATIONS, INCREASE, TABLE_2, cells
from symbolic_cost.published.korthikanti_2022.rules import (
    TECHNIQUES,
    block_table,
    computed,
    rules,
    saved,
    throughput_increase,
)
from symbolic_cost.published.rounding import compared_within, number

PUBLISHED_INPUTS: Mapping[str, Any] = {
    "b": 1,
    "l": 2048,
    "e": 12288,
    "h": 96,
    "m1": 8,
    "n_layers": 96,
    "V": 51200,
    "pp": 8,
    "R": 64,
    "B": 64,
    "iter_s_full_recompute": 18.13,
    "iter_s_present": 13.75,
}
"""The model of 175 billion parameters of Tables 3 and 5."""


def evaluate(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute Table 2, the numbers of the text, and a row of Table 5 for any model.

    Args:
        inputs: of a `Training`, under our names or the paper's.

    Returns:
        "activation_bytes": bytes that one block keeps, by row of Table 2. As far as the inputs
        determine them "5as/h", "selective saving %", "selective FLOP overhead %",
        "sbhp (2 bytes, 2**30)" [GiB], "model_flop" and "hardware_flop" (Eq 7 and 8) [FLOP],
        "mfu_percent", "hfu_percent", "hfu_percent_once" (see `rules.RECOMPUTED_PASSES`), and
        "throughput_increase_percent".

    Raises:
        InputError: every problem of the inputs; sizes that a degree does not divide.
    """
    given = Training.accepted(inputs)
    sizes = {name: getattr(given, name) for name in ("b", "l", "e", "h", "m1")}
    tables = {name: bind(block_table(name), sizes) for name in TECHNIQUES}
    found: dict[str, Any] = {
        "activation_bytes": {
            name: number(table.total(Quantity.SAVED)) for name, table in tables.items()
        }
    }
    numbers = given.numbers()
    for name in rules():
        expr = computed(name, numbers)
        if expr.is_number:
            found[name] = number(expr)
    if given.iter_s_full_recompute is not None and given.iter_s_present is not None:
        times = (given.iter_s_full_recompute, given.iter_s_present)
        found[INCREASE] = float(throughput_increase(*(Fraction(str(time)) for time in times)))
    return found


def reproduce() -> Sequence[Comparison]:
    """Compare Table 2 and Eq 7 and 8 as expressions, the text and Table 5 as numbers.

    Table 5 follows from iteration times that were printed to 0.01 s: its numbers agree if they do
    so inside that rounding.
    """
    return (
        *(_equal(f"table2.{name}", TABLE_2[name], saved(name)) for name in TECHNIQUES),
        *(_equal(name, printed, rules()[name]) for name, printed in EQUATIONS.items()),
        *(compared_within(cell.key, cell.printed, cell.rule, cell.times) for cell in cells()),
    )


def formulas() -> dict[str, Expr]:
    """Return the formula of every printed number by its key, in the units of `rules`."""
    return {cell.key: rules()[cell.name] for cell in cells() if cell.name in rules()}


def _equal(key: str, printed: Expr, derived: Expr) -> Comparison:
    """Compare two expressions."""
    same = expand(printed - derived) == 0
    return Comparison(key, plain(printed), plain(expand(derived)), same, "compared as expressions")
