"""No comparison is decided before its numbers are there: derivatives, partial binding, prices."""

from dataclasses import replace
from functools import cache
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import Heaviside, Integer, Rational

from symbolic_cost.extrema import AtLeast, Choice, Max, Min
from symbolic_cost.models.catalog import model
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.symbols import M, b, cp, dp, m1
from symbolic_cost.systems.machines import Efficiencies, Figure
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.rooflines import Table, roofline
from symbolic_cost.systems.step import step_time

H100 = machine("h100")
SIZES = {**model("gpt3-175b").bindings, "l": 2048, "b": 1, "M": 32, "cp": 2}
DEGREES = {"m1": 4, "dp": 64, "pp": 8}


def test_a_greatest_keeps_its_step():
    """SymPy 1.14 takes 8/(dp m1) >= 1 for true, and loses it in a derivative."""
    slope = Max(1, 8 / (dp * m1)).diff(dp)
    assert slope.xreplace({dp: Integer(64), m1: Integer(4)}) == 0
    assert slope.xreplace({dp: Integer(1), m1: Integer(4)}) == -2
    assert not slope.atoms(Heaviside)


@given(*[st.integers(1, 6)] * 3)
def test_derivatives_of_extrema_are_one_sided_differences(one, two, three):
    """At a tie the first argument counts, and no more than one."""
    values = {b: Integer(one), dp: Integer(two), m1: Integer(three)}
    for extremum, chosen in ((Max, max), (Min, min)):
        expr = extremum(b, dp, m1)
        slopes = [expr.diff(symbol).xreplace(values) for symbol in (b, dp, m1)]
        assert sum(slopes) == 1
        winners = [values[symbol] == chosen(values.values()) for symbol in (b, dp, m1)]
        assert all(won for won, slope in zip(winners, slopes, strict=True) if slope)


@given(st.integers(1, 9), st.integers(1, 9), st.permutations([dp, m1, b]))
def test_brackets_wait_for_both_numbers(one, two, order):
    values = {dp: Integer(one), m1: Integer(two), b: Integer(3)}
    expr = Choice(AtLeast(8 / (dp * m1), b), dp, 1 / (m1 - m1 + b))
    for symbol in order:
        expr = expr.xreplace({symbol: values[symbol]})
    expected = one if Rational(8, one * two) >= 3 else Rational(1, 3)
    assert expr == expected


def test_efficiencies_by_size_are_steps():
    table = Table(
        tuple((Integer(size), Rational(share, 10)) for size, share in ((1, 2), (8, 5), (64, 7)))
    )
    shares = [table(Integer(flop)) for flop in (1, 7, 8, 63, 64, 1000)]
    assert shares == [Rational(share, 10) for share in (2, 2, 5, 5, 7, 7)]
    assert table(8 / (dp * m1)).xreplace({dp: Integer(4), m1: Integer(4)}) == Rational(2, 10)
    assert table(b).diff(b) == 0


def test_the_ridge_waits_for_numbers():
    time = roofline("ridge").time(8 / (dp * m1), Integer(1), latency=Integer(1))
    assert time.xreplace({dp: Integer(4), m1: Integer(4)}) == 2
    assert time.xreplace({dp: Integer(1), m1: Integer(4)}) == 2
    assert time.xreplace({dp: Integer(1), m1: Integer(1)}) == 8


@cache
def chain():
    """A step on a machine whose efficiencies are a table, all degrees symbols."""
    sizes = (10**9, 10**11, 10**13)
    products = tuple(
        (Figure(Integer(size)), Figure(Rational(share, 10)))
        for size, share in zip(sizes, (3, 6, 8), strict=True)
    )
    listed = replace(H100, efficiencies=Efficiencies(products=products))
    strategy = parse_strategy("tp,sp,cp,dp,pp,zero=1")
    declared = on_every_rank(model("gpt3-175b"), strategy)
    return step_time(declared, strategy, listed, Training(microbatches=M)).chain


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_any_order_of_binding_gives_the_same_step(order):
    names = [symbol.name for symbol in chain().symbols]
    values = {**SIZES, **DEGREES}
    groups = [
        {name: values[name] for name in names if name in DEGREES},
        {name: values[name] for name in names if name in {"e", "f", "h", "V", "P"}},
    ]
    groups.append({n: values[n] for n in names if not any(n in group for group in groups)})
    bound = chain()
    for place in order[:2]:
        bound = bound.bound(groups[place])
    last = bound.evaluate(groups[order[2]])
    assert last["step"] == chain().evaluate({name: values[name] for name in names})["step"]


@pytest.mark.parametrize("by", ["dp", "m1", "l", "M"])
def test_slopes_by_degrees_are_one_sided_differences(by):
    """A degree has fractions of ranks nowhere but here, so that a difference may be small."""
    strategy = parse_strategy("tp,dp,pp")
    declared = on_every_rank(model("gpt3-175b"), strategy)
    step = step_time(declared, strategy, H100, Training(microbatches=M)).chain
    rates = step.derivative("step", by)
    values = {s.name: {**SIZES, **DEGREES}[s.name] for s in step.symbols}
    slope = rates.evaluate(values)[f"d step/d {by}"]
    little = Rational(1, 10**9)
    bare = replace(step, conditions=())
    moved = [
        bare.evaluate({**values, by: values[by] + sign * little})["step"] for sign in (1, -1, 0)
    ]
    sides = [(moved[0] - moved[2]) / little, (moved[2] - moved[1]) / little]
    assert slope != 0
    assert min(abs(float(slope / side) - 1) for side in sides if side != 0) < 1e-6


def test_a_derivative_says_what_it_takes_as_flat():
    """The vocabulary is padded to whole parts, so that a step by V is flat but for jumps there."""
    strategy = parse_strategy("tp=8")
    step = step_time(model("gpt3-175b"), strategy, H100).chain
    held = step.jumps("step", "V")
    assert [str(jump) for jump in held] == ["ceiling(V/8)"]
    assert step.jumps("step", "l") == ()
    assert cp not in set().union(*(jump.free_symbols for jump in held))
