"""What each method of `quantization_config` stores: which layers, and in which format."""

from collections.abc import Callable, Mapping

from symbolic_cost.models.converted import Formats, all_but, experts, heads, linear
from symbolic_cost.models.quantization_groups import compressed, modelopt
from symbolic_cost.models.quantization_keys import Keys
from symbolic_cost.models.weight_formats import (
    MICROSCALED,
    ONE,
    SINGLE,
    Share,
    floats,
    four_bits,
    grouped,
    scaled,
)
from symbolic_cost.ops.graph import Model

_FILED = scaled("int8", ONE, Share.RESULT, SINGLE, whole=1, source="dettmers-2022")
"""8 bits with a scale for each result feature; files say in a byte how they lie."""


def _bitsandbytes(keys: Keys, model: Model) -> Formats:
    keys.costless(
        *("bnb_4bit_compute_dtype", "bnb_4bit_quant_storage", "llm_int8_threshold"),
        "llm_int8_enable_fp32_cpu_offload",
    )
    keys.stays_off("llm_int8_has_fp16_weight")
    four, eight = (keys.flag(f"load_in_{n}bit") for n in (4, 8))
    kind = keys.one_of("bnb_4bit_quant_type", "fp4", ("fp4", "nf4"))
    double = keys.flag("bnb_4bit_use_double_quant")
    if four == eight:
        keys.problems.append(f"{keys.where}: one of load_in_4bit and load_in_8bit is accepted")
    skipped = keys.names("llm_int8_skip_modules")
    chosen = four_bits(kind, double=double) if four else _FILED
    return all_but(keys, model, skipped, chosen, head=skipped is not None)


def _gptq(keys: Keys, model: Model) -> Formats:
    keys.costless(
        *("sym", "desc_act", "static_groups", "true_sequential", "damp_percent", "dataset"),
        *("model_name_or_path", "model_file_base_name", "tokenizer", "batch_size", "backend"),
        *("pad_token_id", "use_cuda_fp16", "model_seqlen", "use_exllama", "max_input_length"),
        *("exllama_config", "cache_block_outputs", "meta", "quantizer", "block_name_to_quantize"),
        *("module_name_preceding_first_block", "disable_exllama", "version", "hyb_act"),
    )
    keys.one_of("checkpoint_format", "gptq", ("gptq", "gptq_v2"))
    keys.stays_off("is_marlin_format")
    keys.one_of("pack_dtype", "int32", ("int32",))
    head = keys.flag("lm_head")
    bits, group = keys.one_of("bits", 4, (2, 3, 4, 8)), keys.group("group_size", 128)
    chosen = grouped(bits, group, indexed=True)
    return {
        path: chosen
        for path, part, *_ in linear(model)
        if part.is_block or (head and path in heads(model))
    }


def _awq(keys: Keys, model: Model) -> Formats:
    keys.costless(
        *("zero_point", "backend", "do_fuse", "fuse_max_seq_len", "modules_to_fuse"),
        "exllama_config",
    )
    vectors = keys.one_of("version", "gemm", ("gemm", "GEMM", "gemv", "GEMV")).lower() == "gemv"
    bits, group = keys.one_of("bits", 4, (4,)), keys.group("group_size", 128)
    # Kernels of vectors take zeros of eight groups, of 1024 features at least, in words.
    words = max(8 * group, 1024) if vectors and group > 0 else 0
    chosen = grouped(bits, group, indexed=False, words=words)
    return all_but(keys, model, keys.names("modules_to_not_convert"), chosen, head=False)


def _fp8(keys: Keys, model: Model) -> Formats:
    keys.costless("fmt")
    static = keys.one_of("activation_scheme", "dynamic", ("dynamic", "static")) == "static"
    if keys.config.get("scale_fmt") != "ue8m0":  # files hold such scales in one byte or in four
        keys.one_of("scale_fmt", "float", ("float",))
    keys.one_of("expert_dtype", "fp8", ("fp8",))
    sides = keys.sizes("weight_block_size")
    if "weight_block_size" not in keys.config:
        sides = (128, 128)
    if (sides is None or static) and experts(model):  # files hold one for an expert, or for all
        keys.problems.append(f"{keys.where}: experts with one scale for a weight are not declared")
    skipped = keys.names("modules_to_not_convert")
    chosen = floats(sides, inputs=static)
    return all_but(keys, model, skipped, chosen, head=skipped is not None)


def _mxfp4(keys: Keys, model: Model) -> Formats:
    skipped = keys.names("modules_to_not_convert")
    chosen = all_but(keys, model, skipped, MICROSCALED, head=False)
    routed = experts(model)
    return {path: one for path, one in chosen.items() if path in routed}


METHODS: Mapping[str, Callable[[Keys, Model], Formats]] = {
    "bitsandbytes": _bitsandbytes,
    "gptq": _gptq,
    "awq": _awq,
    "fp8": _fp8,
    "mxfp4": _mxfp4,
    "compressed-tensors": compressed,
    "modelopt": modelopt,
}
"""Formats by path, of every method that is understood."""
