"""Nodes that ONNX Runtime's optimizer and its builder of language models fuse."""

from symbolic_cost.models.traced.onnx.file import Call
from symbolic_cost.models.traced.onnx.rewriting import MICROSOFT, Rewriting, rewrites

_HEADED = [0, 2, 1, 3]
"""Heads before positions, and back."""


def _inputs(call: Call, count: int) -> tuple[str, ...]:
    return (*call.inputs, *[""] * count)[:count]


@rewrites("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_norm(w: Rewriting, call: Call) -> None:
    """A norm of a sum, which is a result too."""
    kind = call.op.removeprefix("Skip")
    x, skip, scale, *rest = _inputs(call, 5)
    shift, bias = rest if kind == "LayerNormalization" else ("", rest[0])
    kept = call.outputs[3] if len(call.outputs) > 3 else ""  # noqa: PLR2004 - the sum
    total = w.write("Add", w.sums(x, bias), skip, to=kept)
    w.write(kind, total, scale, shift, to=call.outputs[0], axis=-1)


@rewrites("EmbedLayerNormalization", domain=MICROSOFT)
def embedded(w: Rewriting, call: Call) -> None:
    """A norm of the sum of what tokens, positions and segments are looked up in."""
    ids, segments, words, places, kinds, scale, shift, _, order = _inputs(call, 9)
    if not order:
        shape = w.write("Shape", ids)
        length = w.write("Gather", shape, w.integers(1), axis=0)
        zero, one = (w.write("Squeeze", w.integers(n), w.integers(0)) for n in (0, 1))
        order = w.write("Range", zero, w.write("Squeeze", length, w.integers(0)), one)
    kept = call.outputs[2] if len(call.outputs) > 2 else ""  # noqa: PLR2004 - the sum
    total = w.write("Gather", words, ids)
    if kinds:
        total = w.write("Add", total, w.write("Gather", kinds, segments))
    total = w.write("Add", total, w.write("Gather", places, order), to=kept)
    w.write("LayerNormalization", total, scale, shift, to=call.outputs[0], axis=-1)


@rewrites("BiasGelu", "FastGelu", "GemmFastGelu", domain=MICROSOFT)
def biased_gelu(w: Rewriting, call: Call) -> None:
    """GELU of a sum, or of a product and a bias."""
    x, *others = _inputs(call, 3)
    if call.op.startswith("Gemm"):
        x = w.write("MatMul", x, others.pop(0))
    w.write("Gelu", w.sums(x, others[0]), to=call.outputs[0])


@rewrites("Attention", domain=MICROSOFT)
def projected_attention(w: Rewriting, call: Call) -> None:
    """Attention with the projection of queries, keys and values."""
    x, matrix, bias, _, past, added = _inputs(call, 6)
    widths = call.attributes.get("qkv_hidden_sizes") or [w.dims(matrix)[1] // 3] * 3
    _refuse(call, "do_rotary", "past_present_share_buffer")
    w.cached(past)
    sides = w.sums(w.write("MatMul", x, matrix), bias)
    three = w.parts("Split", (sides, w.integers(*widths)), w.between(3), axis=-1)
    heads = call.attributes["num_heads"]
    causal = call.attributes.get("unidirectional", 0)
    w.write("Attention", *three, added, to=call.outputs[0], q_num_heads=heads, kv_num_heads=heads,
            is_causal=causal)  # fmt: skip


@rewrites("MultiHeadAttention", domain=MICROSOFT)
def multi_head(w: Rewriting, call: Call) -> None:
    """Attention of queries, keys and values that are projected elsewhere."""
    q, k, v, bias, _, added, *caches = _inputs(call, 8)
    if not k or not v:
        raise ValueError("queries, keys and values apart are accepted")
    w.cached(*caches)
    heads = call.attributes["num_heads"]
    sides = [q, k, v]
    if bias:
        each = w.dims(bias)[0] // 3
        parts = w.parts("Split", (bias, w.integers(*[each] * 3)), w.between(3), axis=0)
        sides = [w.write("Add", *pair) for pair in zip(sides, parts, strict=True)]
    causal = call.attributes.get("unidirectional", 0)
    w.write("Attention", *sides, added, to=call.outputs[0], q_num_heads=heads,
            kv_num_heads=heads, is_causal=causal)  # fmt: skip


@rewrites("GroupQueryAttention", domain=MICROSOFT)
def grouped(w: Rewriting, call: Call) -> None:
    """Causal attention with fewer heads of keys and values, perhaps rotated."""
    q, k, v, *caches, _, _, cos, sin, _, added, sink = _inputs(call, 12)
    if sink:
        raise ValueError("a learned sink (head_sink) is not read")
    w.cached(*caches)
    heads, shared = call.attributes["num_heads"], call.attributes["kv_num_heads"]
    for name in ("local_window_size", "softcap", "smooth_softmax"):
        if call.attributes.get(name, 0) > 0:
            w.notes[f"{name} of GroupQueryAttention is not read: all causal pairs are counted"] += 1
    if bool(k) != bool(v):
        raise ValueError("keys and values are both apart from queries, or both with them")
    if k:
        sides = [(q, heads), (k, shared), (v, shared)]
        apart = [_headed(w, name, many) for name, many in sides]
    else:
        all_heads = _headed(w, q, heads + 2 * shared)
        counts = w.integers(heads, shared, shared)
        apart = [*w.parts("Split", (all_heads, counts), w.between(3), axis=1)]
    if call.attributes.get("do_rotary", 0):
        apart[:2] = [w.write("RotaryEmbedding", one, cos, sin) for one in apart[:2]]
    made = w.write("Attention", *apart, added, is_causal=1)
    _joined(w, made, call.outputs[0])


@rewrites("RotaryEmbedding", domain=MICROSOFT)
def rotary(w: Rewriting, call: Call) -> None:
    """A rotation of all heads, which are as wide as two tables."""
    x, _, cos, sin = call.inputs
    _refuse(call, "rotary_embedding_dim")
    heads = call.attributes.get("num_heads", 0) or -1
    turned = _headed(w, x, heads, 2 * w.dims(cos)[1])
    _joined(w, w.write("RotaryEmbedding", turned, cos, sin), call.outputs[0])


def _refuse(call: Call, *names: str) -> None:
    for name in names:
        if call.attributes.get(name, 0):
            raise ValueError(f"{name} = {call.attributes[name]} is not read: 0 is accepted")


def _headed(w: Rewriting, name: str, heads: int, width: int = -1) -> str:
    """Return [b, l, h d] as [b, h, l, d]."""
    apart = w.write("Reshape", name, w.integers(0, 0, heads, width))
    return w.write("Transpose", apart, perm=_HEADED)


def _joined(w: Rewriting, name: str, to: str) -> None:
    """Write [b, h, l, d] as [b, l, h d]."""
    turned = w.write("Transpose", name, perm=_HEADED)
    w.write("Reshape", turned, w.integers(0, 0, -1), to=to)
