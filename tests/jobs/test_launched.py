"""Launch files wherever a model is named: the file says what the user does not."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError

SCRIPT = """#!/bin/bash
torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 8 --hidden-size 64 \\
    --num-attention-heads 8 --seq-length 128 --micro-batch-size 2 --global-batch-size 64 --bf16 \\
    --use-distributed-optimizer --tensor-model-parallel-size 4 --sequence-parallel \\
    --pipeline-model-parallel-size 2 --recompute-granularity selective
"""


@pytest.fixture
def script(tmp_path):
    def written(more="--vocab-size 1000", name="run.sh"):
        path = tmp_path / name
        path.write_text(SCRIPT.replace("--bf16", f"--bf16 {more}"), encoding="utf-8")
        return str(path)

    return written


def test_a_script_says_how_it_is_run(script):
    job = sc.job(script())
    assert str(job.strategy) == "tp=4,sp,dp=4,pp=2,zero=1"
    assert (job.values["b"], job.values["l"], job.global_batch) == (2, 128, 64)
    assert job.training.microbatches == 8
    assert (job.training.precision, job.training.recompute.name) == ("bf16-mixed", "selective")
    assert job.values["V"] == 1024  # padded to 128 x tp


def test_it_is_the_job_that_one_would_write(script):
    ours = sc.job(
        sc.model("gpt"),
        "tp=4,sp,pp=2,dp=4,zero=1",
        {"n_layers": 8, "e": 64, "f": 256, "h": 8, "V": 1024, "b": 2, "l": 128},
        precision="bf16-mixed",
        recompute="selective",
        global_batch=64,
    )
    theirs = sc.job(script())
    assert theirs.total("flops_train") == ours.total("flops_train")


def test_the_user_has_the_last_word(script):
    job = sc.job(script(), "tp=2", {"l": 256}, recompute="none", microbatches=3)
    assert str(job.strategy) == "tp=2"
    assert job.values["l"] == 256
    assert job.training.recompute.name == "none"
    assert (job.training.microbatches, job.global_batch) == (3, None)


def test_a_vocabulary_that_is_not_named_stays_a_symbol(script):
    path = script("")
    assert {str(one) for one in sc.job(path).total("params").free_symbols} == {"V"}
    assert not sc.job(path, numbers={"V": 1024}).total("params").free_symbols


def test_chunks_follow_from_the_layers_of_each(script):
    job = sc.job(script("--vocab-size 1000 --num-layers-per-virtual-pipeline-stage 2"))
    assert (job.training.schedule, job.values["v"]) == ("interleaved", 2)
    with pytest.raises(InputError, match="8 layers are not a multiple of 2 stages x 3 per chunk"):
        sc.job(script("--vocab-size 1000 --num-layers-per-virtual-pipeline-stage 3"))


def test_without_a_word_on_precision_it_is_single(script):
    path = script("--vocab-size 1000")
    text = Path(path).read_text(encoding="utf-8")
    Path(path).write_text(text.replace("--bf16 ", ""), encoding="utf-8")
    assert sc.job(path).training.precision == "fp32"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["memory", "comm", "time", "table", "tree", "formula flops"])
def test_commands_take_a_script(script, command):
    done = CliRunner().invoke(main, [*command.split(), script()])
    assert done.exit_code == 0, done.output
    assert "tp=4,sp,dp=4,pp=2,zero=1" in done.output


def test_an_option_that_is_typed_wins(script):
    line = ["memory", script(), "--precision", "fp32", "--recompute", "none"]
    done = CliRunner().invoke(main, line)
    assert "precision fp32" in done.output
    assert "precision bf16-mixed" in CliRunner().invoke(main, line[:2]).output


def test_what_is_not_typed_is_the_files_word(script):
    """The command line asks what Python asks, also of optimizer, host and uneven stages."""
    more = (
        "--vocab-size 1000 --optimizer sgd --optimizer-cpu-offload "
        "--decoder-first-pipeline-num-layers 3"
    )
    path = script(f"{more} --num-layers 8 --swiglu")
    job = sc.job(path)
    assert job.training.layout == "ends=2/0"
    done = CliRunner().invoke(main, ["memory", path])
    assert done.exit_code == 0, done.output
    for said in ("layout ends=2/0", "optimizer momentum", "optimizer on the host"):
        assert said in done.output
    typed = CliRunner().invoke(main, ["memory", path, "--optimizer", "adam", "--layout", "even"])
    assert "optimizer adam" in typed.output


def test_counts_of_a_script(script):
    path = script()
    assert sc.count(path, 1, 128)["params"] == sc.job(path, "tp=1").total("params")
    done = CliRunner().invoke(main, ["count", path])
    assert done.exit_code == 0, done.output
    assert "batch 1, sequence 128," in done.output  # as the script has it
    assert sc.count(path) == sc.count(path, 1, 128) != sc.count(path, 1, 64)


def test_growth_at_a_configuration_has_numbers(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(
        '{"model_type": "llama", "vocab_size": 32, "hidden_size": 16, "intermediate_size": 24, '
        '"num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}',
        encoding="utf-8",
    )
    line = ["scale", "flops", "llama", "--at", str(path), "--set", "b=1,l=8", "--format", "json"]
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.output)["records"]
    assert all(row["value"] not in (None, "") for row in rows), rows


def test_a_sweep_keeps_the_strategy_of_the_file(script):
    """What varies is one degree of it: the others and the shards stay."""
    line = ["sweep", script(), "--system", "h100", "--vary", "dp=1,2"]
    told = CliRunner().invoke(main, line)
    assert told.exit_code == 0, told.output
    assert "strategy: tp=m1,sp,dp=dp,pp=pp,zero=1" in told.output
