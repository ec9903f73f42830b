"""HGNet of the second version: stages whose layers are all put side by side and squeezed."""

from symbolic_cost.layers.conv import BatchNorm, Chain, Conv, Depthwise, Layer
from symbolic_cost.layers.maps import Mean, Residual, chain
from symbolic_cost.layers.mask_heads import Scalar
from symbolic_cost.layers.skips import SetAside, Take
from symbolic_cost.layers.upsampling import Beside, Pool
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.vision.maps_families import convolved, function_of, lists

_SIZES = (
    *("stage_out_channels", "stage_in_channels", "stage_mid_channels", "stage_num_blocks"),
    *("stage_numb_of_layers", "stage_kernel_size", "stage_downsample_strides"),
)


def hgnet(fields: Fields) -> dict[str, Layer]:
    """Return the stages and the mean of the last map."""
    return {**stages(fields), "mean": Mean()}


def stages(fields: Fields) -> dict[str, Layer]:
    """Return the stages, whose maps stand aside as "map1" and on."""
    sizes, (stem,) = lists(fields, *_SIZES), lists(fields, "stem_channels")
    down, light = (fields.items(name) for name in ("stage_downsample", "stage_light_block"))
    affine = fields.flag("use_learnable_affine_block", default=False)
    function, colours = function_of(fields, "relu"), fields.size("num_channels", 3)
    if not fields.problems:
        _check(fields, sizes, stem, colours, (down, light))
    if fields.problems:
        return {}
    last: tuple[Layer, ...] = (Scalar("mul"), Scalar()) if affine else ()
    layers = _stem(stem, function, last)
    each = zip(sizes[0], *sizes[2:], down, light, strict=True)
    for stage, (out, middle, depth, number, kernel, stride, fewer, deep) in enumerate(each, 1):
        if fewer:
            layers[f"stage{stage}.down"] = chain(Depthwise(3, stride, 1, bias=False), BatchNorm())
        for i in range(depth):
            own = _block(f"stage{stage}.{i}", (out, middle, number, kernel), last, deep=deep)
            layers[f"stage{stage}.{i}"] = Residual(own) if i else own
        layers[f"stage{stage}.put"] = SetAside(f"map{stage}")
    return layers


def _check(
    fields: Fields,
    sizes: tuple[tuple[int, ...], ...],
    stem: tuple[int, ...],
    colours: int,
    flags: tuple[tuple[object, ...], ...],
) -> None:
    number = len(sizes[0])
    fine = all(len(one) == number and {*map(type, one)} == {bool} for one in flags)
    fields.require(holds=fine, problem="a truth value a stage is accepted", name="stage_downsample")
    fine = len(stem) == 3 and stem[0] == colours and stem[1] % 2 == 0  # noqa: PLR2004
    problem = f"the {colours} channels of the image, an even number and one more are accepted"
    fields.require(holds=fine, problem=problem, name="stem_channels")
    before, out = [stem[-1], *sizes[0][:-1]], list(sizes[0])
    for name, own, usual in (
        ("stage_in_channels", sizes[1], before),
        ("hidden_sizes", (out[0], *fields.items("hidden_sizes")[1:]), out),  # its first is not read
    ):
        fields.require(holds=list(own) == usual, problem=f"{usual} is accepted", name=name)
    odd = all(kernel % 2 for kernel in sizes[5])
    fields.require(holds=odd, problem="odd kernels keep maps", name="stage_kernel_size")
    even = all(width > 1 for width in out)
    fields.require(holds=even, problem="2 and more are accepted", name="stage_out_channels")


def _active(conv: Layer, function: str, last: tuple[Layer, ...]) -> Chain:
    return chain(convolved(conv, function), *last)


def _stem(stem: tuple[int, ...], function: str, last: tuple[Layer, ...]) -> dict[str, Layer]:
    _, wide, out = stem
    two = {
        "a": Conv(wide // 2, 2, 1, (0, 1), bias=False),
        "b": Conv(wide, 2, 1, (0, 1), bias=False),
    }
    return {
        "stem1": _active(Conv(wide, 3, 2, 1, bias=False), function, last),
        "stem1.put": SetAside("stem"),
        **{f"stem2{name}": _active(conv, function, last) for name, conv in two.items()},
        "stem2.put": SetAside("convolved"),
        "stem1.take": Take("stem"),
        "largest": Pool("max_pool", 2, 1, (0, 1)),
        "beside": Beside(("convolved",)),
        "stem3": _active(Conv(wide, 3, 2, 1, bias=False), function, last),
        "stem4": _active(Conv(out, 1, bias=False), function, last),
    }


def _block(
    name: str, sizes: tuple[int, int, int, int], last: tuple[Layer, ...], *, deep: bool
) -> Chain:
    out, middle, number, kernel = sizes
    inner: dict[str, Layer] = {"put": SetAside(f"{name}.0")}
    for i in range(1, number + 1):
        whole = Conv(middle, kernel, 1, kernel // 2, bias=False)
        first = chain(Conv(middle, 1, bias=False), BatchNorm())
        each = Depthwise(kernel, 1, kernel // 2, bias=False)
        made = chain(first, _active(each, "relu", last)) if deep else _active(whole, "relu", last)
        inner |= {f"layer{i}": made, f"put{i}": SetAside(f"{name}.{i}")}
    inner["take"] = Take(f"{name}.0")
    inner["beside"] = Beside(tuple(f"{name}.{i}" for i in range(1, number + 1)))
    for part, width in (("squeeze", out // 2), ("excite", out)):
        inner[part] = _active(Conv(width, 1, bias=False), "relu", last)
    return Chain(inner)
