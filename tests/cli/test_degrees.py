"""Degrees and pipelines on the command line."""

import csv
import io

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main


def run(text):
    return CliRunner().invoke(main, text.split())


def rows(text):
    result = run(f"{text} --format csv")
    assert result.exit_code == 0, result.output
    return list(csv.reader(io.StringIO(result.stdout)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "rest"),
    [
        ("memory", "llama-3-8b --set b=1,l=4096,M=8"),
        ("comm", "llama-3-8b --set b=1,l=4096,M=8"),
        ("table", "t5-small --columns flops_fwd --set b=1,l=512,l_t=128"),
        ("formula params", "llama-3-70b"),
    ],
)
@pytest.mark.parametrize("strategy", ["tp=2,pp=1", "tp=2,cp=1", "tp=2,ring=1,dp=1,zero=3"])
def test_a_degree_of_one_is_no_degree(command, rest, strategy):
    """The head was lost with pp=1, the keys with ring=1."""
    with_ones = rows(f"{command} {rest} --strategy {strategy}")
    assert with_ones == rows(f"{command} {rest} --strategy tp=2")


def test_the_peak_is_there_without_microbatches():
    found = {row[0]: row for row in rows("memory gpt3-175b --strategy pp=8,tp=8 --set b=1,l=2048")}
    assert found["peak"][1] == "at backward"
    assert "saved" in found["at backward"][1]
    assert "min(M, pp)" in found["saved"][1]


TIME = "time gpt3-175b --system h100"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{TIME} --strategy pp=4 --schedule interleaved --set M=3,v=2",
            "is not divisible by mesh axis pp",
        ),
        (
            "memory gpt3-175b --strategy pp=4 --schedule interleaved --set M=3,v=2",
            "is not divisible by mesh axis pp",
        ),
        (
            "memory gpt3-175b --strategy pp=4 --schedule interleaved --layout even --set M=4,v=5",
            "axis blocks",
        ),
        (
            f"{TIME} --strategy pp=3 --schedule dualpipe --set M=3",
            "2*pp or more",
        ),
        ("table gpt3-175b --strategy pp=2 --stage middle", "accepted are first, last"),
        ("time gpt3-175b --system h100 --set M=3 --wrt cp", "does not depend on 'cp'"),
    ],
)
def test_refused(text, said):
    result = run(text)
    assert result.exit_code == 2
    assert said in result.output


def test_slopes_by_degrees():
    text = "time gpt3-175b --system h100 --strategy tp=4,dp=64,pp=8 --set M=32 --wrt dp"
    assert "d step/d dp" in run(text).output
    flat = run(
        "time gpt3-175b --system h100 --strategy tp=8 --set M=4 --wrt V --stack roofline"
    ).output
    assert "taken as flat between their jumps: ceiling(V/8)" in " ".join(flat.split())


def test_two_partial_overlaps():
    text = "time gpt3-175b --system h100 --strategy tp=8,dp=8,zero=3 --set M=4"
    assert run(f"{text} --overlap tp=partial=0.8,dp=partial=0.5").exit_code == 0


def test_causal_counting_changes_no_seconds():
    """What is counted decides the MFU; what runs decides the time."""
    text = "time gpt3-175b --system h100 --set l=65536,P=65536,M=4"
    one, other = (
        {row[0]: row[1] for row in rows(f"{text} --conventions {name}")}
        for name in ("standard", "model-flop-causal")
    )
    assert one["step"] == other["step"]
    assert float(other["mfu"]) < float(one["mfu"]) <= 1


def test_gradients_have_one_size():
    """bf16-mixed: 4-byte gradients in comm as in memory."""
    text = "gpt2 --strategy dp=4 --set b=1,l=1024,M=1 --precision"
    wide, narrow = (str(rows(f"comm {text} {name}")) for name in ("bf16-mixed", "bf16"))
    assert wide != narrow


def test_layouts_as_they_were_run():
    """126 blocks on 16 stages are refused where all stages are said to hold the same."""
    text = "--strategy pp=16,tp=8 --set M=32,b=1,l=8192"
    refused = run(f"memory llama-3-405b {text} --layout even")
    assert refused.exit_code == 2
    assert "axis blocks (n_layers = 126) is not divisible by mesh axis pp" in refused.output
    sizes = {
        stage: next(
            int(row[-2])
            for row in rows(f"memory llama-3-405b {text} --layout ends=1 --stage {stage}")
            if row[0] == "weight"
        )
        for stage in ("first", "middle", "last")
    }
    assert sizes["first"] < sizes["middle"]
    assert run(f"{TIME} {text} --layout ends=1".replace("gpt3-175b", "llama-3-405b")).exit_code == 0
    assert run(f"comm llama-3-405b {text} --layout uneven").exit_code == 0
