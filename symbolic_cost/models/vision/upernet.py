"""UPerNet: classes of pixels from the maps of all stages of a network."""

from symbolic_cost.layers.conv import Chain, Conv, Layer
from symbolic_cost.layers.skips import Fork, Plus, SetAside, Take
from symbolic_cost.layers.unet import Enlarged
from symbolic_cost.layers.upsampling import AdaptiveMean, Beside
from symbolic_cost.models.build import Fields, Model, Shape, classes_of, is_size
from symbolic_cost.models.vision.backbones import hierarchy
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import convolved


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the network, its pyramid, and a second head of classes."""
    backbone, widths = hierarchy(fields)
    wide, classes = fields.size("hidden_size", 512), classes_of(fields)
    scales = fields.items("pool_scales", (1, 2, 3, 6))
    fits = bool(scales) and all(map(is_size, scales))
    fields.require(holds=fits, problem="a list of sizes is accepted", name="pool_scales")
    problem = "3 stages and more are accepted"
    fields.require(holds=len(widths) >= _FEWEST, problem=problem, name="backbone_config")
    sides = sides_of(fields, (512, 512), said=False)
    heads: dict[str, Layer] = {"decode": Chain(_decoder(len(widths), wide, scales, classes))}
    heads |= _auxiliary(fields, widths, classes)
    whole = Chain({"backbone": backbone, "heads": Fork(heads)})
    return pictured(fields, shape, whole, sides, "xiao-2018")


_FEWEST = 3


def _conv(channels: int, kernel: int) -> Chain:
    return convolved(Conv(channels, kernel, 1, kernel // 2, bias=False), "relu")


def _decoder(number: int, wide: int, scales: tuple[int, ...], classes: int) -> dict[str, Layer]:
    """Return the pyramid of means of the last map, and maps fused from the last to the first."""
    last, titles = number - 1, tuple(f"mean{i}" for i in range(len(scales)))
    layers: dict[str, Layer] = {}
    for title, scale in zip(titles, scales, strict=True):
        own: dict[str, Layer] = {"take": Take(f"map{last}"), "mean": AdaptiveMean(scale)}
        own |= {"conv": _conv(wide, 1), "enlarge": Enlarged(f"map{last}"), "put": SetAside(title)}
        layers[f"pyramid.{title}"] = Chain(own)
    layers |= {"map": Take(f"map{last}"), "beside": Beside(titles)}
    layers |= {"bottleneck": _conv(wide, 3), "put": SetAside(f"side{last}")}
    for i in range(last - 1, -1, -1):
        fused: dict[str, Layer] = {"take": Take(f"map{i}"), "conv": _conv(wide, 1)}
        fused |= {"side": SetAside("side"), "above": Take(f"side{i + 1}"), "fit": Enlarged("side")}
        layers[f"side.{i}"] = Chain({**fused, "sum": Plus("side"), "put": SetAside(f"side{i}")})
    for i in range(last, -1, -1):
        own = {"take": Take(f"side{i}"), **({"conv": _conv(wide, 3)} if i < last else {})}
        layers[f"level.{i}"] = Chain(
            {**own, "fit": Enlarged("side0"), "put": SetAside(f"level{i}")}
        )
    others = tuple(f"level{i}" for i in range(1, number))
    ends: dict[str, Layer] = {"join": Beside(others), "fuse": _conv(wide, 3)}
    return layers | ends | {"classes": Conv(classes, 1)}


def _auxiliary(fields: Fields, widths: tuple[int, ...], classes: int) -> dict[str, Layer]:
    own = widths[min(_FEWEST, len(widths)) - 1]
    used = fields.flag("use_auxiliary_head", default=True)
    taken = fields.optional_size("auxiliary_in_channels") or own
    problem = f"{own} of the backbone are accepted"
    fields.require(holds=not used or taken == own, problem=problem, name="auxiliary_in_channels")
    wide, depth = fields.size("auxiliary_channels", 256), fields.size("auxiliary_num_convs", 1)
    joined = fields.flag("auxiliary_concat_input", default=False)
    layers: dict[str, Layer] = {"take": Take(f"map{_FEWEST - 1}")}
    layers |= {f"conv{i}": _conv(wide, 3) for i in range(depth)}
    if joined:
        layers |= {"beside": Beside((f"map{_FEWEST - 1}",)), "cat": _conv(wide, 3)}
    return {"auxiliary": Chain({**layers, "classes": Conv(classes, 1)})} if used else {}
