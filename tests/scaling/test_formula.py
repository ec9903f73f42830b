"""The grammar of typed formulas: what it accepts, and that nothing is run."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Symbol, exp

from symbolic_cost.errors import InputError
from symbolic_cost.typed import Formula


def test_numbers_stay_exact_while_they_can():
    law = Formula("E + 3*A/N**2 - 0.1")
    assert law.number({"E": 1, "A": 2, "N": Fraction(3)}) == Fraction(47, 30)
    assert law.names == {"E", "A", "N"}


def test_it_is_a_sympy_expression_and_an_array():
    import numpy as np

    law = Formula("A*exp(-x/2) + max(x, 3)")
    x = Symbol("x", positive=True)
    assert law.expr().subs(Symbol("A", positive=True), 0).subs(x, 5) == 5
    assert Formula("exp(-x)").expr() == exp(-x)
    assert law.array({"A": 0.0, "x": np.array([1.0, 5.0])}).tolist() == [3, 5]


@settings(max_examples=20, deadline=None)
@given(*[st.floats(0.1, 10)] * 3)
def test_the_three_arithmetics_agree(a, b, x):
    import numpy as np

    law = Formula("a*x**b + ln(x + 1)/sqrt(a) - min(a, b)*log2(8)")
    values = {"a": a, "b": b, "x": x}
    number = float(law.number(values))
    assert float(law.array({name: np.float64(v) for name, v in values.items()})) == pytest.approx(
        number, rel=1e-12, abs=1e-12
    )
    symbols = {Symbol(name, positive=True): value for name, value in values.items()}
    assert float(law.expr().subs(symbols)) == pytest.approx(number, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__import__('os').system('x')", "are accepted"),
        ("().__class__", "are accepted"),
        ("a if b else c", "'if' at 3: an operator or the end"),
        ("[x for x in y]", "are accepted"),
        ("lambda: 1", "are accepted"),
        ("f(2)", "unknown function 'f'"),
        ("sqrt", None),
        ("a +", "the end: a number, a name or ("),
        ("(a", "the end: ) is accepted"),
        ("", "the end: a number, a name or ("),
        ("2**1000", "power 1e+03 is above 200"),
        ("a**b**c", "a power of a power"),
        ("a/2 b", "'b' at 5: an operator"),
        ("a**-9999", "is above 200"),
        ("1e300", "is above 1E+100"),
        ("a" * 3000, "at most 2000 characters"),
        ("-" * 60 + "a", "levels deep"),
        ("1" + "+1" * 700, "is too long"),
        ("exp(x=2)", "are accepted"),
        ("a, b", "',' at 2: an operator or the end"),
        ("'text'", "are accepted"),
    ],
)
def test_what_is_no_formula_is_refused(text, said):
    if said is None:
        assert Formula(text).names == {"sqrt"}
        return
    with pytest.raises(InputError) as refused:
        Formula(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1/(a - a)", "a division by zero"),
        ("ln(0*a)", "math domain error"),
        ("exp(10**9*a)", "math range error"),
        ("a**0.5 + (0 - a)**0.5", "math domain error"),
        ("sqrt(a, a)", "exactly one argument"),
        ("b", "unknown name 'b'"),
        ("((10**200)**200)**200", "math range error"),
    ],
)
def test_numbers_that_cannot_be_had_are_refused(text, said):
    with pytest.raises(InputError) as refused:
        Formula(text).number({"a": 1})
    assert said in str(refused.value)
