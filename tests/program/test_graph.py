"""Nodes are shared, numbers folded exactly, and nothing is compared before it is a number."""

from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolic_cost.errors import InputError
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.lowering import lowered
from symbolic_cost.program.program import included, of_graph
from symbolic_cost.symbols import V, b, beta, m1
from tests.program.recipes import SYMBOLS, configurations, graphs, real, values

GRAPH = Graph({"dp": True, "m1": True})
DP, M1 = GRAPH.symbol("dp"), GRAPH.symbol("m1")
BOTH = GRAPH.product([(DP, -1), (M1, -1)], 8)


def test_equal_nodes_are_one():
    assert GRAPH.sum([(DP, 2), (M1, 1)]) == GRAPH.sum([(M1, 1), (DP, 1), (DP, 1)])
    assert GRAPH.product([(DP, 1), (M1, 1), (DP, -1)]) == M1
    assert GRAPH.sum([(DP, 1), (DP, -1)]) == GRAPH.number(0)
    assert GRAPH.extremum("max", [DP, M1, DP]) == GRAPH.extremum("max", [M1, DP])


def test_a_number_over_two_symbols_is_not_at_least_one():
    """8/(dp*m1) >= 1 holds at dp*m1 <= 8 alone; SymPy 1.14 takes it for true."""
    bracket = of_graph(GRAPH, {"is": GRAPH.at_least(BOTH, GRAPH.number(1))})
    assert [bracket.exact({"dp": 2, "m1": n})["is"] for n in (1, 4, 5)] == [1, 1, 0]
    assert bracket.bound({"dp": 3}).exact({"m1": 3}) == {"is": 0}


@given(graphs(), values(64), st.permutations(list(SYMBOLS)), st.integers(1, 4))
def test_any_order_of_binding_is_all_at_once(program, numbers, order, first):
    parts = (order[:first], order[first:])
    bound = program
    for part in parts:
        bound = bound.bound({name: numbers[name] for name in part})
    assert _exact(bound, {}) == _exact(program, numbers)


def _exact(program, numbers):
    try:
        return program.exact(numbers)
    except InputError as error:
        return error.problems


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_any_order_of_binding_a_job(order):
    program = real("gpt3-175b")
    numbers = {name: int(one[0]) for name, one in configurations(program, 1).items()}
    names = list(numbers)
    bound = program
    for place in order:
        bound = bound.bound({name: numbers[name] for name in names[place::3]})
    assert bound.inputs == ()
    assert bound.exact({}) == program.exact(numbers)


def test_what_is_not_chosen_may_be_undefined():
    less = GRAPH.sum([(DP, 1)], -1)
    chosen = GRAPH.select(GRAPH.active(DP), GRAPH.over(M1, less), M1)
    program = of_graph(GRAPH, {"x": chosen})
    assert program.exact({"dp": 1, "m1": 5}) == {"x": 5}
    assert program.floats({"dp": 1, "m1": 5}) == {"x": 5.0}
    assert program.bound({"dp": 1}).exact({"m1": 5}) == {"x": 5}
    with pytest.raises(InputError, match="'x' divides by zero at these numbers"):
        of_graph(GRAPH, {"x": GRAPH.over(M1, less)}).exact({"dp": 1, "m1": 2})


def test_programs_go_together():
    rows, half = lowered({"rows": V / m1}), lowered({"half": b / (2 * beta)})
    graph = Graph(SYMBOLS)
    places = included(graph, rows, {})
    whole = included(graph, half, {"b": places[rows.outputs["rows"]]})
    program = of_graph(graph, {"half": whole[half.outputs["half"]]})
    assert program.inputs == ("m1", "V", "beta")
    assert program.exact({"V": 3, "m1": 2, "beta": 5}) == {"half": Fraction(3, 20)}


def test_roots_and_logarithms_are_exact_where_they_are_rational():
    graph = Graph({"b": True})
    one = graph.symbol("b")
    made = {"root": graph.square_root(one), "log": graph.log2(one), "power": graph.exp2(one)}
    assert of_graph(graph, made).exact({"b": 16}) == {"root": 4, "log": 4, "power": 65536}
    found = of_graph(graph, {"log": graph.log2(one)}).exact({"b": 3})["log"]
    assert abs(found - Fraction("1.58496250072115618145373894394781650875981440769248")) < 1e-40


def test_refusals():
    program = lowered({"x": V / m1})
    with pytest.raises(InputError, match="no value for symbol 'm1'"):
        program.exact({"V": 1})
    with pytest.raises(InputError, match=r"V = 0\.5: an integer or a Fraction is accepted"):
        program.bound({"V": 0.5})
    with pytest.raises(InputError, match="unknown output 'y'"):
        program.chosen(["y"])
