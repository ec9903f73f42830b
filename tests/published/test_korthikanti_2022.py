"""Table 2, Eq 7 to 9, the text and Table 5 of Korthikanti 2022."""

from fractions import Fraction

import pytest
from sympy import expand

from symbolic_cost.errors import DivisibilityError, InputError
from symbolic_cost.published import korthikanti_2022
from symbolic_cost.published.korthikanti_2022 import (
    EQUATIONS,
    TABLE_2,
    TECHNIQUES,
    rules,
    saved,
)
from symbolic_cost.symbols import B, b, e, h, l, m1, n_layers

PUBLISHED = dict(korthikanti_2022.PUBLISHED_INPUTS)


def by_hand(b, l, e, h, m1):
    """Table 2 from the paper's own sum over tensors, in bytes."""
    core = 5 * h * l * l * b
    norms, attention, mlp = 4 * l * b * e, 11 * l * b * e, 19 * l * b * e
    inputs = 10 * l * b * e  # norms, inputs of the first products and two dropout masks
    split = norms + attention + mlp - inputs
    return {
        "none": norms + attention + mlp + core,
        "tensor": inputs + Fraction(split + core, m1),
        "tensor + sequence": Fraction(inputs + split + core, m1),
        "tensor + selective recomputation": inputs + Fraction(split, m1),
        "tensor + sequence + selective": Fraction(inputs + split, m1),
        "full recomputation": 2 * l * b * e,
    }


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_table_2_as_printed(technique):
    assert expand(saved(technique) - TABLE_2[technique]) == 0


@pytest.mark.parametrize("name", EQUATIONS)
def test_equations_as_printed(name):
    assert expand(rules()[name] - EQUATIONS[name]) == 0


def test_equation_8_counts_the_recomputed_core_three_times():
    core = 4 * B * l**2 * e * n_layers  # forward of scores and weighted sum
    assert expand(rules()["hardware_flop"] - rules()["model_flop"] - 3 * core) == 0


def test_share_of_the_core():
    assert rules()["5as/h"] == 5 * h * l / e
    assert expand(saved("none") - saved("tensor + sequence") * m1) == 0
    assert expand(saved("none") / (b * l * e) - rules()["5as/h"]) == 34


def test_every_printed_number_is_reproduced():
    rows = korthikanti_2022.reproduce()
    assert not [row for row in rows if not row.match]
    keys = [row.key for row in rows]
    assert len(keys) == len(set(keys)) == 27
    for start, number in {"table2.": 6, "text.": 7, "table5.": 12}.items():
        assert sum(key.startswith(start) for key in keys) == number
    table5 = [row for row in rows if row.key.startswith("table5.")]
    assert sum(row.published == row.computed for row in table5) == 8
    assert korthikanti_2022.formulas().keys() < set(keys)


def test_what_agrees_only_inside_the_rounding_says_so():
    rows = {row.key: row for row in korthikanti_2022.reproduce()}
    row = rows["table5.22B.mfu_percent"]
    assert (row.published, row.computed) == ("41.5", "41.7")
    assert row.note == "equal inside the rounding of 1.10"


@pytest.mark.parametrize(
    ("b", "l", "e", "h", "m1"),
    [(1, 2048, 12288, 96, 8), (4, 2048, 6144, 64, 8), (3, 24, 60, 6, 3), (2, 7, 16, 4, 1)],
)
def test_bytes_of_any_block(b, l, e, h, m1):
    found = korthikanti_2022.evaluate({"b": b, "l": l, "e": e, "h": h, "m1": m1})
    assert found["activation_bytes"] == by_hand(b, l, e, h, m1)
    assert found["5as/h"] == pytest.approx(5 * h * l / e, rel=1e-15)


def test_utilisation_of_any_run():
    given = {"b": 1, "l": 32, "e": 64, "h": 4, "m1": 2, "n_layers": 3, "V": 100, "pp": 2}
    run = {"R": 4, "B": 8, "peak_tflops": 0.5, "iter_s_present": 0.25, "iter_s_full_recompute": 0.3}
    found = korthikanti_2022.evaluate(given | run)
    model = 8 * (3 * (72 * 32 * 64**2 + 12 * 32**2 * 64) + 6 * 32 * 64 * 100)
    core = 8 * 3 * 4 * 32**2 * 64
    peak = Fraction(1, 4) * 4 * 5 * 10**11
    assert found["model_flop"] == model
    assert found["hardware_flop"] == model + 3 * core
    assert found["mfu_percent"] == pytest.approx(float(100 * model / peak), rel=1e-15)
    assert found["hfu_percent"] == pytest.approx(float(100 * (model + 3 * core) / peak), rel=1e-15)
    once = float(100 * (model + core) / peak)
    assert found["hfu_percent_once"] == pytest.approx(once, rel=1e-15)
    assert found["throughput_increase_percent"] == pytest.approx(20, rel=1e-15)
    gib = float(Fraction(2 * 32 * 64 * 2, 2**30))
    assert found["sbhp (2 bytes, 2**30)"] == pytest.approx(gib, rel=1e-15)
    saving = 100 * 5 * 4 * 32 / (34 * 64 + 5 * 4 * 32)
    assert found["selective saving %"] == pytest.approx(saving, rel=1e-14)
    overhead = 100 * 12 * 32 / (72 * 64 + 12 * 32)
    assert found["selective FLOP overhead %"] == pytest.approx(overhead, rel=1e-14)


def test_names_of_the_paper():
    paper = {
        "a": 96,
        "s": 2048,
        "h": 12288,
        "L": 96,
        "v": 51200,
        "t": 8,
        "p": 8,
        "gpus": 64,
        "global_batch": 64,
        "micro_batch": 1,
        "iter_s_full_recompute": 18.13,
        "iter_s_present": 13.75,
    }
    assert korthikanti_2022.evaluate(paper) == korthikanti_2022.evaluate(PUBLISHED)


def test_what_is_not_given_is_left_out():
    found = korthikanti_2022.evaluate({"b": 1, "l": 8, "e": 16, "h": 2})
    assert found.keys() == {
        "activation_bytes",
        "5as/h",
        "selective saving %",
        "selective FLOP overhead %",
    }


def test_names_every_axis_that_does_not_divide():
    with pytest.raises(DivisibilityError) as caught:
        korthikanti_2022.evaluate(PUBLISHED | {"m1": 5})
    heads, width = caught.value.problems
    assert "axis h (96) is not divisible by mesh axis tp (m1 = 5)" in heads
    assert "axis f (4*e = 49152) is not divisible by mesh axis tp (m1 = 5)" in width


def test_refuses_everything_at_once():
    given = PUBLISHED | {"b": 0, "m1": 1.5, "iter_s_present": "1.1", "heads": 4}
    with pytest.raises(InputError) as caught:
        korthikanti_2022.evaluate(given)
    assert len(caught.value.problems) == 4
    assert any(problem.startswith("unknown input 'heads'") for problem in caught.value.problems)
