"""Chains: exact values, derivatives and compiled values against plain expressions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Integer, Piecewise, Rational, ceiling

from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.extrema import Max
from symbolic_cost.symbols import Active, V, b, beta, e, l, m1, named
from symbolic_cost.systems.chain import Chain

CHAIN = Chain(
    {
        "rows": b * l / m1,
        "padded": ceiling(V / m1) * named("rows"),
        "moved": Active(m1) * named("rows") * e / beta,
        "time": Max(named("padded") / 100, named("moved")) + named("moved") ** 2,
        "choice": Piecewise((named("time"), named("rows") > 4), (named("moved"), True)),
    }
)
VALUES = {"b": 2, "l": 12, "m1": 4, "V": 525, "e": 8, "beta": 7}


def test_exact_values():
    found = CHAIN.evaluate(VALUES)
    assert found["padded"] == 132 * 6
    assert found["moved"] == Rational(48, 7)
    assert found["time"] == Rational(792, 100) + Rational(48, 7) ** 2
    assert found["choice"] == found["time"]


def test_floats_stand_for_decimals():
    assert Chain({"x": beta * 3}).evaluate({"beta": 0.1})["x"] == Rational(3, 10)


@settings(max_examples=25, deadline=None)
@given(st.fixed_dictionaries({name: st.integers(1, 10**6) for name in VALUES}))
def test_compiled_agrees_with_exact(values):
    exact = CHAIN.evaluate(values)
    for name, found in CHAIN.compiled()(values).items():
        assert float(found) == pytest.approx(float(exact[name]), rel=1e-12)


def test_compiled_arrays():
    many = {**VALUES, "beta": np.array([1.0, 7.0, 70.0])}
    found = CHAIN.compiled("time")(many)
    assert list(found) == ["time"]
    one = [float(CHAIN.evaluate({**VALUES, "beta": n})["time"]) for n in (1, 7, 70)]
    assert found["time"] == pytest.approx(one, rel=1e-12)


def test_ceilings_divide_once():
    found = Chain({"x": ceiling(V / 75)}).compiled()({"V": 525})
    assert found["x"] == 7


@pytest.mark.parametrize("beta_at", [7, 700])
def test_derivative_is_that_of_the_whole_expression(beta_at):
    values = {**VALUES, "beta": beta_at}
    found = CHAIN.derivative("time", "beta").evaluate(values)["d time/d beta"]
    step = Rational(1, 10**9)
    at, after = (CHAIN.evaluate({**values, "beta": beta_at + s})["time"] for s in (0, step))
    assert float(found) == pytest.approx(float((after - at) / step), rel=1e-7)


def test_derivative_takes_ceilings_and_brackets_as_flat():
    found = CHAIN.derivative("padded", "m1").evaluate(VALUES)["d padded/d m1"]
    assert found == -132 * Rational(24, 16)


def test_derivative_of_what_does_not_depend():
    assert CHAIN.derivative("rows", "beta").evaluate(VALUES)["d rows/d beta"] == 0


def test_long_chains_do_not_recurse():
    links = {"x0": 1 + e}
    for place in range(1, 1200):
        links[f"x{place}"] = Max(named(f"x{place - 1}"), b) + Rational(1, place)
    chain = Chain(links)
    value = chain.evaluate({"e": 2, "b": 1})["x1199"]
    assert value == 3 + sum(Rational(1, place) for place in range(1, 1200))
    assert chain.derivative("x1199", "e").evaluate({"e": 2, "b": 1})["d x1199/d e"] == 1


def test_needed_bound_and_expression():
    assert list(CHAIN.dependencies(["moved"]).definitions) == ["rows", "moved"]
    bound = CHAIN.bound({"m1": 4, "V": 525})
    assert {s.name for s in bound.symbols} == {"b", "l", "e", "beta"}
    assert CHAIN.expression("padded") == ceiling(V / m1) * b * l / m1


def test_refusals():
    with pytest.raises(InputError) as caught:
        Chain({"a": named("later"), "later": b, "e": Integer(1)})
    assert list(caught.value.problems) == [
        "definition 'a' uses 'later' before it is defined",
        "definition 'e' has the name of a symbol",
    ]
    with pytest.raises(InputError) as caught:
        CHAIN.evaluate({"b": 1, "l": 1, "e": 1, "m1": 1})
    assert list(caught.value.problems) == [
        "no value for V (vocabulary)",
        "no value for beta (bandwidth of a link [byte/s])",
    ]
    with pytest.raises(InputError) as caught:
        CHAIN.evaluate({"b": "__import__('os')", "nothing": 1})
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError, match="unknown definition 'tiem': did you mean time"):
        CHAIN.compiled("tiem")
    with pytest.raises(UnknownNameError, match="unknown symbol"):
        CHAIN.derivative("time", "gamma")
    with pytest.raises(InputError, match="no value for symbol 'beta'"):
        CHAIN.compiled("moved")({"b": 1, "l": 1, "e": 1, "m1": 1})
