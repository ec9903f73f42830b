"""Image networks of inverted residuals whose deeper stages attend between patches: MobileViT."""

from collections.abc import Callable, Mapping
from itertools import accumulate
from operator import mul

from symbolic_cost.layers.conv import BatchNorm, Chain, Conv, Depthwise, Layer
from symbolic_cost.layers.map_attention import Patchwise, Pooled
from symbolic_cost.layers.maps import Mean, Normed, Reduced, Residual, chain, perceptron
from symbolic_cost.layers.skips import SetAside, Take
from symbolic_cost.layers.unet import Enlarged
from symbolic_cost.layers.upsampling import AdaptiveMean, Beside
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.vision.maps_families import (
    SEMANTIC,
    blocks,
    convolved,
    divided,
    function_of,
    lists,
    mix_transformer,
    ratio_of,
    rounded,
)

_NECKS, _STAGES, _SIXTEEN = 7, 3, 16


def pvt_v2(fields: Fields) -> dict[str, Layer]:
    """Return a second Pyramid Vision Transformer, whose patches overlap, as SegFormer's."""
    linear = fields.flag("linear_attention", default=False)
    fields.require(holds=not linear, problem="only false is declared", name="linear_attention")
    biased = fields.flag("qkv_bias", default=True)
    return mix_transformer(fields, biased=biased) | {"mean": Mean()}


def mobilevit(fields: Fields) -> dict[str, Layer]:
    """Return a MobileViT."""
    (necks,), (widths,) = lists(fields, "neck_hidden_sizes"), lists(fields, "hidden_sizes")
    heads, ratio = fields.size("num_attention_heads", 4), ratio_of(fields, "mlp_ratio", 2)
    biased, inverted = fields.flag("qkv_bias", default=True), _inverted(fields, 4)
    function, kernel, patch = _common(fields)
    steps, head = _steps(fields), _ending(fields)
    counted = (("neck_hidden_sizes", necks, _NECKS), ("hidden_sizes", widths, _STAGES))
    for name, sizes, number in counted:
        problem = f"{len(sizes)} sizes: {number} are accepted"
        fields.require(holds=len(sizes) == number, problem=problem, name=name)
    if fields.problems:
        return {}
    divided(fields, "num_attention_heads", widths, (heads,) * _STAGES)
    layers: dict[str, Layer] = {"stem": convolved(Conv(necks[0], 3, 2, 1, bias=False), function)}
    layers["stage0.0"] = inverted(necks[0], necks[1], 1)
    layers |= {f"stage1.{i}": inverted(necks[1 + (i > 0)], necks[2], 2 - (i > 0)) for i in range(3)}
    for stage, (width, depth) in enumerate(zip(widths, (2, 4, 3), strict=True), 2):
        channels = necks[stage + 1]
        wide = Conv(channels, kernel, 1, kernel // 2, bias=False)
        inner: dict[str, Layer] = {}
        for i in range(depth):
            mlp = perceptron(int(ratio * width), width, function)
            inner |= blocks(f"{i}", Reduced(heads, 1, biased, apart=True), mlp)
        own: dict[str, Layer] = {
            "put": SetAside(f"stage{stage}"),
            "conv": convolved(wide, function),
            "mix": Conv(width, 1, bias=False),
            "patches": Patchwise(patch, Chain(inner | {"last": Normed()})),
            "back": convolved(Conv(channels, 1, bias=False), function),
            "both": Beside((f"stage{stage}",)),
            "fused": convolved(wide, function),
        }
        layers[f"stage{stage}.down"] = inverted(necks[stage], channels, *steps[stage - 2])
        layers[f"stage{stage}.own"] = Chain(own)
    if head:
        return layers | head
    end = convolved(Conv(necks[-1], 1, bias=False), function)
    return layers | {"end": end, "mean": Mean()}


def mobilevitv2(fields: Fields) -> dict[str, Layer]:
    """Return a second MobileViT, whose attention is linear in the positions."""
    depths, units = lists(fields, "n_attn_blocks", "base_attn_unit_dims")
    times, factor = fields.size("ffn_multiplier", 2), ratio_of(fields, "width_multiplier", 1)
    function, kernel, patch = _common(fields)
    inverted, side = _inverted(fields, 2), fields.size("image_size", 256)
    steps, head = _steps(fields), _ending(fields)
    reached = accumulate((step for step, _ in steps), mul, initial=4)
    sides = [-(-side // step) for step in reached][1:]
    whole = all(each % patch == 0 for each in sides)
    problem = f"image_size leaves maps of {sides} a side, which are no whole patches of {patch}"
    fields.require(holds=whole, problem=problem, name="patch_size")
    problem = f"{len(depths)} stages: {_STAGES} are accepted"
    fields.require(holds=len(depths) == _STAGES, problem=problem, name="n_attn_blocks")
    if fields.problems:
        return {}
    thin = min(times * rounded(unit * factor, 8, 8) for unit in units)
    fine = thin >= _SIXTEEN
    problem = f"perceptrons of {thin} features: {_SIXTEEN} and more, in sixteens, are accepted"
    fields.require(holds=fine, problem=problem, name="ffn_multiplier")
    first = rounded(min(max(32 * factor, 16), 64), 8, 16)
    necks = [rounded(n * factor, 8, 8) for n in (128, 256, 384, 512)]
    second = rounded(64 * factor, 16, 16)
    layers: dict[str, Layer] = {"stem": convolved(Conv(first, 3, 2, 1, bias=False), function)}
    layers["stage0.0"] = inverted(first, second, 1)
    layers |= {
        "stage1.0": inverted(second, necks[0], 2),
        "stage1.1": inverted(necks[0], necks[0], 1),
    }
    stages = zip(necks, necks[1:], depths, units, strict=False)
    for stage, (old, channels, depth, unit) in enumerate(stages, 2):
        width = rounded(unit * factor, 8, 8)
        inner: dict[str, Layer] = {}
        for i in range(depth):
            mlp = perceptron(times * width // _SIXTEEN * _SIXTEEN, width, function)
            both = (("attention", Pooled()), ("mlp", mlp))
            inner |= {f"{i}.{n}": Residual(Chain({"norm": _GLOBAL, "own": one})) for n, one in both}
        layers[f"stage{stage}.down"] = inverted(old, channels, *steps[stage - 2])
        deep = Depthwise(kernel, 1, kernel // 2, bias=False)
        layers[f"stage{stage}.conv"] = convolved(deep, function)
        layers[f"stage{stage}.mix"] = Conv(width, 1, bias=False)
        layers[f"stage{stage}.patches"] = Patchwise(patch, Chain(inner | {"last": _GLOBAL}))
        layers[f"stage{stage}.back"] = chain(Conv(channels, 1, bias=False), BatchNorm())
    return layers | (head or {"mean": Mean()})


def _steps(fields: Fields) -> list[tuple[int, int]]:
    """Return the step of every stage that attends, and how far positions of its windows are."""
    stride, apart = fields.size("output_stride", 32), 1
    steps = []
    for least in (4, 8, 16):
        apart *= 1 + (stride in (8, 16) and stride <= least)
        steps.append((2 if apart == 1 else 1, max(apart // 2, 1)))
    return steps


def _ending(fields: Fields) -> dict[str, Layer]:
    """Return what stands before the classes of pixels: windows of several reaches, and the mean."""
    if not fields.head.endswith(SEMANTIC):
        return {}
    wide, rates = fields.size("aspp_out_channels", 256), fields.items("atrous_rates", (6, 12, 18))
    fine = len(rates) == _STAGES and all(map(is_size, rates))
    fields.require(holds=fine, problem="3 sizes are accepted", name="atrous_rates")
    reaches = [Conv(wide, 3, 1, rate, bias=False, apart=rate) for rate in rates if fine]
    one = Conv(wide, 1, bias=False)
    titles = tuple(f"reach{i}" for i in range(1 + len(reaches)))
    every: dict[str, Layer] = {
        title: chain(Take("map"), convolved(conv, "relu"), SetAside(title))
        for title, conv in zip(titles, (one, *reaches), strict=True)
    }
    mean = chain(Take("map"), AdaptiveMean(1), convolved(one, "relu"), Enlarged("map"))
    return {
        "map": SetAside("map"),
        **every,
        "mean": mean,
        "beside": Beside(titles),
        "project": convolved(one, "relu"),
    }


_GLOBAL = Normed("group_norm", "both")


def _common(fields: Fields) -> tuple[str, int, int]:
    function, kernel = function_of(fields, "silu"), fields.size("conv_kernel_size", 3)
    if kernel % 2 != 1:
        fields.note("conv_kernel_size", "an odd kernel keeps maps")
    return function, kernel, fields.size("patch_size", 2)


def _inverted(fields: Fields, usual: int) -> Callable[..., Layer]:
    function, ratio = function_of(fields, "silu"), ratio_of(fields, "expand_ratio", usual)

    def block(old: int, new: int, stride: int, apart: int = 1) -> Layer:
        wide = rounded(round(old * ratio), 8, 8)
        branch = chain(
            convolved(Conv(wide, 1, bias=False), function),
            convolved(Depthwise(3, stride, apart, bias=False, apart=apart), function),
            chain(Conv(new, 1, bias=False), BatchNorm()),
        )
        return Residual(branch) if stride == 1 and old == new else branch

    return block


MOBILE: Mapping[str, Callable[[Fields], dict[str, Layer]]] = {
    "pvt_v2": pvt_v2,
    "mobilevit": mobilevit,
    "mobilevitv2": mobilevitv2,
}
"""Makes the layers of a family before the classes, by model_type."""
