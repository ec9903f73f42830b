"""Convolutions, and reductions over windows."""

import re

from sympy import Mul, ceiling

from symbolic_cost.models.traced.acts import Ref, Use
from symbolic_cost.models.traced.graph import number
from symbolic_cost.models.traced.trace import Trace, rule


@rule("aten.conv1d", "aten.conv2d", "aten.conv3d", "aten.convolution", "aten._convolution",
      "aten.conv_transpose1d", "aten.conv_transpose2d", "aten.conv_transpose3d")  # fmt: skip
def conv(t: Trace) -> None:
    """A convolution, or one the other way round."""
    x, w, bias = t.arg("input", 0), t.arg("weight", 1), t.arg("bias", 2)
    turned = "transpose" in t.node.target or t.arg("transposed", 6) is True
    groups = t.arg("groups", 8 if "convolution" in t.node.target else 6)
    groups = 1 if groups is None else groups
    spatial = len(w.dims) - 2
    lead = x.dims[: len(x.dims) - spatial - 1]
    channels = x.dims[-spatial - 1]
    forest = t.forest
    # The kernel is [out, in / groups, ...], turned [in, out / groups, ...].
    each = Mul(*(axis.size for axis in forest.flat(w.dims[0]))) / number(groups)
    split = forest.split(w.dims[0], (groups, each)) if groups != 1 else None
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
    new = sizes[len(sizes) - spatial :]
    dims = (*leading, *t.forest.dims(new))
    if "adaptive" in t.node.target:
        if all(size == 1 for size in new):
            t.bind(t.pointwise("sum", [x], dims))
            return
        old = [Mul(*(axis.size for axis in t.forest.flat(dim))) for dim in x.dims[-spatial:]]
        kernel = [ceiling(a / number(b)) for a, b in zip(old, new, strict=True)]
    else:
        kernel = t.arg("kernel_size", 1)
        kernel = [kernel] * spatial if isinstance(kernel, int) else kernel
        kernel = kernel * spatial if len(kernel) < spatial else kernel
    window = tuple(t.forest.new(size) for size in kernel if size != 1)
    function = "max_pool" if "max" in t.node.target else "avg_pool"
    t.bind(t.act("pool", [x], dims, function=function, options={"window": window}))
