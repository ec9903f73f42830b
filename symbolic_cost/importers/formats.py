"""The formats that are understood: which key means what, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MEGATRON_MODEL = "megatron"
"""model_type of decoders whose every trait is a setting."""


@dataclass(frozen=True)
class Format:
    """One format.

    Args:
        name: of the tool.
        marks: keys of which a file of the format has at least one.
        keys: what a key sets: "config.", "degrees." or "run." and a name, or "switches.".
        implied: settings of a model that the format does not spell out.
    """

    name: str
    marks: tuple[str, ...]
    keys: Mapping[str, str]
    implied: Mapping[str, Any] = field(default_factory=dict)


MEGATRON = Format(
    "Megatron-LM",
    ("--tensor-model-parallel-size", "--num-layers", "--hidden-size"),
    {
        "--num-layers": "config.num_hidden_layers",
        "--hidden-size": "config.hidden_size",
        "--ffn-hidden-size": "config.intermediate_size",
        "--num-attention-heads": "config.num_attention_heads",
        "--num-query-groups": "config.num_key_value_heads",
        "--kv-channels": "config.head_dim",
        "--max-position-embeddings": "config.max_position_embeddings",
        "--vocab-size": "config.vocab_size",
        "--padded-vocab-size": "config.vocab_size",
        "--swiglu": "config.gated",
        "--normalization": "config.normalization",
        "--disable-bias-linear": "config.no_bias",
        "--add-qkv-bias": "config.qkv_bias",
        "--qk-layernorm": "config.qk_norm",
        "--position-embedding-type": "config.position_embedding",
        "--untie-embeddings-and-output-weights": "config.untied",
        "--hidden-dropout": "config.resid_pdrop",
        "--attention-dropout": "config.attn_pdrop",
        "--num-experts": "config.num_experts",
        "--moe-router-topk": "config.num_experts_per_tok",
        "--moe-ffn-hidden-size": "config.moe_intermediate_size",
        "--make-vocab-size-divisible-by": "run.vocab_multiple",
        "--tensor-model-parallel-size": "degrees.tp",
        "--pipeline-model-parallel-size": "degrees.pp",
        "--context-parallel-size": "degrees.cp",
        "--expert-model-parallel-size": "degrees.ep",
        "--sequence-parallel": "switches.sp",
        "--use-distributed-optimizer": "degrees.zero",
        "--zero-stage": "degrees.zero",
        "--micro-batch-size": "run.micro_batch",
        "--global-batch-size": "run.global_batch",
        "--seq-length": "run.sequence",
        "--num-layers-per-virtual-pipeline-stage": "run.layers_per_chunk",
        "--recompute-activations": "run.recompute",
        "--recompute-granularity": "run.recompute",
        "--bf16": "run.bf16",
        "--fp16": "run.fp16",
        "--nproc-per-node": "run.ranks_per_node",
        "--nnodes": "run.nodes",
    },
    {"model_type": MEGATRON_MODEL},
)

NEMO = Format(
    "NeMo",
    ("model.encoder_seq_length", "model.tensor_model_parallel_size"),
    {
        "model.num_layers": "config.num_hidden_layers",
        "model.hidden_size": "config.hidden_size",
        "model.ffn_hidden_size": "config.intermediate_size",
        "model.num_attention_heads": "config.num_attention_heads",
        "model.num_query_groups": "config.num_key_value_heads",
        "model.kv_channels": "config.head_dim",
        "model.max_position_embeddings": "config.max_position_embeddings",
        "model.vocab_size": "config.vocab_size",
        "model.override_vocab_size": "config.vocab_size",
        "model.activation": "config.hidden_act",
        "model.make_vocab_size_divisible_by": "run.vocab_multiple",
        "model.normalization": "config.normalization",
        "model.bias": "config.bias",
        "model.position_embedding_type": "config.position_embedding",
        "model.share_embeddings_and_output_weights": "config.tie_word_embeddings",
        "model.hidden_dropout": "config.resid_pdrop",
        "model.attention_dropout": "config.attn_pdrop",
        "model.tensor_model_parallel_size": "degrees.tp",
        "model.pipeline_model_parallel_size": "degrees.pp",
        "model.context_parallel_size": "degrees.cp",
        "model.expert_model_parallel_size": "degrees.ep",
        "model.sequence_parallel": "switches.sp",
        "model.micro_batch_size": "run.micro_batch",
        "model.global_batch_size": "run.global_batch",
        "model.encoder_seq_length": "run.sequence",
        "model.activations_checkpoint_granularity": "run.recompute",
        "trainer.precision": "run.precision",
        "trainer.devices": "run.ranks_per_node",
        "trainer.num_nodes": "run.nodes",
    },
    {"model_type": MEGATRON_MODEL},
)

NANOTRON = Format(
    "nanotron",
    ("parallelism.tp", "model.model_config.hidden_size"),
    {
        **{
            f"model.model_config.{name}": f"config.{name}"
            for name in (
                "hidden_size",
                "intermediate_size",
                "num_attention_heads",
                "num_hidden_layers",
                "num_key_value_heads",
                "vocab_size",
                "tie_word_embeddings",
                "hidden_act",
            )
        },
        "parallelism.tp": "degrees.tp",
        "parallelism.pp": "degrees.pp",
        "parallelism.dp": "degrees.dp",
        "parallelism.context_parallel_size": "degrees.cp",
        "parallelism.expert_parallel_size": "degrees.ep",
        "optimizer.zero_stage": "degrees.zero",
        "parallelism.tp_mode": "switches.sp",
        "tokens.micro_batch_size": "run.micro_batch",
        "tokens.sequence_length": "run.sequence",
        "tokens.batch_accumulation_per_replica": "run.microbatches",
        "model.dtype": "run.precision",
    },
    {"model_type": "llama"},
)

DEEPSPEED = Format(
    "DeepSpeed",
    ("train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization.stage"),
    {
        "train_batch_size": "run.global_batch",
        "train_micro_batch_size_per_gpu": "run.micro_batch",
        "gradient_accumulation_steps": "run.microbatches",
        "zero_optimization.stage": "degrees.zero",
        "tensor_parallel.autotp_size": "degrees.tp",
        "bf16.enabled": "run.bf16",
        "fp16.enabled": "run.fp16",
    },
)

CALCULON = Format(
    "Calculon",
    ("attn_heads", "num_blocks", "tensor_par"),
    {
        "hidden": "config.hidden_size",
        "feedforward": "config.intermediate_size",
        "attn_heads": "config.num_attention_heads",
        "attn_size": "config.head_dim",
        "num_blocks": "config.num_hidden_layers",
        "seq_size": "run.sequence",
        "tensor_par": "degrees.tp",
        "pipeline_par": "degrees.pp",
        "data_par": "degrees.dp",
        "optimizer_sharding": "degrees.zero",
        "batch_size": "run.global_batch",
        "microbatch_size": "run.micro_batch",
        "datatype": "run.precision",
        "activation_recompute": "run.recompute",
        "num_procs": "run.ranks",
    },
    # Its models have neither: Megatron's padded vocabulary is taken, and no position table.
    {"model_type": MEGATRON_MODEL, "vocab_size": 51200, "position_embedding": "none"},
)

LLM_ANALYSIS = Format(
    "llm-analysis",
    ("hidden_dim", "ffn_embed_dim"),
    {
        "num_layers": "config.num_hidden_layers",
        "n_head": "config.num_attention_heads",
        "hidden_dim": "config.hidden_size",
        "vocab_size": "config.vocab_size",
        "ffn_embed_dim": "config.intermediate_size",
        "num_key_value_heads": "config.num_key_value_heads",
        "mlp_gated_linear_units": "config.gated",
        "moe_num_experts": "config.num_experts",
        "moe_top_k": "config.num_experts_per_tok",
        "max_seq_len": "config.max_position_embeddings",
    },
    {"model_type": MEGATRON_MODEL, "position_embedding": "rope", "bias": False, "untied": True},
)

PUBLISHED = Format("config.json", ("model_type",), {})
"""A published model: taken as it is."""

TREES = (NEMO, NANOTRON, DEEPSPEED, CALCULON, LLM_ANALYSIS)
"""Formats of JSON and YAML files."""
