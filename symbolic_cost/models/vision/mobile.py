"""Image networks of inverted residuals whose deeper stages attend between patches: MobileViT."""

from collections.abc import Callable, Mapping

from symbolic_cost.layers.conv import BatchNorm, Chain, Conv, Depthwise, Layer
from symbolic_cost.layers.map_attention import Patchwise, Pooled
from symbolic_cost.layers.maps import Mean, Normed, Reduced, Residual, chain, perceptron
from symbolic_cost.layers.skips import SetAside
from symbolic_cost.layers.upsampling import Beside
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.vision.maps_families import (
    blocks,
    convolved,
    divided,
    function_of,
    lists,
    mix_transformer,
    ratio_of,
    rounded,
)

_NECKS, _STAGES = 7, 3


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
        layers[f"stage{stage}.down"] = inverted(necks[stage], channels, 2)
        layers[f"stage{stage}.own"] = Chain(own)
    end = convolved(Conv(necks[-1], 1, bias=False), function)
    return layers | {"end": end, "mean": Mean()}


def mobilevitv2(fields: Fields) -> dict[str, Layer]:
    """Return a second MobileViT, whose attention is linear in the positions."""
    depths, units = lists(fields, "n_attn_blocks", "base_attn_unit_dims")
    times, factor = fields.size("ffn_multiplier", 2), ratio_of(fields, "width_multiplier", 1)
    function, kernel, patch = _common(fields)
    inverted, side = _inverted(fields, 2), fields.size("image_size", 256)
    sides = [-(-side // step) for step in (8, 16, 32)]
    whole = all(each % patch == 0 for each in sides)
    problem = f"image_size leaves maps of {sides} a side, which are no whole patches of {patch}"
    fields.require(holds=whole, problem=problem, name="patch_size")
    problem = f"{len(depths)} stages: {_STAGES} are accepted"
    fields.require(holds=len(depths) == _STAGES, problem=problem, name="n_attn_blocks")
    if fields.problems:
        return {}
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
            mlp = perceptron(times * width // 16 * 16, width, function)
            both = (("attention", Pooled()), ("mlp", mlp))
            inner |= {f"{i}.{n}": Residual(Chain({"norm": _GLOBAL, "own": one})) for n, one in both}
        layers[f"stage{stage}.down"] = inverted(old, channels, 2)
        deep = Depthwise(kernel, 1, kernel // 2, bias=False)
        layers[f"stage{stage}.conv"] = convolved(deep, function)
        layers[f"stage{stage}.mix"] = Conv(width, 1, bias=False)
        layers[f"stage{stage}.patches"] = Patchwise(patch, Chain(inner | {"last": _GLOBAL}))
        layers[f"stage{stage}.back"] = chain(Conv(channels, 1, bias=False), BatchNorm())
    return layers | {"mean": Mean()}


_GLOBAL = Normed("group_norm", "both")


def _common(fields: Fields) -> tuple[str, int, int]:
    function, kernel = function_of(fields, "silu"), fields.size("conv_kernel_size", 3)
    if kernel % 2 != 1:
        fields.note("conv_kernel_size", "an odd kernel keeps maps")
    stride = fields.size("output_stride", 32)
    fields.require(holds=stride not in (8, 16), problem="only 32 is declared", name="output_stride")
    return function, kernel, fields.size("patch_size", 2)


def _inverted(fields: Fields, usual: int) -> Callable[[int, int, int], Layer]:
    function, ratio = function_of(fields, "silu"), ratio_of(fields, "expand_ratio", usual)

    def block(old: int, new: int, stride: int) -> Layer:
        wide = rounded(round(old * ratio), 8, 8)
        branch = chain(
            convolved(Conv(wide, 1, bias=False), function),
            convolved(Depthwise(3, stride, 1, bias=False), function),
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
