"""Products and attention."""

from collections.abc import Mapping, Sequence
from typing import Any

from symbolic_cost.errors import InputError, PatternError
from symbolic_cost.models.traced.acts import Ref, Use, put, under
from symbolic_cost.models.traced.forest import Dim, Dims
from symbolic_cost.models.traced.rules.pointwise import combined, matched
from symbolic_cost.models.traced.trace import Trace, rule

_MATRIX, _HEADED = 2, 4
"""Dimensions of a matrix, and of queries with a dimension for heads."""


def product(
    t: Trace,
    operands: Sequence[tuple[Ref, str]],
    result: str,
    dims: Mapping[str, Dim],
    *,
    bias: Ref | None = None,
    suffix: str = "",
    **more: Any,  # noqa: ANN401 - fields of an act
) -> Ref:
    """Write a product by letters: [(x, "bln"), (w, "kn")] -> "blk".

    Args:
        t: trace that it is written in.
        operands: with a letter for every dimension; the letter of a dimension of size 1 is "1".
        result: letters of the result.
        dims: by letter.
        bias: added to the result; one that is computed is added by an op of its own.
        suffix: name of the op below its module.
        **more: further fields of the act.
    """
    uses = [Use(ref, lettered(letters, dims)) for ref, letters in operands]
    added = bias if bias is not None and not bias.tensor.weight else None
    bias = None if added else bias
    if bias is not None:
        uses.append(Use(bias, bias.dims))
    result_dims = lettered(result, dims)
    options = {
        "letters": [letters for _, letters in operands],
        "result": result,
        "bias": bias is not None,
        "masked": t.node.index in t.masked,
    }
    made = t.act("einsum", uses, result_dims, suffix, options=options, **more)
    return made if added is None else t.pointwise("add", [made, added], result_dims)


def lettered(letters: str, dims: Mapping[str, Dim]) -> Dims:
    """Return the dimensions that letters stand for, "1" for one of size 1."""
    return tuple(() if letter == "1" else dims[letter] for letter in letters)


@rule("aten.linear")
def linear(t: Trace) -> None:
    """A product with a transposed weight, and a bias."""
    x, w, bias = t.arg("input", 0), t.arg("weight", 1), t.arg("bias", 2)
    if len(w.dims) == 1:
        made = _weighted(t, x, w, -1)
        t.bind(made if bias is None else combined(t, [made, bias], "add"))
    else:
        t.bind(times(t, x, under(w, w.dims[::-1]), bias))


def times(t: Trace, x: Ref, w: Ref, bias: Ref | None = None) -> Ref:
    """Return x w, rows of x before and columns of w after."""
    t.forest.unify(x.dims[-1], w.dims[0])
    rows = _letters(len(x.dims) - 1)
    dims = dict(zip(rows, x.dims[:-1], strict=True)) | {"k": x.dims[-1], "n": w.dims[1]}
    if not w.tensor.constant and not w.tensor.weight:
        dims["n"] = apart_from(t, dims["n"], x.dims[:-1])
    if bias is not None:
        t.forest.unify(bias.dims[-1], dims["n"])
    return product(t, [(x, f"{rows}k"), (w, "kn")], f"{rows}n", dims, bias=bias)


def _letters(count: int) -> str:
    return "abcdefghij"[:count]


def apart_from(t: Trace, dim: Dim, others: Sequence[Dim]) -> Dim:
    """Return a dimension under second axes where others have its own."""
    own = t.forest.flat(dim)
    return dim if set(own).isdisjoint(t.forest.axes(others)) else t.forest.copies(own)


@rule("aten.addmm", "aten.baddbmm")
def addmm(t: Trace) -> None:
    """A bias and a product."""
    names = ("mat1", "mat2") if t.node.target == "aten.addmm" else ("batch1", "batch2")
    bias, x, w = t.arg("self", 0), t.arg(names[0], 1), t.arg(names[1], 2)
    if t.node.target == "aten.addmm" and bias.tensor.weight and len(bias.dims) == 1:
        t.bind(times(t, x, w, bias))
        return
    t.bind(combined(t, [_matmul(t, x, w), bias], "add"))


@rule("aten.matmul", "aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.vdot",
      "aten.linalg_matmul", "_operator.matmul")  # fmt: skip
def matmul(t: Trace) -> None:
    """A product over the last and the last but one dimension, others in pairs."""
    t.bind(_matmul(t, *t.tensors()))


def _matmul(t: Trace, x: Ref, w: Ref) -> Ref:
    w = _alone(t, w, x.dims)
    x = _alone(t, x, w.dims)
    if len(x.dims) == 1 or len(w.dims) == 1:
        return _vector(t, x, w)
    if len(w.dims) == _MATRIX and (w.tensor.weight or len(x.dims) > _MATRIX):
        return times(t, x, w)
    core = t.cores.get(t.node.index)
    lead, dims = _batch(t, [(x, x.dims[:-2]), (w, w.dims[:-2])])
    t.unify(x, -1, w, -2)
    dims |= {"m": x.dims[-2], "k": x.dims[-1], "n": w.dims[-1]}
    if core == "scores" and not x.tensor.weight and not w.tensor.weight:
        dims["n"] = t.forest.copies(dims["n"])
    elif core != "attend":
        dims["n"] = apart_from(t, dims["n"], [dim for letter, dim in dims.items() if letter != "n"])
    keys = dims["k"] if core == "attend" else dims["n"]
    more: dict[str, Any] = {"pairs": (dims["m"], keys), "core": t.node.path} if core else {}
    letters = [f"{lead[0]}mk", f"{lead[1]}kn"]
    return product(t, list(zip((x, w), letters, strict=True)), f"{lead[2]}mn", dims, **more)


def _alone(t: Trace, ref: Ref, other: Dims) -> Ref:
    """Return a weight without the dimensions that it is repeated along: one matrix for all.

    It is copied along those where the other side has none at their places: the result has them.
    """
    owned, lead = set(t.forest.axes(ref.tensor.dims)), ref.dims[:-_MATRIX]
    repeated = t.forest.axes(lead)
    if not ref.tensor.weight or not repeated or not owned.isdisjoint(repeated):
        return ref
    theirs = (*((),) * len(lead), *other[:-_MATRIX])[-len(lead) :]
    flat = t.forest.flat
    if any(flat(one) and not flat(it) for one, it in zip(lead, theirs, strict=True)):
        return t.pointwise("copy", [ref], ref.dims, "repeated")
    return under(ref, ref.dims[-_MATRIX:])


def _vector(t: Trace, x: Ref, w: Ref) -> Ref:
    """Return a product with a vector; but for that with a matrix, PyTorch's counter knows none."""
    if len(w.dims) == 1:
        return _weighted(t, x, w, -1)
    if len(w.dims) > _MATRIX:
        return _weighted(t, w, x, -2)
    t.forest.unify(x.dims[-1], w.dims[0])
    dims = {"k": x.dims[-1], "n": w.dims[1]}
    return product(t, [(x, "k"), (w, "kn")], "n", dims)


def _weighted(t: Trace, ref: Ref, vector: Ref, place: int) -> Ref:
    """Return the sum over a dimension of a tensor, each position times a factor."""
    given = ref.tensor.is_input and ref.dims == ref.tensor.dims
    if vector.tensor.constant and not given and len(ref.dims) > _MATRIX:
        raise InputError(
            f"{t.graph.place}: {t.node.target} in {t.node.path or 'the model'}: a vector without a "
            "gradient, of which memory's order decides whether PyTorch counts the product: one "
            "with a gradient, or a matrix of one column, is accepted"
        )
    at = place % len(ref.dims)
    t.unify(ref, at, vector, 0)
    made = t.pointwise("mul", [ref, Use(vector, (ref.dims[at],))], ref.dims)
    return t.pointwise("sum", [made], put(ref.dims, at), "sum")


def _batch(t: Trace, sides: Sequence[tuple[Ref, Dims]]) -> tuple[list[str], dict[str, Dim]]:
    """Return letters of the batch dimensions of every operand and of the result, and dimensions."""
    rank = max(len(dims) for _, dims in sides)
    names = "ABCDEFGH"[:rank]
    batch: dict[str, Dim] = {}
    letters = [""] * len(sides)
    result = ""
    for place, name in enumerate(names):
        for i, (ref, dims) in enumerate(sides):
            at = place - rank + len(dims)
            if at < 0:
                continue
            dim = dims[at]
            if not t.forest.flat(dim):
                letters[i] += "1"
                continue
            letters[i] += name
            if name not in batch:
                batch[name] = dim
            elif not ref.tensor.constant:
                t.forest.unify(batch[name], dim)
        result += name if name in batch else "1"
    return [*letters, result], batch


@rule("aten.addmv")
def addmv(t: Trace) -> None:
    """A product with a vector, and a bias."""
    bias, x, vector = t.arg("self", 0), t.arg("mat", 1), t.arg("vec", 2)
    t.bind(combined(t, [_weighted(t, x, vector, -1), bias], "add"))


@rule("aten.scaled_dot_product_attention", *(f"aten._scaled_dot_product_{kind}" for kind in (
      "flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention",
      "fused_attention_overrideable", "attention_math", "attention_math_for_mps")))  # fmt: skip
def attention(t: Trace) -> None:
    """Scores, softmax and weighted sum, with what is added to the scores."""
    q, k, v = t.arg("query", 0), t.arg("key", 1), t.arg("value", 2)
    mask = t.arg("attn_mask") if t.arg("attn_bias") is None else t.arg("attn_bias")
    if t.node.target == "aten.scaled_dot_product_attention":
        mask = t.arg("attn_mask", 3)
    causal = t.arg("is_causal", 5) is True
    if causal:
        t.masked.add(t.node.index)
    if t.arg("enable_gqa") is True and len(q.dims) == _HEADED:
        k, v = (_grouped(t, q, ref) for ref in (k, v))
    lead, dims = _batch(t, [(q, q.dims[:-2]), (k, k.dims[:-2]), (v, v.dims[:-2])])
    t.forest.unify(q.dims[-1], k.dims[-1])
    t.forest.unify(k.dims[-2], v.dims[-2])
    dims |= {"m": q.dims[-2], "t": t.forest.copies(k.dims[-2]), "d": q.dims[-1], "v": v.dims[-1]}
    core, square = t.name("core"), f"{lead[3]}mt"
    about: dict[str, Any] = {"pairs": (dims["m"], dims["t"]), "core": core}
    taken = [(q, f"{lead[0]}md"), (k, f"{lead[1]}td")]
    p = product(t, taken, square, dims, suffix="core.scores", **about)
    if isinstance(mask, Ref) and not mask.tensor.constant:
        for i, dim in enumerate(mask.dims):
            if t.forest.flat(dim):
                t.unify(p, len(p.dims) - len(mask.dims) + i, mask, i)
        bias = Use(mask, matched(mask.dims, p.dims))
        p = t.pointwise("add", [p, bias], p.dims, "core.bias", core=core)
    p = t.pointwise("softmax_single", [p], p.dims, "core.softmax", row=dims["t"], core=core)
    dropped = t.arg("dropout_p", 4)
    if isinstance(dropped, float) and dropped > 0:
        p = t.pointwise("dropout", [p], p.dims, "core.dropout", core=core)
    taken = [(p, square), (v, f"{lead[2]}tv")]
    t.bind(product(t, taken, f"{lead[3]}mv", dims, suffix="core.attend", **about))


def _grouped(t: Trace, q: Ref, ref: Ref) -> Ref:
    have = t.forest.flat(ref.dims[-3])
    heads, own_heads = t.forest.length(q.dims[-3]), t.forest.length(have)
    if heads == own_heads:
        return ref
    group = t.forest.new(heads // own_heads)
    return under(ref, (*ref.dims[:-3], (*have, group), *ref.dims[-2:]))


@rule("transformers.grouped_mm_fallback", "aten._grouped_mm")
def grouped(t: Trace) -> None:
    """Rows sorted by expert, each times the matrix of its expert.

    x[s k], w[x k n] -> y[s n]: of s rows each of x experts takes s/x on average.
    """
    x, w = t.tensors()[:2]
    t.unify(x, 1, w, 1)
    experts, rows = t.forest.flat(w.dims[0]), t.forest.flat(x.dims[0])
    many = any(axis in t.forest.means for axis in rows)
    fewest = len(_ROUTED) if many else len(_ROUTED) - 1  # (b, l), each row of one expert alone
    if len(experts) != 1 or not fewest <= len(rows) <= len(_ROUTED):
        raise PatternError(f"{t.name()}: rows and experts of a grouped product cannot be told")
    if not many:
        rows = t.forest.shares(rows, experts)
    else:
        t.forest.unify((rows[-1],), experts)
        rows = t.forest.flat(rows)
    dims: dict[str, Dim] = {n: (axis,) for n, axis in zip(_ROUTED, rows, strict=True)}
    dims |= {"k": x.dims[1], "n": w.dims[2]}
    own = [(axis,) for axis in t.forest.flat(x.dims[0])]
    apart = under(x, (*own, *((),) * (len(rows) - len(own)), x.dims[1]))
    result = product(t, [(apart, f"{_ROUTED}k"), (w, "xkn")], f"{_ROUTED}n", dims)
    t.bind(under(result, (rows, w.dims[2])))


_ROUTED = "uzx"
"""Batch, rows of one expert, experts."""
