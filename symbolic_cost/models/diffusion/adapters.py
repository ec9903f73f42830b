"""Adapters of text to image: maps of an image that steer a UNet, by `_class_name`."""

from sympy import S

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Residual
from symbolic_cost.layers.unet import Repeated, same
from symbolic_cost.layers.video import Relaid
from symbolic_cost.models.build import Fields, Model, Shape, is_size
from symbolic_cost.models.diffusion.transformers import sample
from symbolic_cost.models.diffusion.unet import modelled, trail_of

_KINDS = ("full_adapter", "full_adapter_xl", "light_adapter")


def adapter(fields: Fields, shape: Shape) -> Model:
    """Declare an adapter: an image, its pixels laid out as channels, and stages of blocks."""
    kind = fields.text("adapter_type", _KINDS[0], _KINDS)
    channels, factor = fields.size("in_channels", 3), fields.size("downscale_factor", 8)
    usual = (320, 640, 1280, 1280)
    widths, depth = fields.items("channels", usual), fields.size("num_res_blocks", 2)
    fine = bool(widths) and all(map(is_size, widths))
    fields.require(holds=fine, problem="a list of sizes is accepted", name="channels")
    light = kind == _KINDS[2]
    odd = [width for width in widths if light and width < 4]  # noqa: PLR2004 - a quarter of it
    fields.require(holds=not odd, problem="four channels are the least", name="channels")
    if not fields.has("sample_size"):
        fields.assume("sample_size", "512, an image of so many pixels a side")
    image = sample(fields, shape, 512, 1, channels)
    problem = f"sides that downscale_factor = {factor} divides are accepted"
    fits = not any(side % factor for side in image.sides)
    fields.require(holds=fits, problem=problem, name="sample_size")
    fields.refuse()
    trail = trail_of(image, shape)
    pixels = Relaid((S.One / factor,) * 2, channels * factor**2)
    layers: dict[str, Layer] = {"pixels": pixels}
    if light:
        wide = [*widths, widths[-1]]
        stages = {f"stage{i}": _light(width, depth, down=i > 0) for i, width in enumerate(wide)}
    else:
        layers["conv_in"] = same(widths[0], 3)
        xl = kind == _KINDS[1]
        taking = [xl and i not in {1, 2} for i in range(len(widths))]
        before = (widths[0], *widths)
        inside = [w if own else old for w, old, own in zip(widths, before, taking, strict=False)]
        _check(fields, widths, inside)
        halved = {2} if xl else set(range(1, len(widths)))
        stages = {
            f"stage{i}": _full(width, depth, down=i in halved, changed=width != old)
            for i, (width, old) in enumerate(zip(widths, inside, strict=True))
        }
    Chain(layers | stages).declare("", trail)
    return modelled(fields, trail)


def _check(fields: Fields, widths: tuple[int, ...], inside: list[int]) -> None:
    """Refuse stages that do not take what the stage before gives."""
    odd = [
        i for i, (old, before) in enumerate(zip(inside[1:], widths, strict=False)) if old != before
    ]
    problem = "the widths of this kind change at the second and the third stage alone"
    fields.require(holds=not odd, problem=problem, name="channels")
    fields.refuse()


_HALVED = Relaid((S.Half, S.Half), function="sum")


def _full(width: int, depth: int, *, down: bool, changed: bool) -> Chain:
    inner: dict[str, Layer] = {
        "conv1": same(width, 3),
        "act": Activation("relu"),
        "conv2": Conv(width, 1),
    }
    block = Repeated(Residual(Chain(inner)), depth)
    conv: dict[str, Layer] = {"conv": Conv(width, 1)} if changed else {}
    return Chain({**({"shrink": _HALVED} if down else {}), **conv, "block": block})


def _light(width: int, depth: int, *, down: bool) -> Chain:
    narrow = width // 4
    inner: dict[str, Layer] = {
        "conv1": same(narrow, 3),
        "act": Activation("relu"),
        "conv2": same(narrow, 3),
    }
    block = Repeated(Residual(Chain(inner)), depth)
    ends: dict[str, Layer] = {
        "conv_in": Conv(narrow, 1),
        "block": block,
        "conv_out": Conv(width, 1),
    }
    return Chain({**({"shrink": _HALVED} if down else {}), **ends})
