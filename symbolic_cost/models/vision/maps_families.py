"""Hierarchical image networks, as chains of layers: ConvNeXt, Swin, SegFormer and others."""

from collections.abc import Callable, Mapping

from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Conv, Depthwise, Layer, Pad
from symbolic_cost.layers.maps import (
    JoinMaps,
    KeepMap,
    Mean,
    Merge,
    Mix,
    Normed,
    Placed,
    Reduced,
    Residual,
    Scaled,
    chain,
    deep,
    perceptron,
)
from symbolic_cost.layers.upsampling import Pool
from symbolic_cost.layers.window_attention import Windowed
from symbolic_cost.models.fields import LARGEST_SIZE, Fields, is_size, shortened
from symbolic_cost.models.functions import FUNCTIONS

Lists = tuple[int, ...]

_GLOBAL = Normed("group_norm", "both")


def convnext(fields: Fields) -> dict[str, Layer]:
    """Return a ConvNeXt; the second version normalises responses in place of a scale."""
    newer = fields.family == "convnextv2"
    depths, widths = lists(fields, "depths", "hidden_sizes")
    always = fields.family == "dinov3_convnext"
    scaled = (scale_of(fields) or always) and not newer
    function = function_of(fields, "gelu")
    patch = fields.size("patch_size", 4)
    staged(fields, "num_stages", len(depths))
    layers: dict[str, Layer] = {"patch": Conv(widths[0], patch, patch), "norm": Normed()}
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        if stage:
            layers[f"stage{stage}.down"] = Chain({"norm": Normed(), "conv": Conv(width, 2, 2)})
        for i in range(depth):
            branch: dict[str, Layer] = {
                "conv": deep(7),
                "norm": Normed(),
                "fc1": Mix(4 * width),
                "act": Activation(function),
                **({"response": Normed("instance_norm", "positions")} if newer else {}),
                "fc2": Mix(width),
                **({"scale": Scaled()} if scaled else {}),
            }
            layers[f"stage{stage}.{i}"] = Residual(Chain(branch))
    return layers | ({} if always else {"mean": Mean()}) | {"last": Normed()}


def swin(fields: Fields) -> dict[str, Layer]:
    """Return a Swin transformer; the second version computes its biases and normalises results."""
    newer = fields.family == "swinv2"
    (depths, heads), width = lists(fields, "depths", "num_heads"), fields.size("embed_dim")
    ratio, side = ratio_of(fields, "mlp_ratio", 4), fields.size("window_size", 7)
    biased = fields.flag("qkv_bias", default=True)
    function, patch = function_of(fields, "gelu"), fields.size("patch_size", 4)
    placed = fields.flag("use_absolute_embeddings", default=False)
    fields.ignore("hidden_size", "num_layers", "encoder_stride", "path_norm")
    fields.ignore("pretrained_window_sizes")
    grid = fields.size("image_size", 224) // patch  # of whole patches: no window is wider
    divided(fields, "num_heads", tuple(width << stage for stage in range(len(heads))), heads)
    layers: dict[str, Layer] = {"patch": Conv(width, patch, patch, Pad.SAME), "norm": Normed()}
    layers |= {"place": Placed()} if placed else {}
    for stage, (depth, number) in enumerate(zip(depths, heads, strict=True)):
        if stage:
            width *= 2
            layers[f"stage{stage}.down"] = Merge(width, "result" if newer else "joined")
        sides = min(side, max(grid >> stage, 1)) if newer else side
        attention = Windowed(number, sides, biased, _COMPUTED if newer else 0)
        for i in range(depth):
            mlp = perceptron(int(ratio * width), width, function)
            layers |= blocks(f"stage{stage}.{i}", attention, mlp, last=newer)
    return layers | {"last": Normed(), "mean": Mean()}


def segformer(fields: Fields) -> dict[str, Layer]:
    """Return the encoder of a SegFormer."""
    layers = mix_transformer(fields)
    fields.ignore("reshape_last_stage", "downsampling_rates")
    wide = fields.size("decoder_hidden_size", 256)
    if not fields.head.endswith(SEMANTIC):
        return layers | {"mean": Mean()}
    fused: dict[str, Layer] = {
        "fuse": Conv(wide, 1, bias=False),
        "norm": BatchNorm(),
        "act": Activation(),
    }
    stages: dict[str, Layer] = {}
    for name, layer in layers.items():
        stages[name] = layer
        if name.endswith(".last"):
            stages[f"{name}.kept"] = KeepMap()
    return stages | {"joined": JoinMaps(wide), **fused}


def mix_transformer(fields: Fields, *, biased: bool = True) -> dict[str, Layer]:
    """Return the stages of a SegFormer or a GLPN; each ends with the layer "stageN.last"."""
    names = ("depths", "hidden_sizes", "num_attention_heads", "patch_sizes", "strides")
    ratios = lists(fields, *names, "sr_ratios", "mlp_ratios")
    function = function_of(fields, "gelu")
    staged(fields, "num_encoder_blocks", len(ratios[0]))
    divided(fields, "num_attention_heads", ratios[1], ratios[2])
    layers: dict[str, Layer] = {}
    for stage, (depth, width, heads, kernel, stride, ratio, times) in enumerate(
        zip(*ratios, strict=True)
    ):
        layers[f"stage{stage}.patch"] = Conv(width, kernel, stride, kernel // 2)
        layers[f"stage{stage}.norm"] = Normed()
        for i in range(depth):
            mlp = perceptron(times * width, width, function, deep(3))
            layers |= blocks(f"stage{stage}.{i}", Reduced(heads, ratio, biased), mlp)
        layers[f"stage{stage}.last"] = Normed()
    return layers


SEMANTIC = "ForSemanticSegmentation"


def poolformer(fields: Fields) -> dict[str, Layer]:
    """Return a PoolFormer, which takes means where others attend."""
    names = ("depths", "hidden_sizes", "patch_sizes", "strides", "padding")
    stages = zip(*lists(fields, *names), strict=True)
    ratio, side = ratio_of(fields, "mlp_ratio", 4), fields.size("pool_size", 3)
    function = function_of(fields, "gelu")
    scaled = fields.flag("use_layer_scale", default=True)
    fields.ignore("layer_scale_init_value", "patch_size", "stride")
    staged(fields, "num_encoder_blocks", len(fields.items("depths")))
    scale: dict[str, Layer] = {"scale": Scaled()} if scaled else {}
    layers: dict[str, Layer] = {}
    for stage, (depth, width, kernel, stride, padding) in enumerate(stages):
        layers[f"stage{stage}.patch"] = Conv(width, kernel, stride, padding)
        for i in range(depth):
            pool = Pool("avg_pool", side, 1, side // 2)
            mixed: dict[str, Layer] = {"norm": _GLOBAL, "pool": pool, **scale}
            wide: dict[str, Layer] = {
                "conv1": Conv(int(ratio * width), 1),
                "act": Activation(function),
                "conv2": Conv(width, 1),
            }
            layers[f"stage{stage}.{i}.mix"] = Residual(Chain(mixed))
            layers[f"stage{stage}.{i}.mlp"] = Residual(Chain({"norm": _GLOBAL, **wide, **scale}))
    return layers | {"last": _GLOBAL, "mean": Mean()}


def mobilenet_v1(fields: Fields) -> dict[str, Layer]:
    """Return a MobileNet of depthwise and pointwise convolutions."""
    width, function = _narrowed(fields, 1), function_of(fields, "relu6")
    padding = Pad.SAME if fields.flag("tf_padding", default=True) else 1
    layers: dict[str, Layer] = {
        "stem": convolved(Conv(width(32), 3, 2, padding, bias=False), function)
    }
    channels = 32
    for i, stride in enumerate((1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1)):
        channels *= 2 if stride > 1 or i == 0 else 1
        layers[f"block{i}.deep"] = convolved(Depthwise(3, stride, padding, bias=False), function)
        layers[f"block{i}.point"] = convolved(Conv(width(channels), 1, bias=False), function)
    return layers | {"mean": Mean()}


def mobilenet_v2(fields: Fields) -> dict[str, Layer]:
    """Return a MobileNet of inverted residuals."""
    divisor = fields.size("depth_divisible_by", 8)
    width, function = _narrowed(fields, divisor), function_of(fields, "relu6")
    padding = Pad.SAME if fields.flag("tf_padding", default=True) else 1
    ratio = ratio_of(fields, "expand_ratio", 6)
    first = fields.flag("first_layer_is_expansion", default=True)
    last = fields.flag("finegrained_output", default=True)
    fields.require(holds=first, problem="only true is declared", name="first_layer_is_expansion")
    stride = fields.size("output_stride", 32)
    fields.require(holds=stride == 32, problem="only 32 is declared", name="output_stride")  # noqa: PLR2004
    plan = [16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320]
    strides = [2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1]
    widths = [width(each) for each in plan]
    layers: dict[str, Layer] = {
        "stem": convolved(Conv(width(32), 3, 2, padding, bias=False), function),
        "stem.deep": convolved(Depthwise(3, 1, padding, bias=False), function),
        "stem.reduce": chain(Conv(widths[0], 1, bias=False), BatchNorm()),
    }
    for i, (old, new, step) in enumerate(zip(widths, widths[1:], strides, strict=False)):
        wide = rounded(round(old * ratio), divisor, fields.size("min_depth", 8))
        block = chain(
            convolved(Conv(wide, 1, bias=False), function),
            convolved(Depthwise(3, step, padding, bias=False), function),
            chain(Conv(new, 1, bias=False), BatchNorm()),
        )
        layers[f"block{i}"] = Residual(block) if step == 1 and old == new else block
    least = last and ratio_of(fields, "depth_multiplier", 1) < 1
    end = 1280 if least else width(1280)
    return layers | {"end": convolved(Conv(end, 1, bias=False), function), "mean": Mean()}


def convolved(conv: Layer, function: str) -> Chain:
    """Return a convolution, its norm and its activation."""
    return chain(conv, BatchNorm(), Activation(function))


def _narrowed(fields: Fields, divisor: int) -> Callable[[int], int]:
    factor = ratio_of(fields, "depth_multiplier", 1)
    least = fields.size("min_depth", 8)

    def width(channels: int) -> int:
        if divisor == 1:
            return max(least, int(channels * factor))
        return rounded(round(channels * factor), divisor, least)

    return width


def ratio_of(fields: Fields, name: str, default: float) -> float:
    """Read a positive number that need not be whole."""
    value = fields.source.values.get(name, default)
    fields.ignore(name)
    fine = (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < LARGEST_SIZE
    )
    problem = f"{shortened(value)} is not accepted: it must be a positive number"
    fields.require(holds=fine, problem=problem, name=name)
    return value if fine else default


def rounded(channels: float, divisor: int, least: int) -> int:
    """Return a multiple of a divisor near a number, never below nine tenths of it."""
    near = max(least, int(channels + divisor // 2) // divisor * divisor)
    return near + divisor if 10 * near < 9 * channels else near


_COMPUTED = 512
"""Width of the perceptron that makes the biases of a second Swin."""


def blocks(
    name: str, attention: Layer, mlp: Layer, *, last: bool = False, scaled: bool = False
) -> dict[str, Layer]:
    """Return attention and a perceptron, each on a residual branch, behind a norm or before it."""

    def branch(own: Layer) -> Residual:
        both: dict[str, Layer] = {"own": own, "norm": Normed()}
        order = both if last else {name: both[name] for name in ("norm", "own")}
        return Residual(Chain(order | ({"scale": Scaled()} if scaled else {})))

    return {f"{name}.attention": branch(attention), f"{name}.mlp": branch(mlp)}


def staged(fields: Fields, name: str, stages: int) -> None:
    """Note a number of stages that contradicts the lists."""
    number = fields.size(name, stages)
    problem = f"{number} contradicts the {stages} of depths"
    fields.require(holds=number == stages, problem=problem, name=name)


def divided(fields: Fields, name: str, widths: Lists, heads: Lists) -> None:
    """Note heads that do not divide the channels of their stage."""
    odd = [
        f"{number} heads do not divide {width} channels"
        for width, number in zip(widths, heads, strict=True)
        if width % number
    ]
    fields.require(holds=not odd, problem=", ".join(odd), name=name)


def function_of(fields: Fields, default: str) -> str:
    """Read the activation function."""
    return FUNCTIONS[fields.text("hidden_act", default, tuple(FUNCTIONS))]


def scale_of(fields: Fields) -> bool:
    """Return whether a scale of layers, given by its initial value, is there."""
    value = fields.source.values.get("layer_scale_init_value", 1)
    fields.ignore("layer_scale_init_value")
    return isinstance(value, int | float) and value > 0


def lists(fields: Fields, *names: str) -> tuple[Lists, ...]:
    """Read lists of sizes, one for every stage, all as long as the first."""
    read = [fields.items(name) for name in names]
    for name, items in zip(names, read, strict=True):
        fine = len(items) == len(read[0]) > 0 and all(map(is_size, items))
        problem = f"{list(items)[:8]}: as many sizes as {names[0]} has are accepted"
        fields.require(holds=fine, problem=problem, name=name)
    return tuple(read) if not fields.problems else tuple((1,) for _ in names)


NETWORKS: Mapping[str, Callable[[Fields], dict[str, Layer]]] = {
    "convnext": convnext,
    "convnextv2": convnext,
    "dinov3_convnext": convnext,
    "swin": swin,
    "swinv2": swin,
    "segformer": segformer,
    "poolformer": poolformer,
    "mobilenet_v1": mobilenet_v1,
    "mobilenet_v2": mobilenet_v2,
}
"""Makes the layers of a family before the classes, by model_type."""
