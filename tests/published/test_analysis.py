"""Numbers of many publications, recomputed elsewhere from plain formulas: golden/analysis.json."""

import json
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from sympy import cancel

from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Phase
from symbolic_cost.published.contract import publication, reproduce

GOLDEN = {
    case: {name: row for name, *row in results}
    for case, results in json.loads(
        (Path(__file__).parents[1] / "golden/analysis.json").read_text(encoding="utf-8")
    )
}
WORKS = (
    "how-to-scale-your-model",
    "closed-forms",
    "more-laws",
    "kaplan-2020",
    "chinchilla-2022",
    "besiroglu-2024",
    "muennighoff-2023",
    "sardana-2024",
    "krajewski-2024",
    "ludziejewski-2025",
    "deepseek-2024",
    "llm-viewer-2024",
    "pope-2022",
    "usp-2024",
    "ultra-scale-playbook",
    "transformer-math",
    "megatron-memory",
    "patterson-2021",
    "llama-carbon",
    "deepseek-serving",
)
ELSEWHERE = {"fit-synthetic", "fit-llama3-isoflop"}  # fits: of test_fits, and of data not shipped
PARTS = ("", "-more", "-states")  # a case here may be one of several tables there


@cache
def values_of(name):
    module = publication(name)
    return module.evaluate({case: {} for case in module.PUBLISHED_INPUTS})


@cache
def reproduced(name):
    return reproduce(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKS)
def test_values_are_those_of_plain_formulas(name):
    for case, values in values_of(name).items():
        root = next((case.removesuffix(part) for part in PARTS[::-1] if part in case), case)
        expected = GOLDEN.get(case, GOLDEN.get(root, {}))
        for result, value in values.items():
            if result in expected:
                _, golden, how = expected[result]
                assert float(value) == pytest.approx(golden, rel=1e-9), (case, result)
                if how == "exact":
                    assert Fraction(value) == Fraction(str(golden)), (case, result)


def test_every_golden_number_is_computed():
    computed = {}
    for name in WORKS:
        for case, values in values_of(name).items():
            computed.setdefault(case, set()).update(values)
    for case, results in GOLDEN.items():
        if case not in ELSEWHERE:
            known = set().union(*(computed.get(case + part, set()) for part in PARTS))
            assert set(results) <= known, case


@pytest.mark.parametrize("name", WORKS)
def test_every_printed_number_holds(name):
    found = reproduced(name)
    assert [row for row in found.rows if row.match is False] == []
    assert all(row.note for row in found.rows if row.match is None and row.published)


@pytest.mark.parametrize("name", WORKS)
def test_slips_differ_from_the_print_and_are_proven(name):
    for slip in publication(name).errata():
        assert Fraction(slip.computed) != Fraction(slip.printed), slip
        assert slip.proof
        assert slip.place


def test_fortynine_of_fifty_sizes_are_those_printed():
    rows = [row for row in reproduced("chinchilla-2022").rows if "tableA9" in row.key]
    exactly = [row for row in rows if row.published == row.computed]
    assert (len(rows), len(exactly)) == (50, 49)
    (other,) = set(rows) - set(exactly)
    assert (other.published, other.computed) == ("2980", "2979")
    assert "2979.49M" in other.note


def test_other_inputs():
    book = publication("how-to-scale-your-model")
    found = book.evaluate({"book-5-dp": {"C": 989e12, "W": 450e9}, "book-4-kv": {"S": 1024}})
    assert float(found["book-5-dp"]["alpha"]) == pytest.approx(989e12 / 450e9)
    assert found["book-4-kv"] == {"GiB": 1}


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"book-5-pd": {}}, "unknown case of how-to-scale-your-model 'book-5-pd': did you mean"),
        ({"book-5-dp": {"c": 1}}, "unknown input of book-5-dp 'c'"),
        ({"book-5-dp": {"C": "1"}}, "input C of book-5-dp is '1': a finite number is accepted"),
        ({"book-5-dp": {"C": float("inf")}}, "a finite number is accepted"),
        ({"book-5-dp": {"W": 0}}, "division by zero"),
        ({"book-5-dp": 3}, "case book-5-dp is 3: inputs by name are accepted"),
    ],
)
def test_refusals(inputs, said):
    with pytest.raises(InputError) as refused:
        publication("how-to-scale-your-model").evaluate(inputs)
    assert said in str(refused.value)


def test_all_problems_are_told_at_once():
    with pytest.raises(InputError) as refused:
        publication("megatron-memory").evaluate(
            {"megatron-memory-gpt3-175b": {"t": None, "q": 1, "L": True}}
        )
    assert len(refused.value.problems) == 3


@pytest.mark.parametrize(
    ("case", "model"),
    [
        ("megatron-memory-llama3-70b", "llama-3-70b"),
        ("mixtral-8x7b", "mixtral-8x7b"),
        ("deepseek-v3", "deepseek-v3"),
    ],
)
def test_the_parameters_of_the_estimator_are_those_of_the_declared_model(case, model):
    import symbolic_cost as sc

    declared = sc.model(model)
    derived = sc.bind(sc.cost(declared), declared.bindings).total("parameter")
    found = publication("megatron-memory").evaluate({case: {}})
    assert Fraction(found[case]["params"]) * 10**9 == derived


def test_the_bounds_of_the_book_follow_from_strategies():
    from symbolic_cost.published.how_to_scale_your_model import ranks_bound, tokens_bound
    from symbolic_cost.symbols import f

    assert (tokens_bound(), ranks_bound()) == (1, f)


def test_rings_of_the_library_move_more_than_the_paper_counts():
    from symbolic_cost.published.usp_2024 import moved
    from symbolic_cost.symbols import h, k

    assert cancel(moved("ring") - 2 * moved("ring", Phase.FORWARD)) == 2 * k / h
