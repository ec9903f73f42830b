"""Derivatives are one-sided differences, and what they take as flat is listed."""

from fractions import Fraction

import pytest
from hypothesis import assume, given
from sympy import ceiling, exp, log, sqrt

from symbolic_cost.extrema import Max
from symbolic_cost.program.lowering import lowered
from symbolic_cost.symbols import Active, V, b, beta, dp, l, m1
from tests.program.recipes import SMOOTH, configurations, graphs, real, values

LITTLE = Fraction(1, 10**30)


def sides(program, numbers, by, name):
    at = program.exact(numbers)[name]
    moved = [program.exact({**numbers, by: numbers[by] + s * LITTLE})[name] for s in (1, -1)]
    return [(moved[0] - at) / LITTLE, (at - moved[1]) / LITTLE]


@given(graphs((*SMOOTH, "select")), values())
def test_random_expressions(program, numbers):
    assume("beta" in program.inputs)
    slope = program.derivative("beta", ["out"]).exact(numbers)["d out/d beta"]
    near = sides(program, numbers, "beta", "out")
    close = [
        abs(slope - one) <= abs(slope) * Fraction(1, 10**9) + Fraction(1, 10**9) for one in near
    ]
    jumped = max(map(abs, near)) > 10**20  # at a bracket's jump, which is taken as flat
    assert any(close) or jumped


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt3-175b", "llama-3-70b", "deepseek-v3"])
@pytest.mark.parametrize("by", ["l", "dp", "m1", "e"])
def test_steps_of_jobs(name, by):
    program = real(name)
    columns = configurations(program, 3, seed=5)
    for row in range(3):
        numbers = {n: int(column[row]) + 1 for n, column in columns.items()}
        slope = program.derivative(by, ["step"]).exact(numbers)[f"d step/d {by}"]
        near = sides(program.chosen(["step"]), numbers, by, "step")
        assert min(abs(slope - one) for one in near) <= abs(slope) * Fraction(1, 10**9)


def test_a_max_of_a_number_over_two_degrees():
    """SymPy 1.14 forgets that it is flat where 8 < dp m1."""
    slope = lowered({"x": Max(1, 8 / (dp * m1))}).derivative("dp")
    assert slope.exact({"dp": 2, "m1": 2}) == {"d x/d dp": -1}
    assert slope.exact({"dp": 4, "m1": 4}) == {"d x/d dp": 0}


def test_jumps_are_listed_and_flat():
    program = lowered({"x": ceiling(V / m1) * b + Active(m1) * l, "y": l})
    assert program.derivative("V").exact({"V": 5, "m1": 2, "b": 3, "l": 1}) == {
        "d x/d V": 0,
        "d y/d V": 0,
    }
    kinds = [program.nodes[node][0] for node in program.jumps("m1")]
    assert sorted(kinds) == ["ceil", "gt"]
    assert program.jumps("V", ["y"]) == ()


def test_powers_and_logarithms():
    program = lowered({"x": sqrt(beta) + log(beta) + exp(beta / 4) + beta**-3})
    slope = program.derivative("beta").floats({"beta": 4.0})["d x/d beta"]
    assert slope == pytest.approx(0.25 + 0.25 + 2.718281828459045 / 4 - 3 / 256, rel=1e-12)
