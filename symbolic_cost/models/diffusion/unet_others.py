"""UNets without a prompt, and ControlNets, by `_class_name`."""

from collections.abc import Mapping
from itertools import pairwise

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer, Maps, Trail
from symbolic_cost.layers.maps import KeepMap
from symbolic_cost.layers.unet import attention
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.diffusion.conditions import time_of
from symbolic_cost.models.diffusion.transformers import sample
from symbolic_cost.models.diffusion.unet import (
    Beside,
    Net,
    UNetFields,
    conditional,
    function_of,
    grouped,
    has_middle,
    kinds_of,
    modelled,
    nothing,
    padding_of,
    widths_of,
)
from symbolic_cost.ops.declare import Model, pointwise
from symbolic_cost.records import dataclass, replace


def plain(fields: Fields, shape: Shape) -> Model:
    """Declare a UNet without a prompt, whose stages may attend to themselves."""
    if not fields.has("sample_size"):
        fields.assume("sample_size", "32, an image of so many pixels a side")
    channels = fields.size("in_channels", 3)
    image = sample(fields, shape, 32, 1, channels)
    widths, stages = widths_of(fields, (224, 448, 672, 896))
    halved = 2 ** (stages - 1)
    problem = f"{stages} stages halve sides that {halved} divides"
    fits = all(side % halved == 0 for side in image.sides)
    fields.require(holds=fits, problem=problem, name="sample_size")
    depths = (fields.size("layers_per_block", 2),) * stages
    own: dict[bool, Beside] = {True: _attending(fields, widths), False: nothing}
    down, up = (
        tuple(own[kind] for kind in kinds_of(fields, f"{way}_block_types", stages, known, usual))
        for way, known, usual in (("down", _OWN_DOWN, (0, 1, 1, 1)), ("up", _OWN_UP, (1, 1, 1, 0)))
    )
    seen = own[fields.flag("add_attention", default=True)]
    middle = seen if has_middle(fields, "UNetMidBlock2D") else None
    net = Net(widths, depths, (down, middle, up), function_of(fields), padding_of(fields))
    time, vectors = time_of(fields, widths[0])
    grouped(fields, widths, stages)
    out = fields.size("out_channels", 3)
    fields.refuse()
    trail = UNetFields(net, image, (3, 3), time, vectors, 0, 0).trail(shape)
    Chain(net.layers(3, 3, out)).declare("", trail)
    return modelled(fields, trail)


def _attending(fields: Fields, widths: tuple[int, ...]) -> Beside:
    wide = fields.source.values.get("attention_head_dim", 8)
    width = None if wide is None else fields.size("attention_head_dim", 8)
    fields.ignore("attention_head_dim")
    problem = f"{width} channels of a head do not divide those of every stage"
    if width is not None and any(one % width for one in widths):
        fields.note("attention_head_dim", problem)
    return lambda channels: attention(max(channels // (width or channels), 1))


_OWN_DOWN: Mapping[str, bool] = {"DownBlock2D": False, "AttnDownBlock2D": True}
_OWN_UP: Mapping[str, bool] = {"UpBlock2D": False, "AttnUpBlock2D": True}


@dataclass(frozen=True)
class Handed:
    """A convolution of single positions, whose result leaves the network."""

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; what is at hand stays."""
        at = trail.at
        Conv(trail.length(at.axes[1]), 1).declare(name, trail)
        trail.at = at


@dataclass(frozen=True)
class ImageCondition:
    """An image that conditions, embedded by convolutions and added.

    Args:
        channels: of the image.
        widths: of the convolutions; all but the first two halve the sides.
    """

    channels: int
    widths: tuple[int, ...]

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer."""
        at = trail.at
        batch, channel, *sides = at.axes
        larger = 2 ** (len(self.widths) - 1)
        lengths = (larger * trail.length(axis) for axis in sides)
        axes = [trail.new_axis("c", self.channels), *map(trail.new_axis, "yx", lengths)]
        trail.at = Maps(f"{name}.image", (batch, *axes), constant=True)
        layers: dict[str, Layer] = {"in": Conv(self.widths[0], 3, 1, 1)}
        for i, (width, wider) in enumerate(pairwise(self.widths)):
            layers |= {f"act{i}": Activation("silu"), f"same{i}": Conv(width, 3, 1, 1)}
            layers |= {f"more{i}": Activation("silu"), f"half{i}": Conv(wider, 3, 2, 1)}
        layers |= {"act": Activation("silu"), "out": Conv(trail.length(channel), 3, 1, 1)}
        Chain(layers).declare(name, trail)
        same, result = Maps(f"{name}.same", at.axes), Maps(name, at.axes)
        laid = " ".join(trail.at.axes[1:])
        trail.ops.append(pointwise(same.tensor, f"{trail.at} -> {same}", "copy", laid=laid))
        trail.add(pointwise(f"{name}.add", f"{at}, {same} -> {result}", "add"), result)


def controlnet(fields: Fields, shape: Shape) -> Model:
    """Declare a ControlNet: the way down of a UNet, which hands on every map that it would keep."""
    down = fields.items("down_block_types", ("CrossAttnDownBlock2D",) * 3 + ("DownBlock2D",))
    values = {**fields.source.values, "up_block_types": ["UpBlock2D"] * len(down)}
    fields.source = replace(fields.source, values=values)
    read = conditional(fields, shape)
    widths = fields.items("conditioning_embedding_out_channels", (16, 32, 96, 256))
    if not (widths and all(map(is_size, widths))):
        fields.note("conditioning_embedding_out_channels", "a list of sizes is accepted")
    shown = ImageCondition(fields.size("conditioning_channels", 3), widths)
    fields.refuse()
    trail = read.trail(shape)
    layers: dict[str, Layer] = {}
    for name, layer in read.net.layers(3, 3, 1).items():
        if name.startswith("up"):
            break
        layers[name] = Handed() if isinstance(layer, KeepMap) else layer
        layers |= {"shown": shown} if name == "conv_in" else {}
    Chain(layers | {"mid.kept": Handed()}).declare("", trail)
    return modelled(fields, trail)
