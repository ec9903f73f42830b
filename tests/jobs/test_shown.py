"""What print shows of values, and names for the blocks of uneven stages."""

import json

import pytest

import symbolic_cost as sc
from symbolic_cost.emit.sheet import render
from symbolic_cost.jobs.letters import lettered
from symbolic_cost.jobs.tables.memory import memory_sheet
from symbolic_cost.ledger import Quantity
from symbolic_cost.parallel.moments import moments
from symbolic_cost.symbols import n_dense, n_first, n_layers, pp

UNEVEN = sc.job("deepseek-v3", "tp=8,sp,pp=16,ep=8,dp=8,zero=1", global_batch=4096)


def test_a_job_and_a_model_are_a_line_and_print_as_tables():
    assert repr(UNEVEN) == "<Job deepseek-v3, tp=8,sp,ep=8,dp=8,pp=16,zero=1, no machine>"
    assert repr(sc.model("gpt2")) == "<Model gpt2, 3 parts>"
    assert "flops_fwd" in str(sc.job("gpt2"))
    assert "output.loss" in str(sc.model("gpt2"))


@pytest.mark.parametrize("stage", ["first", "middle"])
def test_blocks_of_an_uneven_stage_have_letters_for_people(stage):
    sheet = memory_sheet(UNEVEN.replace(stage=stage))
    text = " ".join(render(sheet, "table").split())
    assert f"n_rest_{stage} = ceiling(n_layers/pp) - " in text
    assert f"n_{stage} = n_lead_{stage} + n_rest_{stage}, the blocks of" in text
    formulas = text[: text.index("precision bf16")]
    assert f" n_{stage} " in formulas, "what all blocks have"
    assert f"4 b f n_lead_{stage}" in formulas or f"4 f n_lead_{stage}" in formulas
    assert "n_layers" not in formulas
    whole = json.loads(render(sheet, "json"))["records"]
    assert "n_layers" in str(whole), "programs read whole formulas"
    assert f"n_rest_{stage}" not in str(whole)


def test_letters_change_no_number():
    for stage in ("first", "last"):
        job = UNEVEN.replace(stage=stage)
        other = lettered(job)
        flop = Quantity.FLOP
        assert other.bound.total(flop) == job.bound.total(flop)
        with_letters, whole = (moments(one.memory_rows)["backward"] for one in (other, job))
        assert with_letters != whole
        assert other.value(with_letters) == job.value(whole)


def test_even_stages_of_blocks_alike_need_no_letter():
    assert not lettered(sc.job("llama-3-8b", "pp=4", {"M": 4})).names
    uneven = lettered(sc.job("llama-3-405b", "pp=16", {"M": 16}))
    assert list(uneven.names) == [n_first]


def test_a_stage_may_hold_no_block():
    """Two layers on four stages: the first one has the embedding alone."""
    sizes = [
        job.value(sum(row.count for row in job.rows.select("flop", path="block", phase="forward")))
        for job in (sc.job("lstm-large", "pp=4", stage=one) for one in ("first", "middle"))
    ]
    assert sizes[0] == 0 < sizes[1]
    assert sc.job("lstm-large", "pp=4").table().total("flop", phase="forward") >= 0


def test_blocks_are_those_of_the_layout():
    numbers = {n_layers: 61, pp: 16, n_dense: 3}
    leading, others, every = lettered(UNEVEN).names.items()
    assert leading[1].xreplace(numbers) == 3
    assert others[1].xreplace({**numbers, leading[0]: 3}) == 0
    assert every == (n_first, leading[0] + others[0])


def test_a_total_is_refused_where_the_table_is():
    """197 positions of ViT-B/16 are not divided by 8, in a total as little as in a table."""
    with pytest.raises(sc.errors.InputError, match="not divisible by mesh axis cp"):
        sc.job("vit-b-16", "cp=8").total("flops_fwd")


def test_a_share_of_all_is_a_hundred_percent():
    from sympy import Rational

    from symbolic_cost.jobs.header import _percent

    said = [_percent(Rational(share, 10**6)) for share in (999_000, 36_120, 1_234, 1)]
    assert said == ["100 %", "3.6 %", "0.12 %", "less than 0.001 %"]
