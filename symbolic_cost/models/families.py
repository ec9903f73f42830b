"""The registry of families: which builder reads which model_type.

A builder is a function of (Fields, Shape) named as "module:function" inside this package, so that
only the module of the family that is asked for is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """One family.

    Args:
        builder: "module:function".
        heads: accepted names of `architectures[0]`, the usual one first.
        aliases: other names of fields that only this family uses.
        defaults: sizes of fields that its configurations leave out.
        section: key of the object that holds the fields, of a model with several parts.
        ignored: keys that say what holds for the whole family.
    """

    builder: str
    heads: tuple[str, ...]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, int] = field(default_factory=dict)
    section: str = ""
    ignored: tuple[str, ...] = ()


def _decoder(prefix: str, function: str = "build") -> Family:
    return Family(f"decoder_config:{function}", (f"{prefix}ForCausalLM", f"{prefix}Model"))


_GEMMA_3 = {"num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 262208}

FAMILIES: dict[str, Family] = {
    "megatron": Family("megatron_config:build", ("GPTLMHeadModel",)),
    "gpt2": Family("decoder_config:build", ("GPT2LMHeadModel", "GPT2Model")),
    "opt": _decoder("OPT", "opt"),
    "bloom": _decoder("Bloom"),
    "gpt_neox": _decoder("GPTNeoX", "gpt_neox"),
    "gptj": _decoder("GPTJ"),
    "falcon": _decoder("Falcon", "falcon"),
    "llama": _decoder("Llama"),
    "mistral": _decoder("Mistral"),
    "mixtral": _decoder("Mixtral"),
    "qwen2": _decoder("Qwen2"),
    "qwen3": _decoder("Qwen3"),
    "qwen3_moe": _decoder("Qwen3Moe"),
    "gemma": _decoder("Gemma"),
    "gemma2": _decoder("Gemma2"),
    "gemma3_text": Family(
        "decoder_config:build", ("Gemma3ForCausalLM", "Gemma3TextModel"), defaults=_GEMMA_3
    ),
    # The language model of those that also see images.
    "gemma3": Family(
        "decoder_config:build",
        ("Gemma3ForCausalLM", "Gemma3TextModel"),
        defaults=_GEMMA_3,
        section="text_config",
    ),
    "phi": _decoder("Phi"),
    "phi3": _decoder("Phi3"),
    "stablelm": _decoder("StableLm", "stablelm"),
    "starcoder2": Family(
        "decoder_config:build",
        ("Starcoder2ForCausalLM", "Starcoder2Model"),
        ignored=("mlp_type", "norm_type"),
    ),
    "granite": _decoder("Granite"),
    "deepseek_v2": _decoder("DeepseekV2", "deepseek"),
    "deepseek_v3": Family(
        "decoder_config:deepseek",
        # The last one has the blocks that predict further tokens as well.
        ("DeepseekV3ForCausalLM", "DeepseekV3Model", "DeepseekV3ForCausalLMNextN"),
    ),
    "gpt_oss": _decoder("GptOss"),
    "olmo": _decoder("Olmo"),
    "olmo2": _decoder("Olmo2"),
    "olmoe": _decoder("Olmoe"),
    "cohere": _decoder("Cohere", "cohere"),
    "bert": Family("bert:build", ("BertModel", "BertForMaskedLM", "BertForPreTraining")),
    "roberta": Family("bert:build", ("RobertaForMaskedLM", "RobertaModel")),
    "xlm-roberta": Family("bert:build", ("XLMRobertaForMaskedLM", "XLMRobertaModel")),
    "camembert": Family("bert:build", ("CamembertForMaskedLM", "CamembertModel")),
    "t5": Family("t5:build", ("T5ForConditionalGeneration",)),
    "mt5": Family("t5:build", ("MT5ForConditionalGeneration",)),
    "vit": Family("vit:build", ("ViTForImageClassification", "ViTModel")),
    "resnet": Family("cnn_config:build", ("ResNetForImageClassification",)),
    "mamba": Family("mamba:build", ("MambaForCausalLM",), {"intermediate_size": ("d_inner",)}),
    "mamba2": Family("mamba2:build", ("Mamba2ForCausalLM",)),
}
"""Every family by model_type."""
