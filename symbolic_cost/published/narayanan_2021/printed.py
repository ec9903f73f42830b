"""Tables 1 and 2 and the examples of Eq 4 as printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from sympy import Expr

from symbolic_cost.numeric.binding import value
from symbolic_cost.published.naming import in_our_names
from symbolic_cost.published.narayanan_2021.inputs import NAMES, TERA, Budget, Run
from symbolic_cost.published.narayanan_2021.rules import computed
from symbolic_cost.published.printed import printed_data, records
from symbolic_cost.symbols import X, exact

_PRINTED = printed_data("narayanan_2021")
_RATE = "tflops_per_gpu"
_GIVEN = {*NAMES, _RATE}


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
    return Run.accepted(in_our_names(_PRINTED["inputs"] | given, NAMES, Run)).numbers()


def rule_of_rate(cell: Cell) -> Callable[..., Fraction | int]:
    """Return the rule of a printed number as a function of the printed rates."""

    def rule(*rates: Fraction) -> Fraction | int:
        varied = {X: exact(rates[0]) * TERA} if rates else {}
        return value(computed(cell.rule, cell.numbers | varied))

    return rule
