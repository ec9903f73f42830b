"""An answer, an answer that nothing fits, and a refusal end with different exit codes."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main

NOTHING = "gpt3-175b --gpus 8 --global-batch 8"
TP = "--system a100-80gb --vary tp=4,8 --set M=8"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "nearest"),
    [
        (f"sweep gpt3-175b {TP} --where tp/0<3", "tp / 0 < 3: it is inf"),
        (f"search {NOTHING}", "the smallest takes 368.9 GiB of 79.07 GiB"),
        (f"search {NOTHING} --prove", "the smallest takes 368.9 GiB of 79.07 GiB"),
        ("fit gpt3-175b --gpus 8 --in b", "367.1 GiB at backward"),
        (f"sweep gpt3-175b {TP} --where memory<80GiB", "nearest of 2 legal candidates is tp=8"),
        (f"pareto gpt3-175b {TP} --where memory<80GiB", "nearest of 2 legal candidates is tp=8"),
        (
            "serve-plan llama-3-70b --system h100 --gpus 1 --input 99 --output 9",
            "131.4 GiB of weights and one sequence",
        ),
        (
            "serve-plan llama-3-8b --system h100 --gpus 1 --input 99 --output 9 --itl 1ms",
            "times its target",
        ),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_that_nothing_fits_is_an_answer(line, nearest, form):
    done = CliRunner().invoke(main, [*line.split(), "--format", form])
    assert done.exit_code == 1
    assert nearest in " ".join(done.stdout.split())
    assert form == "table" or json.loads(done.stdout)


@pytest.mark.parametrize(
    "line",
    [
        "search gpt2 --gpus 7 --global-batch 8 --choose tp=5",
        "sweep gpt2 --gpus 8 --vary tp=3 --set M=8",
        "serve-plan llama-3-8b --system h100 --gpus 8 --input 99 --output 9 --strategy tp=3",
    ],
)
def test_what_cannot_be_asked_is_refused(line):
    done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 2
    assert "Error:" in done.stderr
