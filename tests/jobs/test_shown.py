"""What print shows of values, and names for the blocks of uneven stages."""

import pytest

import symbolic_cost as sc
from symbolic_cost.emit.sheet import render
from symbolic_cost.jobs.tables.memory import memory_sheet
from symbolic_cost.symbols import n_first, n_layers, pp

UNEVEN = sc.job("deepseek-v3", "tp=8,sp,pp=16,ep=8,dp=8,zero=1", global_batch=4096)


def test_a_job_and_a_model_are_a_line_and_print_as_tables():
    assert repr(UNEVEN) == "<Job deepseek-v3, tp=8,sp,ep=8,dp=8,pp=16,zero=1, no machine>"
    assert repr(sc.model("gpt2")) == "<Model gpt2, 3 parts>"
    assert "flops_fwd" in str(sc.job("gpt2"))
    assert "output.loss" in str(sc.model("gpt2"))


@pytest.mark.parametrize(("stage", "name"), [("first", "n_first"), ("last", "n_last")])
def test_blocks_of_an_uneven_stage_have_a_name_for_people(stage, name):
    sheet = memory_sheet(UNEVEN.replace(stage=stage))
    text = render(sheet, "table")
    assert f"{name} = ceiling(n_layers/pp) - " in text
    assert text.count("ceiling(n_layers/pp)") == 2, "in the note alone"
    assert name not in render(sheet, "json"), "programs read whole formulas"


def test_even_stages_and_middle_ones_need_no_name():
    assert not sc.job("llama-3-8b", "pp=4", {"M": 4}).names
    assert not UNEVEN.replace(stage="middle").names


def test_blocks_are_those_of_the_layout():
    numbers = {n_layers: 61, pp: 16}
    assert UNEVEN.names[n_first].xreplace(numbers) == 3


def test_a_total_is_refused_where_the_table_is():
    """197 positions of ViT-B/16 are not divided by 8, in a total as little as in a table."""
    with pytest.raises(sc.errors.InputError, match="not divisible by mesh axis cp"):
        sc.job("vit-b-16", "cp=8").total("flops_fwd")
