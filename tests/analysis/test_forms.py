"""Normal forms against SymPy's expand, which decides nothing about them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Add, Integer, Mul, Piecewise, Rational, ceiling, expand, floor, sqrt

from symbolic_cost.analysis.forms import (
    coefficients,
    collected,
    equal,
    expanded,
    factored,
    smoothed,
)
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.extrema import Max
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.derive import cost
from symbolic_cost.symbols import Active, V, b, e, f, h, l, m1
from tests.numeric.expressions import SYMBOLS, laurent, positive_costs, power, times

products = st.one_of(
    laurent(),
    st.builds(times, laurent(), laurent()),
    st.builds(power, laurent(), st.integers(0, 3)),
)


@settings(max_examples=15)
@given(products)
def test_expanded_is_expand(built):
    assert expanded(built.expr) == expand(built.expr)


@settings(max_examples=15)
@given(products)
def test_factored_changes_no_value(built):
    assert expand(factored(built.expr) - built.expr) == 0


@settings(max_examples=15)
@given(products)
def test_factored_leaves_nothing_in_common(built):
    found = factored(built.expr)
    assert factored(found) == found
    sums = [argument for argument in Mul.make_args(found) if isinstance(argument, Add)]
    assert len(sums) <= 1
    for whole in sums:
        assert factored(whole) == whole
        assert not any((whole / symbol).expand().is_polynomial(symbol) for symbol in SYMBOLS)


@settings(max_examples=15)
@given(products, st.sets(st.sampled_from(SYMBOLS), min_size=1, max_size=2))
def test_collected_changes_no_value_and_repeats_no_power(built, symbols):
    assert expand(collected(built.expr, *symbols) - built.expr) == 0
    for rest in coefficients(built.expr, *symbols).values():
        assert not rest.free_symbols & symbols


@given(positive_costs())
def test_atoms_take_part_as_symbols(built):
    assert equal(factored(built.expr), built.expr)
    assert not equal(factored(built.expr) + 1, built.expr)


@settings(max_examples=15)
@given(laurent(), laurent(), laurent())
def test_equal_sees_through_products_and_quotients(one, two, three):
    a, c, d = one.expr, two.expr, three.expr
    assert equal((a + c) * d, a * d + c * d)
    assert equal((a + c) ** 2, a**2 + 2 * a * c + c**2)
    assert not equal(a, a + b * l)
    if not equal(d, Integer(0)):
        assert equal(a / d + c / d, (a + c) / d)
        assert not equal(a / d, (a + 1) / d)


@pytest.mark.parametrize(
    ("expr", "form"),
    [
        (Integer(0), "0"),
        (Integer(7), "7"),
        (b * l - b * l, "0"),
        (34 * b * e * l + 5 * b * h * l**2, "b*l*(34*e + 5*h*l)"),
        (10 * b * e * l + 24 * b * e * l / m1, "2*b*e*l*(5*m1 + 12)/m1"),
        (2 * b + 4 * e, "2*(b + 2*e)"),
        (b / 3 + e / 2, "(2*b + 3*e)/6"),
        (-b - 2 * e, "-(b + 2*e)"),
        (b - e, "b - e"),
        ((m1 - 1) * b / m1, "b*(m1 - 1)/m1"),
        ((b + e) ** 2 * l, "l*(b**2 + 2*b*e + e**2)"),
        (l / (2 * b + 2 * e), "l/(2*(b + e))"),
        (sqrt(l) * b + sqrt(l) * e, "sqrt(l)*(b + e)"),
        (2 * b * Max(l, e) + 4 * b * Max(l, e) ** 2, "2*b*(2*Max(e, l) + 1)*Max(e, l)"),
        (b * Active(m1) + e * Active(m1), "(b + e)*[m1 > 1]"),
        (3 * ceiling(V / m1) * e + 6 * e, "3*e*(ceiling(V/m1) + 2)"),
    ],
)
def test_human_forms(expr, form):
    assert str(factored(expr)) == form


def test_collected_by_one_symbol():
    assert str(collected(b * (l + e) ** 2 + 3 * l, l)) == "b*e**2 + b*l**2 + l*(2*b*e + 3)"
    assert coefficients(6 * b * l**2 / m1 + 4 * e, l) == {l**2: 6 * b / m1, Integer(1): 4 * e}


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1 / (e + f) - 1 / (e - f), -2 * f / (e**2 - f**2), True),
        (1 / (e - f), -1 / (f - e), True),
        (e / (1 + 1 / l), e * l / (l + 1), True),
        (Max(e, l), Max(l, e), True),
        (Max(e, l) * 2, Max(e, l), False),
        (Piecewise((e, l > 4), (f, True)), e, False),
        (sqrt(2) * sqrt(e) * sqrt(e), sqrt(2) * e, True),
        (Rational(1, 3), Integer(0), False),
    ],
)
def test_equality(left, right, same):
    assert equal(left, right) is same
    assert equal(right, left) is same


def test_smoothed_costs_have_no_steps():
    stepped = e * ceiling((V + 1) / m1) + floor(l / ceiling(b / 2))
    assert smoothed(stepped) == e * (V + 1) / m1 + 2 * l / b


def test_the_total_of_a_model_in_human_form():
    whole = cost(GPT().model(), STANDARD).total("flop")
    assert expand(factored(whole) - whole) == 0
    assert factored(whole).args[0] == l
