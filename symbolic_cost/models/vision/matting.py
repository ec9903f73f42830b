"""What of an image stands before its background: ViTMatte, a ViTDet beside a stream of details."""

from dataclasses import replace

from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Conv, Layer
from symbolic_cost.layers.maps import Normed, Residual, Tiled, chain, perceptron
from symbolic_cost.layers.skips import SetAside, Take
from symbolic_cost.layers.unet import Enlarged
from symbolic_cost.layers.upsampling import Beside
from symbolic_cost.layers.window_attention import Decomposed
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import (
    blocks,
    convolved,
    divided,
    function_of,
    lists,
    ratio_of,
)
from symbolic_cost.models.vision.sides import side_lengths

_MIDDLE = 16
"""Channels of the last head."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a ViTMatte on images of the sides that its backbone says."""
    part = fields.part("backbone_config")
    fields.require(holds=part is not None, problem="an object is needed", name="backbone_config")
    part = part or replace(fields, source=replace(fields.source, values={}))
    inner = Fields(part.source, "vitdet", FAMILIES["vitdet"], problems=fields.problems)
    inner.text("model_type", "vitdet", ("vitdet",))
    sides, step = sides_of(inner, (224, 224)), inner.size("patch_size", 16)
    width, channels = inner.size("hidden_size", 768), inner.size("num_channels", 3)
    last = inner.size("num_hidden_layers", 12)
    for name, end in (("out_indices", last), ("out_features", f"stage{last}")):
        stated = inner.items(name, (end,))
        inner.require(holds=stated[-1:] == (end,), problem=f"{end} last", name=name)
    fields.require(
        holds=fields.size("hidden_size", 384) == width,
        problem=f"{width} of the backbone is accepted",
        name="hidden_size",
    )
    (stream,), (fused,) = (
        lists(fields, "convstream_hidden_sizes"),
        lists(fields, "fusion_hidden_sizes"),
    )
    fits = (len(fused) == len(stream) + 1 and step == 2 ** len(fused)) or bool(fields.problems)
    problem = f"as many as halve patches of {step}, and one less of the stream, are accepted"
    fields.require(holds=fits, problem=problem, name="fusion_hidden_sizes")
    whole = all(side % step == 0 for side in sides)
    inner.require(holds=whole, problem=f"multiples of {step}", name="image_size")
    layers: dict[str, Layer] = {"image": SetAside("detail0"), "backbone": Chain(vitdet(inner))}
    layers["features"] = SetAside("features")
    layers["start"] = Take("detail0")
    for i, wide in enumerate(stream, 1):
        layers[f"stream{i}"] = chain(_conv(wide, 2), SetAside(f"detail{i}"))
    layers["again"] = Take("features")
    for i, wide in enumerate(fused):
        detail = f"detail{len(stream) - i}"
        layers[f"fusion{i}"] = chain(Enlarged(detail), Beside((detail,)), _conv(wide, 1))
    layers["head"] = chain(Conv(_MIDDLE, 3, 1, 1), BatchNorm(), Activation(), Conv(1, 1))
    layers["alphas"] = Activation("sigmoid")
    fields.problems += inner.not_understood().values()
    return pictured(fields, shape, Chain(layers), sides, "yao-2023", channels=channels)


def _conv(channels: int, stride: int) -> Chain:
    return convolved(Conv(channels, 3, stride, 1, bias=False), "relu")


def vitdet(fields: Fields) -> dict[str, Layer]:
    """Return a transformer of a map, some of whose blocks see windows or end with convolutions."""
    width, depth = fields.size("hidden_size", 768), fields.size("num_hidden_layers", 12)
    heads, step = fields.size("num_attention_heads", 12), fields.size("patch_size", 16)
    divided(fields, "num_attention_heads", (width,), (heads,))
    wide, function = int(width * ratio_of(fields, "mlp_ratio", 4)), function_of(fields, "gelu")
    biased = fields.flag("qkv_bias", default=True)
    far = fields.flag("use_relative_position_embeddings", default=False)
    placed = fields.flag("use_absolute_position_embeddings", default=True)
    side = fields.optional_size("window_size", 0) or 0
    near = set(fields.items("window_block_indices"))
    ended = set(fields.items("residual_block_indices"))
    before = side_lengths(fields, "pretrain_image_size", 224)
    fields.require(
        holds=before[0] == before[1] >= step, problem="a square", name="pretrain_image_size"
    )
    layers: dict[str, Layer] = {"patch": Conv(width, step, step)}
    layers |= {"place": Tiled(((before[0] // step) ** 2 + 1,))} if placed else {}
    mlp = perceptron(wide, width, function)
    for i in range(depth):
        own = Decomposed(heads, side if i in near else 0, biased, far)
        layers |= blocks(f"blocks.{i}", own, mlp)
        if i in ended:
            layers[f"blocks.{i}.last"] = _bottleneck(width, function)
    return layers


def _bottleneck(width: int, function: str) -> Residual:
    """Return three convolutions on a residual branch, of half the channels between them."""
    half, act = max(width // 2, 1), Activation(function)
    narrow = chain(Conv(half, 1, bias=False), Normed(), act)
    middle = chain(Conv(half, 3, 1, 1, bias=False), Normed(), act)
    return Residual(chain(narrow, middle, Conv(width, 1, bias=False), Normed()))
