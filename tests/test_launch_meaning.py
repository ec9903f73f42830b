"""What settings of launch files mean together: defaults of frameworks, and what is refused."""

from pathlib import Path

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.importers.files import is_launch_file
from symbolic_cost.importers.launch import recipe
from symbolic_cost.importers.script import entries as script_entries
from symbolic_cost.importers.tree import entries

GPT = """torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --num-layers 8 --hidden-size 96 \\
    --num-attention-heads 8 --seq-length 128 --micro-batch-size 2 --global-batch-size 64 --bf16 \\
    --vocab-size 1000 --tensor-model-parallel-size 4 --sequence-parallel """
TITAN = """
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 8
[parallelism]
data_parallel_shard_degree = 8
tensor_parallel_degree = 1
"""
ACCELERATE = "mixed_precision: bf16\nnum_processes: 8\ndistributed_type: "
NEMO = """
trainer: {devices: 8, num_nodes: 4, precision: bf16}
model: {encoder_seq_length: 128, tensor_model_parallel_size: 2, optim: {name: NAME}, MORE}
"""
CALCULON = '{"attn_heads": 8, "num_blocks": 8, "tensor_par": 4, "num_procs": 32, MORE}'
FSDP = "weight,weight_gradient,master_weight,optimizer"


def read(tmp_path, text, name):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return recipe(path)


def test_a_configuration_with_blocks_is_no_file_of_calculon(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "xlstm", "num_blocks": 32}', encoding="utf-8")
    assert not is_launch_file(path)


@pytest.mark.parametrize(
    ("flags", "target", "meant"),
    [
        ("--swiglu", "config.intermediate_size", 256),  # 8/3 x 96, in 64s
        ("--num-query-groups 2", "config.num_key_value_heads", None),  # not read without its flag
        ("--num-query-groups 2 --group-query-attention", "config.num_key_value_heads", 2),
        ("--group-query-attention", "config.num_key_value_heads", 1),
        ("--padded-vocab-size 1004", "config.vocab_size", 1004),  # no more is added
        ("--use-rotary-position-embeddings", "config.position_embedding", "rope"),
        ("--num-experts 4", "config.num_experts_per_tok", 2),
        ("--num-experts 4", "config.intermediate_size", 384),  # as of other layers: 4 x 96
        ("--num-experts 4 --swiglu", "config.intermediate_size", 256),
        ("--num-experts 4 --moe-layer-freq '([0]*2+[1]*6)'", "config.mlp_layer_types", 2),
        ("--num-experts 4 --moe-layer-freq 2", "config.mlp_layer_types", 4),
        ("--context-parallel-size 2", "strategy", "tp=4,sp,ring=2,dp=4"),
        ("--context-parallel-size 2 --cp-comm-type a2a", "strategy", "tp=4,sp,ulysses=2,dp=4"),
        ("--context-parallel-size 2 --cp-comm-type allgather", "strategy", "tp=4,sp,cp=2,dp=4"),
        ("--num-experts 8 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1",
         "strategy", "tp=4,sp,spread,ep=2,dp=8"),
        ("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params",
         "strategy", "tp=4,sp,dp=8,zero=3"),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2",
         "run.recompute", "full/2"),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
         "run.recompute", "full"),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 0",
         "run.recompute", "none"),
        ("--num-experts 4 --moe-layer-freq '([0]*1+[1]*3)*2'", "config.mlp_layer_types", 2),
        ("--num-experts 4 --moe-layer-freq [0,1]*4", "config.mlp_layer_types", 4),
        ("--context-parallel-size 8 --cp-comm-type a2a --use-distributed-optimizer",
         "strategy", "tp=4,sp,ulysses=8,zero=1"),
        ("--use-mcore-models", "run.stack", "megatron-core-own-loss"),
        ("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te",
         "run.stack", "megatron-core"),
        ("", "run.overlap", "dp=none,tp=gradients"),
        ("--use-distributed-optimizer --overlap-grad-reduce", "run.overlap",
         "dp=gradients,tp=gradients,ep=gradients"),
        ("--overlap-grad-reduce", "run.overlap", "dp=full,tp=gradients,ep=gradients"),
        (("--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
         "--tp-comm-overlap --overlap-moe-expert-parallel-comm"), "run.overlap", "dp=full,ep=full"),
        ("--overlap-param-gather", "run.overlap", "dp=none,tp=gradients"),
        ("--use-torch-fsdp2 --no-overlap-p2p-communication", "run.overlap", "tp=gradients,pp=none"),
        ("--recompute-granularity selective --recompute-modules core_attn layernorm",
         "run.recompute", "core_attn+layernorm"),
        ("--recompute-granularity selective --recompute-modules core_attn",
         "run.recompute", "selective"),
        ("--checkpoint-activations", "run.recompute", "full"),
        ("--fp8-format hybrid", "run.policy", "fp8-hybrid"),
        ("--fp8-format hybrid --grad-reduce-in-bf16", "run.policy", "fp8-gradients"),
        ("--fp8-format hybrid --fp8-param-gather", "run.policy", "fp8-weights"),
        (
            "--fp8-format hybrid --fp8-param-gather --grad-reduce-in-bf16",
            *("run.policy", "fp8-params"),
        ),
        ("--fp8-format e4m3 --fp8-recipe mxfp8", "run.policy", "mxfp8"),
        ("--grad-reduce-in-bf16", "run.policy", "bf16-gradients"),
        ("--optimizer sgd", "run.optimizer", "momentum"),
        ("--optimizer-cpu-offload", "run.offload", "master_weight,optimizer"),
        ("--attention-backend unfused", "run.attention", "eager"),
        ("--pipeline-model-parallel-size 4 --decoder-last-pipeline-num-layers 2",
         "run.layout", "ends=0/0"),
        (("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1 "
         "--decoder-last-pipeline-num-layers 1"), "run.layout", "ends=2/2"),
        ("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2",
         "run.chunks", 2),
    ],
)  # fmt: skip
def test_megatron(flags, target, meant, tmp_path):
    """megatron/training/arguments.py."""
    if "1001" in flags:
        with pytest.raises(InputError, match="contradicts"):
            read(tmp_path, GPT + flags, "run.sh")
        return
    own = read(tmp_path, GPT + flags, "run.sh")
    values = {f"{kind}.{name}": v for kind in ("config", "run")
              for name, v in getattr(own, kind).items()} | {"strategy": own.strategy}  # fmt: skip
    value = values.get(target)
    if target == "config.mlp_layer_types":
        value = value.count("dense")
    if meant == "ends=0/0":  # as many as elsewhere
        meant = None
    assert value == meant


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--mtp-num-layers 1", "'--mtp-num-layers': 1 is not read: layers that predict"),
        ("--heterogeneous-layers-config-path x", "-path': 'x' is not read: layers of several"),
        ("--window-size 128,0", "with its window"),
        ("--num-distributed-optimizer-instances 2", "replicas="),
        ("--context-parallel-size 2 --cp-comm-type p2p a2a", "one for all layers"),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 1",
         "block recomputes some of the layers"),
        ("--num-experts 8 --expert-tensor-parallel-size 2", "as all weights, is read"),
        ("--num-experts 8 --moe-expert-capacity-factor 1.5 --moe-pad-expert-input-to-capacity",
         "1 is read, or more where experts are not filled up to it"),
        ("--num-experts 8 --moe-expert-capacity-factor 0.5", "1 is read, or more"),
        ("--num-experts 8 --moe-expert-capacity-factor nan", "1 is read, or more"),
        ("--num-experts 8 --moe-expert-capacity-factor", "1 is read, or more"),
        ("--num-experts 8 --moe-layer-freq [2]*8", "a number, or a list as"),
        (f"--num-experts 8 --moe-layer-freq [1]*8{'*1' * 500}*2", "a number, or a list as"),
        ("--num-experts 8 --moe-layer-freq", "a number, or a list as"),
        ("--optimizer lion", "adam, sgd, muon"),
        ("--padded-vocab-size 999", "the vocabulary of 1000 with its padding"),
        ("--exp-avg-dtype bf16", "say a precision"),
        ("\nif [ $A ]; then\nN=2\nelse\nN=4\nfi\nx --pipeline-model-parallel-size $N",
         "'<N: several values>' is not accepted"),
        ("\nif [ $A ]; then\nA='--swiglu'\nfi", "stands in the branch of line 4"),
        ("\n[ -n $A ] && A=' --use-distributed-optimizer'", "stands in the branch of line 4"),
        ("\ncase $A in\n8b) N=2 ;;\nesac\nx --pipeline-model-parallel-size $N",
         "'<N: set in the branch of line 4>' is not accepted"),
        ("\nN=2; M=4\nif [ $A ]; then N=4; fi\nx --pipeline-model-parallel-size $N",
         "'<N: several values>' is not accepted"),
        ("\nMORE=(\n  --swiglu\n)\nMORE+=(--swiglu)",
         "line 4: MORE holds options and is used nowhere"),
        ("\ntorchrun pretrain_bert.py", "line 4: pretrain_bert.py is not read"),
    ],
)  # fmt: skip
def test_megatron_refusals(flags, told, tmp_path):
    with pytest.raises(InputError) as error:
        read(tmp_path, GPT + flags, "run.sh")
    assert told in str(error.value)


def test_branches_that_say_what_stands_outside(tmp_path):
    """What changes no cost, or is said before, may stand in a branch; cd x && is none."""
    flags = "\nif [ $A ]; then\nx --num-layers 8 --lr 1e-4\nfi\ncd x && x --swiglu"
    flags += "\nMORE=(\n  --lr $((1 + 1))\n)\nx ${MORE[@]}"
    assert read(tmp_path, GPT + flags, "run.sh").config["num_hidden_layers"] == 8


def test_switched_off_and_quoted(tmp_path):
    """A setting that switches off what is not known is none; values may be quoted."""
    own = read(tmp_path, GPT + '--mtp-num-layers 0 --max-position-embeddings "256"', "run.sh")
    assert own.config["max_position_embeddings"] == 256


def test_experts_without_gates_and_shared(tmp_path):
    """Experts have the gates of the perceptron, and the shared one its own width."""
    path = tmp_path / "run.sh"
    more = "--num-experts 4 --disable-bias-linear --moe-ffn-hidden-size 32"
    for flags, products in ((more, 2), (f"{more} --swiglu", 3)):
        sizes = {}
        for shared in ("", " --moe-shared-expert-intermediate-size 64"):
            path.write_text(GPT + flags + shared, encoding="utf-8")
            sizes[shared] = sc.job(str(path), "dp=1").total("params")
        alone, both = sizes.values()
        assert both - alone == 8 * products * 96 * 64
    assert "experts" in "".join(row.path for row in sc.job(str(path), "dp=1").rows)


def test_what_is_not_read_is_named(tmp_path):
    """A setting that may change costs stands in the head of every table; a learning rate not."""
    path = tmp_path / "run.sh"
    path.write_text(GPT + "--lr 3e-4 --no-bias-swiglu-fusion", encoding="utf-8")
    text = str(sc.job(str(path)).memory())
    assert "not read of run.sh: --no-bias-swiglu-fusion" in text
    assert "--lr" not in text


def test_how_experts_get_their_tokens_is_named_unless_it_is_as_derived(tmp_path):
    path = tmp_path / "run.sh"
    for kind, told in (("alltoall", False), ("allgather", True)):
        path.write_text(f"{GPT}--moe-token-dispatcher-type {kind}", encoding="utf-8")
        assert ("--moe-token-dispatcher-type" in str(sc.job(str(path)).memory())) is told


@pytest.mark.parametrize(
    ("more", "policy", "recompute", "reshard"),
    [
        ('[activation_checkpoint]\nmode = "none"', "bf16-fsdp", "none", None),
        ('[activation_checkpoint]\nmode = "selective"\nselective_ac_option = "op"',
         "bf16-fsdp", "selective-op", None),
        ("", "bf16-fsdp", "selective, option 2", None),
        ("pipeline_parallel_degree = 2", "bf16-fsdp", "selective, option 2", 1),
        ("training.mixed_precision_reduce = 'bfloat16'", "bf16-accelerate",
          "selective, option 2", None),
        ("[float8]\nenable_fsdp_float8_all_gather = true", "fp8-linear", "selective, option 2",
          None),
    ],
)  # fmt: skip
def test_torchtitan(more, policy, recompute, reshard, tmp_path):
    text = TITAN
    if more.startswith("training."):
        text, more = text.replace("[training]", f"[training]\n{more.removeprefix('training.')}"), ""
    if "float8" in more:
        text = text.replace('flavor = "8B"', 'flavor = "8B"\nconverters = ["float8"]')
    own = read(tmp_path, text + more, "run.toml")
    assert (own.run["policy"], own.run["recompute"]) == (policy, recompute)
    assert (own.degrees["zero"], own.degrees.get("reshard")) == (3, reshard)


@pytest.mark.parametrize(
    ("more", "layout"),
    [
        ("pipeline_parallel_degree = 2", "ends=1/1"),
        ('pipeline_parallel_degree = 2\npipeline_parallel_schedule = "Interleaved1F1B"',
         "blocks [8, 9, 8, 7]"),
        ("pipeline_parallel_degree = 4", "blocks [8, 9, 8, 7]"),
        (("pipeline_parallel_degree = 4\npipeline_parallel_first_stage_less_layers = 0\n"
          "pipeline_parallel_last_stage_less_layers = 0"), "ends=0/0"),
        ("pipeline_parallel_degree = 1", None),
    ],
)  # fmt: skip
def test_torchtitan_gives_its_ends_fewer_blocks(more, layout, tmp_path):
    """torchtitan distributed/pipeline_parallel.py: the embedding and the head count as a block."""
    assert read(tmp_path, TITAN + more, "run.toml").run.get("layout") == layout


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("4\npipeline_parallel_first_stage_less_layers = 20", "0 to 13 are read"),
        ("16\npipeline_parallel_last_stage_less_layers = 3", "0 to 2 are read"),
        ("4\npipeline_parallel_first_stage_less_layers = -1", "0 to 8 are read"),
        ("4\npipeline_parallel_first_stage_less_layers = '1'", "0 to 8 are read"),
        ("64", "32 blocks do not fill 64 stages"),
    ],
)
def test_torchtitan_refuses_stages_without_blocks(more, told, tmp_path):
    with pytest.raises(InputError, match=told):
        read(tmp_path, f"{TITAN}pipeline_parallel_degree = {more}", "run.toml")


def test_a_layout_that_is_not_known_is_the_users_to_say(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(f"{TITAN}pipeline_parallel_degree = 4", encoding="utf-8")
    with pytest.raises(InputError, match=r"layout 'blocks \[8, 9, 8, 7\]': accepted are even"):
        sc.job(str(path), recompute="full")
    assert sc.job(str(path), recompute="full", layout="even").training.layout == "even"


def test_a_policy_that_is_not_known_is_the_users_to_say(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text(TITAN, encoding="utf-8")
    with pytest.raises(InputError, match=r"option 2.* has the last word"):
        sc.job(str(path))
    assert sc.job(str(path), recompute="full").training.precision == "bf16-fsdp"


@pytest.mark.parametrize(
    ("text", "policy", "offload"),
    [
        (('{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2, '
         '"offload_optimizer": {"device": "cpu"}}}'), "bf16-gradients",
         "weight_gradient,master_weight,optimizer"),
        (('{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1, '
         '"offload_optimizer": {"device": "cpu"}}}'), "bf16-gradients", "master_weight,optimizer"),
        ('{"train_batch_size": 8, "bf16": {"enabled": true}}', "bf16-deepspeed", None),
        (('{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 1}, '
         '"data_types": {"grad_accum_dtype": "fp32"}}'), "bf16-deepspeed", None),
        ('{"train_batch_size": 8, "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}}',
         "auto", None),
        ((f"{ACCELERATE}FSDP\nfsdp_config: {{fsdp_sharding_strategy: 1, "
         "fsdp_offload_params: true}"), "bf16-accelerate", FSDP),
        (f"{ACCELERATE}MULTI_GPU", "bf16-fsdp", None),
        (f"{ACCELERATE}MEGATRON_LM", None, None),
        ((f"{ACCELERATE}DEEPSPEED\ndeepspeed_config: {{zero_stage: 3, "
         "offload_param_device: cpu}"), "bf16-gradients", "weight"),
    ],
)  # fmt: skip
def test_bytes_and_hosts(text, policy, offload, tmp_path):
    """deepspeed runtime/engine.py, get_data_types; FSDP and autocast keep single precision."""
    own = read(tmp_path, text, "a.json" if text[0] == "{" else "a.yaml")
    assert (own.run.get("policy"), own.run.get("offload")) == (policy, offload)


@pytest.mark.parametrize(
    ("more", "shards"),
    [
        ("FSDP", ",zero=3"),
        ("FSDP\nfsdp_config: {fsdp_reshard_after_forward: false}", ",zero=3,reshard=1"),
        ("FSDP\nfsdp_config: {fsdp_sharding_strategy: 2}", ",zero=3,reshard=1"),
        ("FSDP\nfsdp_config: {fsdp_sharding_strategy: NO_SHARD}", ""),
        ("DEEPSPEED", ",zero=2"),
        ("DEEPSPEED\ndeepspeed_config: {zero_stage: 0}", ""),
        ("MULTI_GPU", ""),
    ],
)
def test_accelerate_shards_unless_told_otherwise(more, shards, tmp_path):
    """accelerate utils/dataclasses.py: FULL_SHARD, and stage 2 of DeepSpeed."""
    assert read(tmp_path, ACCELERATE + more, "a.yaml").strategy == f"dp=8{shards}"


@pytest.mark.parametrize("kind", ["fsdp", "TP", "MULTI"])
def test_accelerate_refuses_what_it_does_not_know(kind, tmp_path):
    with pytest.raises(InputError, match="FSDP, DEEPSPEED, MEGATRON_LM, MULTI_GPU, XLA and NO are"):
        read(tmp_path, ACCELERATE + kind, "a.yaml")


def test_accelerate_without_fsdp_shards_nothing(tmp_path):
    text = f"{ACCELERATE}MULTI_GPU\nfsdp_config: {{fsdp_sharding_strategy: 1}}"
    with pytest.raises(InputError, match="MULTI_GPU keeps no shards"):
        read(tmp_path, text, "a.yaml")


@pytest.mark.parametrize(
    ("momentum", "known"),
    [("", "sgd"), (', "momentum": 0', "sgd"), (', "momentum": 0.9', "momentum")],
)
def test_deepspeed_has_a_moment_where_it_is_asked_for(momentum, known, tmp_path):
    """torch.optim.SGD has none unless told."""
    optimizer = f'"optimizer": {{"type": "SGD", "params": {{"lr": 0.1{momentum}}}}}'
    text = f'{{"train_batch_size": 8, {optimizer}}}'
    assert read(tmp_path, text, "a.json").run["optimizer"] == known


def test_deepspeed_that_quantises_is_refused(tmp_path):
    text = '{"train_batch_size": 8, "zero_optimization": {"zero_quantized_weights": true}}'
    with pytest.raises(InputError, match="gathers in fewer bits are not known"):
        read(tmp_path, text, "a.json")


def test_nemo_and_calculon(tmp_path):
    fused = NEMO.replace("NAME", "distributed_fused_adam").replace("MORE", "fp8: true")
    own = read(tmp_path, fused, "a.yaml")
    assert (own.strategy, own.run["policy"]) == ("tp=2,dp=16,zero=1", "fp8-hybrid")
    with pytest.raises(InputError, match="say train= of the job"):
        read(tmp_path, fused.replace("fp8: true", "peft: {peft_scheme: lora}"), "a.yaml")
    more = '"tensor_par_comm_type": "rs_ag", "pipeline_interleaving": 2, "optimizer_offload": true'
    own = read(tmp_path, CALCULON.replace("MORE", more), "a.json")
    assert own.strategy == "tp=4,sp,dp=8"
    hosted = "weight_gradient,master_weight,optimizer"  # calculon llm.py, _get_mem_cap_reqs
    assert (own.run["chunks"], own.run["offload"]) == (2, hosted)
    whole = CALCULON.replace("MORE", '"tensor_par_comm_type": "ar"')
    assert read(tmp_path, whole, "a.json").strategy == "tp=4,dp=8"


@pytest.mark.parametrize(
    ("kind", "said", "policy", "flag"),
    [
        ("DEEPSPEED", "fp16", None, "fp16"),
        ("DEEPSPEED", "bf16", "bf16-gradients", "bf16"),
        ("FSDP", "fp16", "bf16-accelerate", None),
        ("MULTI_GPU", "bf16", "bf16-fsdp", None),
        ("MEGATRON_LM", "fp16", None, None),
    ],
)
def test_accelerate_computes_in_what_it_says(kind, said, policy, flag, tmp_path):
    text = f"mixed_precision: {said}\nnum_processes: 8\ndistributed_type: {kind}\n"
    run = read(tmp_path, text, "run.yaml").run
    assert run.get("policy") == policy
    assert flag is None or run[flag] is True


DEEPSPEED = '{"zero_optimization": {"stage": STAGE, MORE}, "bf16": {"enabled": true}}'


@pytest.mark.parametrize(
    ("stage", "more", "told"),
    [
        (1, '"offload_optimizer": {"device": "cpu", "ratio": 0.3}', "all states are on the host"),
        (0, '"offload_optimizer": {"device": "cpu"}', "stages 1 to 3 keep states on the host"),
        (1, '"stage3": 1}, "fp16": {"enabled": true', "bf16 or fp16 is read, not both"),
        (1, '"x": 1}, "fp16": {"fp16_master_weights_and_grads": true', "say the precision"),
    ],
)
def test_deepspeed_refusals(stage, more, told, tmp_path):
    text = DEEPSPEED.replace("STAGE", str(stage)).replace("MORE", more)
    with pytest.raises(InputError, match=told):
        read(tmp_path, text, "ds.json")


@pytest.mark.parametrize(("stage", "kept"), [(2, None), (3, "weight")])
def test_deepspeed_keeps_weights_on_the_host_where_they_are_sharded(stage, kept, tmp_path):
    more = '"offload_param": {"device": "cpu"}, "zero_hpz_partition_size": 1'
    text = DEEPSPEED.replace("STAGE", str(stage)).replace("MORE", more)
    assert read(tmp_path, text, "ds.json").run.get("offload") == kept


@pytest.mark.parametrize(
    ("more", "kept"),
    [
        ('"cpu_offload": true', "weight_gradient,master_weight,optimizer"),
        ('"cpu_offload": false', None),
        ('"cpu_offload": true, "cpu_offload_params": true',
         "weight_gradient,master_weight,optimizer,weight"),
    ],
)  # fmt: skip
def test_deepspeed_by_its_older_keys(more, kept, tmp_path):
    """deepspeed/runtime/zero/config.py: cpu_offload is offload_optimizer of the device cpu."""
    text = DEEPSPEED.replace("STAGE", "3").replace("MORE", more)
    assert read(tmp_path, text, "ds.json").run.get("offload") == kept


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("moe_config: {num_experts: 8}", "config.json of qwen2_moe"),
        ("sliding_window_size: 20", "with its window"),
        ("attention_bias: true", "config.json of qwen2"),
        ("is_starcoder2_config: true", "config.json of starcoder2"),
        ("is_llama4_config: true", "config.json of llama4"),
    ],
)
def test_nanotron_refuses_models_that_are_no_llama(key, told, tmp_path):
    text = NANOTRON.replace("NAME", "adamW")
    off = text.replace("1001}", f"1001, {key.replace('true', 'false')}}}")
    with pytest.raises(InputError, match=told):
        read(tmp_path, text.replace("1001}", f"1001, {key}}}"), "run.yaml")
    assert ": true" not in key or read(tmp_path, off, "run.yaml").config["vocab_size"] == 1008


def test_settings_that_other_settings_name(tmp_path):
    """OmegaConf: ${a.b} from the root, ${.b} of the same table; what is not known stays text."""
    text = """
length: 2048
model:
  encoder_seq_length: ${length}
  max_position_embeddings: ${.encoder_seq_length}
  hidden_size: ${..length}
"""
    found = read(tmp_path, text, "nemo.yaml")
    assert found.run["sequence"] == found.config["max_position_embeddings"] == 2048
    assert found.config["hidden_size"] == 2048
    others = entries("a: 1\nb:\n  c:\n    d: ${..a}\n", "other.yaml")
    assert [one.value for one in others] == [1, "${..a}"]  # of b, which has none
    with pytest.raises(InputError, match=r"'\$\{model.encoder_seq_length\}' is not accepted"):
        read(tmp_path, text.replace("${length}", "${model.encoder_seq_length}"), "nemo.yaml")


def test_nemo_that_casts_keeps_weights_in_single_precision(tmp_path):
    text = NEMO.replace("NAME", "adam").replace("MORE", "megatron_amp_O2: false")
    assert read(tmp_path, text, "nemo.yaml").run["policy"] == "bf16-fsdp"
    text = NEMO.replace("NAME", "adam, dtype: bf16").replace("MORE", "megatron_amp_O2: true")
    found = read(tmp_path, text, "nemo.yaml")
    assert "policy" not in found.run
    assert found.open == ("model.optim.dtype",)


NANOTRON = """
model:
  dtype: bfloat16
  make_vocab_size_divisible_by: 2
  model_config: {hidden_size: 64, vocab_size: 1001}
optimizer: {optimizer_factory: {name: NAME}}
parallelism: {tp: 4, pp: 2}
"""


def test_nanotron(tmp_path):
    """nanotron/models/base.py: vocabularies in multiples of what is said and the ranks of tp."""
    found = read(tmp_path, NANOTRON.replace("NAME", "adamW"), "run.yaml")
    assert found.config["vocab_size"] == 1008
    assert "optimizer.optimizer_factory.name" not in found.open
    assert found.run["schedule"] == "gpipe"  # all forward passes first, unless it says otherwise
    said = NANOTRON.replace("NAME", "adamW").replace("tp: 4", "tp: 4, pp_engine: 1f1b")
    assert read(tmp_path, said, "run.yaml").run["schedule"] == "1f1b"
    alone = NANOTRON.replace("NAME", "adamW").replace(", pp: 2", "")
    assert "schedule" not in read(tmp_path, alone, "run.yaml").run
    with pytest.raises(InputError, match="say the optimizer"):
        read(tmp_path, NANOTRON.replace("NAME", "sgd"), "run.yaml")


def test_values_on_the_next_line_and_defaults_of_variables(tmp_path):
    text = GPT.replace("--hidden-size 96", "--hidden-size \\\n    $WIDTH").replace(
        "--num-layers 8", "--num-layers ${LAYERS:=$COUNT}"
    )
    own = 'declare -i WIDTH=96\nCOUNT=${DEPTH:-"16"}'
    found = read(tmp_path, f"#!/bin/bash\n{own}\n{text}", "run.sh")
    assert found.config["hidden_size"] == 96
    assert found.config["num_hidden_layers"] == 16


def test_what_a_file_says_of_its_stages_goes_with_its_strategy(tmp_path):
    staged = f"{GPT} --pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 2"
    assert read(tmp_path, staged, "run.sh").run["layers_per_chunk"] == 2
    path = str(tmp_path / "run.sh")
    own = sc.job(path)
    assert own.training.schedule == "interleaved"
    assert own.numbers["v"] == 2
    other = sc.job(path, "tp=2,dp=2")
    assert other.training.schedule == "1f1b"
    assert "v" not in other.numbers
    read(tmp_path, staged.replace("--pipeline-model-parallel-size 2", ""), "run.sh")
    with pytest.raises(InputError, match="schedule 'interleaved' is of the stages of pp"):
        sc.job(path)


@pytest.mark.parametrize(
    ("said", "stack"),
    [
        ("export CUDA_LAUNCH_BLOCKING=1", "megatron-deepspeed-blocking"),
        ("WAITS=1\nexport CUDA_LAUNCH_BLOCKING=$WAITS", "megatron-deepspeed-blocking"),
        ("export CUDA_LAUNCH_BLOCKING=0", "megatron-deepspeed"),
        ("# export CUDA_LAUNCH_BLOCKING=1", "megatron-deepspeed"),
        ("export NO_CUDA_LAUNCH_BLOCKING=1", "megatron-deepspeed"),
    ],
)
def test_a_host_that_waits_for_kernels(tmp_path, said, stack):
    text = f"#!/bin/bash\n{said}\n{GPT}"
    found = read(tmp_path, f"{text} --deepspeed", "run.sh")
    assert found.run["stack"] == stack
    alone = read(tmp_path, text, "run.sh")
    assert alone.run["stack"] == "megatron-core-own-loss"
    waits = stack == "megatron-deepspeed-blocking"
    assert any("CUDA_LAUNCH_BLOCKING is not read" in note for note in alone.notes) is waits


def test_megatron_without_a_global_batch_takes_one_microbatch_of_every_replica(tmp_path):
    own = read(tmp_path, GPT.replace("--global-batch-size 64 ", ""), "run.sh")
    assert own.run["microbatches"] == 1
    job = sc.job(str(tmp_path / "run.sh"), "dp=2", system="h100")
    assert job.time().setup.training.microbatches == 1


@pytest.mark.parametrize(
    ("more", "reshard"), [('"never"', 1), ('"always"', 0), ('"default"', 0), ("", 0)]
)
def test_torchtitan_says_what_weights_are_after_forward(more, reshard, tmp_path):
    said = f"fsdp_reshard_after_forward = {more}\n" if more else ""
    (tmp_path / "titan.toml").write_text(TITAN + said, encoding="utf-8")
    assert sc.job(str(tmp_path / "titan.toml"), recompute="none").strategy.reshard == reshard


def test_torchtitan_refuses_another_word(tmp_path):
    with pytest.raises(InputError, match="always, never, default are read"):
        read(tmp_path, TITAN + 'fsdp_reshard_after_forward = "often"\n', "titan.toml")


def step(path, **options):
    return sc.job(str(path), system="h100", **options).time().step


@pytest.mark.slow
def test_what_a_file_hides_decides_its_step(tmp_path):
    """Fewer switches hide less; who says an overlap, or another's software, has the last word."""
    path, steps = tmp_path / "run.sh", []
    large = GPT.replace("-size 96", "-size 8192").replace("-length 128", "-length 4096")
    dp, tp = "--overlap-grad-reduce --overlap-param-gather ", "--tp-comm-overlap"
    for more in (dp + tp, dp, "--overlap-grad-reduce", ""):
        path.write_text(f"{large}--use-distributed-optimizer {more}", encoding="utf-8")
        steps.append(step(path))
    assert steps == sorted(set(steps))
    assert step(path, overlap="dp=full,tp=partial=0.75") == steps[0]
    assert step(path, overlap="dp=full") == steps[1]
    assert {"dp", "tp"} == set(sc.job(str(path), system="h100").methods.overlaps)
    assert sc.job(str(path), system="h100", stack="torchtitan").methods.overlaps == {}
    assert set(sc.job(str(path), "dp=2", system="h100").methods.overlaps) == {"dp"}


@pytest.mark.parametrize(
    ("more", "hidden"),
    [
        ("bias: true", "tp=gradients,pp=none,dp=gradients"),
        ("ub_tp_comm_overlap: true, overlap_p2p_comm: true", "dp=gradients"),
    ],
)
def test_nemo_hides_what_its_defaults_do(more, hidden, tmp_path):
    text = NEMO.replace("NAME", "distributed_fused_adam").replace("MORE", more)
    assert read(tmp_path, text, "run.yaml").run["overlap"] == hidden
    told = text.replace("{name: ", "{overlap_grad_sync: false, name: ")
    assert read(tmp_path, told, "run.yaml").run["overlap"].endswith("dp=none")


@pytest.mark.parametrize("quoted", ['"core_attn moe_act"', "'core_attn moe_act'"])
def test_a_quoted_value_may_hold_spaces(quoted):
    text = f'A="--bf16 " ; run "$A" --recompute-modules {quoted} --data-path "0.5 /a 0.5 /b" --x\n'
    read = {one.key: one.value for one in script_entries(text, Path("run.sh"))}
    assert read["--recompute-modules"] == "core_attn moe_act"
    assert read["--data-path"] == "0.5 /a 0.5 /b"
    assert read["--bf16"] is True


LATENT = """run --num-layers 4 --hidden-size 64 --num-attention-heads 4 --multi-latent-attention
--kv-lora-rank 16 --qk-head-dim 16 --qk-pos-emb-head-dim 8 --v-head-dim 16 --seq-length 128
--vocab-size 128 --normalization RMSNorm --disable-bias-linear --position-embedding-type rope
--qk-layernorm --swiglu --ffn-hidden-size 128 --untie-embeddings-and-output-weights MORE"""


def test_latent_attention_has_widths_of_its_own(tmp_path):
    """Channels of keys and values, which launch scripts of DeepSeek say, are those of no op."""
    text = LATENT.replace("\n", " ")
    models = [
        read(tmp_path, text.replace("MORE", more), "run.sh").model()
        for more in ("", "--kv-channels 16")
    ]
    assert sc.job(models[0]).total("params") == sc.job(models[1]).total("params")


OLD = (
    "run --num-layers 8 --hidden-size 64 --num-attention-heads 4 --max-position-embeddings 128 "
    "--seq-length 128 --vocab-size 128 --micro-batch-size 1 --tensor-model-parallel-size 2 --bf16 "
)


@pytest.mark.parametrize(
    ("more", "policy"),
    [
        ("--activations-checkpoint-method uniform", "full"),
        (
            "--activations-checkpoint-method uniform --activations-checkpoint-num-layers 2",
            "full/2",
        ),
        ("--checkpoint-activations --checkpoint-num-layers 4", "full/4"),
        ("--activations-checkpoint-method block --activations-checkpoint-num-layers 8", "full"),
    ],
)
def test_what_megatron_of_2021_recomputes(more, policy, tmp_path):
    assert read(tmp_path, OLD + more, "run.sh").run["recompute"] == policy


def test_some_of_the_layers_are_refused(tmp_path):
    with pytest.raises(InputError, match="uniform is read: block recomputes some of the layers"):
        read(tmp_path, OLD + "--activations-checkpoint-method block", "run.sh")


MEGATRON_DEEPSPEED = OLD + "--deepspeed --zero-stage 1 --nnodes 2 --nproc-per-node 8 "


def test_megatron_deepspeed(tmp_path):
    found = read(tmp_path, MEGATRON_DEEPSPEED + "--ds-sequence-parallel-size 2", "run.sh")
    assert found.strategy == "tp=2,ulysses=2,dp=4,zero=1"
    assert (found.run["stack"], found.run["attention"]) == ("megatron-deepspeed", "eager")
    assert (found.run["policy"], "overlap" in found.run) == ("bf16-gradients", False)
    fused = read(
        tmp_path, MEGATRON_DEEPSPEED + "--use-flash-attn-v2 --num-key-value-heads 2", "run.sh"
    )
    assert fused.run["attention"] == "flash"
    assert fused.config["num_key_value_heads"] == 2
    assert sc.job(fused.model()).values["k"] == 2


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("--num-experts 8", "experts of Megatron-DeepSpeed are not read"),
        ("--embed-layernorm", "a norm behind the embedding"),
        ("--cpu-optimizer", "say offload= of the job"),
    ],
)
def test_what_of_megatron_deepspeed_is_refused(more, told, tmp_path):
    with pytest.raises(InputError, match=told):
        read(tmp_path, MEGATRON_DEEPSPEED + more, "run.sh")


@pytest.mark.parametrize(
    ("width", "read_as"),
    [
        ("${multiply:4, ${.hidden_size}}", 256),
        ("${multiply:2,${model.hidden_size}}", 128),
        ("${multiply:2,${.none}}", "${multiply:2,${.none}}"),
    ],
)
def test_products_of_settings(width, read_as):
    text = f"model:\n  hidden_size: 64\n  ffn_hidden_size: {width}\n"
    assert [one.value for one in entries(text, "run.yaml")] == [64, read_as]


@pytest.mark.parametrize(
    "trainer",
    [
        "{train_batch_size: 8}",
        "{tensor_parallel_axes: [mlp, heads], fsdp_axis: embed}",
        "{mesh: {axes: {data: -1, model: 2}}}",
    ],
)
def test_files_of_levanter_are_refused(trainer, tmp_path):
    """Its `tensor_parallel_axes` split some axes of a model; the chips are counted at run time."""
    text = f"model: {{type: llama, hidden_dim: 64, num_layers: 2}}\ntrainer: {trainer}\n"
    with pytest.raises(InputError, match="of Levanter, which splits named axes over chips"):
        read(tmp_path, text, "run.yaml")


@pytest.mark.parametrize("more", ["mixed_precision: bf16_mixed", "train: {global_batch_size: 8}"])
def test_a_file_that_changes_a_recipe_in_python_is_refused(more, tmp_path):
    """Megatron-Bridge names some of its keys as NeMo does, and has the rest in Python."""
    text = f"model: {{tensor_model_parallel_size: 2}}\n{more}\n"
    with pytest.raises(InputError, match="whose files change a recipe in Python"):
        read(tmp_path, text, "run.yaml")
