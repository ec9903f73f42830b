"""Networks whose convolutions are not of residual kinds: CvT, SuperPoint."""

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.map_attention import Projected
from symbolic_cost.layers.maps import Normed, chain, perceptron
from symbolic_cost.layers.pyramid import FirstPosition, Token
from symbolic_cost.layers.skips import Fork
from symbolic_cost.layers.text_matching import Unit
from symbolic_cost.layers.upsampling import Pool
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import blocks, divided, lists

_SIZES = (
    *("depth", "embed_dim", "num_heads", "patch_sizes", "patch_stride", "patch_padding"),
    *("kernel_qkv", "padding_q", "padding_kv", "stride_q", "stride_kv"),
)


def cvt(fields: Fields) -> dict[str, Layer]:
    """Return the stages of a CvT, whose queries, keys and values are convolved."""
    sizes = lists(fields, *_SIZES)
    number = len(sizes[0])
    ratios = fields.items("mlp_ratio", (4,) * number)
    biased, classed = (fields.items(name) for name in ("qkv_bias", "cls_token"))
    ways = fields.items("qkv_projection_method", ("dw_bn",) * number)
    fine = [*ways] == ["dw_bn"] * number
    fields.require(holds=fine, problem="only dw_bn is declared", name="qkv_projection_method")
    fine = all(isinstance(one, int | float) and 0 < one <= 10**6 for one in ratios)
    fields.require(
        holds=fine and len(ratios) == number, problem=f"{number} numbers", name="mlp_ratio"
    )
    for name, flags in (("qkv_bias", biased), ("cls_token", classed)):
        fine = len(flags) == number and all(isinstance(one, bool) for one in flags)
        fields.require(holds=fine, problem=f"{number} truth values are accepted", name=name)
    last = any(classed) and not any(classed[:-1])
    fields.require(holds=last, problem="a token of the last stage is declared", name="cls_token")
    divided(fields, "num_heads", sizes[1], sizes[2])
    deep = all(depth > stage for stage, depth in enumerate(sizes[0]))
    problem = "more blocks than stages before it are accepted"
    fields.require(holds=deep, problem=problem, name="depth")
    kept = all(
        step == 1 and side == 2 * pad + 1
        for side, pad, step in zip(sizes[6], sizes[7], sizes[9], strict=True)
    )
    fields.require(holds=kept, problem="queries that keep the map", name="padding_q")
    if fields.problems:
        return {}
    layers: dict[str, Layer] = {}
    for stage, (depth, width, heads, patch, step, pad, kernel, _, padding, _, stride) in enumerate(
        zip(*sizes, strict=True)
    ):
        layers[f"stage{stage}.patch"] = chain(Conv(width, patch, step, pad), Normed())
        layers |= {f"stage{stage}.token": Token()} if classed[stage] else {}
        own = Projected(heads, kernel, stride, padding, biased[stage])
        mlp = perceptron(int(width * ratios[stage]), width, "gelu")
        for i in range(depth):
            layers |= blocks(f"stage{stage}.{i}", own, mlp)
    return layers | {"first": FirstPosition(), "last": Normed()}


def superpoint(fields: Fields, shape: Shape) -> Model:
    """Declare a SuperPoint: scores of all pixels, and descriptions of the map's positions."""
    (widths,) = lists(fields, "encoder_hidden_sizes")
    several = len(widths) > 1 or bool(fields.problems)
    fields.require(holds=several, problem="2 and more", name="encoder_hidden_sizes")
    inner, told = (
        fields.size("decoder_hidden_size", 256),
        fields.size("descriptor_decoder_dim", 256),
    )
    layers: dict[str, Layer] = {}
    for i, width in enumerate(widths):
        for part in "ab":
            layers |= {f"conv{i}{part}": Conv(width, 3, 1, 1), f"act{i}{part}": Activation()}
        layers |= {f"pool{i}": Pool("max_pool", 2, 2)} if i + 1 < len(widths) else {}
    ends = {"scores": Conv(_CLASSES, 1), "descriptions": Conv(told, 1)}
    decoders: dict[str, Layer] = {
        name: Chain({"conv": Conv(inner, 3, 1, 1), "act": Activation(), "last": end})
        for name, end in ends.items()
    }
    decoders["descriptions"] = Chain({"own": decoders["descriptions"], "unit": Unit()})
    layers["decoders"] = Fork(decoders)
    sides = sides_of(fields, (480, 640), said=False)
    return pictured(fields, shape, Chain(layers), sides, "detone-2018", channels=1)


_CLASSES = 65
"""Places of a point in a cell of eight by eight pixels, and none."""
