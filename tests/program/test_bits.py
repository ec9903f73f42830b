"""Floats, arrays and machine code agree in every bit, and with exact numbers to rounding."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.program import arrays, scalars
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.program import of_graph
from tests.program.recipes import JOBS, SMOOTH, SYMBOLS, configurations, graphs, real, values

try:
    from symbolic_cost.program.fast import NativeFlat
except ImportError:  # the extra "fast" is not there
    NativeFlat = None

native = pytest.mark.skipif(NativeFlat is None, reason="llvmlite is not installed")


def same(one, other):
    """Equal in every bit; numbers that are none are equal, and zeros of either sign."""
    return np.array_equal(np.asarray(one), np.asarray(other), equal_nan=True)


def columns(program, rows):
    return {n: np.array([float(row[n]) for row in rows]) for n in program.inputs}


def one_by_one(program, given_columns, size):
    function = scalars.function(program.tape)
    taken = [given_columns[name].tolist() for name in program.inputs]
    return np.array([function(*(one[i] for one in taken)) for i in range(size)]).T


@settings(max_examples=50)
@given(graphs(), st.lists(values(), min_size=1, max_size=9))
def test_floats_and_arrays(program, rows):
    given_columns = columns(program, rows)
    expected = one_by_one(program, given_columns, len(rows))
    found = arrays.evaluated(program.tape, given_columns, len(rows))
    assert same(list(found.values()), expected)
    numbers = {name: float(rows[0][name]) for name in program.inputs}
    assert same(list(program.floats(numbers).values()), expected[:, 0])


@pytest.mark.slow
@native
@settings(max_examples=40, deadline=None)
@given(graphs(), st.lists(values(), min_size=1, max_size=9))
def test_arrays_and_machine_code(program, rows):
    given_columns = columns(program, rows)
    if not given_columns:
        return
    expected = arrays.evaluated(program.tape, given_columns, len(rows))
    found = NativeFlat(program.tape)(given_columns, len(rows))
    for name, array in expected.items():
        assert same(found[name], array)


@pytest.mark.slow
@given(graphs(SMOOTH), values())
def test_floats_are_the_rounded_exact_numbers(program, numbers):
    """Without differences nothing cancels, and nothing jumps."""
    found = program.floats(numbers)
    for name, value in program.exact(numbers).items():
        assert found[name] == pytest.approx(float(value), rel=1e-12)


@given(graphs((*SMOOTH, "ceiling", "floor", "at_least"), most=4, rates=False), values(256))
def test_counts_jump_where_exact_numbers_do(program, numbers):
    exact = program.exact(numbers)
    if all(value < 2**40 for value in exact.values()):
        found = program.floats(numbers)
        for name, value in exact.items():
            assert found[name] == pytest.approx(float(value), rel=1e-12)


def test_every_divisor():
    """Multiples of a divisor and their neighbours, under ceiling, floor and a bracket."""
    graph = Graph(SYMBOLS)
    quotient = graph.over(graph.symbol("V"), graph.symbol("m1"))
    rate = graph.product([(graph.symbol("b"), 1), (graph.symbol("m1"), -1)])
    program = of_graph(
        graph,
        {
            "up": graph.ceiling(quotient),
            "down": graph.floor(quotient),
            "least": graph.at_least(quotient, graph.symbol("b")),
            "rate": rate,  # shares the reciprocal, were there one below the ceiling
        },
    )
    divisor = np.arange(1, 4097)
    times = np.array([1, 2, 3, 6, 7, 11, 99, 4099, 65_537])
    beside = np.array([-1, 0, 1])
    d, k, more = (one.reshape(-1) for one in np.meshgrid(divisor, times, beside))
    V = np.maximum(d * k + more, 1)
    given_columns = {"V": V.astype(float), "m1": d.astype(float), "b": k.astype(float)}
    expected = {"up": -(-V // d), "down": V // d, "least": d * k <= V}
    engines = [arrays.evaluated] + ([lambda t, v, n: NativeFlat(t)(v, n)] if NativeFlat else [])
    for engine in engines:
        found = engine(program.tape, given_columns, len(V))
        for name, numbers in expected.items():
            assert np.array_equal(found[name], numbers)


def test_every_divisor_as_a_number():
    wrong = 0
    for divisor in range(1, 4097):
        graph = Graph({"V": True})
        V = graph.symbol("V")
        up = graph.ceiling(graph.product([(V, 1)], Fraction(1, divisor)))
        program = of_graph(graph, {"up": up})
        wrong += math.ceil(7 * divisor * (1 / divisor)) != 7
        for times in (1, 3, 7):
            assert program.floats({"V": times * divisor})["up"] == times
    assert wrong > 10  # by a product with the rounded reciprocal


def test_logarithms_are_exact_for_powers_of_two():
    graph = Graph({"b": True, "beta": False})
    one = graph.symbol("beta")
    program = of_graph(graph, {"log": graph.log2(one), "power": graph.exp2(graph.log2(one))})
    size = 4001
    given_columns = {"beta": np.concatenate([2.0 ** np.arange(-500, 500), np.arange(1.0, 3002)])}
    found = arrays.evaluated(program.tape, given_columns, size)
    assert np.array_equal(found["log"][:1000], np.arange(-500, 500))
    assert np.array_equal(found["power"][:1000], given_columns["beta"][:1000])
    assert np.allclose(found["log"], np.log2(given_columns["beta"]), rtol=1e-15, atol=0)
    assert np.allclose(found["power"], given_columns["beta"], rtol=1e-14, atol=0)
    assert same(list(found.values()), one_by_one(program, given_columns, size))
    if NativeFlat:
        assert same(
            list(NativeFlat(program.tape)(given_columns, size).values()), list(found.values())
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_real_jobs(name):
    """Step and memory: native and arrays over 40,000 configurations, floats over 2,000."""
    program, size = real(name), 40_000
    given_columns = configurations(program, size)
    expected = arrays.evaluated(program.tape, given_columns, size)
    part = {name: column[:2000] for name, column in given_columns.items()}
    found = one_by_one(program, part, 2000)
    assert same(found, [array[:2000] for array in expected.values()])
    if NativeFlat:
        found = NativeFlat(program.tape)(given_columns, size)
        for output, array in expected.items():
            assert same(found[output], array)
    for row in range(5):
        exact = program.exact({n: int(column[row]) for n, column in given_columns.items()})
        for output, value in exact.items():
            assert expected[output][row] == pytest.approx(float(value), rel=1e-12)
