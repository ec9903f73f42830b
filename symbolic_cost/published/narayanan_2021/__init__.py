"""Parameters, FLOP, throughput and training time of GPT models.

Derived from the declared GPT: parameters (Eq 2), FLOP per iteration with recomputed blocks (Eq 3)
and the factor 8 of the training time (Eq 4). Eq 2 leaves out the final layer norm (2 e).

Inputs are named as in this library or as in the paper's tables; see `Run.NAMES`.

Source: narayanan-2021, Eq 2 to 4, Tables 1 and 2, section 5.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from sympy import Expr

from symbolic_cost.numeric.binding import value
from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.narayanan_2021.inputs import TERA, Budget, Run
from symbolic_cost.published.narayanan_2021.rules import computed, rules
from symbolic_cost.published.printed import printed_data, records
from symbolic_cost.published.rounding import compared_within, number
from symbolic_cost.symbols import X, exact

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
    numbers = Run.accepted(inputs).numbers()
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


_PRINTED = printed_data("narayanan_2021")
_RATE = "tflops_per_gpu"
_GIVEN = {*Run.NAMES, _RATE}


class Cell(NamedTuple):
    """One printed number: its key, rule and text, the inputs, and printed rates it rests on."""

    key: str
    rule: str
    printed: str
    numbers: dict[Expr, Expr]
    rates: tuple[str, ...] = ()


def cells() -> Iterator[Cell]:
    """Yield every printed number."""
    for row in records(_PRINTED["table1"]):
        key, numbers, rates = f"table1.{row['params_billion']}B", _numbers(row), (row[_RATE],)
        yield Cell(f"{key}.params_billion", "params_billion", row["params_billion"], numbers)
        for name in ("percent_peak", "aggregate_pflops"):
            yield Cell(f"{key}.{name}", name, row[name], numbers, rates)
    for row in records(_PRINTED["table2"]):
        key, name = f"table2.{row['scheme']}.{row['h']}.{row['n_gpus']}", "days_for_300B_tokens"
        yield Cell(f"{key}.{name}", name, row[name], _numbers(row), (row[_RATE],))
    for example in _PRINTED["eq4"]:
        numbers = Budget.accepted({name: example[name] for name in "PTnX"}).numbers()
        yield Cell(f"eq4.{example['n']}.days", "eq4_days", example["days"], numbers)


def _numbers(row: Mapping[str, str]) -> dict[Expr, Expr]:
    given = {name: int(text) for name, text in row.items() if name in _GIVEN}
    return Run.accepted(_PRINTED["inputs"] | given).numbers()


def rule_of_rate(cell: Cell) -> Callable[..., Fraction | int]:
    """Return the rule of a printed number as a function of the printed rates."""

    def rule(*rates: Fraction) -> Fraction | int:
        varied = {X: exact(rates[0]) * TERA} if rates else {}
        return value(computed(cell.rule, cell.numbers | varied))

    return rule
