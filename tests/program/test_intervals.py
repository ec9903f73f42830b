"""Bounds: every point of a box lies within, exact and in floats; what rounding decides is told."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.program.exact import undefined
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.intervals import Intervals, certified, directions
from symbolic_cost.program.program import of_graph
from symbolic_cost.program.scalars import exact_results, float_results
from tests.program.recipes import JOBS, SYMBOLS, configurations, graphs, real, values


def boxes(program, one, other):
    """The box between two configurations, as floats that lie outside of it."""
    low, high = {}, {}
    for name in program.inputs:
        first, second = sorted((one[name], other[name]))
        low[name], high[name] = float(first), float(second)
        if Fraction(low[name]) > first:
            low[name] = np.nextafter(low[name], -np.inf)
        if Fraction(high[name]) < second:
            high[name] = np.nextafter(high[name], np.inf)
    return low, high


def within(draw, one, other):
    """A configuration between two, on counts or on fractions."""
    if isinstance(one, int):
        return draw(st.integers(min(one, other), max(one, other)))
    share = draw(st.fractions(0, 1, max_denominator=16))
    return one + share * (other - one)


def holds(span, exact, rounded):
    low, high = (float(end[0]) for end in span)
    assert low <= high
    if not undefined(exact):
        assert low <= exact <= high
        if np.isfinite(rounded):
            assert low <= rounded <= high


@pytest.mark.slow
@settings(max_examples=60)
@given(graphs(), values(), values(), st.data())
def test_points_lie_within(program, one, other, data):
    low, high = boxes(program, one, other)
    bounds = Intervals(program.tape, low, high)
    spans = [bounds(low, high)]
    point = {n: within(data.draw, one[n], other[n]) for n in SYMBOLS}
    middle = {n: within(data.draw, one[n], point[n]) for n in SYMBOLS}
    spans.append(bounds(*boxes(program, point, middle)))  # by what the whole box tells
    inner = {n: within(data.draw, point[n], middle[n]) for n in SYMBOLS}
    taken = [inner[name] for name in program.inputs]
    exact = exact_results(program.tape, taken)
    rounded = float_results(program.tape, [float(value) for value in taken])
    for found in spans:
        for name, span in found.items():
            holds(span, exact[name], rounded[name])


@settings(max_examples=60)
@given(graphs(), values())
def test_a_certain_point_is_rounded_as_it_is(program, point):
    found = certified(program.tape, point)
    exact = exact_results(program.tape, [point[name] for name in program.inputs])
    for name, (low, high) in found.bounds.items():
        if not undefined(exact[name]):
            assert low <= exact[name] <= high


@settings(max_examples=60)
@given(graphs(), values(), values(), st.data())
def test_directions_hold(program, one, other, data):
    bounds = Intervals(program.tape, *boxes(program, one, other))
    ways = directions(bounds)
    point = {n: within(data.draw, one[n], other[n]) for n in program.inputs}
    name = data.draw(st.sampled_from(program.inputs)) if program.inputs else None
    if name is None:
        return
    less, more = sorted((within(data.draw, one[name], other[name]), point[name]))
    ends = [
        float_results(program.tape, [float({**point, name: v}[n]) for n in program.inputs])
        for v in (less, more)
    ]
    bit = 1 << program.inputs.index(name)
    for output, place in program.tape.outputs.items():
        below, above = (end[output] for end in ends)
        if np.isfinite([below, above]).all():
            assert ways.rising[place] & bit or above <= below
            assert ways.falling[place] & bit or below <= above


@pytest.mark.parametrize("name", JOBS)
def test_real_jobs_lie_within(name):
    program = real(name)
    size = 64
    columns = configurations(program, size)
    low = {n: np.minimum(columns[n][: size // 2], columns[n][size // 2 :]) for n in program.inputs}
    high = {n: np.maximum(columns[n][: size // 2], columns[n][size // 2 :]) for n in program.inputs}
    bounds = Intervals(
        program.tape,
        {n: one.min() for n, one in low.items()},
        {n: one.max() for n, one in high.items()},
    )
    found = bounds(low, high)
    for half in (slice(0, size // 2), slice(size // 2, size)):
        for place in range(size // 2):
            point = [float(columns[n][half][place]) for n in program.inputs]
            for output, value in float_results(program.tape, point).items():
                assert found[output][0][place] <= value <= found[output][1][place]


def ceiling_of(above, below):
    graph = Graph({"x": True, "y": False})
    x, y = graph.symbol("x"), graph.symbol("y")
    return of_graph(graph, {"out": graph.ceiling(graph.product([(x, 1), (y, 1)]))}), {
        "x": above,
        "y": below,
    }


def test_a_ceiling_that_rounding_decides_is_told():
    program, point = ceiling_of(3, Fraction(1, 3))
    found = certified(program.tape, point)
    assert not found
    assert found.doubtful == ("ceil",)
    assert found.bounds["out"] == (1.0, 2.0)
    assert certified(program.tape, {"x": 5, "y": Fraction(1, 3)})


def test_quotients_of_whole_numbers_are_certain():
    graph = Graph({"x": True, "y": True})
    quotient = graph.over(graph.symbol("x"), graph.symbol("y"))
    whole = graph.at_least(graph.floor(quotient), quotient)
    program = of_graph(graph, {"whole": whole, "up": graph.ceiling(quotient)})
    for x in (525, 524, 7, 2**45):
        for y in (1, 3, 7, 75, 524):
            found = certified(program.tape, {"x": x, "y": y})
            assert found
            assert found.bounds == {
                "whole": (float(x % y == 0),) * 2,
                "up": (float(-(-x // y)),) * 2,
            }


@pytest.mark.parametrize("x", [5, 5.3, 2**40])
@pytest.mark.parametrize("y", [1, 2, 8, 2**-7])
def test_what_is_scaled_by_a_power_of_two_is_certain(x, y):
    """As of degrees: dp over the least of dp and 8 is one, and not more."""
    graph = Graph({"x": False, "y": False})
    one, other = graph.symbol("x"), graph.symbol("y")
    least = graph.extremum("min", [other, graph.number(8)])
    share = graph.over(one, least)
    outputs = {
        "share": share,
        "more": graph.more(share, one),
        "inverse": graph.product([(least, -1)]),
    }
    program = of_graph(graph, outputs)
    found = certified(program.tape, {"x": x, "y": y})
    assert found
    assert found.bounds == {
        "share": (x / y, x / y),
        "inverse": (1 / y, 1 / y),
        "more": (float(y < 1),) * 2,
    }


def test_a_logarithm_of_what_may_be_negative_may_be_anything():
    graph = Graph({"x": True})
    less = graph.log2(graph.sum([(graph.symbol("x"), 1)], -5))
    program = of_graph(graph, {"out": graph.sum([(less, 1)], 1)})
    found = Intervals(program.tape, {"x": 1.0}, {"x": 69.0})
    assert [float(end[0]) for end in found({"x": 1.0}, {"x": 3.0})["out"]] == [-np.inf, np.inf]
    assert float(found({"x": 7.0}, {"x": 69.0})["out"][1][0]) == pytest.approx(7)
