"""Inverse questions about memory."""

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError


def test_the_fewest_are_asked_where_what_is_chosen_makes_them():
    choose = {"tp": 2, "pp": 1, "cp": 1, "zero": 1, "recompute": "full"}
    answer = sc.fit("gpt2", 4, system="a100-80gb", symbols=("b",), choose=choose)
    assert answer.fewest[0] == 2


def test_positions_that_bind_are_told():
    line = "fit gpt2 --system a100-80gb --gpus 1 --choose recompute=none --choose zero=0"
    assert "the model has 1024 learned positions; " in " ".join(
        CliRunner().invoke(main, line.split()).stdout.split()
    )


def test_a_question_about_nothing_is_refused():
    with pytest.raises(InputError, match="sizes that are to be large"):
        sc.fit("gpt2", 4, system="a100-80gb", symbols=())


def test_a_precision_that_the_machine_lacks_is_refused():
    """No size is the largest of a run that there cannot be."""
    said = "precision fp8-hybrid computes in fp8, of which a100-80gb has no rate"
    with pytest.raises(InputError, match=said):
        sc.fit(sc.job("gpt2", system="a100-80gb", precision="fp8-hybrid"), 4, symbols=("b",))
