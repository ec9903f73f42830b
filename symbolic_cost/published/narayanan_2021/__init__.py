"""Parameters, FLOP, throughput and training time of GPT models.

Derived from the declared GPT: parameters (Eq 2), FLOP per iteration with recomputed blocks (Eq 3)
and the factor 8 of the training time (Eq 4). Eq 2 leaves out the final layer norm (2 e).

Inputs are named as in this library or as in the paper's tables; see `inputs.NAMES`.

Source: narayanan-2021, Eq 2 to 4, Tables 1 and 2, section 5.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sympy import Expr

from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.naming import in_our_names
from symbolic_cost.published.narayanan_2021.inputs import NAMES, Budget, Run
from symbolic_cost.published.narayanan_2021.printed import cells, rule_of_rate
from symbolic_cost.published.narayanan_2021.rules import computed, rules
from symbolic_cost.published.rounding import compared_within, number

PUBLISHED_INPUTS: Mapping[str, Any] = {
    "V": 51200,
    "l": 2048,
    "e": 12288,
    "h": 96,
    "n_layers": 80,
    "m1": 8,
    "pp": 8,
    "R": 1536,
    "B": 2304,
    "tflops_per_gpu": 148,
}
"""The model of 145.6 billion parameters of Table 1."""


def evaluate(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute what the tables print for any run, or the days of Eq 4.

    Args:
        inputs: of a `Run`, under our names or the paper's; or of a `Budget`: P, T, n and X.

    Returns:
        For a run params_billion, percent_peak, aggregate_pflops, flop_per_iteration [FLOP],
        iteration_s, days (of training on `tokens`) and days_for_300B_tokens, as far as the
        inputs determine them. For a budget days.

    Raises:
        InputError: every problem of the inputs.
    """
    if "P" in inputs:
        return {"days": number(computed("eq4_days", Budget.accepted(inputs).numbers()))}
    numbers = Run.accepted(in_our_names(inputs, NAMES, Run)).numbers()
    found = {name: computed(name, numbers) for name in rules()}
    return {name: number(expr) for name, expr in found.items() if expr.is_number}


def reproduce() -> Sequence[Comparison]:
    """Compare Tables 1 and 2 and both examples of Eq 4.

    Rates and days follow from printed rates, which are rounded: they agree if they do so inside
    that rounding.
    """
    return tuple(
        compared_within(cell.key, cell.printed, rule_of_rate(cell), cell.rates) for cell in cells()
    )


def formulas() -> dict[str, Expr]:
    """Return the formula of every printed number by its key, in the units of `rules`."""
    return {cell.key: rules()[cell.rule] for cell in cells()}
