"""Weights in few bits: the `quantization_config` of a configuration, or a format by name.

Linear layers of blocks are stored so, experts as linear layers are; biases, norms, tables, routers
and convolutions are not.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sympy import Expr, Integer, ceiling

from symbolic_cost.algebra import add, mul
from symbolic_cost.axes import Role
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError, looked_up, quote
from symbolic_cost.models.bound import bound
from symbolic_cost.models.converted import (
    JOINED,
    Formats,
    all_but,
    experts,
    heads,
    held_as_one,
    joined,
    linear,
)
from symbolic_cost.models.quantization_groups import compressed, modelopt
from symbolic_cost.models.quantization_keys import Keys
from symbolic_cost.models.weight_formats import (
    FORMATS,
    MICROSCALED,
    ONE,
    SINGLE,
    Format,
    Share,
    floats,
    four_bits,
    grouped,
    scaled,
    sides_of,
)
from symbolic_cost.ops import counting
from symbolic_cost.ops.declare import Model, Op, Operand, Part
from symbolic_cost.ops.placement import WHOLE
from symbolic_cost.ops.stored import Scale, Stored
from symbolic_cost.ops.trained import Key, key_of

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
        if (part.is_block and _in_words(path)) or (head and path in heads(model))
    }


def _in_words(path: str) -> bool:
    """Return whether a linear layer has whole words of results, in a block of a language model."""
    return path.partition(".")[0] not in ("vision", "audio") and not path.endswith("shared_gate")


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
    names = ("mlp.shared_expert_gate", *(keys.names("modules_to_not_convert") or ()))
    return all_but(keys, model, names, chosen, head=False)


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


def stored_as(model: Model, name: str) -> Model:
    """Return a model whose linear layers, but for output heads, are stored in a format.

    Raises:
        UnknownNameError: no such format.
    """
    weight_format = looked_up("format of weights", name, FORMATS)
    formats = {path: weight_format for path, *_ in linear(model)}
    return _with(model, {path: one for path, one in formats.items() if path not in heads(model)})


def _with(model: Model, formats: Formats) -> Model:
    """Return a model with formats; weights that files hold as one share what is there once."""
    stored = {}
    for path, part, op, weight in linear(model):
        if path in formats:
            form, once = _form(op, weight, formats[path])
            left = tuple(scale for scale in form.scales if scale not in once)
            own = replace(form, scales=left) if joined(model.family, path) else form
            stored[key_of(part, weight)] = own
    return replace(model, stored=stored)


def _form(op: Op, weight: Operand, chosen: Format) -> tuple[Stored, tuple[Scale, ...]]:
    """Return the format of a weight, and the scales that all of its result features share."""
    form = chosen(op, weight)
    return form, form.once(sides_of(op, weight)[1])


def quantized(model: Model, config: Mapping[str, Any], where: str, width: int) -> Model:
    """Return a model whose weights are stored as a configuration says.

    Args:
        model: of the configuration.
        config: its `quantization_config`.
        where: place of that.
        width: of an element of all other weights [byte].

    Raises:
        InputError: every value that is none of those accepted.
    """
    model = replace(model, stored={})
    method = config.get("quant_method")
    if method is None and (config.get("load_in_4bit") or config.get("load_in_8bit")):
        method = "bitsandbytes"
    read = METHODS.get(method) if isinstance(method, str) else None
    if read is None:
        field = f"quantization_config.quant_method {quote(method)}"
        accepted = ", ".join(METHODS)
        return replace(model, unread=f"{field} is not understood: {accepted} are")
    keys = Keys(config, where, width)
    formats = read(keys, model)
    keys.close()
    if keys.problems:
        raise InputError(keys.problems)
    if keys.left:
        told = ", ".join(dict.fromkeys(keys.left))
        return replace(model, unread=f"quantization_config: {told} not understood")
    if method != "mxfp4" and (model.family not in JOINED or _cut(model, formats)):
        told = f"of {model.family}, which weights files hold as one"
        return replace(model, unread=f"quantization_config: {told}, is not understood")
    return _with(model, formats)


def _cut(model: Model, formats: Formats) -> bool:
    """Return whether weights that files hold as one do not end where blocks end.

    One of them may, as it stands at the end: of DeepSeek-V3, 64 of 512 + 64 result features.
    """
    sizes = bound(model).sizes
    ragged = Counter(
        (path.rpartition(".")[0], group, length)
        for path, _, op, weight in linear(model)
        if path in formats and (group := held_as_one(model.family, path))
        for scale in formats[path](op, weight).scales
        for places, length in scale.blocks
        if length is not None
        and {*sides_of(op, weight)[1]} & {*places}
        and mul(*(sizes[weight.axes[place]] for place in places)) % length != 0
    )
    return any(number > 1 for number in ragged.values())


def as_stored(model: Model) -> Model:
    """Return a model whose weights are held as they are stored.

    Raises:
        InputError: what of the configuration was not understood, or a model that says nothing.
    """
    if model.unread or not model.stored:
        reason = model.unread or "has no quantization_config"
        raise InputError(f"stored weights of model {model.name!r}: {reason}")
    parts = tuple(
        replace(part, ops=tuple(op.mapped(_marking(model, part)) for op in part.ops))
        for part in model.parts
    )
    return replace(model, parts=parts)


def _marking(model: Model, part: Part) -> Callable[[Operand], Operand]:
    def mark(operand: Operand) -> Operand:
        form = model.stored.get(key_of(part, operand)) if operand.is_weight else None
        return operand if form is None else replace(operand, stored=form)

    return mark


def bytes_by_format(model: Model, plain: str, size: int) -> dict[str, Expr]:
    """Return the bytes of all weights by format, scales included, each weight once [byte].

    Args:
        model: with what is stored in few bits.
        plain: name of the format of all others.
        size: of one element of these [byte].
    """
    counter = counting.Counter(model.sizes, WHOLE, STANDARD, model.padded, model.means)
    sums: dict[str, list[Expr]] = {}
    seen: set[Key] = set()
    for part in model.parts:
        for op in part.ops:
            for weight in op.weights:
                key = key_of(part, weight)
                times = Integer(1) if weight.tensor.startswith("@") else part.repeat
                form = model.stored.get(key)
                if key in seen:
                    continue
                seen.add(key)
                own = replace(weight, stored=form)
                each = size * counter.elements(weight.axes)
                if form:
                    experts = [a for a in weight.axes if model.axes[a].role is Role.EXPERT]
                    matrix = counter.elements(tuple(a for a in weight.axes if a not in experts))
                    # The last byte of a matrix of an odd number of halves holds one of them.
                    left = ceiling(form.size * matrix) - form.size * matrix
                    each = counter.bytes(own) + left * counter.elements(tuple(experts))
                sums.setdefault(form.name if form else plain, []).append(mul(times, each))
    return {name: add(*terms) for name, terms in sums.items()}
