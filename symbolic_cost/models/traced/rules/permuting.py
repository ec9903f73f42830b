"""Operators whose elements change places: no mesh axis may split where they do."""

from collections.abc import Mapping

from symbolic_cost.models.traced.acts import Ref, Use, names_in, under
from symbolic_cost.models.traced.forest import Dim
from symbolic_cost.models.traced.rules.parts import chosen_rows
from symbolic_cost.models.traced.rules.pointwise import combined
from symbolic_cost.models.traced.trace import Trace, rule


@rule(
    "aten.roll", "aten.flip", "aten.pad", "aten.constant_pad_nd", "aten.reflection_pad1d",
    "aten.reflection_pad2d", "aten.replication_pad2d", "aten.unfold", "aten.im2col", "aten.col2im",
    "aten.diagonal", "aten.scatter", "aten.scatter_add", "aten.index_put", "aten.index_put_",
    "aten.index_add", "aten.index_copy", "aten.slice_scatter", "aten.select_scatter", "aten.copy",
    "aten.scatter_", "aten.masked_scatter", "aten.sort", "aten.as_strided", "aten.pixel_shuffle",
    "aten.pixel_unshuffle", "aten.channel_shuffle", "aten.gather", "aten.take_along_dim",
    "aten.index_select", "aten.rot90", "aten.scatter_add_", "aten.index_add_", "aten.index_copy_",
    "aten.scatter_reduce", "aten.scatter_reduce_", "aten.index_reduce", "aten.fft_fftshift",
    "aten.fft_ifftshift",
)  # fmt: skip
def moved(t: Trace) -> None:
    """Elements that change places: no mesh axis may split the dimensions along which they do."""
    refs = [ref for ref in t.tensors() if not ref.tensor.constant]
    if refs and refs[0].tensor.weight and t.node.target in ("aten.index_select", "aten.gather"):
        chosen_rows(t, refs[0], (t.arg("dim", 1) or 0) % len(refs[0].dims))
        return
    if t.node.target in ("aten.gather", "aten.index_select", "aten.take_along_dim") and refs:
        _picked(t, refs[0])
        return
    t.opaque()
    for name in t.node.outputs:
        source = t.value(name)
        if source is not None and not source.tensor.constant:
            t.forest.moved.update(_along(t, source))


def _picked(t: Trace, ref: Ref) -> None:
    """Write the choice of positions along a dimension: all of them are at hand, any are made."""
    place = (t.arg("dim", 1) or 0) % len(ref.dims)
    sizes = t.sizes()
    t.forest.moved.update(t.forest.flat(ref.dims[place]))
    dims = tuple(
        dim if i != place and t.forest.fits(dim, size) else t.forest.dim(size)
        for i, (dim, size) in enumerate(zip(ref.dims, sizes, strict=True))
    )
    t.bind(t.pointwise("copy", [ref], dims))


_DIMENSIONS: Mapping[str, str] = {
    **dict.fromkeys(("roll", "flip", "rot90"), "dims"),
    **dict.fromkeys(("fft_fftshift", "fft_ifftshift"), "dim"),
    "unfold": "dimension",
    **dict.fromkeys(
        ("sort", "scatter", "scatter_", "scatter_add", "index_add", "index_copy", "slice_scatter",
         "select_scatter", "scatter_add_", "index_add_", "index_copy_", "scatter_reduce",
         "scatter_reduce_", "index_reduce"),
        "dim",
    ),
}  # fmt: skip
"""The argument that names the dimensions along which elements move, by operator."""

_IMAGES = frozenset(
    {
        *("reflection_pad1d", "reflection_pad2d", "replication_pad2d", "im2col", "col2im"),
        *("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"),
    }
)
"""Operators of images: elements of one never move to another."""


def _along(t: Trace, ref: Ref) -> Dim:
    """Return the axes along which elements move; all of them where it is not said."""
    target = t.node.target.removeprefix("aten.")
    if target in _IMAGES and len(ref.dims) > 1:
        return t.forest.axes(ref.dims[1:])
    if target in ("pad", "constant_pad_nd"):
        changed = t.arg("pad", 1) or []
        places = [-1 - i // 2 for i, number in enumerate(changed) if number != 0]
        return t.forest.axes(ref.dims[place] for place in places)
    named = t.arg(_DIMENSIONS[target]) if target in _DIMENSIONS else None
    along = [named] if isinstance(named, int) else named
    return t.forest.axes([ref.dims[place] for place in along] if along else ref.dims)


@rule(
    "aten.new_empty", "aten.new_zeros", "aten.new_ones", "aten.new_full", "aten.zeros_like",
    "aten.ones_like", "aten.empty_like", "aten.full_like", "aten.rand_like", "aten.randn_like",
    "aten.bernoulli", "aten.new_empty_strided", "aten.eq", "aten.ne", "aten.lt", "aten.le",
    "aten.gt", "aten.ge", "aten.logical_and", "aten.logical_or", "aten.logical_xor",
    "aten.logical_not", "aten.isnan", "aten.isinf", "aten.arange", "aten.argsort",
)  # fmt: skip
def created(t: Trace) -> None:
    """A tensor that takes of another its shape alone, or truth values: neither has a gradient."""
    t.bind(t.constant())


_BOTH = 2
"""Tensors that a copy has: what is written, and into what."""


@rule("aten.copy_")
def copied(t: Trace) -> None:
    """Elements written into a tensor or a part of one: parts that are written are joined."""
    target, source = t.arg("self", 0), t.arg("src", 1)
    names = [name.text for key in ("self", "src") for name in names_in(t.node.args.get(key))]
    if len(names) == _BOTH and t.aliases.same(*names):
        t.bind(target, written=False)  # x[:2] += y writes what it has written already
    else:
        t.bind(target if source.tensor.constant else source)


@rule("aten._weight_norm", "aten._weight_norm_interface")
def weight_norm(t: Trace) -> None:
    """A weight in the place of its direction and its lengths."""
    direction, lengths = t.arg("v", 0), t.arg("g", 1)
    t.notes["computed from weights alone, element by element: not costed"] += 1
    t.folded.add(lengths.tensor.weight)
    t.bind(direction)


@rule("aten.upsample_bilinear2d", "aten.upsample_nearest2d", "aten.upsample_nearest1d",
      "aten.upsample_bicubic2d", "aten.upsample_linear1d", "aten.upsample_trilinear3d",
      "aten.upsample_nearest3d", "aten.upsample_nearest_exact2d", "aten.grid_sampler",
      "aten.grid_sampler_2d", "aten.grid_sampler_3d", "aten.max_unpool2d",
      "aten._upsample_bilinear2d_aa", "aten._upsample_bicubic2d_aa")  # fmt: skip
def resampled(t: Trace) -> None:
    """Maps between positions, which may be computed themselves."""
    ref, places = t.tensors()[0], t.arg("grid")
    dims = (*ref.dims[:2], *t.forest.dims(t.sizes()[2:]))
    if isinstance(places, Ref) and not places.tensor.constant:
        t.unify(ref, 0, places, 0)
        at = Use(places, (ref.dims[0], *dims[2:], places.dims[-1]))
        t.bind(t.pointwise("interpolate", [ref, at], dims))
        return
    if ref.tensor.weight:
        t.bind(under(ref, t.aligned(ref, t.sizes())))
        return
    if ref.tensor.constant:
        t.bind(t.constant())
        return
    t.bind(t.pointwise("interpolate", [ref], dims))


@rule("aten.view_as_complex", "aten.view_as_real")
def paired(t: Trace) -> None:
    """Two numbers as a complex one, or a complex number as two."""
    ref = t.tensors()[0]
    if ref.tensor.constant:
        t.bind(t.constant())
        return
    apart = t.node.target == "aten.view_as_real"
    dims = (*ref.dims, t.forest.dim(2)) if apart else ref.dims[:-1]
    t.bind(t.pointwise("copy", [ref], dims))


@rule("aten.complex", "aten.polar")
def joined(t: Trace) -> None:
    """Complex numbers of two parts each."""
    t.bind(combined(t, t.tensors(), "copy"))


@rule(*(f"aten.fft_{kind}{dims}" for dims in ("", "2", "n") for kind in ("fft", "ifft", "rfft",
      "irfft")), *(f"aten.{name}" for name in ("_fft_c2c", "_fft_r2c", "_fft_c2r")))  # fmt: skip
def transformed(t: Trace) -> None:
    """A Fourier transform: every position takes all along a dimension."""
    ref = t.tensors()[0]
    if ref.tensor.constant:
        t.bind(t.constant())
        return
    named = t.arg("dim", 2 if "aten.fft" in t.node.target else 1)
    last = [-1] if t.node.target.endswith("fft") else [-2, -1] if "2" in t.node.target else None
    places = [named] if isinstance(named, int) else named or last or range(len(ref.dims))
    t.forest.moved.update(t.forest.axes(ref.dims[place] for place in places))
    t.bind(t.pointwise("fourier", [ref], t.aligned(ref, t.sizes())))
