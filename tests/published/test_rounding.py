"""Intervals of printed numbers, and inputs under the names of a paper."""

from fractions import Fraction
from typing import ClassVar

import pytest
from sympy import Integer, Rational

from symbolic_cost.published.contract import compared_within, interval, number
from symbolic_cost.published.inputs import Count, Inputs


@pytest.mark.parametrize(
    ("printed", "low", "high"),
    [
        ("163", "162.5", "163.5"),
        ("1.10", "1.095", "1.105"),
        ("0.5", "0.45", "0.55"),
        ("-2", "-2.5", "-1.5"),
    ],
)
def test_interval(printed, low, high):
    assert interval(printed) == (Fraction(low), Fraction(high))


@pytest.mark.parametrize(
    ("published", "match", "computed"),
    [
        ("20.0", True, "20.0"),
        ("20.9", True, "20.0"),  # 10.5 times 1.95 is 20.5, 10.5 times 2.05 is 21.5
        ("18.6", True, "20.0"),
        ("21.6", False, "20.0"),
        ("18.4", False, "20.0"),
    ],
)
def test_compared_within(published, match, computed):
    row = compared_within("key", published, lambda x, y: x * y, ["10", "2.0"])
    assert (row.key, row.published, row.computed, row.match) == ("key", published, computed, match)
    inside = "equal inside the rounding of 10 and 2.0"
    assert row.note == (inside if match and published != computed else "")


def test_compared_within_nothing_given():
    assert compared_within("key", "0.33", lambda: Fraction(1, 3), []).match
    assert not compared_within("key", "0.34", lambda: Fraction(1, 3), []).match


def test_plain():
    assert number(Integer(2**70)) == 2**70
    assert isinstance(number(Integer(2)), int)
    assert number(Rational(1, 3)) == 1 / 3


class Sizes(Inputs):
    NAMES: ClassVar = {"a": "h", "h": "e", "s": "l"}

    e: Count
    h: Count
    l: Count = 1


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ({"a": 2, "h": 8, "s": 4}, {"h": 2, "e": 8, "l": 4}),
        ({"e": 8, "h": 2}, {"e": 8, "h": 2}),
        ({"e": 8, "a": 2}, {"e": 8, "a": 2}),
        ({"h": 2}, {"h": 2}),
    ],
)
def test_names_of_a_paper(given, ours):
    assert Sizes.in_our_names(given) == ours
