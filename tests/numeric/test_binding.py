"""Exact binding: what is refused, with which words, and what divides."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sympy import Integer, Rational, log, oo, sqrt

from symbolic_cost.conventions.presets import STANDARD, TRANSFORMER_TABLES_AS_PRINTED
from symbolic_cost.errors import DivisibilityError, InputError
from symbolic_cost.numeric.binding import LARGEST_COUNT, bind, check_values, value
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import Placement
from symbolic_cost.symbols import b, e, l, m1, mu, s
from tests.numeric.small import MODEL, small

SIZES = {"b": 1, "l": 2048, "e": 12288, "f": 49152, "h": 96, "V": 50304, "n_layers": 96}


@pytest.mark.parametrize("given", [1, 96, LARGEST_COUNT, 4.0, Integer(3), np.int64(7), Fraction(8)])
def test_counts_accept(given):
    assert check_values({"l": given}) == {l: Integer(int(given))}


@pytest.mark.parametrize("given", [2, 0.5, Decimal("0.5"), Fraction(1, 3), Rational(7, 2)])
def test_rates_accept(given):
    number = check_values({"mu": given})[mu]
    assert number.is_Rational
    assert number == Rational(str(Fraction(str(given))))


REFUSED_COUNTS = {
    "0": 0,
    "-4": -4,
    "True": True,
    "2.5": 2.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "None": None,
    "'4'": "4",
    "'l + 1'": "l + 1",
    "[4]": [4],
    "{}": {},
    "(1+0j)": 1 + 0j,
    "1/2": Fraction(1, 2),
    "1/3": Rational(1, 3),
    "b": b,
    "oo": oo,
    "an integer of 60 bits": LARGEST_COUNT + 1,
    "an integer of 33220 bits": 10**10_000,
    "array([4, 5])": np.array([4, 5]),
    "'" + "x" * 36 + "...": "x" * 100,
}


@pytest.mark.parametrize(("shown", "given"), REFUSED_COUNTS.items(), ids=list(REFUSED_COUNTS))
def test_counts_refuse(shown, given):
    with pytest.raises(InputError) as caught:
        check_values({"m1": given})
    assert str(caught.value) == (
        f"m1 = {shown}: an integer from 1 to 10**18 is accepted (tensor-parallel degree)"
    )


@pytest.mark.parametrize("given", [0, -1, True, float("nan"), float("inf"), None, "2", oo, sqrt(2)])
def test_rates_refuse(given):
    with pytest.raises(InputError) as caught:
        check_values({"s": given})
    assert str(caught.value) == (
        f"s = {given!r}: a positive finite number is accepted (size of one element [byte])"
    )


def test_every_problem_is_told_at_once():
    with pytest.raises(InputError) as caught:
        check_values({"nlayers": 3, "b": 0, "l": 4, "s": -1, "5": 2})
    assert caught.value.problems[0].startswith("unknown symbol 'nlayers': did you mean n_layers")
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        *("unknown symbol 'nlayers'", "b = 0", "s = -1", "unknown symbol '5'")
    ]


def test_binds_an_expression_and_expressions_by_name():
    assert bind(b * l * s, {"b": 2, "s": 0.5}) == l
    assert bind({"x": b + l, "y": e}, {"b": 1}) == {"x": l + 1, "y": e}


def test_keeps_what_has_no_number():
    bound = bind(small(), {"b": 1, "m1": 8})
    assert bound.total("flop").free_symbols.isdisjoint({b, m1})
    assert {l, e} <= bound.total("flop").free_symbols
    assert [str(split.degrees[0][1]) for split in bound.splits if split.degrees] == ["8"] * 3


def test_binds_in_steps_as_at_once():
    first = dict(list(SIZES.items())[:4])
    stepwise = bind(bind(small(), first), {**SIZES, "m1": 8})
    assert stepwise == bind(small(), {**SIZES, "m1": 8})


def test_binds_sizes_of_elements():
    whole = small(TRANSFORMER_TABLES_AS_PRINTED, Placement()).select("saved")
    with pytest.raises(InputError, match=r"^no number without values for s, mu$"):
        value(bind(whole, SIZES).total())
    two_bytes = bind(whole, {**SIZES, "s": 2, "mu": 1}).total()
    four_bytes = bind(whole, {**SIZES, "s": 4, "mu": 2}).total()
    assert value(four_bytes) == 2 * value(two_bytes)


def test_values_are_integers_or_fractions():
    assert value(Integer(6)) == 6
    assert type(value(Integer(6))) is int
    assert value(Rational(3, 4)) == Fraction(3, 4)


@pytest.mark.parametrize("expr", [log(Integer(2)), sqrt(2), oo])
def test_values_are_rational(expr):
    with pytest.raises(InputError, match="is not a rational number"):
        value(expr)


# ---------------------------------------------------------------------- divisions


def problems(values, **changes):
    with pytest.raises(DivisibilityError) as caught:
        bind(small(**changes), {**SIZES, **values})
    return list(caught.value.problems)


def test_names_axis_size_mesh_axis_and_degree():
    assert problems({"f": 49153, "m1": 4}) == [
        (
            "block.fc: axis f (49153) is not divisible by mesh axis tp (m1 = 4); "
            "nearest size 49152 or 49156, nearest degrees that divide 1"
        )
    ]


def test_names_the_symbol_behind_an_axis():
    assert problems({"V": 50257, "m1": 6}) == [
        (
            "head.logits: axis v (V = 50257) is not divisible by mesh axis tp (m1 = 6); "
            "nearest size 50256 or 50262, nearest degrees that divide 1"
        )
    ]


def test_tells_every_axis_at_once():
    found = problems({"f": 50, "h": 6, "V": 12, "e": 6, "m1": 4})
    assert found == [
        (
            "block.heads: axis h (6) is not divisible by mesh axis tp (m1 = 4); "
            "nearest size 4 or 8, nearest degrees that divide 1, 2, 3, 6"
        ),
        (
            "block.fc: axis f (50) is not divisible by mesh axis tp (m1 = 4); "
            "nearest size 48 or 52, nearest degrees that divide 1, 2, 5"
        ),
    ]


def test_a_degree_above_the_size():
    assert problems({"h": 2, "m1": 3, "V": 3, "f": 3}) == [
        (
            "block.heads: axis h (2) is not divisible by mesh axis tp (m1 = 3); "
            "nearest size 3, nearest degrees that divide 1, 2"
        )
    ]


def test_a_quotient_without_a_mesh_axis():
    assert problems({"h": 97}, placement=Placement()) == [
        "block.heads: axis d (e/h = 12288/97) is not a whole number"
    ]


def test_an_axis_over_two_mesh_axes():
    two = Placement({"tp": m1, "cp": 3}, {"f": ("tp", "cp")})
    assert problems({"f": 32, "m1": 4}, placement=two) == [
        (
            "block.fc: axis f (32) is not divisible by mesh axes tp (m1 = 4) and cp (3); "
            "nearest size 24 or 36, nearest degrees that divide 1, 2, 4, 8, 16"
        )
    ]
    assert len(bind(small(placement=two), {"f": 33}).splits)
    with pytest.raises(DivisibilityError, match=r"axis f \(32\) .* mesh axis cp \(3\)"):
        bind(small(placement=two), {"f": 32})


def test_a_numeric_table_is_checked_too():
    concrete = cost(
        replace(MODEL, sizes={**MODEL.sizes, "f": Integer(10)}),
        STANDARD,
        Placement({"tp": 4}, {"f": ("tp",)}),
    )
    with pytest.raises(
        DivisibilityError, match=r"axis f \(10\) is not divisible by mesh axis tp \(4\)"
    ):
        bind(concrete, {})
