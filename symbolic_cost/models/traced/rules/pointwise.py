"""Functions of single elements and of rows, sums, norms."""

from collections.abc import Mapping, Sequence
from math import prod

from symbolic_cost.models.traced.acts import Nature, Ref, Use, put, under
from symbolic_cost.models.traced.forest import Dim, Dims
from symbolic_cost.models.traced.graph import Size
from symbolic_cost.models.traced.trace import RULES, Rule, Trace, rule

_KINDS: Mapping[str, str] = {
    "add": "add sub subtract rsub logaddexp",
    "mul": "mul multiply div divide true_divide floor_divide atan2 arctan2 maximum minimum "
    "fmod remainder addcmul addcdiv lerp hypot prelu where linalg_cross cross",
    "scale": "neg negative masked_fill masked_fill_ tril triu nan_to_num fill fill_ zeros_like "
    "round floor ceil trunc frac sign sgn",
    "silu": "silu",
    "gelu": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "sigmoid": "sigmoid special_expit",
    "softplus": "softplus log_sigmoid",
    "elu": "elu celu selu",
    "leaky_relu": "leaky_relu rrelu",
    "relu6": "hardtanh relu6 clamp clamp_min clamp_max clip",
    "exp": "exp rsqrt sqrt reciprocal exp2 expm1",
    "mish": "mish",
    "hardswish": "hardswish",
    "hardsigmoid": "hardsigmoid",
    "clamp": "threshold",
    "absolute": "abs absolute",
    "power": "pow square",
    "transcendental": "log log1p log2 log10 sin cos tan erf special_erf logit sinh cosh asin acos "
    "atan",
}
"""Kinds of elementwise work, by the operators that are of it."""


def _function(kind: str) -> Rule:
    def meaning(t: Trace) -> None:
        t.bind(combined(t, t.tensors(), kind))

    return meaning


for _kind, _targets in _KINDS.items():
    for _target in _targets.split():
        RULES[f"aten.{_target}"] = RULES[f"aten.{_target}_"] = _function(_kind)

RULES |= {"_operator.iadd": _function("add"), "aten.__and__": _function("mul")}


def combined(t: Trace, refs: Sequence[Ref], kind: str) -> Ref:
    """Return a function of one tensor or several, broadcast against each other."""
    if not t.floating() or all(ref.tensor.constant for ref in refs):
        return t.constant()
    moving = [ref for ref in refs if not ref.tensor.constant]
    sizes = t.sizes()
    if len(moving) == 1 and kind in ("add", "mul", "scale"):
        alone = _alone(t, moving[0], refs, kind)
        if alone is not None:
            return alone
    longest = max(t.forest.length(t.forest.axes(ref.dims)) for ref in moving)
    weights = all(ref.tensor.weight for ref in moving) and longest == _elements(t, sizes)
    if weights and not _learnt_with_frozen(t, moving):
        return _of_weights(t, moving, sizes)
    dims = broadcast(t, moving, sizes)
    uses = [Use(ref, matched(ref.dims, dims)) for ref in moving]
    constants = [ref for ref in refs if ref.tensor.constant and ref.tensor.floating and ref.dims]
    if kind == "mul":
        uses += [Use(ref, matched(ref.dims, dims)) for ref in constants]
    return t.pointwise(kind, uses, dims)


def _elements(t: Trace, sizes: Sequence[Size]) -> int:
    return prod(map(t.forest.count, sizes))


def _alone(t: Trace, ref: Ref, refs: Sequence[Ref], kind: str) -> Ref | None:
    """Return what a tensor and numbers make: itself, or what scaled it."""
    if len(refs) > 1 and kind != "add":
        return None  # a tensor of factors, or a mask
    if len(ref.dims) != len(t.sizes()) or not all(map(t.forest.fits, ref.dims, t.sizes())):
        return None
    if ref.tensor.weight:
        return ref
    return t.pointwise("scale", [ref], ref.dims)


def _learnt_with_frozen(t: Trace, refs: Sequence[Ref]) -> bool:
    """Tell whether the largest of some weights is frozen and another is not: scales of integers.

    What they make has a gradient then, which the largest does not take.
    """
    lead = max(refs, key=lambda ref: t.forest.length(t.forest.axes(ref.dims)))
    frozen = [Nature.FROZEN in ref.tensor.nature for ref in refs]
    return Nature.FROZEN in lead.tensor.nature and not all(frozen)


def _of_weights(t: Trace, refs: Sequence[Ref], sizes: Sequence[Size]) -> Ref:
    """Return the largest of some weights for what is computed element by element of them alone."""
    t.notes["computed from weights alone, element by element: not costed"] += 1
    lead = max(refs, key=lambda ref: t.forest.length(t.forest.axes(ref.dims)))
    t.used |= {ref.tensor.weight for ref in refs if ref is not lead} if len(refs) > 1 else set()
    t.folded |= {ref.tensor.weight for ref in refs if ref is not lead}
    dims = (((),) * (len(sizes) - len(lead.dims))) + lead.dims
    result = tuple(
        dim if t.forest.fits(dim, size) else t.forest.dim(size)
        for dim, size in zip(dims, sizes, strict=True)
    )
    return under(lead, result)


def broadcast(t: Trace, refs: Sequence[Ref], sizes: Sequence[Size]) -> Dims:
    """Return the dimensions of a function of several tensors, which are unified."""
    rank = len(sizes)
    result: list[Dim] = []
    for place, size in enumerate(sizes):
        chosen: Dim = ()
        first: tuple[Ref, int] | None = None
        for ref in refs:
            at = place - rank + len(ref.dims)
            if at < 0 or not t.forest.flat(ref.dims[at]):
                continue
            if first is None:
                first, chosen = (ref, at), ref.dims[at]
            else:
                t.unify(*first, ref, at)
        if not chosen and size != 1:
            chosen = t.forest.dim(size)
        taken = set(t.forest.axes(result))
        result.append(t.forest.copies(chosen) if taken & set(t.forest.flat(chosen)) else chosen)
    return tuple(result)


def matched(dims: Dims, result: Dims) -> Dims:
    """Return the dimensions of a result at the places where an operand has any."""
    lead = len(result) - len(dims)
    return tuple(result[lead + i] if dim else () for i, dim in enumerate(dims) if lead + i >= 0)


@rule("aten.dropout", "aten.dropout_", "aten.native_dropout", "aten.feature_dropout",
      "aten.alpha_dropout")  # fmt: skip
def dropout(t: Trace) -> None:
    """Dropout, where it is on."""
    ref = t.tensors()[0]
    if t.arg("train", 2) is True and not ref.tensor.constant and (t.arg("p", 1) or 0) > 0:
        ref = t.pointwise("dropout", [ref], ref.dims)
    t.bind(ref)


@rule("aten.softmax", "aten._softmax", "aten.log_softmax", "aten._log_softmax",
      "aten._safe_softmax", "aten.special_softmax", "aten.special_log_softmax")  # fmt: skip
def softmax(t: Trace) -> None:
    """Softmax along a dimension."""
    ref = t.arg("self", 0)
    if ref.tensor.constant:
        t.bind(t.constant())
        return
    row = ref.dims[t.arg("dim", 1)]
    single = t.arg("dtype", 2) is not None or t.cores.get(t.node.index) == "softmax_single"
    function = "softmax_single" if single else "softmax"
    core = t.node.path if t.node.index in t.cores else ""
    t.bind(t.pointwise(function, [ref], ref.dims, row=row, core=core))


@rule("aten.mean", "aten.sum", "aten.amax", "aten.amin", "aten.max", "aten.min", "aten.var",
      "aten.std", "aten.prod", "aten.logsumexp", "aten.norm", "aten.linalg_vector_norm",
      "aten.argmax", "aten.argmin", "aten.any", "aten.all", "aten.var_mean", "aten.nansum",
      "aten.count_nonzero")  # fmt: skip
def reduction(t: Trace) -> None:
    """Sums and the like over dimensions; the largest of two tensors."""
    refs = t.tensors()
    ref = refs[0]
    if len(refs) > 1:
        t.bind(combined(t, refs, "mul"))
        return
    for place, name in enumerate(t.node.outputs):
        if not name:
            continue
        if not t.floating(place) or ref.tensor.constant:
            t.bind(t.constant(name), place)
        else:
            t.bind(t.pointwise("sum", [ref], _remaining_dims(t, ref)), place)


def _remaining_dims(t: Trace, ref: Ref) -> Dims:
    named = t.arg("dim", 2 if t.node.target in ("aten.norm", "aten.linalg_vector_norm") else 1)
    rank = len(ref.dims)
    places = (
        range(rank)
        if named is None or named == []
        else [named]
        if isinstance(named, int)
        else named
    )
    gone = {place % rank for place in places} if rank else set()
    keep = t.arg("keepdim", 2) is True or len(t.sizes()) == rank
    return tuple(
        () if place in gone else dim
        for place, dim in enumerate(ref.dims)
        if keep or place not in gone
    )


@rule("aten.glu")
def gated(t: Trace) -> None:
    """Half of a dimension times the activated other half."""
    ref = t.arg("self", 0)
    place = -1 if t.arg("dim", 1) is None else t.arg("dim", 1)
    at = place % len(ref.dims)
    split = t.forest.split(ref.dims[at], (2, t.sizes()[at]))
    dims = put(ref.dims, at, split[1] if split else t.forest.dim(t.sizes()[at]))
    t.bind(t.pointwise("mul", [ref], dims))


@rule("aten.cumsum", "aten.cumprod", "aten.diff", "aten.logcumsumexp", "aten.cummax")
def cumulated(t: Trace) -> None:
    """Sums up to every position: no mesh axis may split the dimension."""
    ref = t.arg("self", 0)
    if ref.tensor.constant:
        t.bind(t.constant())
        return
    t.forest.moved.update(t.forest.flat(ref.dims[t.arg("dim", 1)]))
    dims = t.aligned(ref, t.sizes())
    t.bind(t.pointwise("scale", [ref], dims))


@rule("aten.topk", "aten.kthvalue", "aten.sort")
def choice(t: Trace) -> None:
    """The largest along a dimension, and where they are."""
    ref = t.arg("self", 0)
    if ref.tensor.constant:
        for place, name in enumerate(t.node.outputs):
            t.bind(t.constant(name), place)
        return
    place = t.arg("dim", 2 if t.node.target == "aten.topk" else 1)
    at = (-1 if place is None else place) % len(ref.dims)
    new = t.forest.dim(t.sizes()[at])
    t.slots += new
    dims = put(ref.dims, at, new)
    t.bind(t.pointwise("choice", [ref], dims, row=ref.dims[at]))
    t.bind(t.constant(t.node.outputs[1]), 1)


# Norms.


def norm(t: Trace, ref: Ref, weights: Sequence[Ref | None], function: str, row: Dim) -> Ref:
    """Write a norm along rows, with its weights."""
    uses = [Use(ref, ref.dims)]
    for weight in weights:
        if not isinstance(weight, Ref) or weight.tensor.constant:
            continue
        want = matched(weight.dims, ref.dims)
        for mine, theirs in zip(weight.dims, want, strict=True):
            t.forest.unify(mine, theirs)
        uses.append(Use(weight, want))
    if len(uses) == 1 and function in ("layer_norm", "rms_norm"):
        function = "layer_norm_bare" if function == "layer_norm" else function
    return t.pointwise(function, uses, ref.dims, row=row)


@rule("aten.layer_norm", "aten.native_layer_norm", "aten.rms_norm", "aten._fused_rms_norm")
def row_norm(t: Trace) -> None:
    """A norm along the last dimensions."""
    ref = t.arg("input", 0)
    many = len(t.arg("normalized_shape", 1))
    row = tuple(axis for dim in ref.dims[-many:] for axis in dim)
    function = "rms_norm" if "rms" in t.node.target else "layer_norm"
    t.bind(norm(t, ref, (t.arg("weight", 2), t.arg("bias", 3)), function, row))


@rule("aten.batch_norm", "aten._native_batch_norm_legit", "aten.native_batch_norm",
      "aten._native_batch_norm_legit_no_training", "aten.cudnn_batch_norm",
      "aten.instance_norm")  # fmt: skip
def channel_norm(t: Trace) -> None:
    """A norm of every channel over samples and positions."""
    ref = t.arg("input", 0)
    weights = [t.arg("weight", 1), t.arg("bias", 2)]
    instance = "instance" in t.node.target
    row = tuple(axis for dim in put(ref.dims, 1)[int(instance) :] for axis in dim)
    function = "instance_norm" if instance else "batch_norm"
    t.bind(norm(t, ref, _of_channels(ref, weights), function, row))


@rule("aten.group_norm", "aten.native_group_norm")
def group_norm(t: Trace) -> None:
    """A norm over groups of channels and positions."""
    ref, native = t.arg("input", 0), "native" in t.node.target
    groups = t.arg("group", 6) if native else t.arg("num_groups", 1)
    first = 1 if native else 2
    length = t.forest.length(ref.dims[1])
    split = t.forest.split(ref.dims[1], (groups, length // groups))
    inner = split[1] if split else ref.dims[1]
    row = (*inner, *(axis for dim in ref.dims[2:] for axis in dim))
    weights = (t.arg("weight", first), t.arg("bias", first + 1))
    t.bind(norm(t, ref, _of_channels(ref, weights), "group_norm", row))


def _of_channels(ref: Ref, weights: Sequence[object]) -> list[Ref]:
    """Return weights of channels, the second dimension of a tensor, in their place."""
    beside = ((),) * (len(ref.dims) - 2)
    return [under(w, (w.dims[0], *beside)) for w in weights if isinstance(w, Ref)]
