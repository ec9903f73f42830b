"""Derivatives and growth against finite differences and ratios of Fractions; crossovers put in."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Float, Integer, Mul, Piecewise, Rational, ceiling, log, sqrt

from symbolic_cost.analysis.scaling import (
    crossover,
    derivative,
    elasticity,
    exponent,
    leading_term,
)
from symbolic_cost.errors import InputError
from symbolic_cost.extrema import Max
from symbolic_cost.symbols import Active, V, b, e, f, h, l, m1, message
from tests.numeric.expressions import NAMES, SYMBOLS, laurent, values

STEP = Fraction(1, 10**12)
FAR = 10**60


def at(expr, numbers):
    found = expr.xreplace({symbol: numbers[symbol.name] for symbol in SYMBOLS})
    return Fraction(int(found.p), int(found.q))


def sympy_numbers(numbers):
    return {name: Integer(number) for name, number in numbers.items()}


@given(laurent(), st.sampled_from(SYMBOLS), values(50))
def test_derivatives_are_limits_of_differences(built, symbol, numbers):
    name, here = symbol.name, Fraction(numbers[symbol.name])
    ahead, behind = (built.at({**numbers, name: here + step}) for step in (STEP, -STEP))
    difference = (ahead - behind) / (2 * STEP)
    found = at(derivative(built.expr, symbol), sympy_numbers(numbers))
    # The error of a central difference is of third order in the step, relative to the value.
    assert abs(found - difference) <= Fraction(1, 10**9) * max(1, abs(found))


@given(laurent(lowest=1), st.sampled_from(SYMBOLS), values(50))
def test_elasticities_are_relative_differences(built, symbol, numbers):
    name, here = symbol.name, Fraction(numbers[symbol.name])
    ahead, behind = (built.at({**numbers, name: here * (1 + step)}) for step in (STEP, -STEP))
    difference = (ahead - behind) / (2 * STEP * built.at(numbers))
    found = at(elasticity(built.expr, symbol), sympy_numbers(numbers))
    assert abs(found - difference) <= Fraction(1, 10**9)


@pytest.mark.slow
@given(laurent(lowest=1), values(50))
def test_elasticities_of_all_symbols_add_up_to_the_joint_one(built, numbers):
    here = sympy_numbers(numbers)
    ahead, behind = (
        built.at({name: number * (1 + step) for name, number in numbers.items()})
        for step in (STEP, -STEP)
    )
    joint = (ahead - behind) / (2 * STEP * built.at(numbers))
    found = sum(at(elasticity(built.expr, symbol), here) for symbol in SYMBOLS)
    assert abs(found - joint) <= Fraction(1, 10**9)


scales = st.dictionaries(st.sampled_from(SYMBOLS), st.integers(1, 3), min_size=1, max_size=3)


def far(numbers, scale, factor=1):
    grown = {symbol.name: Fraction(factor * FAR) ** power for symbol, power in scale.items()}
    return {name: grown.get(name, Fraction(numbers[name])) for name in NAMES}


@given(laurent(lowest=1), scales, values(50))
def test_a_leading_term_is_all_that_is_left_far_away(built, scale, numbers):
    there = far(numbers, scale)
    rationals = {name: Rational(x.numerator, x.denominator) for name, x in there.items()}
    ratio = at(leading_term(built.expr, scale), rationals) / built.at(there)
    assert abs(ratio - 1) <= Fraction(1, 10**20)
    power = Fraction(int(exponent(built.expr, scale)))
    growth = built.at(far(numbers, scale, factor=2)) / built.at(there)
    assert abs(growth / Fraction(2) ** power - 1) <= Fraction(1, 10**20)


@pytest.mark.parametrize(
    ("expr", "scale", "term", "power"),
    [
        (b * l * (2 * e + l), l, b * l**2, 2),
        (b * l * (2 * e + l), e, 2 * b * e * l, 1),
        (b * l * (2 * e + l), b, b * l * (2 * e + l), 1),
        (24 * b * l * e**2 + 4 * b * l**2 * e, {l: 1, e: 1}, 4 * b * e * l * (6 * e + l), 3),
        (12 * e * f + 7 * h * l**2 + e, {e: 1, f: 1, h: 1}, 12 * e * f, 2),
        (12 * e * f + 7 * h * l**2 + e, {l: 2, h: 1}, 7 * h * l**2, 5),
        (b * (m1 - 1) / m1 + 1 / m1, m1, b, 0),
        (b * Active(m1) / m1 + Active(h) / m1**2, m1, b / m1, -1),
        (l**2 * e / (l + e), l, e * l, 1),
        (1 / (l + e), l, 1 / l, -1),
        (b * Max(e, f) * l + Max(e, f), l, b * l * Max(e, f), 1),
        (sqrt(l) * b + e, l, sqrt(l) * b, Rational(1, 2)),
    ],
)
def test_leading_terms(expr, scale, term, power):
    assert leading_term(expr, scale) == term
    assert exponent(expr, scale) == power


@pytest.mark.parametrize(
    ("expr", "symbol", "form"),
    [
        (b * l * (2 * e + l), l, "2*(e + l)/(2*e + l)"),
        (7 * b * l**3 / m1, l, "3"),
        (7 * b * l**3 / m1, m1, "-1"),
        (7 * b * l**3 / m1, e, "0"),
        (b * (m1 - 1) / m1, m1, "1/(m1 - 1)"),
        (l**2 / (l + e), l, "(2*e + l)/(e + l)"),
        (Active(m1) * l, m1, "0"),
    ],
)
def test_elasticities(expr, symbol, form):
    assert str(elasticity(expr, symbol)) == form


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (
            lambda: derivative(e * ceiling(V / m1), m1),
            (
                "e*ceiling(V/m1) has steps in m1: a derivative needs a cost without ceiling or "
                "floor of m1, such as its smoothed form"
            ),
        ),
        (lambda: elasticity(l - l, l), "a cost of zero has no elasticity"),
        (lambda: leading_term(Integer(0), l), "a cost of zero does not grow"),
        (
            lambda: leading_term(b * Max(l, e) + ceiling(l / 3), l),
            "l in Max(e, l) and ceiling(l/3): growth is known for sums of powers only",
        ),
        (
            lambda: exponent(Piecewise((e, l > 4), (f, True)), {e: 1, b: 1}),
            "b, e in Piecewise((e, l > 4), (f, True)): growth is known for sums of powers only",
        ),
        (
            lambda: leading_term(l * e, {l: 0, e: -1}),
            "{'l': 0, 'e': -1} do not grow: positive powers are accepted",
        ),
    ],
)
def test_refuses_what_does_not_scale(make, problem):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value) == problem


# ---------------------------------------------------------------------- crossovers

places = st.fractions(Fraction(1, 100), 10**4, max_denominator=100)


def polynomial(roots, degree):
    """A polynomial in l that is zero at the given places, times l**degree."""
    factors = (l - Rational(root.numerator, root.denominator) for root in roots)
    return (Mul(*factors) * l**degree).expand()


@given(st.lists(places, min_size=1, max_size=4, unique=True), st.integers(-2, 2))
def test_finds_every_place_of_a_polynomial(roots, degree):
    found = crossover(polynomial(roots, degree) + e, e, l)
    assert len(found) == len(roots)
    assert [float(root) for root in found] == pytest.approx(
        [float(root) for root in sorted(roots)], rel=1e-9
    )
    if len(roots) <= 2:
        assert not any(root.has(Float) for root in found)


@given(st.lists(places, min_size=1, max_size=2, unique=True), places)
def test_leaves_out_what_is_not_positive(roots, negative):
    found = crossover(polynomial([*roots, -negative], 0), Integer(0), l)
    assert [float(root) for root in found] == pytest.approx(
        [float(root) for root in sorted(roots)], rel=1e-9
    )


@pytest.mark.slow
@settings(max_examples=10)
@given(st.lists(laurent(lowest=1), min_size=3, max_size=3), values(50))
def test_symbolic_solutions_solve_every_case(parts, numbers):
    square, linear, constant = (part.expr.xreplace({l: Integer(1)}) for part in parts)
    left, right = square * l**2 + linear * l, constant
    others = {symbol: Integer(numbers[symbol.name]) for symbol in SYMBOLS if symbol != l}
    (root,) = crossover(left, right, l)
    place = root.xreplace(others)
    assert place.is_positive
    a, c = (side.xreplace({**others, l: place}).n(20) for side in (left, right))
    assert float(a) == pytest.approx(float(c), rel=1e-9)


@pytest.mark.parametrize(
    ("left", "right", "roots"),
    [
        (4 * b * e * l**2, 16 * b * e**2 * l, [4 * e]),
        (l**2 + e * l, 6 * e**2, [2 * e]),
        (l**3, 8 * e, [2 * e ** Rational(1, 3)]),
        (sqrt(l), e, [e**2]),
        (e / (l + e), Rational(1, 3), [2 * e]),
        (l**2 + 1, 2 * l, [Integer(1)]),
        (Max(e, f) * l, b, [b / Max(e, f)]),
        (l**2 + f, e * l, [e / 2 - sqrt(e**2 - 4 * f) / 2, e / 2 + sqrt(e**2 - 4 * f) / 2]),
    ],
)
def test_exact_crossovers(left, right, roots):
    found = [root.expand() for root in crossover(left, right, l)]
    assert found == [root.expand() for root in roots]


@pytest.mark.parametrize(
    ("left", "right", "roots"),
    [
        (Max(l, 100), 3 * l - 1000, [500]),
        (Max(100, l), 100 + l / 4, [400 / 3]),
        (ceiling(l / 7), 100, [693]),
        (log(l), 2, [7.38905609893065]),
        (ceiling(l / 64) * 64, l + 32, [32]),
        (l + sqrt(l), 6, [4]),
        (l**5 + l, 34, [2]),
    ],
)
def test_numeric_crossovers(left, right, roots):
    found = crossover(left, right, l)
    assert [float(root) for root in found][: len(roots)] == pytest.approx(roots, rel=1e-12)


def test_rates_cross_below_one():
    assert [float(root) for root in crossover(log(message), Integer(-2), message)] == (
        pytest.approx([0.1353352832366127], rel=1e-12)
    )


@pytest.mark.parametrize(
    ("left", "right", "problem"),
    [
        (l * e, e * l, "the two costs are equal for every l"),
        (l + e, l, "the two costs are equal for no positive l"),
        (2 * l + 1, l, "the two costs are equal for no positive l"),
        (l**2 + l + 1, Integer(0), "the two costs are equal for no positive l"),
        (Max(l, 3), 2, "the two costs are equal for no positive l"),
        (
            l**3 + l * e,
            b + l**2,
            (
                "this equation has no exact solution for l: give numbers to b, e to have it solved "
                "numerically"
            ),
        ),
        (
            Max(l, e),
            100,
            (
                "this equation has no exact solution for l: give numbers to e to have it solved "
                "numerically"
            ),
        ),
    ],
)
def test_refuses_what_does_not_cross(left, right, problem):
    with pytest.raises(InputError) as caught:
        crossover(left, right, l)
    assert str(caught.value) == problem
