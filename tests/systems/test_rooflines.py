"""Rooflines against what they say in words."""

import pytest
from sympy import Integer, Rational, oo

from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.ledger import Units
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import F_m, F_v, beta_m, n
from symbolic_cost.systems.rooflines import ROOFLINES, Curve, Device, Table, roofline

I = Integer


@pytest.mark.parametrize(
    ("name", "compute", "memory", "time"),
    [
        ("maximum", 5, 3, 1 + 5),
        ("maximum", 3, 5, 1 + 5),
        ("launched maximum", 5, 3, 1 + 5),
        ("launched maximum", 3, 5, 5),
        ("ridge", 5, 3, 1 + 5),
        ("ridge", 3, 5, 1 + 5 + 7 + 2 + 11),
    ],
)
def test_answers(name, compute, memory, time):
    found = roofline(name).time(I(compute), I(memory), (I(2), I(11)), latency=I(7), launch=I(1))
    assert found == time


def test_answers_differ_at_the_ridge_alone():
    """At equal times every answer without inner levels, latency or launch is the same."""
    assert {answer.time(I(4), I(4)) for answer in ROOFLINES.values()} == {4}


def test_every_answer_has_a_source():
    assert {answer.source for answer in ROOFLINES.values()} <= set(REFERENCES)


def test_unknown_answer():
    with pytest.raises(UnknownNameError, match="unknown roofline 'rigde': did you mean ridge"):
        roofline("rigde")


def test_curve_reaches_half_of_its_peak_at_half():
    curve = Curve(Rational(4, 5), Integer(10**9))
    assert curve(Integer(10**9)) == Rational(2, 5)
    device = Device(F_m, F_v, beta_m, efficiency=curve)
    time = device.compute_time(Units.MATRIX, n)
    assert (time - (n + 10**9) / (F_m * Rational(4, 5))).equals(0)
    assert time.diff(n).free_symbols == {F_m}


def test_table_steps():
    table = Table(((I(100), Rational(1, 4)), (I(200), Rational(1, 2)), (I(400), I(1))))
    shares = [table(I(size)) for size in (1, 100, 199, 200, 399, 400, 10**9)]
    assert [share * 4 for share in shares] == [1, 1, 1, 2, 2, 4, 4]
    assert table(n).subs(n, 300) == Rational(1, 2)
    one = Table(((I(1), Rational(1, 3)),))
    assert one(n) == Rational(1, 3)


@pytest.mark.parametrize("entries", [(), ((I(2), I(1)), (I(1), I(1)))])
def test_table_refuses(entries):
    with pytest.raises(InputError, match="FLOP growing"):
        Table(entries)


def test_units():
    device = Device(I(10), I(2), I(4), launch=oo)
    assert device.compute_time(Units.MATRIX, I(20)) == 2
    assert device.compute_time(Units.MATRIX, I(20)) == 2
    assert device.compute_time(Units.VECTOR, I(20)) == 10
    assert device.memory_time(I(20)) == 5
