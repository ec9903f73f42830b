"""Greatest and least never drop an argument that may count."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from sympy import Integer, Rational, ceiling

from symbolic_cost.extrema import Max, Min, at_least
from symbolic_cost.symbols import V, b, m1, pp

SYMBOLS = (b, V, m1)
MONOMIALS = st.builds(
    lambda numerator, denominator, powers: (
        Rational(numerator, denominator)
        * SYMBOLS[0] ** powers[0]
        * SYMBOLS[1] ** powers[1]
        * SYMBOLS[2] ** powers[2]
    ),
    st.integers(1, 9),
    st.integers(1, 9),
    st.tuples(*(st.integers(-2, 3) for _ in SYMBOLS)),
)
NUMBERS = st.tuples(*(st.integers(1, 9) for _ in SYMBOLS))


def at(expr, numbers):
    found = expr.xreplace(dict(zip(SYMBOLS, map(Integer, numbers), strict=True)))
    return Fraction(int(found.p), int(found.q))


@given(st.lists(MONOMIALS, min_size=2, max_size=4), NUMBERS)
def test_extrema_of_monomials(exprs, numbers):
    values = [at(expr, numbers) for expr in exprs]
    assert at(Max(*exprs), numbers) == max(values)
    assert at(Min(*exprs), numbers) == min(values)


def test_what_is_certain_is_decided():
    assert Max(2 * b, 3 * b) == 3 * b
    assert Max(m1, 1) == m1
    assert Min(b, b / m1) == b / m1
    assert Max(b**3 / (V * m1), b**3) == b**3
    assert Max(1 / (V * m1), 1) == 1
    assert Max(b, 0) == b
    assert Max(b * ceiling(V / m1), b) == b * ceiling(V / m1)


def test_what_is_not_certain_stays():
    assert set(Max(b, m1, Max(V, 3)).args) == {b, m1, V, Integer(3)}
    assert not at_least(pp - m1, b)
    assert not at_least(b - 1, b / m1)
