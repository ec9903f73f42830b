"""Parameters, FLOP, throughput and training time of GPT models.

Derived from the declared GPT: parameters (Eq 2), FLOP per iteration with recomputed blocks (Eq 3)
and the factor 8 of the training time (Eq 4). Eq 2 leaves out the final layer norm (2 e).

Inputs are named as in this library or as in the paper's tables; see `NAMES`.

Source: narayanan-2021, Eq 2 to 4, Tables 1 and 2, section 5.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from sympy import Expr, Integer, Rational, expand

from symbolic_cost import symbols
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import CostTable, Quantity
from symbolic_cost.models.gpt import GPT
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import WHOLE
from symbolic_cost.ops.recompute import FULL
from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.inputs import Count, Inputs, Rate
from symbolic_cost.published.naming import in_our_names
from symbolic_cost.published.rounding import compared_within, plain
from symbolic_cost.symbols import B, F_m, P, R, X, e, exact, l, tokens

NAMES = {
    "s": "l",
    "h": "e",
    "heads": "h",
    "l": "n_layers",
    "t": "m1",
    "p": "pp",
    "n_gpus": "R",
    "batch": "B",
    "global_batch": "B",
}
"""Our names of the paper's columns."""

SECONDS_PER_DAY = Integer(86400)
TERA = Integer(10**12)

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


class Run(Inputs):
    """A training run; what is not given leaves out the numbers that need it.

    Args:
        e: embedding width.
        n_layers: blocks.
        B: global batch [sequences].
        R: GPUs.
        tflops_per_gpu: achieved [TFLOP/s].
        V: vocabulary.
        l: sequence length [tokens].
        tokens: trained on.
        peak_tflops: of one GPU [TFLOP/s].
        h: heads; they cancel.
        m1: tensor-parallel degree; the achieved rate includes its effect.
        pp: pipeline-parallel degree, likewise.
    """

    e: Count
    n_layers: Count
    B: Count | None = None
    R: Count | None = None
    tflops_per_gpu: Rate | None = None
    V: Count = 51200
    l: Count = 2048
    tokens: Count = 300 * 10**9
    peak_tflops: Rate = 312
    h: Count = 1
    m1: Count = 1
    pp: Count = 1

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol that is given."""
        given = {
            **{symbols.symbol(name): getattr(self, name) for name in _SIZES},
            F_m: exact(self.peak_tflops) * TERA,
        }
        if self.tflops_per_gpu is not None:
            given[X] = exact(self.tflops_per_gpu) * TERA
        return {symbol: exact(size) for symbol, size in given.items() if size is not None}


_SIZES = ("e", "n_layers", "B", "R", "V", "l", "tokens")


class Budget(Inputs):
    """What Eq 4 takes: P parameters, T tokens, n GPUs, X achieved by each [FLOP/s]."""

    P: Rate
    T: Rate
    n: Count
    X: Rate

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol."""
        return {P: exact(self.P), tokens: exact(self.T), R: exact(self.n), X: exact(self.X)}


@cache
def rules() -> dict[str, Expr]:
    """Return the formula of every output in elements, FLOP, FLOP per second or seconds.

    X is the achieved and F_m the peak rate of one GPU; in eq4_days P is the number of parameters.
    """
    flop = iteration_flop()
    return {
        "params_billion": parameters(),
        "flop_per_iteration": flop,
        "percent_peak": X / F_m,
        "aggregate_pflops": R * X,
        "iteration_s": flop / (R * X),
        "days": expand(tokens * flop / (B * l)) / (R * X),
        "eq4_days": flop_per_parameter() * tokens * P / (R * X),
    }


UNITS = {
    "params_billion": Integer(10**9),
    "percent_peak": Rational(1, 100),
    "aggregate_pflops": Integer(10**15),
    "days": SECONDS_PER_DAY,
    "eq4_days": SECONDS_PER_DAY,
}
"""Unit of an output in elements, FLOP per second or seconds, where it is not one."""


def parameters() -> Expr:
    """Return Eq 2, parameters without the final layer norm [element]."""
    final_norm = _derived().total(Quantity.PARAMETER, path="head.norm")
    return expand(_derived().total(Quantity.PARAMETER) - final_norm)


def iteration_flop() -> Expr:
    """Return Eq 3, FLOP of one iteration of B sequences, every block recomputed [FLOP]."""
    return expand(_derived().total(Quantity.FLOP).xreplace({symbols.b: B}))


def flop_per_parameter() -> Expr:
    """Return the 8 of Eq 4: FLOP per parameter and token of a wide model."""
    return expand(iteration_flop() / (B * l)).coeff(e, 2) / parameters().coeff(e, 2)


def evaluate(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute what the tables print for any run, or the days of Eq 4.

    Args:
        inputs: of a `Run`, under our names or the paper's; or of a `Budget`: P, T, n and X.

    Returns:
        For a run params_billion, percent_peak, aggregate_pflops, flop_per_iteration [FLOP],
        iteration_s and days (of training on `tokens`), as far as the inputs determine them. For
        a budget days.

    Raises:
        InputError: every problem of the inputs.
    """
    if "P" in inputs:
        return {"days": plain(_computed("eq4_days", Budget.accepted(inputs).numbers()))}
    numbers = Run.accepted(in_our_names(inputs, NAMES, Run)).numbers()
    computed = {name: _computed(name, numbers) for name in rules()}
    return {name: plain(expr) for name, expr in computed.items() if expr.is_number}


def reproduce() -> Sequence[Comparison]:
    """Compare Tables 1 and 2 and both examples of Eq 4.

    Rates and days follow from printed rates, which are rounded: they agree if they do so inside
    that rounding.
    """
    return tuple(
        compared_within(cell.key, cell.printed, _rule_of_rate(cell), cell.rates)
        for cell in _cells()
    )


def formulas() -> dict[str, Expr]:
    """Return the formula of every printed number by its key, in the units of `rules`."""
    return {cell.key: rules()[cell.rule] for cell in _cells()}


@cache
def _derived() -> CostTable:
    return cost(GPT(f=4 * e).model(), MODEL_FLOP, WHOLE, FULL)


def _computed(name: str, numbers: Mapping[Expr, Expr]) -> Expr:
    return rules()[name].xreplace(numbers) / UNITS.get(name, Integer(1))


# ------------------------------------------------------------------- printed numbers

_PRINTED = json.loads(
    (files("symbolic_cost.published") / "data" / "narayanan_2021.json").read_text("utf-8")
)
_RATE = "tflops_per_gpu"
_GIVEN = {*NAMES, _RATE}


class _Cell(NamedTuple):
    """One printed number: its key, rule and text, the inputs, and printed rates it rests on."""

    key: str
    rule: str
    printed: str
    numbers: dict[Expr, Expr]
    rates: tuple[str, ...] = ()


def _cells() -> Iterator[_Cell]:
    for row in _rows("table1"):
        key, numbers, rates = f"table1.{row['params_billion']}B", _numbers(row), (row[_RATE],)
        yield _Cell(f"{key}.params_billion", "params_billion", row["params_billion"], numbers)
        for name in ("percent_peak", "aggregate_pflops"):
            yield _Cell(f"{key}.{name}", name, row[name], numbers, rates)
    for row in _rows("table2"):
        key = f"table2.{row['scheme']}.{row['h']}.{row['n_gpus']}.days_for_300B_tokens"
        yield _Cell(key, "days", row["days_for_300B_tokens"], _numbers(row), (row[_RATE],))
    for example in _PRINTED["eq4"]:
        numbers = Budget.accepted({name: example[name] for name in "PTnX"}).numbers()
        yield _Cell(f"eq4.{example['n']}.days", "eq4_days", example["days"], numbers)


def _rows(table: str) -> Iterator[dict[str, str]]:
    for cells in _PRINTED[table]["rows"]:
        yield dict(zip(_PRINTED[table]["columns"], cells, strict=True))


def _numbers(row: Mapping[str, str]) -> dict[Expr, Expr]:
    given = {name: int(text) for name, text in row.items() if name in _GIVEN}
    return Run.accepted(in_our_names(_PRINTED["inputs"] | given, NAMES, Run)).numbers()


def _rule_of_rate(cell: _Cell) -> Callable[..., Fraction | int]:
    """Return the rule of a printed number as a function of the printed rates."""

    def rule(*rates: Fraction) -> Fraction | int:
        varied = {X: exact(rates[0]) * TERA} if rates else {}
        return value(_computed(cell.rule, cell.numbers | varied))

    return rule
