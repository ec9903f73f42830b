"""Inverse questions about memory."""

from pathlib import Path

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


@pytest.mark.slow
def test_the_end_of_the_search_is_no_largest_size():
    """Three blocks of width 64 keep less than a kilobyte per token: 80 GB hold more than 2**26."""
    graph = Path(__file__).parents[1] / "golden" / "pt2" / "llama.pt2"
    line = f"fit {graph} --system h100 --gpus 8 --for l --choose recompute=full --choose tp=4"
    line += " --choose zero=1 --choose pp=1 --set l=8"
    told = " ".join(CliRunner().invoke(main, line.split()).stdout.split())
    assert "none beyond 67108864 was tried; " in told


def test_a_question_about_nothing_is_refused():
    with pytest.raises(InputError, match="sizes that are to be large"):
        sc.fit("gpt2", 4, system="a100-80gb", symbols=())


def test_a_precision_that_the_machine_lacks_is_refused():
    """No size is the largest of a run that there cannot be."""
    said = "precision fp8-hybrid computes in fp8, of which a100-80gb has no rate"
    with pytest.raises(InputError, match=said):
        sc.fit(sc.job("gpt2", system="a100-80gb", precision="fp8-hybrid"), 4, symbols=("b",))
