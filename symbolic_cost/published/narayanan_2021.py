"""Parameters, FLOP, throughput and training time of GPT models.

Derived from the declared GPT: parameters (Eq 2), FLOP per iteration with recomputed blocks (Eq 3)
and the factor 8 of the training time (Eq 4). Eq 2 leaves out the final layer norm (2 e).

Inputs are named as in this library or as in the paper's tables; see `Run.NAMES`.

Source: narayanan-2021, Eq 2 to 4, Tables 1 and 2, section 5.1.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

from sympy import Expr, Integer, Rational, expand

from symbolic_cost import symbols
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import CostTable, Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import WHOLE
from symbolic_cost.ops.recompute import FULL
from symbolic_cost.published.contract import Cell, Comparison, number, printed_data, records
from symbolic_cost.published.inputs import Count, Inputs, Rate
from symbolic_cost.symbols import B, F_m, P, R, X, e, exact, l, tokens

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["narayanan_2021"]
"""The model of 145.6 billion parameters of Table 1."""

_TERA, _DAY = Integer(10**12), Integer(86400)
_PUBLISHED_TOKENS = printed_data("inputs.toml")["narayanan_2021_training"]["tokens"]


class Run(Inputs):
    """A training run; what is not given leaves out the numbers that need it.

    Sizes of the glossary: h cancels, and the achieved rate tflops_per_gpu [TFLOP/s] includes the
    effect of the degrees m1 and pp. tokens are trained on; peak_tflops is of one GPU [TFLOP/s].
    """

    NAMES: ClassVar[Mapping[str, str]] = {
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

    e: Count
    n_layers: Count
    B: Count | None = None
    R: Count | None = None
    tflops_per_gpu: Rate | None = None
    tokens: Count | None = None
    V: Count = 51200
    l: Count = 2048
    peak_tflops: Rate = 312
    h: Count = 1
    m1: Count = 1
    pp: Count = 1

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol that is given."""
        rates = {F_m: self.peak_tflops, X: self.tflops_per_gpu}
        exact_rates = {key: exact(rate) * _TERA for key, rate in rates.items() if rate is not None}
        return self.bound("e n_layers B R V l tokens") | exact_rates


class Budget(Inputs):
    """What Eq 4 takes: P parameters, T tokens, n GPUs, X achieved by each [FLOP/s]."""

    P: Rate
    T: Rate
    n: Count
    X: Rate

    def numbers(self) -> dict[Expr, Expr]:
        """Return the number of every symbol."""
        return self.bound("P tokens=T R=n X")


@cache
def _derived() -> CostTable:
    return cost(GPT(f=4 * e).model(), MODEL_FLOP, WHOLE, FULL)


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
        "days_for_300B_tokens": expand(_PUBLISHED_TOKENS * flop / (B * l)) / (R * X),
        "eq4_days": flop_per_parameter() * tokens * P / (R * X),
    }


_UNITS = {
    "params_billion": Integer(10**9),
    "percent_peak": Rational(1, 100),
    "aggregate_pflops": Integer(10**15),
    **dict.fromkeys(("days", "days_for_300B_tokens", "eq4_days"), _DAY),
}
"""Unit of an output in elements, FLOP per second or seconds, where it is not one."""


def _computed(name: str, numbers: Mapping[Expr, Expr]) -> Expr:
    return rules()[name].xreplace(numbers) / _UNITS.get(name, Integer(1))


def evaluate(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute what the tables print for any run, or the days of Eq 4.

    Args:
        inputs: of a `Run`, under our names or the paper's; or of a `Budget`: P, T, n and X.

    Returns:
        For a run params_billion, percent_peak, aggregate_pflops, flop_per_iteration [FLOP],
        iteration_s, days (of training on `tokens`) and days_for_300B_tokens, as far as the
        inputs determine them. For a budget days.
    """
    if "P" in inputs:
        return {"days": number(_computed("eq4_days", Budget.accepted(inputs).numbers()))}
    numbers = Run.accepted(inputs).numbers()
    values = {name: _computed(name, numbers) for name in rules()}
    return {name: number(expr) for name, expr in values.items() if expr.is_number}


def reproduce() -> Sequence[Comparison]:
    """Compare Tables 1 and 2 and both examples of Eq 4.

    Rates and days follow from printed rates, which are rounded: they agree if they do so inside
    that rounding.
    """
    return tuple(cell.compared() for cell in _cells())


def formulas() -> dict[str, Expr]:
    """Return the formula of every printed number by its key, in the units of `rules`."""
    return {cell.key: rules()[cell.name] for cell in _cells()}


def _cells() -> Iterator[Cell]:
    """Yield every printed number."""
    data = printed_data("narayanan_2021")
    for table, place in (("table1", "{params_billion}B"), ("table2", "{scheme}.{h}.{n_gpus}")):
        for row in records(data[table]):
            sizes = {name: int(text) for name, text in row.items() if name in Run.NAMES}
            numbers = Run.accepted(data["inputs"] | sizes).numbers()
            for name in (
                "params_billion",
                "percent_peak",
                "aggregate_pflops",
                "days_for_300B_tokens",
            ):
                if name in row:
                    rates = () if name == "params_billion" else (row["tflops_per_gpu"],)
                    key = f"{table}.{place.format(**row)}.{name}"
                    yield Cell(key, name, row[name], _computed(name, numbers), rates, X / _TERA)
    for example in data["eq4"]:
        numbers = Budget.accepted({name: example[name] for name in "PTnX"}).numbers()
        expr = _computed("eq4_days", numbers)
        yield Cell(f"eq4.{example['n']}.days", "eq4_days", example["days"], expr)
