"""Launch files of accelerate, torchtitan and vLLM."""

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.importers.launch import recipe

TITAN = """
[model]
name = "llama3"
flavor = "8B"  # the smallest
[training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = "selective"
selective_ac_option = "op"
"""
ACCELERATE = """
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
fsdp_config:
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_activation_checkpointing: true
"""
VLLM = """
model: org/name
tensor-parallel-size: 4
max-model-len: 4096
dtype: auto
gpu-memory-utilization: 0.9
"""


@pytest.fixture
def read(tmp_path):
    def written(text, name):
        path = tmp_path / name
        path.write_text(text)
        return recipe(path)

    return written


def test_torchtitan(read, tmp_path):
    found = read(TITAN, "llama3_8b.toml")
    assert found.strategy == "tp=8,sp,dp,zero=3"
    assert (found.run["micro_batch"], found.run["sequence"]) == (2, 8192)
    assert found.run["recompute"] == "selective-op"
    assert sc.count(found.config)["params"] == 8_030_261_248
    assert found.origins["degrees.tp"].line == 11
    result = CliRunner().invoke(main, ["memory", str(tmp_path / "llama3_8b.toml")])
    assert result.exit_code == 0, result.output


def test_torchtitan_cuts_its_batch_for_stages(read):
    staged = TITAN.replace("pipeline_parallel_degree = 1", "pipeline_parallel_degree = 4")
    found = read(staged, "run.toml")
    assert (found.run["micro_batch"], found.run["microbatches"]) == (1, 2)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("8B", "9B", "'llama3 9B' is not known: llama3 8B"),
        ("replicate_degree = 1", "replicate_degree = -1", "a positive integer"),
        ("tensor_parallel_degree = 8", "tensor_parallel_degree = 0", "a positive integer"),
        ("pipeline_parallel_degree = 1",
         "pipeline_parallel_degree = 2\npipeline_parallel_microbatch_size = 3", "a divisor"),
        ("seq_len", 'mixed_precision_reduce = "float16"\nseq_len', "bfloat16 and float32 are read"),
        ("[training]", "[training", "is not TOML"),
        ("seq_len", "seq_len = 1\nseq_len", "is not TOML"),
    ],
)  # fmt: skip
def test_torchtitan_refusals(old, new, told, read):
    with pytest.raises(InputError) as error:
        read(TITAN.replace(old, new), "run.toml")
    assert told in str(error.value)


def test_accelerate(read):
    found = read(ACCELERATE, "fsdp.yaml")
    assert found.strategy == "dp=16,zero=3"
    assert (found.run["policy"], found.run["recompute"]) == ("bf16-accelerate", "full")
    grad = read(ACCELERATE.replace("FULL_SHARD", "SHARD_GRAD_OP"), "fsdp.yaml")
    assert grad.strategy == "dp=16,zero=3,reshard=1"
    with pytest.raises(InputError, match=r"FULL_SHARD, .* are read"):
        read(ACCELERATE.replace("FULL_SHARD", "SHARDED"), "fsdp.yaml")


@pytest.mark.parametrize(
    ("text", "strategy"),
    [
        (ACCELERATE.replace("FULL_SHARD", "HYBRID_SHARD"), "dp=8,replicas=2,zero=3"),
        (ACCELERATE.replace("FULL_SHARD", "5"), "dp=8,replicas=2,zero=3,reshard=1"),
        (ACCELERATE + "  fsdp_reshard_after_forward: HYBRID_SHARD\n", "dp=8,replicas=2,zero=3"),
        (ACCELERATE.replace("FULL_SHARD", "HYBRID_SHARD").replace("processes: 16", "processes: 2"),
         "dp=2"),
        (ACCELERATE + "parallelism_config:\n  parallelism_config_dp_replicate_size: 2\n"
         "  parallelism_config_dp_shard_size: 4\n  parallelism_config_tp_size: 2\n",
         "tp=2,dp=4,replicas=2,zero=3"),
    ],
)  # fmt: skip
def test_shards_that_machines_hold_copies_of(text, strategy, read):
    assert read(text, "fsdp.yaml").strategy == strategy


def test_torchtitan_keeps_copies_of_shards(read):
    """Ranks of data parallelism are those of a shard times copies, as batches count them."""
    text = TITAN.replace("replicate_degree = 1", "replicate_degree = 2")
    assert read(text, "run.toml").strategy == "tp=8,sp,dp,replicas=2,zero=3"
    whole = text.replace("shard_degree = -1", "shard_degree = 1")
    assert read(whole, "run.toml").strategy == "tp=8,sp,dp=2"
    batch = "local_batch_size = 2\nglobal_batch_size = "
    among = whole.replace("[activation", "context_parallel_degree = 2\n[activation")
    assert read(among, "run.toml").strategy == "tp=8,sp,cp=2,dp=1,replicas=2,zero=3"
    shards = text.replace("shard_degree = -1", "shard_degree = 4")
    assert read(shards.replace("local_batch_size = 2", f"{batch}32"), "run.toml").run[
        "global_batch"
    ]
    with pytest.raises(InputError, match="not a multiple of 2 sequences x 8 data-parallel ranks"):
        read(shards.replace("local_batch_size = 2", f"{batch}8"), "run.toml")


def test_machines_that_are_not_told(read):
    text = ACCELERATE.replace("FULL_SHARD", "HYBRID_SHARD").replace("num_machines: 2", "debug: no")
    with pytest.raises(InputError, match="num_machines says how many keep copies"):
        read(text, "fsdp.yaml")
    text = ACCELERATE.replace("FULL_SHARD", "SHARD_GRAD_OP")
    with pytest.raises(InputError, match="fsdp_reshard_after_forward says otherwise"):
        read(text + "  fsdp_reshard_after_forward: true\n", "fsdp.yaml")
    text = ACCELERATE.replace("FULL_SHARD", "HYBRID_SHARD").replace("machines: 2", "machines: 3")
    with pytest.raises(InputError, match="are not a multiple of 3 replicas"):
        read(text, "fsdp.yaml")


def test_accelerate_of_megatron(read):
    text = """
distributed_type: MEGATRON_LM
mixed_precision: 'no'
num_processes: 8
megatron_lm_config:
  megatron_lm_tp_degree: 2
  megatron_lm_pp_degree: 2
  megatron_lm_sequence_parallelism: true
  megatron_lm_use_distributed_optimizer: true
"""
    found = read(text, "megatron.yaml")
    assert found.strategy == "tp=2,sp,pp=2,dp=2,zero=1"
    assert found.run["precision"] == "fp32"


def test_accelerate_of_megatron_runs_its_stack(read):
    text = """
distributed_type: MEGATRON_LM
mixed_precision: bf16
num_processes: 16
megatron_lm_config:
  megatron_lm_tp_degree: 2
  megatron_lm_context_parallel_size: 2
  megatron_lm_recompute_granularity: full
  megatron_lm_recompute_method: uniform
  megatron_lm_recompute_num_layers: 2
  megatron_lm_optimizer_cpu_offload: true
  megatron_lm_use_custom_fsdp: false
"""
    found = read(text, "megatron.yaml")
    assert found.strategy == "tp=2,ring=2,dp=4"
    assert found.run["stack"] == "megatron-core-own-loss"
    assert found.run["overlap"] == "dp=none,tp=gradients"
    assert (found.run["recompute"], found.run["offload"]) == ("full/2", "master_weight,optimizer")
    with pytest.raises(InputError, match="say the strategy, with zero="):
        read(text.replace("fsdp: false", "fsdp: true"), "megatron.yaml")


def test_parts_that_torchtitan_compiles(read):
    both = TITAN + '[compile]\nenable = true\ncomponents = ["model", "loss"]\n'
    assert read(both, "run.toml").run["stack"] == "torchtitan-compiled"
    loss = both.replace('["model", "loss"]', '["loss"]')
    assert read(loss, "run.toml").run["stack"] == "torchtitan"


@pytest.mark.parametrize(("each", "chunks"), [(9, 2), (6, 3), (3, 6)])
def test_layers_of_a_chunk_of_torchtitan(read, each, chunks):
    text = TITAN.replace(
        "pipeline_parallel_degree = 1",
        'pipeline_parallel_degree = 2\npipeline_parallel_schedule = "Interleaved1F1B"\n'
        f"pipeline_parallel_layers_per_stage = {each}",
    )
    found = read(text, "run.toml")
    assert found.run["chunks"] == chunks
    layout = found.run["layout"]
    held = (
        [int(one) for one in layout.removeprefix("blocks [").strip("]").split(",")]
        if (layout.startswith("blocks"))
        else []
    )
    assert not held or (sum(held), len(held)) == (32, 2 * chunks)
    with pytest.raises(InputError, match="2 or more for each of 2 stages is read"):
        read(text.replace(f"stage = {each}", "stage = 12"), "run.toml")
    single = text.replace("Interleaved1F1B", "1F1B")
    with pytest.raises(InputError, match="1 for each of 2 stages is read"):
        read(single, "run.toml")
    assert "chunks" not in read(single.replace(f"stage = {each}", "stage = 17"), "run.toml").run


def test_a_class_by_its_name_makes_no_configuration(read):
    """axolotl says model_type: LlamaForCausalLM in YAML."""
    with pytest.raises(InputError, match="of no known format"):
        read("model_type: LlamaForCausalLM\nadapter: lora\n", "axolotl.yml")


def test_what_is_null_is_not_told(read):
    found = read(ACCELERATE + "fp8_extra: null\nother: 1\n", "fsdp.yaml")
    assert found.open == ("other",)


def test_vllm(read):
    found = read(VLLM, "serve.yaml")
    assert found.strategy == "tp=4"
    assert found.run == {"sequence": 4096}
    assert [entry.key for entry in found.unread] == ["model", "gpu-memory-utilization"]
