"""MFU of a measured throughput, under one convention and under all."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError

RATE, SEQ = 412, 8192


def test_share_of_the_peak():
    used = sc.mfu("llama-3-70b", RATE, "h100", SEQ, "torchtitan")
    peak = sc.systems.machine("h100").matrix["bf16"].value
    assert used.least == used.most == 481442709504 * Fraction(RATE) / int(peak)


def test_all_are_sorted_and_the_gaps_have_reasons():
    sheet = sc.mfu("llama-3-70b", RATE, "h100", SEQ).sheet()
    shares = [row[2] for row in sheet.rows]
    assert shares == sorted(shares)
    reasons = {row[0]: row[3] for row in sheet.rows}
    assert reasons["megatron-bridge"] == "the same"
    assert (reasons["nanogpt"], reasons["palm"]) == ("table +6 e V", "the same")


def test_more_than_the_peak_is_said():
    many = sc.mfu("llama-3-8b", 40000, "h100", 8192, "torchtitan")
    assert "more than the bf16 peak by every count" in many.sheet().notes[0]
    some = sc.mfu("gpt2", 1.9e6, "h100", 1024, "kaplan,transformers")
    assert some.least < 1 < some.most
    assert some.sheet().notes[0] == "above 100 %: FLOP that did not run are counted by kaplan"
    with pytest.raises(InputError, match="of a GPU: h100 computes at most"):
        sc.mfu("gpt2", 4e6, "h100", 1024, "kaplan")


@pytest.mark.slow
def test_throughput_of_several_gpus():
    one, many = (sc.mfu("llama-3-70b", RATE * n, "h100", SEQ, "palm", gpus=n) for n in (1, 64))
    assert one.shares == many.shares


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("llama-3-70b --tokens-per-second -1", "a positive number"),
        ("llama-3-70b --tokens-per-second nan", "a positive number"),
        ("llama-3-70b --tokens-per-second 9 --gpus 0", "gpus = 0"),
        ("llama-3-70b --tokens-per-second 9 --precision fp3", "fp3"),
        ("llama-3-70b --tokens-per-second 9 --system symbolic", "symbols for rates"),
        ("llama-3-70b --tokens-per-second 9 --conventions palm,pal", "'pal'"),
        ("gpt --tokens-per-second 9", "without a number"),
    ],
)
def test_refusals(line, told):
    result = CliRunner().invoke(main, ["mfu", *line.split()])
    assert result.exit_code == 2
    assert told in result.output


def test_command_line():
    line = ["flops-per-token", "qwen3-30b-a3b", "--seq", "8192", "--format", "json"]
    records = json.loads(CliRunner().invoke(main, line).output)["records"]
    assert records[-1]["term"] == "total"
    assert records[-1]["value"] == 37578559488
    many = CliRunner().invoke(main, [*line, "--conventions", "all"]).output
    values = {row["conventions"]: row["FLOP per token"] for row in json.loads(many)["records"]}
    assert values["torchtitan"] == 37578559488
    ragged = [*line[:2], "--batch", "512,1024,2048", "--conventions", "verl", "--format", "json"]
    (row,) = json.loads(CliRunner().invoke(main, ragged).output)["records"]
    assert row["FLOP of the batch"] == 78593069678592


@pytest.mark.parametrize("more", ["--batch 1,x", "--batch 8 --seq 8", "--set Q=3", "--seq 0"])
def test_refused_lines(more):
    result = CliRunner().invoke(main, ["flops-per-token", "llama-3-8b", *more.split()])
    assert result.exit_code == 2


def test_conventions_without_an_answer_are_left_out_of_all():
    line = ["flops-per-token", "mamba-2.8b", "--seq", "64", "--conventions", "all"]
    result = CliRunner().invoke(main, [*line, "--format", "json"])
    told = json.loads(result.output)
    assert told["records"][0]["conventions"] == "kaplan"
    assert sum(note.startswith("left out:") for note in told["notes"]) == 8


def test_a_model_without_a_hidden_axis_has_no_answer_that_asks_for_its_width():
    """As of a traced graph, whose roles are found."""
    own = sc.job("gpt2").model
    roles = {
        name: replace(axis, role=sc.Role.INNER) if axis.role is sc.Role.HIDDEN else axis
        for name, axis in own.axes.items()
    }
    with pytest.raises(InputError, match="no axis was found to be hidden"):
        sc.flops_per_token(replace(own, axes=roles), 64, "nanogpt")
