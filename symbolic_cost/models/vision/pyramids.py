"""More hierarchical image networks: PVT, FocalNet, RegNet, EfficientNet, LeViT."""

from collections.abc import Callable, Mapping
from math import ceil

from symbolic_cost.layers.conv import (
    Activation,
    BatchNorm,
    Chain,
    Conv,
    Depthwise,
    Layer,
    Pad,
    Padding,
)
from symbolic_cost.layers.maps import Mean, Normed, Placed, Reduced, Residual, chain, perceptron
from symbolic_cost.layers.pyramid import (
    Biased,
    FirstPosition,
    Focal,
    Grouped,
    Plained,
    Squeeze,
    Token,
)
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.vision.maps_families import (
    blocks,
    convolved,
    divided,
    function_of,
    lists,
    ratio_of,
    staged,
)


def pvt(fields: Fields) -> dict[str, Layer]:
    """Return a Pyramid Vision Transformer; its last stage has a class token."""
    names = ("depths", "hidden_sizes", "num_attention_heads", "patch_sizes", "strides")
    stages = lists(fields, *names, "sequence_reduction_ratios", "mlp_ratios")
    function, biased = function_of(fields, "gelu"), fields.flag("qkv_bias", default=True)
    staged(fields, "num_encoder_blocks", len(stages[0]))
    divided(fields, "num_attention_heads", stages[1], stages[2])
    _fits(fields, stages[3], stages[4])
    if stages[5][-1] != 1:
        fields.note(
            "sequence_reduction_ratios", "the last stage, which has a class token, is not reduced"
        )
    layers: dict[str, Layer] = {}
    last = len(stages[0]) - 1
    for stage, (depth, width, heads, step, kernel, ratio, times) in enumerate(
        zip(*stages, strict=True)
    ):
        name = f"stage{stage}"
        layers |= {f"{name}.patch": Conv(width, kernel, step), f"{name}.norm": Normed()}
        layers |= {f"{name}.token": Token()} if stage == last else {}
        layers[f"{name}.place"] = Placed()
        for i in range(depth):
            attention = Reduced(heads, ratio, biased)
            layers |= blocks(f"{name}.{i}", attention, perceptron(times * width, width, function))
    return layers | {"last": Normed(), "first": FirstPosition()}


def _fits(fields: Fields, steps: tuple[int, ...], kernels: tuple[int, ...]) -> None:
    """Note tables of positions that are longer or shorter than the maps of their stage."""
    side = image = fields.size("image_size", 224)
    for stage, (step, kernel) in enumerate(zip(steps, kernels, strict=True)):
        table = (image if stage == 0 else image >> (stage + 1)) // step
        side = (side - kernel) // step + 1
        if side != table:
            fields.note(
                "patch_sizes", f"maps of {side} a side have positions of {table} in stage {stage}"
            )


def focalnet(fields: Fields) -> dict[str, Layer]:
    """Return a FocalNet."""
    depths, levels, windows = lists(fields, "depths", "focal_levels", "focal_windows")
    width, ratio = fields.size("embed_dim", 96), ratio_of(fields, "mlp_ratio", 4)
    function, patch = function_of(fields, "gelu"), fields.size("patch_size", 4)
    convolved_ = fields.flag("use_conv_embed", default=False)
    last = fields.flag("use_post_layernorm", default=False)
    inside = fields.flag("use_post_layernorm_in_modulation", default=False)
    scaled = fields.flag("use_layerscale", default=False)
    fields.ignore("hidden_sizes", "encoder_stride", "layerscale_value", "normalize_modulator")
    odd = [window for window in windows if window % 2 == 0]
    fields.require(holds=not odd, problem="odd windows are accepted", name="focal_windows")
    whole = fields.size("image_size", 224) % (patch << (len(depths) - 1)) == 0
    problem = "convolutions that embed are declared where every stage halves the sides"
    fields.require(holds=whole or not convolved_, problem=problem, name="use_conv_embed")
    first = Conv(width, 7, 4, 2) if convolved_ else Conv(width, patch, patch, Pad.SAME)
    layers: dict[str, Layer] = {"patch": first, "norm": Normed()}
    for stage, (depth, level, window) in enumerate(zip(depths, levels, windows, strict=True)):
        if stage:
            width *= 2
            down = Conv(width, 3, 2, 1) if convolved_ else Conv(width, 2, 2, Pad.SAME)
            layers[f"stage{stage}.down"] = Chain({"conv": down, "norm": Normed()})
        kernels = tuple(window + 2 * i for i in range(level))
        for i in range(depth):
            modulation = Focal(kernels, "result" if inside else "")
            mlp = perceptron(int(ratio * width), width, function)
            layers |= blocks(f"stage{stage}.{i}", modulation, mlp, last=last, scaled=scaled)
    return layers | {"last": Normed(), "mean": Mean()}


def regnet(fields: Fields) -> dict[str, Layer]:
    """Return a RegNet, whose Y blocks squeeze."""
    depths, widths = lists(fields, "depths", "hidden_sizes")
    function, each = function_of(fields, "relu"), fields.size("groups_width", 64)
    squeezed = fields.text("layer_type", "y", ("x", "y")) == "y"
    halves = fields.flag("downsample_in_first_stage", default=True)
    inner = fields.size("embedding_size", 32)
    layers: dict[str, Layer] = {"stem": convolved(Conv(inner, 3, 2, 1, bias=False), function)}
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        groups = max(1, width // each)
        if width % groups != 0:
            fields.note("groups_width", f"{groups} groups do not divide {width} channels")
        for i in range(depth):
            stride = 2 if i == 0 and (stage or halves) else 1
            middle = (
                Grouped(groups, 3, stride, 1)
                if groups > 1
                else Conv(width, 3, stride, 1, bias=False)
            )
            branch: dict[str, Layer] = {
                "conv1": convolved(Conv(width, 1, bias=False), function),
                "conv2": convolved(middle, function),
                **({"squeeze": Squeeze(round(inner / 4))} if squeezed else {}),
                "conv3": chain(Conv(width, 1, bias=False), BatchNorm()),
            }
            same = stride == 1 and inner == width
            short = None if same else chain(Conv(width, 1, stride, bias=False), BatchNorm())
            layers[f"stage{stage}.{i}"] = Residual(Chain(branch), short, function)
            inner = width
    return layers | {"mean": Mean()}


def efficientnet(fields: Fields) -> dict[str, Layer]:
    """Return an EfficientNet: inverted residuals that squeeze, wider and deeper by factors."""
    names = ("in_channels", "out_channels", "kernel_sizes", "strides", "num_block_repeats")
    stages = lists(fields, *names, "expand_ratios")
    function = function_of(fields, "silu")
    wide, deeper = (
        ratio_of(fields, f"{n}_coefficient", d) for n, d in (("width", 2), ("depth", 31 / 10))
    )
    divisor, share = (
        fields.size("depth_divisor", 8),
        ratio_of(fields, "squeeze_expansion_ratio", 1 / 4),
    )
    fields.text("pooling_type", "mean", ("mean",))
    whole = fields.items("depthwise_padding")
    fields.ignore("num_hidden_layers", "batch_norm_momentum")
    if set(stages[3]) > {1, 2}:
        fields.note("strides", "strides of 1 and 2 are accepted")

    def rounded(channels: int) -> int:
        many = channels * wide
        near = max(divisor, int(many + divisor / 2) // divisor * divisor)
        return near + divisor if 10 * near < 9 * many else near

    inner, top, count = rounded(32), rounded(1280), 0
    stated = fields.size("hidden_dim", 2560)
    problem = f"{stated} is not the {top} channels at the end"
    fields.require(holds=stated == top, problem=problem, name="hidden_dim")
    layers: dict[str, Layer] = {"stem": convolved(Conv(inner, 3, 2, (0, 1), bias=False), function)}
    for stage, (old, new, kernel, step, repeats, times) in enumerate(zip(*stages, strict=True)):
        if rounded(old) != inner:
            fields.note(
                "in_channels", f"stage {stage} takes {rounded(old)} channels and gets {inner}"
            )
        for i in range(ceil(deeper * repeats)):
            half, stride = kernel // 2, 1 if i else step
            padding: Padding = Pad.SAME if stride == 1 else (half - (count not in whole), half)
            expand = (convolved(Conv(inner * times, 1, bias=False), function),) if times > 1 else ()
            branch = chain(
                *expand,
                convolved(Depthwise(kernel, stride, padding, bias=False), function),
                Squeeze(max(1, int(inner * share)), function),
                chain(Conv(rounded(new), 1, bias=False), BatchNorm()),
            )
            layers[f"stage{stage}.{i}"] = Residual(branch) if i else branch
            inner, count = rounded(new), count + 1
    return layers | {"top": convolved(Conv(top, 1, bias=False), function), "mean": Mean()}


def levit(fields: Fields) -> dict[str, Layer]:
    """Return a LeViT: convolutions, then attention with batch norms on ever fewer positions."""
    names = ("depths", "hidden_sizes", "num_attention_heads", "key_dim", "attention_ratio")
    stages = lists(fields, *names, "mlp_ratio")
    kernel, stride = fields.size("kernel_size", 3), fields.size("stride", 2)
    padding, side = fields.size("padding", 1), fields.size("image_size", 224)
    stages_down, key = fields.items("down_ops"), max(stages[3][0], 1)
    usual = [["Subsample", key, wide // key, 4, 2, 2] for wide in stages[1][:-1]]
    told = [list(one) if isinstance(one, list | tuple) else one for one in stages_down]
    fine = [one for one in told if one != [""]] in ([], usual)
    fields.require(holds=fine, problem=f"only {usual} is declared", name="down_ops")
    problem = "three stages are declared"
    fields.require(holds=len(stages[0]) == 3, problem=problem, name="depths")  # noqa: PLR2004
    first, places = stages[1][0], side // fields.size("patch_size", 16)
    fields.require(holds=first % 8 == 0, problem="a multiple of 8 is accepted", name="hidden_sizes")
    layers: dict[str, Layer] = {}
    for i in range(4):
        conv = Conv(max(first >> (3 - i), 1), kernel, stride, padding, bias=False)
        layers[f"patch{i}"] = convolved(conv, "silu") if i < 3 else chain(conv, BatchNorm())  # noqa: PLR2004
        side = (side + 2 * padding - kernel) // stride + 1
    if side != places:
        fields.note(
            "patch_size", f"convolutions leave {side} positions a side and patches {places}"
        )
    width = stages[3][0]
    for stage, (depth, channels, heads, each, ratio, times) in enumerate(zip(*stages, strict=True)):
        if stage:
            fewer = max(stages[1][stage - 1] // width, 1)
            layers[f"stage{stage}.down"] = Biased(fewer, width, 4, channels, 2)
            layers[f"stage{stage}.mlp"] = Residual(_two(2 * channels, channels))
        for i in range(depth):
            name, own = f"stage{stage}.{i}", Biased(heads, each, ratio, channels)
            layers[f"{name}.attention"] = Residual(Chain({"own": own}))
            layers[f"{name}.mlp"] = Residual(_two(times * channels, channels))
    return layers | {"mean": Mean(), "norm": BatchNorm()}


def _two(width: int, channels: int) -> Chain:
    return Chain({"up": Plained(width), "act": Activation("silu"), "down": Plained(channels)})


MORE: Mapping[str, Callable[[Fields], dict[str, Layer]]] = {
    "pvt": pvt,
    "focalnet": focalnet,
    "regnet": regnet,
    "efficientnet": efficientnet,
    "levit": levit,
}
"""Makes the layers of a family before the classes, by model_type."""
