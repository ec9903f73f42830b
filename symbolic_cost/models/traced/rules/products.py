"""Products, attention and convolutions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from symbolic_cost.errors import InputError, PatternError
from symbolic_cost.models.traced.acts import Ref, Use, under
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
    uses = [Use(ref, _under(letters, dims)) for ref, letters in operands]
    added = bias if bias is not None and not bias.tensor.weight else None
    bias = None if added else bias
    if bias is not None:
        uses.append(Use(bias, bias.dims))
    result_dims = _under(result, dims)
    options = {
        "letters": [letters for _, letters in operands],
        "result": result,
        "bias": bias is not None,
        "masked": t.node.index in t.masked,
    }
    made = t.act("einsum", uses, result_dims, suffix, options=options, **more)
    return made if added is None else t.pointwise("add", [made, added], result_dims)


@rule("aten.linear")
def linear(t: Trace) -> None:
    """A product with a transposed weight, and a bias."""
    x, w, bias = t.arg("input", 0), t.arg("weight", 1), t.arg("bias", 2)
    t.bind(_times(t, x, under(w, w.dims[::-1]) if len(w.dims) > 1 else w, bias))


def _times(t: Trace, x: Ref, w: Ref, bias: Ref | None = None) -> Ref:
    """Return x w, rows of x before and columns of w after."""
    t.forest.unify(x.dims[-1], w.dims[0])
    rows = _letters(len(x.dims) - 1)
    dims = dict(zip(rows, x.dims[:-1], strict=True)) | {"k": x.dims[-1], "n": ()}
    if len(w.dims) > 1:
        dims["n"] = w.dims[1]
    if not w.tensor.constant and not w.tensor.weight:
        dims["n"] = _apart(t, dims["n"], x.dims[:-1])
    if bias is not None:
        t.forest.unify(bias.dims[-1], dims["n"])
    last = "n" if len(w.dims) > 1 else ""
    return product(t, [(x, f"{rows}k"), (w, f"k{last}")], f"{rows}{last}", dims, bias=bias)


def _letters(count: int) -> str:
    return "abcdefghij"[:count]


def _apart(t: Trace, dim: Dim, others: Sequence[Dim]) -> Dim:
    """Return a dimension under second axes where others have its own."""
    own = t.forest.flat(dim)
    return dim if set(own).isdisjoint(t.forest.axes(others)) else t.forest.copies(own)


@rule("aten.addmm", "aten.baddbmm", "aten.addbmm")
def addmm(t: Trace) -> None:
    """A bias and a product."""
    names = ("mat1", "mat2") if t.node.target == "aten.addmm" else ("batch1", "batch2")
    bias, x, w = t.arg("self", 0), t.arg(names[0], 1), t.arg(names[1], 2)
    if t.node.target == "aten.addmm" and bias.tensor.weight and len(bias.dims) == 1:
        t.bind(_times(t, x, w, bias))
        return
    t.bind(combined(t, [_matmul(t, x, w), bias], "add"))


@rule("aten.matmul", "aten.mm", "aten.bmm", "aten.mv", "aten.dot", "aten.linalg_matmul",
      "_operator.matmul")  # fmt: skip
def matmul(t: Trace) -> None:
    """A product over the last and the last but one dimension, others in pairs."""
    t.bind(_matmul(t, *t.tensors()))


def _matmul(t: Trace, x: Ref, w: Ref) -> Ref:
    if len(x.dims) == 1 or len(w.dims) == 1:
        return _vector(t, x, w)
    if len(w.dims) == _MATRIX and (w.tensor.weight or len(x.dims) > _MATRIX):
        return _times(t, x, w)
    core = t.cores.get(t.node.index)
    lead, dims = _batch(t, [(x, x.dims[:-2]), (w, w.dims[:-2])])
    t.unify(x, -1, w, -2)
    dims |= {"m": x.dims[-2], "k": x.dims[-1], "n": w.dims[-1]}
    if core == "scores" and not x.tensor.weight and not w.tensor.weight:
        dims["n"] = t.forest.copies(dims["n"])
    elif core != "attend":
        dims["n"] = _apart(t, dims["n"], [dim for letter, dim in dims.items() if letter != "n"])
    keys = dims["k"] if core == "attend" else dims["n"]
    more: dict[str, Any] = {"pairs": (dims["m"], keys), "core": t.node.path} if core else {}
    letters = [f"{lead[0]}mk", f"{lead[1]}kn"]
    return product(t, list(zip((x, w), letters, strict=True)), f"{lead[2]}mn", dims, **more)


def _vector(t: Trace, x: Ref, w: Ref) -> Ref:
    if len(w.dims) == 1:
        t.forest.unify(x.dims[-1], w.dims[0])
        rows = _letters(len(x.dims) - 1)
        dims = dict(zip(rows, x.dims[:-1], strict=True)) | {"k": x.dims[-1]}
        return product(t, [(x, f"{rows}k"), (w, "k")], rows, dims)
    t.forest.unify(x.dims[-1], w.dims[-2])
    rows = _letters(len(w.dims) - 2)
    dims = dict(zip(rows, w.dims[:-2], strict=True)) | {"k": x.dims[-1], "n": w.dims[-1]}
    return product(t, [(x, "k"), (w, f"{rows}kn")], f"{rows}n", dims)


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


@rule("aten.einsum")
def einsum(t: Trace) -> None:
    """A product as its letters say."""
    inputs, result = _letters_of(t, str(t.arg("equation", 0)).replace(" ", ""))
    refs = t.arg("tensors", 1)
    dims: dict[str, Dim] = {}
    operands = [
        (ref, _note_dims(t, ref, names, dims)) for ref, names in zip(refs, inputs, strict=True)
    ]
    left = "".join(name if name in dims else "1" for name in result)
    every = [*(letters for _, letters in operands), left]
    lonely = {name for name in dims if sum(name in letters for letters in every) == 1}
    if len(refs) > 1:
        operands = [_summed(t, ref, letters, lonely, dims) for ref, letters in operands]
    if len(refs) > 1 and any(name not in left and name not in lonely for name in dims):
        t.bind(product(t, operands, left, dims))
    else:
        uses = [Use(ref, _under(letters, dims)) for ref, letters in operands]
        function = "sum" if len(refs) == 1 else "mul"
        t.bind(t.pointwise(function, uses, _under(left, dims)))


def _summed(
    t: Trace, ref: Ref, letters: str, lonely: set[str], dims: Mapping[str, Dim]
) -> tuple[Ref, str]:
    """Return an operand after the sum over what neither the other nor the result has."""
    if lonely.isdisjoint(letters):
        return ref, letters
    rest = "".join(name for name in letters if name not in lonely)
    taken = Use(ref, _under(letters, dims))
    return t.pointwise("sum", [taken], _under(rest, dims), "sum"), rest


def _letters_of(t: Trace, text: str) -> tuple[list[str], str]:
    """Return the letters of every operand and of the result: "bik,bkj->bij"."""
    where = f"{t.graph.place}: einsum {text!r} of {t.node.path}"
    listed = re.split(",|->", text)
    right = re.fullmatch(r"[A-Za-z,]+->[A-Za-z]*", text)
    if not right or any(len(set(letters)) < len(letters) for letters in listed):
        raise InputError(f"{where}: a letter stands once in a tensor")
    if text.count(",") > 1:
        raise InputError(f"{where}: products of two tensors are accepted")
    return listed[:-1], listed[-1]


def _note_dims(t: Trace, ref: Ref, letters: str, dims: dict[str, Dim]) -> str:
    """Note the dimensions of an operand by letter, and return its letters, "1" for size 1."""
    own = ""
    for letter, dim in zip(letters, ref.dims, strict=True):
        if not t.forest.flat(dim):
            own += "1"
            continue
        own += letter
        if letter in dims:
            t.forest.unify(dims[letter], dim)
        else:
            dims[letter] = _apart(t, dim, [*dims.values()])
    return own


def _under(letters: str, dims: Mapping[str, Dim]) -> Dims:
    return tuple(() if letter == "1" else dims[letter] for letter in letters)


@rule("aten.scaled_dot_product_attention")
def attention(t: Trace) -> None:
    """Scores, softmax and weighted sum, with what is added to the scores."""
    q, k, v = t.arg("query", 0), t.arg("key", 1), t.arg("value", 2)
    mask, causal = t.arg("attn_mask", 3), t.arg("is_causal", 5) is True
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


@rule("aten.conv1d", "aten.conv2d", "aten.conv3d", "aten.convolution", "aten._convolution",
      "aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")  # fmt: skip
def conv(t: Trace) -> None:
    """A convolution, or one the other way round."""
    x, w, bias = t.arg("input", 0), t.arg("weight", 1), t.arg("bias", 2)
    turned = "transpose" in t.node.target or t.arg("transposed", 6) is True
    groups = t.arg("groups", 8 if "convolution" in t.node.target else 6)
    groups = groups if isinstance(groups, int) else 1
    spatial = len(w.dims) - 2
    lead = x.dims[: len(x.dims) - spatial - 1]
    channels = x.dims[-spatial - 1]
    forest = t.forest
    # The kernel is [out, in / groups, ...], turned [in, out / groups, ...].
    each = forest.length(w.dims[0]) // groups
    split = forest.split(w.dims[0], (groups, each)) if groups > 1 else None
    many = split[0] if split else ()
    summed = w.dims[1] if not turned else split[1] if split else w.dims[0]
    out = (*many, *w.dims[1]) if turned else w.dims[0]
    forest.unify(channels, (*many, *summed))
    sizes = t.sizes()
    positions = tuple(
        x.dims[len(x.dims) - spatial + i]
        if sizes[len(sizes) - spatial + i] == 1 and not x.dims[len(x.dims) - spatial + i]
        else dim
        for i, dim in enumerate(forest.dims(sizes[len(sizes) - spatial :]))
    )
    dims = (*lead, out, *positions)
    want = (*lead, (*many, *summed), *x.dims[len(x.dims) - spatial :])
    uses = [Use(x, want), Use(w, w.dims), *([Use(bias, (out,))] if isinstance(bias, Ref) else [])]
    if isinstance(bias, Ref):
        forest.unify(bias.dims[0], out)
    options = {"turned": turned, "bias": isinstance(bias, Ref), "summed": summed, "made": len(lead)}
    if not w.tensor.weight:
        options["computed"] = True
    t.bind(t.act("conv", uses, dims, options=options))


@rule("aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d", "aten.avg_pool1d", "aten.avg_pool2d",
      "aten.avg_pool3d", "aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d",
      "aten.max_pool2d_with_indices", "aten.adaptive_max_pool2d", "aten.adaptive_avg_pool3d",
      "aten._adaptive_avg_pool2d")  # fmt: skip
def pool(t: Trace) -> None:
    """A reduction over windows."""
    x = t.arg("self", 0)
    if x.tensor.constant:
        t.bind(t.constant())
        return
    sizes = t.sizes()
    spatial = int(re.findall(r"(\d)d", t.node.target)[0])
    leading = x.dims[: len(x.dims) - spatial]
    dims = (*leading, *t.forest.dims(sizes[len(sizes) - spatial :]))
    kernel = t.arg("kernel_size", 1) if "adaptive" not in t.node.target else None
    kernel = [kernel] * spatial if isinstance(kernel, int) else kernel
    if kernel is None:
        old = [t.forest.length(dim) for dim in x.dims[-spatial:]]
        kernel = [-(-a // t.forest.count(b)) for a, b in zip(old, sizes[-spatial:], strict=True)]
    kernel = kernel * spatial if len(kernel) < spatial else kernel
    window = tuple(t.forest.new(size) for size in kernel if size != 1)
    function = "max_pool" if "max" in t.node.target else "avg_pool"
    t.bind(t.act("pool", [x], dims, function=function, options={"window": window}))


@rule("transformers.grouped_mm_fallback", "aten._grouped_mm")
def grouped(t: Trace) -> None:
    """Rows sorted by expert, each times the matrix of its expert.

    x[s k], w[x k n] -> y[s n]: of s rows each of x experts takes s/x on average.
    """
    x, w = t.tensors()[:2]
    t.unify(x, 1, w, 1)
    experts, rows = t.forest.flat(w.dims[0]), t.forest.flat(x.dims[0])
    if len(experts) != 1 or len(rows) != len(_ROUTED):
        raise PatternError(f"{t.name()}: rows and experts of a grouped product cannot be told")
    if not any(axis in t.forest.means for axis in rows):
        rows = t.forest.shares(rows, experts)
    else:
        t.forest.unify((rows[-1],), experts)
        rows = t.forest.flat(rows)
    dims: dict[str, Dim] = {n: (axis,) for n, axis in zip(_ROUTED, rows, strict=True)}
    dims |= {"k": x.dims[1], "n": w.dims[2]}
    apart = under(x, (*((axis,) for axis in t.forest.flat(x.dims[0])), x.dims[1]))
    result = product(t, [(apart, f"{_ROUTED}k"), (w, "xkn")], f"{_ROUTED}n", dims)
    t.bind(under(result, (rows, w.dims[2])))


_ROUTED = "uzx"
"""Batch, rows of one expert, experts."""
