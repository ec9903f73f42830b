"""Make torch_saved_values.json: what autograd keeps where a value of a configuration decides it.

    python make_saved_values.py > torch_saved_values.json      # needs torch and transformers

Saved bytes are the storages that autograd packs in a forward pass with its loss, each once, without
those of parameters and buffers; experts run one by one. Masks are of the type of values on a CPU.
"""

import copy
import json
import sys

import torch
import transformers

B, L = 3, 20
SIZES = {
    "vocab_size": 101, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
    "tie_word_embeddings": False, "pad_token_id": 0,
}  # fmt: skip
ONE = {**SIZES, "num_key_value_heads": 1, "sliding_window": 8}
MIXED = ["sliding_attention", "full_attention"]
GEMMA = {**SIZES, "head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16}
PHI = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "rope_parameters": {"partial_rotary_factor": 1.0}}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
BERT = {
    **SIZES, "model_type": "bert", "architectures": ["BertForMaskedLM"],
    "tie_word_embeddings": True, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
BERT.pop("num_key_value_heads")
GPT = {
    "vocab_size": 101, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
CASES = [
    {**GEMMA, "model_type": "gemma2", "attn_logit_softcapping": None},
    {**GEMMA, "model_type": "gemma2", "final_logit_softcapping": None},
    {**GEMMA, "model_type": "gemma3_text", "layer_types": MIXED},
    {**SIZES, "model_type": "olmo", "clip_qkv": 8.0},
    {**SIZES, "model_type": "olmoe", "num_experts": 4, "num_experts_per_tok": 2, "clip_qkv": 8.0,
     "norm_topk_prob": True},
    {**SIZES, **EXPERTS, "model_type": "qwen3_moe", "norm_topk_prob": True, "head_dim": 16},
    {**BERT, "hidden_act": "relu"},
    {**BERT, "hidden_act": "gelu_new"},
    {**ONE, "model_type": "mistral"},
    {**ONE, "model_type": "starcoder2", "residual_dropout": 0.0, "embedding_dropout": 0.0},
    {**ONE, "model_type": "qwen2", "use_sliding_window": True, "layer_types": MIXED},
    {**ONE, **PHI, "model_type": "phi3"},
    {**GPT, "model_type": "gpt_bigcode"},
    {**GPT, "model_type": "gpt_bigcode", "multi_query": False},
    {**SIZES, "model_type": "lfm2", "block_ff_dim": 96, "block_auto_adjust_ff_dim": False,
     "conv_L_cache": 3, "layer_types": ["conv", "full_attention"]},
    {**SIZES, **PHI, "model_type": "phi3", "hidden_act": "relu"},
    {**SIZES, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2,
     "hidden_act": "relu"},
    {**GPT, "model_type": "gpt2", "reorder_and_upcast_attn": True},
    {"model_type": "opt", "vocab_size": 101, "hidden_size": 64, "ffn_dim": 96, "dropout": 0.0,
     "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64,
     "layer_norm_elementwise_affine": False, "word_embed_proj_dim": 64, "pad_token_id": 1},
]  # fmt: skip

DROPPED = [
    {**SIZES, "model_type": "llama", "attention_dropout": 0.1},
    {**SIZES, "model_type": "starcoder2", "residual_dropout": 0.1, "embedding_dropout": 0.1,
     "attention_dropout": 0.1},
    {**SIZES, "model_type": "gpt_neox", "hidden_dropout": 0.1, "attention_dropout": 0.0},
    {**SIZES, **PHI, "model_type": "phi3", "resid_pdrop": 0.1, "embd_pdrop": 0.1},
    {**SIZES, "model_type": "stablelm", "hidden_dropout": 0.1, "partial_rotary_factor": 0.5},
]  # fmt: skip
for _config in DROPPED[2:3]:
    _config.pop("num_key_value_heads")


def run(config, attention, dtype):
    """Sum what one forward pass keeps."""
    torch.manual_seed(0)
    own = transformers.AutoConfig.for_model(**copy.deepcopy(config))
    own._attn_implementation = attention  # noqa: SLF001 - as configurations are asked
    own._experts_implementation = "eager"  # noqa: SLF001 - experts one by one
    masked = config["model_type"] == "bert"
    kind = transformers.AutoModelForMaskedLM if masked else transformers.AutoModelForCausalLM
    model = kind.from_config(own).to(dtype).train()
    model.set_attn_implementation(attention)
    ids = torch.randint(3, 100, (B, L))
    inputs = {"input_ids": ids, "labels": ids.clone()} | ({} if masked else {"use_cache": False})
    weights = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = (storage.nbytes(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        model(**inputs)
    return sum(size for size, _ in kept.values())


def runs(config):
    """Every run of a configuration; Gemma 2 has no fused attention, nor has dropout on a CPU."""
    plain = config["model_type"] == "gemma2" or config in DROPPED
    kinds = ("eager",) if plain else ("eager", "sdpa")
    return [
        {
            "attention": attention,
            "dtype": str(dtype).removeprefix("torch."),
            "bytes": run(config, attention, dtype),
        }
        for attention in kinds
        for dtype in (torch.float32, torch.bfloat16)
    ]


def main():
    """Write all of them."""
    versions = {m.__name__: m.__version__ for m in (torch, transformers)}
    families = [
        {"config": config, "runs": runs(config), "dropped": config in DROPPED}
        for config in (*CASES, *DROPPED)
    ]
    made = {"versions": versions, "b": B, "l": L, "families": families}
    sys.stdout.write(json.dumps(made, separators=(",", ":")))


if __name__ == "__main__":
    main()
