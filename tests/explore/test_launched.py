"""Searches of launch files: what the file says is taken, but for what a search chooses."""

import json
import shlex

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.explore.flags import time_command

GPT = """torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py --num-layers 8 --hidden-size 512 \\
    --num-attention-heads 8 --seq-length 256 --micro-batch-size 2 --global-batch-size 64 --bf16 \\
    --vocab-size 1000 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 \\
    --num-layers-per-virtual-pipeline-stage 2 --recompute-activations --use-distributed-optimizer
"""
NANOTRON = """
parallelism: {dp: 4, tp: 2, pp: 1, pp_engine: 1f1b}
model: {dtype: bfloat16, model_config: {hidden_size: 256, intermediate_size: 512,
  num_hidden_layers: 4, num_attention_heads: 8, num_key_value_heads: 8, vocab_size: 1000,
  max_position_embeddings: 256, tie_word_embeddings: false, is_llama_config: true,
  hidden_act: silu, rms_norm_eps: 1.0e-05}}
tokens: {micro_batch_size: 2, sequence_length: 256, batch_accumulation_per_replica: 4}
"""
MORE = "--system h100 --choose sp=on --choose zero=1 --choose recompute=none"


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "run.sh"
    path.write_text(GPT, encoding="utf-8")
    return path


def run(*words):
    return CliRunner().invoke(main, words, env={"COLUMNS": "1000"})


def test_ranks_and_global_batch_are_those_of_the_file(script):
    done = run("search", str(script), *MORE.split())
    assert done.exit_code == 0, done.output
    assert f"{script} on 16 x h100, 64 sequences in a step" in " ".join(done.output.split())
    said = "strategy tp=2,pp=2,dp=4,zero=1, b 2, layers per chunk 2, recompute selective"
    assert f"a search chooses what {script} says of {said}" in " ".join(done.output.split())
    own = run("search", str(script), *MORE.split(), "--gpus", "8", "--global-batch", "32")
    assert "on 8 x h100, 32 sequences in a step" in " ".join(own.output.split())


def test_batches_of_nanotron_are_its_microbatches_together(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(NANOTRON, encoding="utf-8")
    done = run("search", str(path), *MORE.split())
    assert "on 8 x h100, 32 sequences in a step" in " ".join(done.output.split())


def test_the_command_that_is_printed_runs_that_candidate(script):
    choose = {"zero": (1,), "recompute": ("none",), "dp": (4,), "schedule": ("1f1b",)}
    found = sc.search(str(script), 16, 64, system="h100", choose=choose, progress=False)
    timed = run(*shlex.split(time_command(found, found.best[0]))[1:], "--format", "json")
    assert timed.exit_code == 0, timed.output
    parts = {one["part"]: one["value"] for one in json.loads(timed.output)["records"]}
    assert parts["step"] == pytest.approx(found.best[0].outputs["step"], rel=1e-9)


@pytest.mark.slow
def test_largest_sizes_are_asked_of_a_file(script):
    done = run("fit", str(script), "--system", "h100", "--in", "b")
    assert done.exit_code == 0, done.output
    assert "fits on 16 GPUs" in done.output
    assert "a search chooses what" in done.output
    whole = sc.fit(str(script), 16, 64, system="h100", symbols=("b",))
    assert whole.search.setup.model.name == str(script)


def test_a_file_without_ranks_needs_them(tmp_path):
    path = tmp_path / "run.sh"
    path.write_text(GPT.replace("--nproc_per_node 8 --nnodes 2", ""), encoding="utf-8")
    done = run("search", str(path), *MORE.split())
    assert done.exit_code == 2
    assert "Missing option '--gpus'" in done.output
    assert run("fit", "gpt2", "--system", "h100").exit_code == 2
    missing = run("search", "gpt2", "--system", "h100", "--gpus", "8")
    assert "Missing option '--global-batch'" in missing.output
