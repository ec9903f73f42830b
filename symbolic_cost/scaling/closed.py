"""The compute-optimal split in closed form, derived by Lagrange where a law allows it.

A law of two powers plus a constant, under a compute that is one power, is a geometric program of
no degree of difficulty: at the optimum the two powers stand in a fixed ratio, and the logarithms of
the variables solve a linear system.

    E + A/N**alpha + B/D**beta, C = k N D:  alpha A/N**alpha = beta B/D**beta, so
    N = (alpha A/(beta B))**(1/(alpha+beta)) (C/k)**(beta/(alpha+beta))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sympy import Add, Expr, Float, Integer, Pow, Symbol, expand, log

from symbolic_cost.errors import InputError
from symbolic_cost.extrema import Max, Min
from symbolic_cost.records import dataclass
from symbolic_cost.scaling.law import FLOP, Law, variable

_Pair = tuple[Expr, Expr]


@dataclass(frozen=True)
class Closed:
    """Formulas of the compute C [FLOP], of the law's parameters and of what it holds fixed.

    Args:
        best: value of each variable.
        loss: the frontier.
        price: loss that one more FLOP removes [unit of the law per FLOP].
        exponents: power of C with which each variable grows.
        excess: power of C with which the loss falls to its limit.
    """

    best: Mapping[str, Expr]
    loss: Expr
    price: Expr
    exponents: Mapping[str, Expr]
    excess: Expr


@dataclass(frozen=True, slots=True)
class _Power:
    """coefficient * N**powers[0] * D**powers[1]."""

    coefficient: Expr
    powers: _Pair


@lru_cache(32)
def closed(law: Law) -> Closed:
    """Derive the optimum of a law.

    Raises:
        InputError: the law is no sum of two powers and a constant, or its compute is no power.
    """
    names = law.chosen
    if len(names) != 2:  # noqa: PLR2004 - a plane
        raise InputError(f"law {law.name} chooses {', '.join(names) or 'nothing'}: two are needed")
    symbols = (variable(names[0]), variable(names[1]))
    known: dict[str, Expr] = {}
    moving = set(names)  # definitions without the variables in them stay names
    for name, formula in law.where.items():
        if formula.names & moving:
            moving.add(name)
            known[name] = formula.expr(known)
    loss, flop = law.value.expr(known), law.flop().expr()
    if loss.has(Max, Min) or flop.has(Max, Min):
        raise InputError(f"law {law.name} has several branches")
    budget = _power(expand(flop), symbols)
    if budget is None:
        raise InputError(f"the compute of law {law.name} is no power of {' and '.join(names)}")
    inner = loss.base if _is_power_of_sum(loss) else loss  # whose optimum is that of the sum
    terms = Add.make_args(expand(inner, power_base=True, force=True))
    match [_power(term, symbols) for term in terms if term.free_symbols & set(symbols)]:
        case [_Power() as one, _Power() as other]:
            return _solved(names, loss, (one, other), budget)
    raise InputError(f"law {law.name} is no sum of two powers and a constant")


def _is_power_of_sum(loss: Expr) -> bool:
    return isinstance(loss, Pow) and isinstance(loss.base, Add)


def _power(term: Expr, symbols: tuple[Symbol, Symbol]) -> _Power | None:
    logarithm = expand(log(term), force=True)
    powers = (logarithm.coeff(log(symbols[0])), logarithm.coeff(log(symbols[1])))
    rest = term / (symbols[0] ** powers[0] * symbols[1] ** powers[1])
    rest = expand(rest, power_base=True, power_exp=False, force=True)
    return None if rest.free_symbols & set(symbols) else _Power(rest, powers)


def _cross(one: _Pair, other: _Pair) -> Expr:
    return one[0] * other[1] - one[1] * other[0]


def _solved(
    names: tuple[str, ...], loss: Expr, terms: tuple[_Power, _Power], budget: _Power
) -> Closed:
    """Solve d loss = -price d C: the ratio of the terms first, then both logarithms."""
    first, second = terms
    ratio = -_cross(second.powers, budget.powers) / _cross(first.powers, budget.powers)
    apart = (first.powers[0] - second.powers[0], first.powers[1] - second.powers[1])
    turn = _cross(apart, budget.powers)
    compute = Symbol(FLOP, positive=True)
    scale, budgeted = ratio * second.coefficient / first.coefficient, compute / budget.coefficient
    grown = {names[0]: (-apart[1] / turn).factor(), names[1]: (apart[0] / turn).factor()}
    best = {
        names[0]: scale ** (budget.powers[1] / turn) * budgeted ** grown[names[0]],
        names[1]: scale ** (-budget.powers[0] / turn) * budgeted ** grown[names[1]],
    }
    at_best = loss.xreplace({variable(name): value for name, value in best.items()})
    excess = sum((p * grown[n] for p, n in zip(first.powers, names, strict=True)), Integer(0))
    outer = loss.exp if _is_power_of_sum(loss) else Integer(1)
    price = -at_best.diff(compute)
    return Closed(best, at_best, price, grown, (outer * excess).factor())


def numeric(expr: Expr, values: Mapping[str, float]) -> float:
    """Return the number of a formula of `Closed`."""
    numbers = {variable(name): Float(value, 17) for name, value in values.items()}
    return float(expr.xreplace(numbers).evalf(17))
