"""Importers of launch files: what is read, from where, and what is refused."""

import json

import pytest

from symbolic_cost.conventions.presets import preset
from symbolic_cost.errors import InputError
from symbolic_cost.importers.launch import recipe
from symbolic_cost.models.bound import bound
from symbolic_cost.ops.derive import cost
from symbolic_cost.parallel.parsing import parse_strategy

MEGATRON = """#!/bin/bash
# A model of 175 billion parameters
export CUDA_DEVICE_MAX_CONNECTIONS=1
NODES=${NODES:-32}
HIDDEN=12288
DISTRIBUTED_ARGS=(
    --nproc_per_node 8
    --nnodes $NODES
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size ${HIDDEN}   # --hidden-size 1
    --ffn-hidden-size $((4*HIDDEN))
    --num-attention-heads 96
    --seq-length 2048
    --vocab-size 50257
)
TRAINING_ARGS="--micro-batch-size 1 --global-batch-size=1536 --bf16 --lr 6.0e-5 \\
    --use-distributed-optimizer"
PARALLEL="--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --sequence-parallel"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${GPT_MODEL_ARGS[@]} $TRAINING_ARGS $PARALLEL
"""

NANOTRON = """
model:
  dtype: bfloat16
  model_config:
    hidden_size: 2048
    intermediate_size: 8192
    num_attention_heads: 32
    num_hidden_layers: 16
    num_key_value_heads: 8
    vocab_size: 128256
    tie_word_embeddings: true
parallelism: {dp: 4, pp: 1, tp: 2, tp_mode: REDUCE_SCATTER}
optimizer:
  zero_stage: 1
tokens: {micro_batch_size: 2, sequence_length: 4096}
"""

NEMO = """
trainer: {devices: 8, num_nodes: 4, precision: bf16}
model:
  micro_batch_size: 1
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  encoder_seq_length: 4096
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 11008
  num_attention_heads: 32
  vocab_size: 32000
  make_vocab_size_divisible_by: 8
  activation: fast-swiglu
  normalization: rmsnorm
  bias: false
  position_embedding_type: rope
  share_embeddings_and_output_weights: false
  sequence_parallel: true
"""

CALCULON_MODEL = {
    "name": "gpt3-175B",
    "hidden": 12288,
    "feedforward": 49152,
    "seq_size": 2048,
    "attn_heads": 96,
    "attn_size": 128,
    "num_blocks": 96,
}
CALCULON_RUN = {
    "num_procs": 4096,
    "tensor_par": 8,
    "pipeline_par": 64,
    "data_par": 8,
    "optimizer_sharding": True,
    "microbatch_size": 1,
}
LLM_ANALYSIS = {
    "name": "llama2-7b",
    "num_layers": 32,
    "n_head": 32,
    "hidden_dim": 4096,
    "vocab_size": 32000,
    "max_seq_len": 4096,
    "num_key_value_heads": 32,
    "ffn_embed_dim": 11008,
    "model_type": "llama",
    "mlp_gated_linear_units": True,
}
DEEPSPEED = {
    "train_batch_size": 512,
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {"stage": 3, "overlap_comm": True},
}
GPT2 = {
    "model_type": "gpt2",
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}


def files(tmp_path, **texts):
    paths = []
    for name, content in texts.items():
        path = tmp_path / name.replace("__", ".")
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
        paths.append(path)
    return paths


def parameters(made):
    return cost(bound(made.model()), preset("standard")).total("parameter")


def test_megatron_script(tmp_path):
    made = recipe(*files(tmp_path, run__sh=MEGATRON))
    e, layers, vocabulary = 12288, 96, 51200
    assert made.strategy == "tp=8,sp,pp=16,dp=2,zero=1"
    assert parse_strategy(made.strategy).zero == 1
    block = 12 * e**2 + 13 * e
    assert parameters(made) == layers * block + (vocabulary + 2048) * e + 2 * e
    assert made.run["ranks"] == 256
    assert made.run["global_batch"] == 1536
    assert made.origins["config.hidden_size"].where == "run.sh: line 12, key '--hidden-size'"
    assert {entry.key for entry in made.unread} == {"--lr"}


def test_nanotron(tmp_path):
    made = recipe(*files(tmp_path, run__yaml=NANOTRON))
    assert made.strategy == "tp=2,sp,dp=4,zero=1"
    assert parameters(made) == 1235814400
    assert made.origins["config.vocab_size"].line == 10


def test_nemo(tmp_path):
    made = recipe(*files(tmp_path, run__yaml=NEMO))
    assert made.strategy == "tp=4,sp,pp=2,dp=4"
    assert parameters(made) == 6738415616


def test_calculon_in_two_files(tmp_path):
    made = recipe(*files(tmp_path, model__json=CALCULON_MODEL, run__json=CALCULON_RUN))
    assert made.strategy == "tp=8,pp=64,dp=8,zero=1"
    assert made.run["sequence"] == 2048
    assert parameters(made) == 96 * (12 * 12288**2 + 13 * 12288) + 51200 * 12288 + 2 * 12288


def test_llm_analysis(tmp_path):
    made = recipe(*files(tmp_path, model__json=LLM_ANALYSIS))
    assert made.strategy == ""
    assert made.config["intermediate_size"] == 11008
    assert parameters(made) > 6.7e9


def test_deepspeed_with_a_published_model(tmp_path):
    made = recipe(*files(tmp_path, ds_config__json=DEEPSPEED, config__json=GPT2))
    assert made.strategy == "dp,zero=3"
    assert made.run == {"global_batch": 512, "micro_batch": 4}
    assert parameters(made) == 124439808


def test_a_strategy_alone_has_no_model(tmp_path):
    made = recipe(*files(tmp_path, ds_config__json=DEEPSPEED))
    with pytest.raises(InputError, match="no model: a strategy alone was imported"):
        made.model()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("run.sh", "echo --lr 3", "run.sh: of no known format"),
        ("a.yaml", "x: [1", "a.yaml: line 1: neither JSON nor YAML"),
        ("a.json", "{}", "a.json: of no known format"),
        ("a.json", "[1, 2]", "a.json: of no known format"),
        ("a.json", '{"a":' * 5000 + "1" + "}" * 5000, "a.json: is not JSON: nested too deeply"),
        (
            "run.sh",
            "--num-layers 2 --tensor-model-parallel-size -3",
            "line 1, key '--tensor-model-parallel-size': -3 is not accepted",
        ),
        (
            "run.sh",
            "--num-layers 2 --pipeline-model-parallel-size $UNSET",
            "'' is not accepted: it must be a positive integer",
        ),
        ("run.sh", "--num-layers 2\n--num-layers 3", "line 2, key '--num-layers': 3 contradicts 2"),
    ],
)
def test_refuses(tmp_path, name, text, message):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        recipe(path)
    assert message in str(caught.value)


def test_tells_the_problems_of_all_files(tmp_path):
    with pytest.raises(InputError) as caught:
        recipe(tmp_path / "a.sh", tmp_path / "b.yaml")
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError, match="no file is given"):
        recipe()


@pytest.mark.parametrize(
    ("expression", "number"),
    [("$((2*3+4))", 10), ("$(( A / 2 ))", 8), ("$((A**99))", None), ("$((__import__))", None)],
)
def test_arithmetic_is_integers_alone(tmp_path, expression, number):
    script = f"A=16\n--num-layers {expression.replace(' ', '')} --hidden-size 8"
    made = recipe(*files(tmp_path, run__sh=script))
    layers = made.config["num_hidden_layers"]
    assert layers == number if number else not isinstance(layers, int)


def test_ranks_that_do_not_divide(tmp_path):
    (path,) = files(tmp_path, run__sh=MEGATRON.replace("NODES:-32", "NODES:-33"))
    with pytest.raises(InputError, match="264 ranks are not a multiple of tp x pp x cp = 128"):
        _ = recipe(path).strategy


def test_a_published_configuration_says_its_lines(tmp_path):
    config = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2}
    (tmp_path / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    found = recipe(tmp_path / "config.json")
    assert found.origins["config.hidden_size"].where == "config.json: line 3, key 'hidden_size'"


def test_published_configurations_that_contradict_are_refused(tmp_path):
    for name, width in (("one", 64), ("two", 96)):
        (tmp_path / name).mkdir()
        text = json.dumps({"model_type": "llama", "hidden_size": width})
        (tmp_path / name / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="96 contradicts 64"):
        recipe(tmp_path / "one" / "config.json", tmp_path / "two" / "config.json")
