"""The door to scaling laws: `symbolic_cost.laws`.

>>> from symbolic_cost.scaling import laws
>>> best = laws.optimum("chinchilla", 1e21, "body")
>>> f"{best.values['N']:.3g} parameters, {best.values['D']:.3g} tokens, {best.how}"
'1.82e+09 parameters, 9.14e+10 tokens, closed form'
>>> laws.formula("chinchilla", "N")
(C/6)**(beta/(alpha + beta))*(B*beta/(A*alpha))**(1/(-alpha - beta))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sympy import Expr

from symbolic_cost.checking import checked
from symbolic_cost.errors import looked_up
from symbolic_cost.scaling import allocate as allocation
from symbolic_cost.scaling import declared, fits, runs
from symbolic_cost.scaling import optimum as best
from symbolic_cost.scaling.closed import closed
from symbolic_cost.scaling.family import Family
from symbolic_cost.scaling.fits import DELTA, Fit
from symbolic_cost.scaling.fits import fit as fitted
from symbolic_cost.scaling.law import FLOP, Law, Number
from symbolic_cost.scaling.problem import HUBER
from symbolic_cost.systems.prices import rates

__all__ = [
    "FLOP",
    "Family",
    "Law",
    "allocate",
    "approach",
    "at",
    "cheapest",
    "fit",
    "formula",
    "frontier_of",
    "law",
    "names",
    "optimum",
    "warnings",
]


def names() -> tuple[str, ...]:
    """Return the names of the library's laws."""
    return tuple(declared.laws())


@checked
def law(of: str | Law) -> Law:
    """Return a law by name or from a TOML file, see `scaling.law`.

    Raises:
        InputError: no such law, or every problem of the file.
    """
    return of if isinstance(of, Law) else declared.law(of)


@checked
def at(of: str | Law, constants: str | None = None, **values: Number) -> dict[str, float]:
    """Return what a law gives, and its definitions, for numbers of its variables.

    >>> f"{at('chinchilla', 'body', N=280e9, D=300e9)['loss']:.4f}"
    '1.9933'
    """
    point = law(of).at({name: float(value) for name, value in values.items()}, constants)
    return {name: float(value) for name, value in point.items()}


@checked
def warnings(of: str | Law, constants: str | None = None, **values: Number) -> tuple[str, ...]:
    """Say which numbers are outside of what a law was fitted to, with the range.

    >>> warnings("kaplan", N=1e12, D=1e10)
    ('N = 1e+12 is outside of 768 to 1.5e+09, to which law kaplan was fitted: an extrapolation',)
    """
    return law(of).warnings(values, constants)


@checked
def optimum(
    of: str | Law,
    flop: float,
    constants: str | None = None,
    *,
    family: Family | None = None,
    **others: Number,
) -> best.Optimum:
    """Return the least loss for a compute [FLOP].

    Args:
        of: law of two variables and a compute.
        flop: budget.
        constants: name of a set of constants; a law of several sets has none by itself.
        family: models whose exact FLOP take the place of the law's own compute.
        **others: variables that are not chosen, such as D_inf or U.
    """
    return best.optimum(law(of), flop, constants, others, family)


@checked
def cheapest(
    of: str | Law, loss: float, constants: str | None = None, **others: Number
) -> best.Optimum:
    """Return the least compute for a loss, later inference (D_inf) included."""
    return best.cheapest(law(of), loss, constants, others)


@checked
def formula(of: str | Law, what: str) -> Expr:
    """Return a formula of a law's optimum.

    Args:
        of: law of two powers and a constant.
        what: a variable, "loss", "price", "excess", or "exponent of N".

    Raises:
        InputError: the law has no optimum in closed form, or no such formula.
    """
    solved = closed(law(of))
    table = {**solved.best, "loss": solved.loss, "price": solved.price, "excess": solved.excess}
    table |= {f"exponent of {name}": value for name, value in solved.exponents.items()}
    return looked_up("formula", what, table)


@checked
def frontier_of(
    of: str | Law, flops: Iterable[float], constants: str | None = None, **others: Number
) -> list[best.Optimum]:
    """Return the optimum of every compute [FLOP]."""
    own = law(of)
    return [best.optimum(own, flop, constants, others) for flop in flops]


@checked
def fit(
    of: str | Law,
    rows: str | Sequence[Mapping[str, Any]],
    *,
    delta: float = DELTA,
    method: str = HUBER,
    resampled: int = 0,
    grouped: bool = False,
) -> Fit:
    """Fit a law to runs, as `scaling.fits.fit` says.

    Args:
        of: law whose constants are sought.
        rows: a CSV file, or records with the law's variables and what it gives.
        delta: where Huber's loss on logarithms turns linear.
        method: "huber", or "projection".
        resampled: bootstrap samples.
        grouped: whether each group of runs is left out once.
    """
    return fitted(
        law(of), _runs(of, rows), delta=delta, method=method, resampled=resampled, grouped=grouped
    )


@checked
def approach(
    number: int, of: str | Law, rows: str | Sequence[Mapping[str, Any]]
) -> Mapping[str, fits.PowerLaw]:
    """Return the power laws of best size and tokens by Chinchilla's approach 1 or 2."""
    return fits.approach(number, law(of), _runs(of, rows))


@checked
def allocate(
    of: str | Law = "besiroglu",
    *,
    constants: str | None = None,
    model: str = "llama",
    rule: Mapping[str, str] | None = None,
    system: str = "h100",
    usd: float | None = None,
    days: float | None = None,
    gpus: int | None = None,
    kwh: float | None = None,
    price: float | None = None,
    power: float | None = None,
    pue: float | str = "usual",
    grid: float | str = "us",
    strategy: str | None = None,
    mfu: float | None = None,
    batch_tokens: int = allocation.BATCH_TOKENS,
) -> allocation.Allocation:
    """Return the model of least loss for a budget, as `scaling.allocate.allocate` says."""
    own = law(of)
    family = Family(model, rule or {}, counts=own.counts)
    budget = allocation.Budget(usd, days, gpus, kwh)
    costs = rates(system, price=price, power=power, pue=pue, grid=grid)
    return allocation.allocate(
        own,
        family,
        system,
        budget,
        costs,
        constants=constants,
        strategy=strategy,
        mfu=mfu,
        batch_tokens=batch_tokens,
    )


def _runs(of: str | Law, rows: str | Sequence[Mapping[str, Any]]) -> runs.Runs:
    own = law(of)
    return runs.read_runs(rows, own) if isinstance(rows, str) else runs.runs_of(rows, own)
