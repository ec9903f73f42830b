"""Random costs with an oracle: each is built twice, for SymPy and for Python Fractions."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod

from hypothesis import strategies as st
from sympy import Expr, Integer, Mul, Rational, ceiling

from symbolic_cost.extrema import Max, Min
from symbolic_cost.symbols import Active, V, b, e, l, m1

SYMBOLS = (b, l, e, V, m1)
NAMES = tuple(symbol.name for symbol in SYMBOLS)


@dataclass(frozen=True)
class Built:
    """One cost as an expression and as a function of exact values by symbol name."""

    expr: Expr
    at: Callable[[dict[str, int]], Fraction]

    def __repr__(self):
        return str(self.expr)


def values(largest=10**6):
    """A positive integer for every symbol."""
    return st.fixed_dictionaries(dict.fromkeys(NAMES, st.integers(1, largest)))


def rational(number):
    return Rational(number.numerator, number.denominator)


def monomial(coefficient, exponents):
    """coefficient * product of symbol**exponent."""
    powers = dict(zip(SYMBOLS, exponents, strict=True))
    return Built(
        Mul(rational(coefficient), *(symbol**power for symbol, power in powers.items())),
        lambda at: (
            coefficient
            * prod(Fraction(at[symbol.name]) ** power for symbol, power in powers.items())
        ),
    )


def coefficients(lowest=-50):
    nonzero = st.integers(lowest, 50).filter(bool)
    return st.builds(Fraction, nonzero, st.integers(1, 9))


def monomials(lowest_power=-2, highest_power=3, lowest=-50):
    powers = st.tuples(*(st.integers(lowest_power, highest_power) for _ in SYMBOLS))
    return st.builds(monomial, coefficients(lowest), powers)


def total(parts):
    return Built(
        sum((part.expr for part in parts), Integer(0)),
        lambda at: sum((part.at(at) for part in parts), Fraction(0)),
    )


def laurent(lowest_power=-2, highest_power=3, lowest=-50):
    """A Laurent polynomial of up to six terms."""
    terms = monomials(lowest_power, highest_power, lowest)
    return st.lists(terms, min_size=1, max_size=6).map(total)


def times(left, right):
    return Built(left.expr * right.expr, lambda at: left.at(at) * right.at(at))


def power(base, exponent):
    return Built(base.expr**exponent, lambda at: base.at(at) ** exponent)


def largest(left, right):
    return Built(Max(left.expr, right.expr), lambda at: max(left.at(at), right.at(at)))


def smallest(left, right):
    return Built(Min(left.expr, right.expr), lambda at: min(left.at(at), right.at(at)))


def rounded_up(size, degree, number):
    return Built(
        ceiling(size / (degree * number)),
        lambda at: Fraction(ceil(Fraction(at[size.name], at[degree.name] * number))),
    )


def bracket(degree):
    return Built(Active(degree), lambda at: Fraction(at[degree.name] > 1))


def positive_costs():
    """Sums, products, powers, Max, Min, ceilings and brackets of positive terms."""
    leaves = st.one_of(
        monomials(lowest=1),
        st.builds(rounded_up, st.sampled_from((V, l)), st.just(m1), st.integers(1, 256)),
        st.sampled_from((m1, b)).map(bracket),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, min_size=2, max_size=3).map(total),
            st.builds(times, inner, inner),
            st.builds(largest, inner, inner),
            st.builds(smallest, inner, inner),
            st.builds(power, inner, st.integers(1, 2)),
        ),
        max_leaves=6,
    )
