"""Launch files of axolotl, TRL, LLaMA-Factory, LLM Foundry and MaxText, as people run them."""

import json

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.importers.launch import recipe

AXOLOTL = """
base_model: NousResearch/Meta-Llama-3.1-8B
chat_template: llama3
datasets:
  - path: mlabonne/FineTome-100k
    type: chat_template
dataset_prepared_path: last_run_prepared
val_set_size: 0.02
output_dir: ./outputs/out
sequence_len: 4096
pad_to_sequence_len: true
wandb_project:
gradient_accumulation_steps: 4
micro_batch_size: 2
num_epochs: 1
optimizer: adamw_torch_fused
lr_scheduler: cosine
learning_rate: 2e-5
bf16: auto
tf32: false
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: false
logging_steps: 1
flash_attention: true
warmup_steps: 100
fsdp:
  - full_shard
  - auto_wrap
fsdp_config:
  fsdp_limit_all_gathers: true
  fsdp_offload_params: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_sharding_strategy: FULL_SHARD
special_tokens:
  pad_token: <|end_of_text|>
"""
LORA = """
base_model: NousResearch/Meta-Llama-3-8B
model_type: LlamaForCausalLM
load_in_8bit: false
load_in_4bit: true
adapter: qlora
lora_r: 32
lora_alpha: 16
lora_dropout: 0.05
lora_target_modules:
  - q_proj
  - v_proj
lora_target_linear: false
sequence_len: 4096
gradient_accumulation_steps: 4
micro_batch_size: 2
optimizer: paged_adamw_32bit
bf16: auto
gradient_checkpointing: true
flash_attention: true
"""
FOUNDRY = """
max_seq_len: 2048
global_seed: 17
model:
  name: mpt_causal_lm
  init_device: meta
  d_model: 768
  n_heads: 12
  n_layers: 12
  expansion_ratio: 4
  max_seq_len: ${max_seq_len}
  vocab_size: 50368
  attn_config:
    attn_impl: triton
tokenizer:
  name: EleutherAI/gpt-neox-20b
  kwargs:
    model_max_length: ${max_seq_len}
train_loader:
  name: text
  dataset:
    max_seq_len: ${max_seq_len}
optimizer:
  name: decoupled_adamw
  lr: 1.2e-4
  betas:
  - 0.9
  - 0.95
global_train_batch_size: 256
device_train_microbatch_size: 16
precision: amp_bf16
fsdp_config:
  sharding_strategy: FULL_SHARD
  mixed_precision: PURE
  activation_checkpointing: false
  activation_cpu_offload: false
  limit_all_gathers: true
"""
MAXTEXT = """
base_config: "base.yml"
run_name: "llama3"
model_name: "llama3-8b"
hardware: "gpu"
dataset_type: "synthetic"
steps: 30
per_device_batch_size: 4
max_target_length: 8192
gradient_accumulation_steps: 2
remat_policy: "full"
scan_layers: True
attention: "cudnn_flash_te"
ici_fsdp_parallelism: 8
dcn_data_parallelism: 2
opt_type: "adamw"
weight_dtype: "float32"
dtype: "bfloat16"
"""
OWN = """
per_device_batch_size: 1
max_target_length: 2048
base_emb_dim: 4096
base_num_query_heads: 32
base_num_kv_heads: 8
base_mlp_dim: 14336
base_num_decoder_layers: 32
mlp_activations: ["silu", "linear"]
vocab_size: 128256
"""
TRAINER = """
model_name_or_path: meta-llama/Meta-Llama-3-8B
model_revision: main
torch_dtype: bfloat16
attn_implementation: flash_attention_2
dataset_mixture:
  datasets:
    - id: HuggingFaceH4/ultrachat_200k
      columns:
        - messages
bf16: true
do_eval: true
gradient_accumulation_steps: 2
gradient_checkpointing: true
gradient_checkpointing_kwargs:
  use_reentrant: False
learning_rate: 2.0e-05
max_seq_length: 2048
optim: adamw_torch
per_device_train_batch_size: 16
report_to:
- wandb
"""
ACCELERATE = """
distributed_type: FSDP
fsdp_config:
  fsdp_sharding_strategy: FULL_SHARD
  fsdp_offload_params: false
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""
FACTORY = """
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
template: llama3
cutoff_len: 1024
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
"""


@pytest.fixture
def read(tmp_path):
    def written(text, name="run.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return recipe(path)

    return written


def test_axolotl_shards_a_model_that_is_known(read):
    found = read(AXOLOTL)
    assert found.strategy == "dp,zero=3"
    run = found.run
    assert (run["micro_batch"], run["microbatches"], run["sequence"]) == (2, 4, 4096)
    assert (run["policy"], run["recompute"]) == ("bf16-accelerate", "full")
    assert (run["stack"], run["attention"], run["optimizer"]) == ("fsdp", "flash", "adam")
    assert run["offload"] == "weight,weight_gradient,master_weight,optimizer"
    assert sc.count(found.config)["params"] == 8_030_261_248
    assert found.open == ("pad_to_sequence_len", "tf32")


def test_axolotl_trains_adapters(read, tmp_path):
    found = read(LORA.replace("paged_adamw_32bit", "adamw_torch"))
    assert found.run["train"] == "lora:r=32,q_proj,v_proj+frozen:nf4"
    assert found.open == ("lora_dropout",)
    result = CliRunner().invoke(main, ["memory", str(tmp_path / "run.yaml")])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "leaves the precision open (auto): say precision=" in result.stderr
    said = sc.job(str(tmp_path / "run.yaml"), precision="bf16")
    same = sc.job(
        "llama-3-8b", "", {"b": 2, "l": 4096}, precision="bf16", recompute="full", stack=None,
        train="lora:r=32,q_proj,v_proj+frozen:nf4", microbatches=4,
    )  # fmt: skip
    assert said.total("weight_gradients") == same.total("weight_gradients")
    assert said.memory().peak == same.memory().peak


def test_axolotl_reads_the_file_of_deepspeed_beside(read, tmp_path):
    text = AXOLOTL.partition("fsdp:")[0] + "deepspeed: configs/zero2.json\n"
    with pytest.raises(InputError, match=r"zero2.json' is not accepted: no such file lies beside"):
        read(text)
    (tmp_path / "configs").mkdir()
    auto = {"stage": 2, "overlap_comm": True}
    said = {"zero_optimization": auto, "bf16": {"enabled": "auto"}, "train_batch_size": "auto"}
    (tmp_path / "configs" / "zero2.json").write_text(json.dumps(said))
    found = read(text)
    assert found.strategy == "dp,zero=2"
    assert found.run["policy"] == "bf16-gradients"


def test_a_model_of_a_folder_beside(read, tmp_path):
    folder = tmp_path / "org" / "name"
    folder.mkdir(parents=True)
    text = AXOLOTL.replace("NousResearch/Meta-Llama-3.1-8B", "org/name")
    with pytest.raises(InputError, match=r"'org/name' is not accepted: no model of that name"):
        read(text)
    own = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100}
    own |= {"num_hidden_layers": 2, "intermediate_size": 128}
    (folder / "config.json").write_text(json.dumps(own))
    assert read(text).config["hidden_size"] == 64
    assert recipe(tmp_path / "run.yaml", folder / "config.json").config["hidden_size"] == 64


@pytest.mark.parametrize(
    ("text", "old", "new", "told"),
    [
        (AXOLOTL, "full_shard\n", "half_shard\n", "full_shard, shard_grad_op, auto_wrap and off"),
        (AXOLOTL, "bf16: auto", "bf16: auto\nrl: dpo", "runs further passes"),
        (AXOLOTL, "bf16: auto", "tokens: [a, b]", "further tokens: write the model"),
        (AXOLOTL, "bf16: auto", "eager_attention: true", "one kernel is read"),
        (AXOLOTL, "bf16: auto", "context_parallel_size: 2", "say the strategy, with ring="),
        (AXOLOTL, "bf16: auto", "deepspeed: z.json", "no such file lies beside"),
        (LORA, "lora_r: 32", "lora_r:", "lora_r says its rank"),
        (LORA, "load_in_4bit: true", "load_in_4bit: false", "qlora is with load_in_4bit"),
        (LORA, "linear: false", "linear: true", "names, each once, or lora_target_linear alone"),
        (LORA, "bf16: auto", "lora_modules_to_save:\n  - lm_head", "whole copies beside frozen"),
        (TRAINER, "bf16: true", "beta: 0.1", "pairs and a model of reference"),
        (TRAINER, "bf16: true", "num_generations: 8", "answers that are drawn within a step"),
        (TRAINER, "bf16: true", "load_in_4bit: true", "with adapters, of use_peft, it is read"),
        (TRAINER, "bf16: true", "use_peft: true", "lora_r says its rank: give it"),
        (TRAINER, "bf16: true", "fsdp: half_shard", "full_shard, shard_grad_op, auto_wrap and"),
        (TRAINER, "Meta-Llama-3-8B", "Llama-9", "no model of that name is known"),
        (FACTORY, "stage: sft", "stage: ppo", "other stages have further models"),
        (FACTORY, "type: lora", "type: freeze", "lora and qlora are read"),
        (FOUNDRY, "n_heads: 12", "n_heads: 12\n  no_bias: true", "with alibi and no_bias, is read"),
        (FOUNDRY, "impl: triton", "impl: flash\n    kv_n_heads: 4", "write the model as a config"),
        (FOUNDRY, "mpt_causal_lm", "mpt_embed", "mpt_causal_lm and hf_causal_lm are read"),
        (FOUNDRY, "amp_bf16", "amp_fp8", "amp_bf16, amp_fp16 and fp32 are read"),
        (FOUNDRY, "d_model: 768", "d_model: big", "'big' is not accepted: a positive integer"),
        (FOUNDRY, "FULL_SHARD", "ALL", "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD"),
        (MAXTEXT, "llama3-8b", "llama3-9b", "no model of that name is known"),
        (MAXTEXT, "steps: 30", "base_emb_dim: 64", "llama3-8b says the model: leave one"),
        (MAXTEXT, "batch_size: 4", "batch_size: 0.5", "whole sequences of each device"),
        (MAXTEXT, "steps: 30", "ici_tensor_parallelism: 2", "activations are split as well"),
        (MAXTEXT, "steps: 30", "quantization: fp8", "say the precision"),
        (OWN, '"silu", "linear"', '"gelu"', "silu and linear are read"),
        (OWN, "vocab_size: 128256", "num_experts: 8", "write the model as a config.json"),
    ],
)  # fmt: skip
def test_refused(text, old, new, told, read):
    assert old in text
    with pytest.raises(InputError) as error:
        read(text.replace(old, new))
    assert told in str(error.value)


def test_trainer(read, tmp_path):
    found = read(TRAINER)
    run = found.run
    assert found.strategy == "dp"
    assert (run["micro_batch"], run["microbatches"], run["sequence"]) == (16, 2, 2048)
    assert (run["attention"], run["recompute"], run["optimizer"]) == ("flash", "full", "adam")
    assert run["policy"] == "auto"  # which weights stay in 16 bits depends on versions
    assert sc.count(found.config)["params"] == 8_030_261_248
    assert found.open == ("torch_dtype",)
    assert found.notes == ()
    silent = read(TRAINER.replace("gradient_checkpointing: true\n", ""))
    assert "of gradient_checkpointing the file says nothing" in silent.notes[0]
    (tmp_path / "fsdp.yaml").write_text(ACCELERATE)
    for files in (("run.yaml", "fsdp.yaml"), ("fsdp.yaml", "run.yaml")):
        both = recipe(*(tmp_path / name for name in files))
        assert (both.strategy, both.run["stack"]) == ("dp=8,zero=3", "fsdp")
        assert both.run["policy"] == "bf16-accelerate"
    own = read(TRAINER.replace("bf16: true", "bf16: true\nfsdp: full_shard auto_wrap"))
    assert (own.strategy, own.run["policy"]) == ("dp,zero=3", "bf16-accelerate")


def test_trainer_has_adapters(read):
    peft = "bf16: true\nuse_peft: true\nlora_r: 16\nlora_target_modules: [q_proj, v_proj]"
    found = read(TRAINER.replace("bf16: true", peft))
    assert found.run["train"] == "lora:r=16,q_proj,v_proj"
    four = read(TRAINER.replace("bf16: true", f"{peft}\nload_in_4bit: true"))
    assert four.run["train"] == "lora:r=16,q_proj,v_proj+frozen:nf4"


def test_files_of_llama_factory(read):
    found = read(FACTORY)
    assert found.run["train"] == "lora:r=8,all-linear"
    assert found.run["sequence"] == 1024
    assert "train" not in read(FACTORY.replace("type: lora", "type: full")).run
    assert not found.open


def test_llm_foundry(read):
    found = read(FOUNDRY)
    assert (found.config["model_type"], found.strategy) == ("gpt2", "dp,zero=3")
    assert sc.count(found.config)["params"] == 125_311_488
    run = found.run
    assert (run["micro_batch"], run["global_batch"], run["sequence"]) == (16, 256, 2048)
    assert run["policy"] == "bf16-accelerate"
    assert (run["optimizer"], run["attention"]) == ("adam", "flash")
    assert not found.open
    assert read(FOUNDRY.replace("PURE", "DEFAULT")).run["policy"] == "auto"
    assert read(FOUNDRY.partition("fsdp_config:")[0]).run["policy"] == "bf16-fsdp"


def test_llm_foundry_has_slopes_in_place_of_positions(read):
    text = FOUNDRY.replace("attn_impl: triton", "attn_impl: flash\n    alibi: true")
    found = read(text.replace("n_heads: 12", "n_heads: 12\n  no_bias: true"))
    # without 2048 rows of positions, 13 d_model of biases each layer and 2 of norms at the end
    assert sc.count(found.config)["params"] == 125_311_488 - 768 * (2048 + 12 * 11 + 1)


def test_llm_foundry_takes_a_model_by_name(read):
    head, _, tail = FOUNDRY.partition("model:\n")
    own = (
        "model:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: meta-llama/Llama-2-7b-hf\n"
    )
    found = read(f"{head}{own}  pretrained: true\ntokenizer:{tail.partition('tokenizer:')[2]}")
    assert sc.count(found.config)["params"] == 6_738_415_616


def test_maxtext(read, tmp_path):
    found = read(MAXTEXT)
    assert found.strategy == "dp=8,replicas=2,zero=3"
    run = found.run
    assert (run["micro_batch"], run["microbatches"], run["sequence"]) == (4, 2, 8192)
    assert (run["recompute"], run["attention"], run["policy"]) == ("full", "flash", "auto")
    assert sc.count(found.config)["params"] == 8_030_261_248
    line = ["memory", str(tmp_path / "run.yaml"), "--precision", "bf16-fsdp"]
    assert CliRunner().invoke(main, line).exit_code == 0
    assert read(MAXTEXT.replace('"full"', '"minimal"')).run["recompute"] == "minimal"
    job = sc.job(str(tmp_path / "run.yaml"), precision="bf16-fsdp")
    assert job.training.recompute.name == "minimal"
    read(MAXTEXT.replace('"full"', '"custom"'))
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 2
    assert "recompute policy 'custom' of a launch file" in result.stderr


def test_maxtext_says_the_sizes(read):
    found = read(OWN)
    assert found.notes == ("one slice is taken: dcn_data_parallelism says how many there are",)
    assert read(f"{OWN}dcn_data_parallelism: 1\n").notes == ()
    assert found.strategy == "dp,zero=3"
    assert sc.count(found.config)["params"] == 8_030_261_248
    tied = read(f"{OWN}logits_via_embedding: true\n")
    assert sc.count(tied.config)["params"] == 8_030_261_248 - 128256 * 4096
