"""Compiled float64 evaluation: exactness where it counts, shapes, and refusals."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Function, Integer, Piecewise, Symbol, ceiling, exp, floor, log

from symbolic_cost.errors import InputError
from symbolic_cost.extrema import Max, Min
from symbolic_cost.numeric.compiled import Compiled
from symbolic_cost.program.arrays import CHUNK
from symbolic_cost.symbols import Active, V, b, e, l, m1, s


def one(expr, **values):
    return Compiled({"cost": expr})(values)["cost"]


def test_a_ceiling_divides_once():
    assert math.ceil(525 * (1 / 75)) == 8  # what a product with the rounded reciprocal gives
    assert one(ceiling(V / 75), V=525) == 7


def test_a_ceiling_divides_once_though_its_reciprocal_is_shared():
    degree, size = 49, 49 * 6
    assert size * (1 / degree) < 6
    found = Compiled({"up": ceiling(V / m1), "down": floor(V / m1), "rate": e / m1 + b / m1})
    values = found({"V": size, "m1": degree, "e": 1, "b": 1})
    assert (values["up"], values["down"]) == (6, 6)


@given(st.integers(1, 10**7), st.integers(1, 4096), st.integers(1, 256))
def test_ceilings_and_floors_are_exact(size, degree, number):
    function = Compiled({"up": ceiling(V / (m1 * 3) + l / 2), "down": floor(V / m1 - l)})
    exact = Fraction(size, degree * 3) + Fraction(number, 2)
    found = function({"V": size, "m1": degree, "l": number})
    assert found["up"] == math.ceil(exact)
    assert found["down"] == math.floor(Fraction(size, degree) - number)


def test_never_counts_in_int64():
    width = np.array([12288], dtype=np.int64)
    assert (width**6)[0] == 0  # silently
    assert one(e**6, e=width)[0] == float(12288**6)
    assert one(10**30 * e, e=3) == pytest.approx(3e30, rel=1e-15)
    assert one(e, e=10**18) == 1e18
    assert one(e, e=[10**17, Fraction(6, 2)]).tolist() == [1e17, 3.0]


def test_integers_stay_exact():
    found = one(ceiling(V / 75) / m1 + e**6, V=525, m1=3, e=12288)
    assert found == Fraction(7, 3) + 12288**6
    assert isinstance(one(V / m1, V=525, m1=3.0), float)


def test_brackets_count():
    degrees = np.array([1, 2])
    assert one(Active(m1) + Active(b), m1=degrees, b=degrees).tolist() == [0, 2]
    assert one(1 - Active(m1), m1=degrees).tolist() == [1, 0]
    assert one(-Active(m1), m1=degrees).tolist() == [0, -1]


def test_choices_and_logarithms():
    lengths = np.array([1, 4, 9])
    piecewise = Piecewise((log(l), l > 4), (1 / (l - 4), l < 4), (e, True))
    found = one(piecewise, l=lengths, e=7)
    assert found == pytest.approx([-1 / 3, 7, np.log(9)], rel=1e-15)
    assert one(Max(l, e) - Min(l, e), l=lengths, e=4).tolist() == [3, 0, 5]
    assert one(exp(-l), l=2) == pytest.approx(np.exp(-2))


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3])
def test_chunks_join(size):
    lengths = np.arange(1, size + 1)
    assert np.array_equal(one(l**2 + b, l=lengths, b=1), lengths**2 + 1.0)


def test_shapes_broadcast():
    rows, columns = np.arange(1, 301).reshape(-1, 1), np.arange(1, 201)
    found = one(100 * b + l + s, b=rows, l=columns, s=0.5)
    assert np.array_equal(found, 100.0 * rows + columns + 0.5)
    assert one(l, l=np.array(2.0)) == 2.0
    assert np.array_equal(one(l, l=np.arange(1, 7).reshape(2, 3).T), [[1, 4], [2, 5], [3, 6]])


def test_constants_and_nothing():
    function = Compiled({"two": Integer(2), "length": l})
    assert function.inputs == ("l",)
    assert function({"l": [1, 2]})["two"].tolist() == [2, 2]
    assert Compiled({})({}) == {}


def test_inputs_are_in_glossary_order():
    assert Compiled({"x": m1 * V * b, "y": l * e}).inputs == ("b", "l", "e", "V", "m1")


HOSTILE = "__import__('os').system('true')"


@pytest.mark.parametrize(
    ("expr", "held"),
    [
        (Symbol("l"), "l"),
        (Symbol("l", positive=True), "l"),
        (Symbol(HOSTILE), HOSTILE),
        (Function(HOSTILE)(l), f"{HOSTILE}(l)"),
        (Max(l, Symbol("x", positive=True)), "x"),
    ],
)
def test_refuses_what_is_not_of_the_glossary(expr, held):
    with pytest.raises(InputError) as caught:
        Compiled({"fine": l, "cost": b * expr})
    assert str(caught.value) == (
        f"'cost' holds {held}: symbols of the glossary, arithmetic, powers, log, Max, Min, "
        "ceiling and Piecewise are compiled"
    )


COUNT = "l: positive integers are accepted (sequence length [tokens]), not "
RATE = "s: positive finite numbers are accepted (size of one element [byte]), not "


@pytest.mark.parametrize(
    ("values", "problems"),
    [
        ({"s": 1}, ["no value for symbol 'l'"]),
        ({}, ["no value for symbol 'l'", "no value for symbol 's'"]),
        (
            {"l": 1, "s": 1, "ll": 3},
            ["unknown symbol of these expressions 'll': did you mean l?"],
        ),
        ({"l": 0, "s": -0.5}, [COUNT + "0", RATE + "-0.5"]),
        ({"l": [1, 2, 2.5], "s": float("inf")}, [COUNT + "2.5", RATE + "inf"]),
        ({"l": float("nan"), "s": [1, float("nan")]}, [COUNT + "nan", RATE + "nan"]),
        ({"l": True, "s": "2"}, [COUNT + "bool values", RATE + "str32 values"]),
        ({"l": [10**20, None], "s": None}, [COUNT + "object values", RATE + "object values"]),
        ({"l": [1, 2], "s": [1, 2, 3]}, ["shapes do not broadcast to one: l (2,), s (3,)"]),
    ],
)
def test_refuses_values(values, problems):
    with pytest.raises(InputError) as caught:
        Compiled({"cost": l * s})(values)
    assert list(caught.value.problems) == problems
