"""Models whose ops depend on the length of a sequence: the number reaches their declaration."""

import json
import pickle

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError

BIRD = {
    "model_type": "big_bird",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 176,
    "vocab_size": 212,
    "max_position_embeddings": 4096,
}
BEYOND = 704  # tokens up to which blocks are whole: 11 of 64


@pytest.fixture
def bird(tmp_path):
    path = tmp_path / "bird.json"
    path.write_text(json.dumps(BIRD))
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("length", [64, BEYOND, BEYOND + 1, 1024, 1500])
@pytest.mark.parametrize("train", ["all", "lora:r=4,q"])
def test_a_number_later_is_one_at_first(bird, length, train):
    first = sc.job(bird, "tp=2", {"l": length, "b": 2}, train=train)
    other = sc.job(bird, "tp=2", {"l": 2048, "b": 2}, train=train)
    assert other.total("flops") != first.total("flops")
    for later in (other.bind(l=length), other.replace(numbers={"l": length, "b": 2})):
        assert later.model == first.model
        assert later.values == first.values
        assert later.memory().peak == first.memory().peak
        assert later.total("flops") == first.total("flops")


def test_a_job_goes_to_another_process(bird):
    sent = pickle.loads(pickle.dumps(sc.job(bird, "tp=2", {"l": 1024, "b": 2})))  # noqa: S301 - own
    assert sent.bind(l=2048).total("flops") == sc.job(bird, "tp=2", {"l": 2048}).bind(b=2).total(
        "flops"
    )


@pytest.mark.parametrize("length", [512, 1024])
def test_a_job_counts_what_count_does(bird, length):
    forward = sc.job(bird, "", {"l": length, "b": 1}, conventions="torch-flop-counter")
    assert forward.total("flops_fwd") == sc.count(bird, 1, length)["flops_fwd"]


@pytest.mark.parametrize("length", [0, -1, 10**30])
def test_lengths_that_are_none(bird, length):
    job = sc.job(bird, "", {"l": 1024})
    with pytest.raises(InputError, match="l = "):
        job.bind(l=length)
    with pytest.raises(InputError):
        sc.job(bird, "", {"l": length})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("memory {}", "a length is needed: beyond 704 tokens"),
        ("optimum {} --of flops --in l", "and is no symbol to ask for"),
        ("solve flops==1e12 {} --in l --set b=1", "and is no symbol to ask for"),
        ("scale flops {} --set l=1024 --in l", "with another l, "),
        ("fit {} --set l=1024 --system h100 --gpus 1 --in l", "l is no size of "),
        ("sweep {} --system h100 --global-batch 4 --vary l=1024,2048", "a length is needed"),
    ],
)
def test_a_function_of_the_length_is_refused(bird, line, told):
    result = CliRunner().invoke(main, line.format(bird).split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        "memory {} --set l=1024,b=1",
        "time {} --set l=1024,b=1 --system h100",
        "table {} --set l=1024",
        "profile {} --seq 1024",
        "search {} --system h100 --gpus 2 --global-batch 4 --set l=1024",
        "compare-conventions {} standard fvcore --set l=1024",
        "diff {} --strategy tp=2 dp=2 --seq 1024",
        "import {}",
    ],
)
def test_commands_are_told_the_length(bird, line):
    result = CliRunner().invoke(main, line.format(bird).split())
    assert result.exit_code == 0, result.output
    if line.startswith("search"):
        assert "l=1024,b=" in " ".join(result.stdout.split())
