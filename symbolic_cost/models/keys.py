"""Keys of configurations that no count depends on, and how the names of others look.

A key that a family does not read is refused if its name looks as if it changed a count.
"""

from __future__ import annotations

import re

_COSTLESS = (
    # Where it comes from and how it is stored.
    *("architectures", "auto_map", "model_type", "_.*", "name_or_path", "transformers_.*"),
    *("(torch_)?dtype", ".*version", "quantization_config", "torchscript", "use_bfloat16"),
    *("tokenizer_class", "task_specific_params", "finetuning_task", "prefix"),
    # Training: initial values, rates, losses.
    *("init.*", ".*_init_.*", ".*_std", ".*dropout(_p(rob)?)?", ".*drop", ".*_pdrop", ".*loss.*"),
    *("gradient_checkpointing", "pretraining_tp", "ep_size", "seq_aux", "aux_.*", "router_.*"),
    # Labels and generation.
    *("label2id", "id2label", "num_labels", "problem_type", ".*token_ids?", "bad_words_ids"),
    *("summary_.*", "output_.*", "return_.*", "use_cache", "cache_implementation", ".*penalty"),
    *("num_beams", "num_beam_groups", "num_return_sequences", ".*no_repeat_ngram_size"),
    *("n_special", "predict_special_tokens", "unk_index", "remove_invalid_values", "is_decoder"),
    # Positions that are computed, and lengths that nothing is learned for.
    *("rope", "rope_.*", "rotary.*", "partial_rotary_factor", ".*_theta", "offset_alibi"),
    *("(original_)?max_position_embeddings", "n_positions", "n_ctx", "seq(_)?length"),
    *("initial_context_length", "model_max_length"),
    # Constants and precisions of elementwise functions.
    *(".*_eps(ilon)?", ".*_?softcapping", ".*_multiplier", ".*_scal(e|ing)(_.*)?", "scale_.*"),
    *("logit.*", "query_pre_attn_scalar", "clip_qkv", "swiglu_.*", ".*_clamp.*", ".*fp32"),
    *(".*upcast.*", "hidden_act", "attention_softmax_in_fp32"),
    # How the same is computed.
    *(".*fusion", "use_flash_attn.*", "attn_implementation", "slow_but_exact", "skip_bias_.*"),
    *("chunk_size_feed_forward", "apply_residual_connection_post_layernorm"),
    # Which experts are chosen, not how many.
    *("norm_topk_prob", "topk_group", "n_group", "topk_method", "scoring_func"),
)
"""Names, as regular expressions matched whole."""

_STRUCTURAL = (
    *("(^|_)(num|n)_", "_size", "_dim", "_rank", "_?layers?", "heads?", "experts?", "width"),
    *("hidden", "inner", "bias", "norm", "mlp", "moe", "attn", "attention", "window", "expand"),
    *("ffn", "group", "gated", "vocab", "position", "conv", "lora", "tie", "text_", "vision_"),
    *("parallel", "residual", "query", "alibi", "cross"),
)
"""Parts of names, as regular expressions."""

_costless = re.compile("|".join(_COSTLESS))
_structural = re.compile("|".join(_STRUCTURAL))


def may_change_cost(key: str) -> bool:
    """Return whether the name of a key that is not read looks as if it changed a count."""
    return _structural.search(key) is not None and _costless.fullmatch(key) is None
