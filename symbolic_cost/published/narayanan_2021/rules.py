"""Formulas of the outputs, derived from the declared GPT."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sympy import Expr, Integer, Rational, expand

from symbolic_cost import symbols
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import CostTable, Quantity
from symbolic_cost.models.gpt import GPT
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import WHOLE
from symbolic_cost.ops.recompute import FULL
from symbolic_cost.symbols import B, F_m, P, R, X, e, l, tokens

SECONDS_PER_DAY = Integer(86400)
PUBLISHED_TOKENS = Integer(300 * 10**9)


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
        "days_for_300B_tokens": expand(PUBLISHED_TOKENS * flop / (B * l)) / (R * X),
        "eq4_days": flop_per_parameter() * tokens * P / (R * X),
    }


UNITS = {
    "params_billion": Integer(10**9),
    "percent_peak": Rational(1, 100),
    "aggregate_pflops": Integer(10**15),
    "days": SECONDS_PER_DAY,
    "days_for_300B_tokens": SECONDS_PER_DAY,
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


def computed(name: str, numbers: Mapping[Expr, Expr]) -> Expr:
    """Return an output in its unit, with numbers for symbols."""
    return rules()[name].xreplace(numbers) / UNITS.get(name, Integer(1))


@cache
def _derived() -> CostTable:
    return cost(GPT(f=4 * e).model(), MODEL_FLOP, WHOLE, FULL)
