"""Weights in few bits: the `quantization_config` of a configuration, or a format by name.

Linear layers of blocks are stored so, experts as linear layers are; biases, norms, tables, routers
and convolutions are not. Tables of code words (16 and 256 values) are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sympy import Expr, Integer, Rational

from symbolic_cost.algebra import add, mul
from symbolic_cost.axes import At, Role
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError, looked_up, shown, unknown
from symbolic_cost.models.paths import WORDS, below, routes
from symbolic_cost.ops.counting import Counter
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.graph import Model, Part
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.placement import WHOLE
from symbolic_cost.ops.stored import Scale, Stored
from symbolic_cost.ops.trained import Key, key_of
from symbolic_cost.ops.unread import Unread

Format = Callable[[Op, Operand], Stored]
"""The format of a weight of an op."""

_HALF, _ONE, _SINGLE, _SHORT = Rational(1, 2), Integer(1), Integer(4), Integer(2)


def _sides(op: Op, weight: Operand) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the places of a weight's axes that its product sums over, and that it makes."""
    result, (x,) = op.outputs[0].axes, op.inputs
    summed = tuple(i for i, axis in enumerate(weight.axes) if axis not in result)
    result_axes = tuple(i for i, a in enumerate(weight.axes) if a in result and a not in x.axes)
    return summed, result_axes


def _four_bits(name: str, *, double: bool) -> Format:
    """Return a format of 4 bits with a scale for 64 elements, itself in 8 bits if double.

    Source: dettmers-2023.
    """

    def of(op: Op, weight: Operand) -> Stored:
        summed, rows = _sides(op, weight)
        every = (*summed, *rows)
        one = (Scale(_SINGLE, ((every, Integer(64)),)),)
        two = (
            Scale(_ONE, ((every, Integer(64)),)),
            Scale(_SINGLE, ((every, Integer(64 * 256)),)),
            Scale(_SINGLE, ((every, None),)),
        )
        return Stored(name, _HALF, two if double else one, "dettmers-2023")

    return of


def _rows(op: Op, weight: Operand) -> Stored:
    """Return 8 bits with a scale for each result feature."""
    summed, _ = _sides(op, weight)
    return Stored("int8", _ONE, (Scale(_SINGLE, ((summed, None),)),), "dettmers-2022")


def _grouped(bits: int, group: int, *, indexed: bool) -> Format:
    """Return packed integers with a scale and a zero for a group of summed features.

    Args:
        bits: of an element, and of a zero.
        group: features of one group; -1 for all.
        indexed: whether every summed feature has the index of its group.
    """
    size, length = Rational(bits, 8), None if group < 0 else Integer(group)

    def of(op: Op, weight: Operand) -> Stored:
        summed, rows = _sides(op, weight)
        shared = ((summed, length),)
        index = (Scale(_SINGLE, ((rows, None),)),) if indexed else ()
        scales = (Scale(_SHORT, shared), Scale(size, shared), *index)
        return Stored(f"int{bits}", size, scales, "frantar-2022")

    return of


def _floats(sides: tuple[int, int] | None, *, inputs: bool = False) -> Format:
    """Return 8-bit floats with a scale for a block of result and summed features.

    Args:
        sides: of a block; none if a weight is one block.
        inputs: whether the inputs of a product have a scale that is stored, one for all.
    """

    def of(op: Op, weight: Operand) -> Stored:
        summed, outer = _sides(op, weight)
        whole = Scale(_SINGLE, (((*summed, *outer), None),))
        one = whole
        if sides is not None:
            one = Scale(_SINGLE, ((outer, Integer(sides[0])), (summed, Integer(sides[1]))))
        return Stored("fp8", _ONE, (one, whole) if inputs else (one,), "deepseek-2024")

    return of


def _microscaled(op: Op, weight: Operand) -> Stored:
    """Return 4-bit floats with an exponent for 32 summed features."""
    summed, _ = _sides(op, weight)
    return Stored("mxfp4", _HALF, (Scale(_ONE, ((summed, Integer(32)),)),), "rouhani-2023")


FORMATS: Mapping[str, Format] = {
    "nf4": _four_bits("nf4", double=False),
    "nf4-double": _four_bits("nf4", double=True),
    "int8": _rows,
    "int4": _grouped(4, 128, indexed=False),
    "fp8": _floats((128, 128)),
    "mxfp4": _microscaled,
}
"""Formats by name: as bitsandbytes, AWQ with groups of 128, blocks of 128 x 128, and OCP MX."""


def _linear(model: Model) -> Iterator[tuple[str, Part, Op, Operand]]:
    """Yield the linear layers: path, part, the product, its weight."""
    for part in model.parts:
        for op in part.ops:
            own = op.inner if isinstance(op, Unread) else op
            weights = [operand for operand in own.pattern.inputs if operand.is_weight]
            plain = isinstance(own, Einsum) and len(own.pattern.inputs) == 2  # noqa: PLR2004 - x and w
            if plain and len(weights) == 1 and not routes(model, own):
                yield f"{part.path}.{op.path}", part, own, weights[0]


def stored_as(model: Model, name: str) -> Model:
    """Return a model whose linear layers, but for output heads, are stored in a format.

    Raises:
        UnknownNameError: no such format.
    """
    weight_format = looked_up("format of weights", name, FORMATS)
    held = {path: weight_format for path, *_ in _linear(model)}
    return _with(model, {path: one for path, one in held.items() if path not in _heads(model)})


def _heads(model: Model) -> set[str]:
    """Return the paths of output heads, which are not stored in few bits unless said."""
    vocabulary = At(Role.VOCABULARY)
    return {
        path
        for path, _, op, _ in _linear(model)
        if any(model.axes[axis] in vocabulary for axis in op.outputs[0].axes if axis in model.axes)
    }


def _with(model: Model, formats: Mapping[str, Format]) -> Model:
    stored = {
        key_of(part, weight): formats[path](op, weight)
        for path, part, op, weight in _linear(model)
        if path in formats
    }
    return replace(model, stored=stored)


def quantized(model: Model, config: Mapping[str, Any], where: str) -> Model:
    """Return a model whose weights are stored as a configuration says.

    Args:
        model: of the configuration.
        config: its `quantization_config`.
        where: place of that.

    Raises:
        InputError: every value that is none of those accepted.
    """
    method = config.get("quant_method")
    if method is None and (config.get("load_in_4bit") or config.get("load_in_8bit")):
        method = "bitsandbytes"
    read = _METHODS.get(method) if isinstance(method, str) else None
    if read is None:
        field = f"quantization_config.quant_method {shown(method)}"
        accepted = ", ".join(_METHODS)
        return replace(model, unread=f"{field} is not understood: {accepted} are")
    keys = _Keys(config, where)
    formats = read(keys, model)
    strange = keys.unread()
    if keys.problems:
        raise InputError(keys.problems)
    if strange:
        return replace(model, unread=f"quantization_config: {', '.join(strange)} not understood")
    return _with(model, formats)


class _Keys:
    """The keys of a `quantization_config`, read one by one."""

    def __init__(self, config: Mapping[str, Any], where: str) -> None:
        self.config, self.where = config, where
        self.problems: list[str] = []
        self._seen = {"quant_method", "_load_in_4bit", "_load_in_8bit", "dequantize"}
        self.stays_off("dequantize")

    def one_of(self, name: str, default: Any, accepted: Sequence[Any]) -> Any:  # noqa: ANN401 - of accepted
        """Return a value that is one of some."""
        self._seen.add(name)
        value = self.config.get(name, default)
        if value is None:
            value = default
        if not any(value == one and type(value) is type(one) for one in accepted):
            texts = ", ".join(map(str, accepted))
            self.problems.append(f"{self.where}.{name}: {shown(value)}: {texts} is accepted")
            return default
        return value

    def flag(self, name: str) -> bool:
        """Return a truth value; false where it is missing."""
        return bool(self.one_of(name, default=False, accepted=(False, True)))

    def stays_off(self, name: str) -> None:
        """Accept a truth value that is false."""
        self.one_of(name, default=False, accepted=(False,))

    def group(self, name: str, default: int) -> int:
        """Return a positive number of elements, or -1 for all."""
        self._seen.add(name)
        value = self.config.get(name, default)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not (value == -1 or 0 < value <= _LARGEST):
            self.problems.append(f"{self.where}.{name}: {shown(value)}: a size or -1 is accepted")
            return default
        return int(value)

    def sizes(self, name: str) -> tuple[int, int] | None:
        """Return two positive sizes, or none."""
        self._seen.add(name)
        value = self.config.get(name)
        if value is None:
            return None
        fine = isinstance(value, list | tuple) and len(value) == 2  # noqa: PLR2004 - rows and columns
        if not fine or not all(type(n) is int and 0 < n <= _LARGEST for n in value):
            self.problems.append(f"{self.where}.{name}: {shown(value)}: two sizes are accepted")
            return None
        return value[0], value[1]

    def names(self, name: str) -> tuple[str, ...] | None:
        """Return names, or none where nothing is said."""
        self._seen.add(name)
        value = self.config.get(name)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            self.problems.append(
                f"{self.where}.{name}: {shown(value)}: a list of names is accepted"
            )
            return None
        return tuple(value)

    def costless(self, *names: str) -> None:
        """Declare keys that say nothing of bytes."""
        self._seen.update(names)

    def unread(self) -> list[str]:
        """Return the keys that were not understood; what is null, false or empty says nothing."""
        return [key for key, value in self.config.items() if key not in self._seen and value]


_LARGEST = 10**9


def _bitsandbytes(keys: _Keys, model: Model) -> Mapping[str, Format]:
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
    chosen = _four_bits(kind, double=double) if four else _rows
    return _all_but(keys, model, skipped, chosen, head=skipped is not None)


def _gptq(keys: _Keys, model: Model) -> Mapping[str, Format]:
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
    chosen = _grouped(bits, group, indexed=True)
    return {
        path: chosen
        for path, part, *_ in _linear(model)
        if part.is_block or (head and path in _heads(model))
    }


def _awq(keys: _Keys, model: Model) -> Mapping[str, Format]:
    keys.costless(
        *("zero_point", "backend", "do_fuse", "fuse_max_seq_len", "modules_to_fuse"),
        "exllama_config",
    )
    keys.one_of("version", "gemm", ("gemm", "GEMM", "gemv", "GEMV"))
    bits, group = keys.one_of("bits", 4, (4,)), keys.group("group_size", 128)
    chosen = _grouped(bits, group, indexed=False)
    return _all_but(keys, model, keys.names("modules_to_not_convert"), chosen, head=False)


def _fp8(keys: _Keys, model: Model) -> Mapping[str, Format]:
    keys.costless("fmt")
    static = keys.one_of("activation_scheme", "dynamic", ("dynamic", "static")) == "static"
    if keys.config.get("scale_fmt") != "ue8m0":  # files hold such scales in one byte or in four
        keys.one_of("scale_fmt", "float", ("float",))
    keys.one_of("expert_dtype", "fp8", ("fp8",))
    sides = keys.sizes("weight_block_size")
    if "weight_block_size" not in keys.config:
        sides = (128, 128)
    if (sides is None or static) and _experts(model):  # files hold one for an expert, or for all
        keys.problems.append(f"{keys.where}: experts with one scale for a weight are not declared")
    skipped = keys.names("modules_to_not_convert")
    chosen = _floats(sides, inputs=static)
    return _all_but(keys, model, skipped, chosen, head=skipped is not None)


def _mxfp4(keys: _Keys, model: Model) -> Mapping[str, Format]:
    skipped = keys.names("modules_to_not_convert")
    chosen = _all_but(keys, model, skipped, _microscaled, head=False)
    experts = _experts(model)
    return {path: one for path, one in chosen.items() if path in experts}


def _experts(model: Model) -> set[str]:
    """Return the paths of the products of experts among which a token chooses."""
    routed = At(Role.EXPERT, ("",))
    return {
        path
        for path, _, _, weight in _linear(model)
        if any(model.axes[axis] in routed for axis in weight.axes if axis in model.axes)
    }


_METHODS: Mapping[str, Callable[[_Keys, Model], Mapping[str, Format]]] = {
    "bitsandbytes": _bitsandbytes,
    "gptq": _gptq,
    "awq": _awq,
    "fp8": _fp8,
    "mxfp4": _mxfp4,
}


def _all_but(
    keys: _Keys, model: Model, names: Sequence[str] | None, chosen: Format, *, head: bool
) -> Mapping[str, Format]:
    """Return the format of all linear layers but some.

    Args:
        keys: where problems are noted.
        model: whose layers they are.
        names: of these, as checkpoints have them.
        chosen: the format.
        head: whether output heads are stored so, too.
    """
    paths = [path for path, *_ in _linear(model)]
    skipped = set() if head else _heads(model)
    layers: dict[str, set[int]] = {}
    for name in names or ():
        piece, layer = _of_tree(name)
        matching = below(paths, piece) if piece else set()
        if layer is not None:
            for path in matching:
                layers.setdefault(path, set()).add(layer)
        elif not matching and piece is None:
            keys.problems.append(
                f"{keys.where}: {unknown('module that is not converted', name, WORDS)}"
            )
        skipped |= matching if layer is None else set()
    depth = int(model.bindings.get("n_layers", 0))
    for path, ones in layers.items():
        if len(ones) == depth:
            skipped.add(path)
        else:
            keys.problems.append(
                f"{keys.where}: {path} is not converted in {len(ones)} of {depth} layers: "
                "all of them or none is accepted"
            )
    return {path: chosen for path in paths if path not in skipped}


_OUTSIDE = frozenset({"model", "language_model", "transformer", "decoder", "weight"})
_REPEATED = frozenset({"layers", "h", "block", "blocks", "*"})
_NO_PRODUCT = re.compile(r".*norm.*|embed_tokens|wte|wpe|gate|router|rotary_emb|.*_bias|embeddings")
_PIECES: Mapping[str, str] = {
    **dict.fromkeys(("self_attn", "attn", "self_attention", "attention"), "attention"),
    **dict.fromkeys(("mlp", "feed_forward", "block_sparse_moe"), "mlp"),
    **dict.fromkeys(("shared_expert", "shared_experts"), "shared"),
    **dict.fromkeys(("visual", "vision_model", "vision_tower", "vision"), "vision"),
    **dict.fromkeys(("multi_modal_projector", "connector", "mm_projector"), "connector"),
    **dict.fromkeys(("o_proj", "out_proj"), "proj"),
    "experts": "experts",
}


def _of_tree(name: str) -> tuple[str | None, int | None]:
    """Return the path of a module in the tree and its layer; empty for what is no product.

    For example "model.layers.*.self_attn" is attention, "model.layers.3.mlp.gate" no product.
    """
    pieces, layer = [], None
    for piece in name.replace(r"\.", ".").split("."):
        if piece.isdecimal():
            layer = int(piece)
        elif _NO_PRODUCT.fullmatch(piece):
            return "", layer
        elif piece not in _OUTSIDE | _REPEATED:
            words = WORDS.get(piece, ())
            known = _PIECES.get(piece) or (words[0] if len(words) == 1 else None)
            if known is None:
                return None, layer
            pieces.append(known)
    return (".".join(pieces) or None), layer


def held(model: Model) -> Model:
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
    counter = Counter(model.sizes, WHOLE, STANDARD, model.padded, model.means)
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
                each = counter.bytes(own) if form else size * counter.elements(weight.axes)
                sums.setdefault(form.name if form else plain, []).append(mul(times, each))
    return {name: add(*terms) for name, terms in sums.items()}
