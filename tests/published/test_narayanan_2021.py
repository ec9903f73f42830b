"""Equations 2 to 4 and Tables 1 and 2 of Narayanan 2021."""

from fractions import Fraction

import pytest
from sympy import Rational, expand

from symbolic_cost.errors import InputError
from symbolic_cost.published import narayanan_2021
from symbolic_cost.published.narayanan_2021 import (
    flop_per_parameter,
    iteration_flop,
    parameters,
)
from symbolic_cost.symbols import B, V, e, l, n_layers

PUBLISHED = dict(narayanan_2021.PUBLISHED_INPUTS)


def test_equation_2_as_printed():
    printed = 12 * n_layers * e**2 * (1 + Rational(13, 12) / e + (V + l) / (12 * n_layers * e))
    assert expand(parameters() - printed) == 0


def test_equation_3_as_printed():
    printed = 96 * B * l * n_layers * e**2 * (1 + l / (6 * e) + V / (16 * n_layers * e))
    assert expand(iteration_flop() - printed) == 0


def test_factor_of_equation_4():
    assert flop_per_parameter() == 8


def test_every_printed_number_is_reproduced():
    rows = narayanan_2021.reproduce()
    assert not [row for row in rows if not row.match]
    keys = [row.key for row in rows]
    assert len(keys) == len(set(keys)) == 44
    assert sum(key.endswith("params_billion") for key in keys) == 10
    assert sum(key.endswith("aggregate_pflops") for key in keys) == 10
    assert sum(key.endswith("percent_peak") for key in keys) == 10
    assert sum(key.startswith("table2") for key in keys) == 12
    assert sum(key.startswith("eq4") for key in keys) == 2
    assert narayanan_2021.formulas().keys() == set(keys)


def test_what_agrees_only_inside_the_rounding_says_so():
    rows = {row.key: row for row in narayanan_2021.reproduce()}
    row = rows["table1.1008.0B.aggregate_pflops"]
    assert (row.published, row.computed, row.match) == ("502.0", "500.7", True)
    assert row.note == "equal inside the rounding of 163"
    assert not rows["table1.1008.0B.params_billion"].note


def test_values_for_another_run():
    given = {"V": 1000, "l": 64, "e": 96, "n_layers": 3, "B": 8, "R": 4, "tflops_per_gpu": 2.5}
    found = narayanan_2021.evaluate(given | {"tokens": 10**6, "peak_tflops": 10})
    flop = 96 * 8 * 64 * 3 * 96**2 + 16 * 8 * 64**2 * 3 * 96 + 6 * 8 * 64 * 96 * 1000
    seconds = Fraction(flop, 4 * 25 * 10**11)
    assert found == {
        "params_billion": float(Fraction(12 * 3 * 96**2 + 13 * 3 * 96 + 1064 * 96, 10**9)),
        "flop_per_iteration": flop,
        "percent_peak": 25,
        "aggregate_pflops": 0.01,
        "iteration_s": float(seconds),
        "days": float(seconds * Fraction(10**6, 8 * 64) / 86400),
        "days_for_300B_tokens": float(seconds * Fraction(3 * 10**11, 8 * 64) / 86400),
    }


def test_names_of_the_paper():
    paper = {
        "V": 51200,
        "s": 2048,
        "heads": 96,
        "h": 12288,
        "l": 80,
        "t": 8,
        "p": 8,
        "n_gpus": 1536,
        "batch": 2304,
        "tflops_per_gpu": 148,
    }
    assert narayanan_2021.evaluate(paper) == narayanan_2021.evaluate(PUBLISHED)


def test_what_is_not_given_is_left_out():
    sizes = {"e": 2304, "n_layers": 24}
    assert narayanan_2021.evaluate(sizes) == {
        "params_billion": pytest.approx(1.652226048, rel=1e-15)
    }
    found = narayanan_2021.evaluate(sizes | {"B": 512})
    assert found.keys() == {"params_billion", "flop_per_iteration"}


def test_equation_4():
    found = narayanan_2021.evaluate({"P": 175e9, "T": 300e9, "n": 1024, "X": 140e12})
    assert found == {"days": pytest.approx(8 * 300e9 * 175e9 / (1024 * 140e12) / 86400, rel=1e-15)}


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({"e": 0, "n_layers": 2.5}, ["input 'e' is 0", "input 'n_layers' is 2.5"]),
        ({"P": 1e9, "T": -1.0, "n": 4}, ["input 'T' is -1.0", "input 'X' is missing"]),
        ({"e": 8, "n_layers": 2, "heads": 4}, ["unknown input 'heads'"]),
        ({"h": 8, "s": 4, "heads": True}, ["input 'h' is True", "input 'n_layers' is missing"]),
    ],
)
def test_refuses(given, problems):
    with pytest.raises(InputError) as caught:
        narayanan_2021.evaluate(given)
    assert len(caught.value.problems) == len(problems)
    for found, start in zip(sorted(caught.value.problems), sorted(problems), strict=True):
        assert found.startswith(start)
