"""Depths and classes of pixels from the layers of a transformer: DPT, Depth Anything, GLPN."""

from fractions import Fraction

from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Residual
from symbolic_cost.layers.skips import Fork, Idle, Plus, SetAside, Take
from symbolic_cost.layers.unet import Enlarged
from symbolic_cost.layers.upsampling import Beside, Grid, Opened, Spread
from symbolic_cost.models.build import Fields, Model, Shape, classes_of, is_size
from symbolic_cost.models.vision import config
from symbolic_cost.models.vision.backbones import tapped
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import SEMANTIC, convolved, mix_transformer
from symbolic_cost.models.vision.tokens import taken_of


def glpn(fields: Fields, shape: Shape) -> Model:
    """Declare a GLPN: the maps of a Mix Transformer, fused from the last to the first."""
    stages = mix_transformer(fields)
    widths, wide = fields.items("hidden_sizes"), fields.size("decoder_hidden_size", 64)
    ends = {f"stage{i}.last": f"map{i}" for i in range(len(widths))}
    layers: dict[str, Layer] = {"encoder": tapped(stages, ends)}
    last = -1 if fields.head.endswith("Model") else len(widths) - 1
    for i in range(last, -1, -1):
        own: dict[str, Layer] = {"take": Take(f"map{i}")}
        own |= {"conv": Conv(wide, 1)} if widths[i] != wide else {}
        own |= {"local": SetAside("local"), "fused": _fused(wide)} if i < last else {}
        layers[f"decoder.{i}"] = Chain({**own, "enlarge": Enlarged(), "put": SetAside("fused")})
    head: dict[str, Layer] = {"conv1": Conv(wide, 3, 1, 1), "act": Activation()}
    told: dict[str, Layer] = {
        "enlarge": Enlarged(),
        **head,
        "conv2": Conv(1, 3, 1, 1),
        "last": _SIGMOID,
    }
    layers |= {} if last < 0 else told
    sides = sides_of(fields, (480, 640), said=False)
    channels = fields.size("num_channels", 3)
    return pictured(fields, shape, Chain(layers), sides, "kim-2022", channels=channels)


_SIGMOID = Activation("sigmoid")


def _fused(wide: int) -> Chain:
    """Return the sum of a local and a global map, each opened by a map of its own."""
    return Chain(
        {
            "beside": Beside(("fused",)),
            "conv1": convolved(Conv(wide, 3, 1, 1), "relu"),
            "conv2": convolved(Conv(wide // 2, 3, 1, 1), "relu"),
            "conv3": Conv(2, 3, 1, 1),
            "open": _SIGMOID,
            "sum": Opened(("local", "fused")),
        }
    )


def dpt(fields: Fields, shape: Shape) -> Model:
    """Declare a DPT or a Depth Anything."""
    own = fields.family == "dpt"
    if fields.head.endswith("Model"):  # the transformer alone, whose sizes are its own
        fields.ignore("add_projection", *_NECK)
        return config.build(fields, shape)
    taken = taken_of(fields)
    widths, factors = fields.items("neck_hidden_sizes", (96, 192, 384, 768)), _factors(fields)
    fits = len(widths) == len(factors) == len(taken.layers) and all(map(is_size, widths))
    problem = "a width and a factor for every layer that is taken are accepted"
    fields.require(holds=fits, problem=problem, name="neck_hidden_sizes")
    wide = fields.size("fusion_hidden_size", 256 if own else 64)
    first = (
        fields.text("readout_type", "project", ("project", "add", "ignore")) if own else "ignore"
    )
    normed = own and fields.flag("use_batch_norm_in_fusion_residual", default=False)
    said = own and fields.has("use_bias_in_fusion_residual")  # null is as left out
    biased = fields.flag("use_bias_in_fusion_residual", default=True) if said else not normed
    step = residual(wide, normed=normed, biased=biased)
    layers: dict[str, Layer] = {"encoder": taken.chain}
    for i, (width, factor) in enumerate(zip(widths, factors, strict=False)):
        read: dict[str, Layer] = {"take": Take(f"map{i}"), "grid": Grid(*taken.grid, first)}
        if first == "project":
            read |= {"read": Mix(taken.width), "act": Activation(taken.function)}
        read |= {"project": Conv(width, 1), **_resized(width, factor)}
        layers[f"neck.{i}"] = Chain(
            {**read, "conv": Conv(wide, 3, 1, 1, bias=False), "put": SetAside(f"level{i}")}
        )
    last = len(widths) - 1
    for i in range(last, -1, -1):
        fused: dict[str, Layer] = {"take": Take(f"level{i}")}
        if i == last:
            fused |= {"idle": Idle(step)}
        else:
            fused |= {"fit": Enlarged("fused"), "side": step, "plus": Plus("fused")}
        size = Enlarged("" if own or not i else f"level{i - 1}")
        fused |= {"own": step, "enlarge": size, "project": Conv(wide, 1), "put": SetAside("fused")}
        layers[f"fusion.{i}"] = Chain(fused)
    layers["head"] = _head(fields, wide, taken.whole)
    return pictured(
        fields, shape, Chain(layers), taken.sides, "ranftl-2021", channels=taken.channels
    )


_NECK = (
    *("backbone_config", "backbone_out_indices", "neck_hidden_sizes", "reassemble_factors"),
    *("fusion_hidden_size", "readout_type", "use_batch_norm_in_fusion_residual"),
    "use_bias_in_fusion_residual",
)
"""Fields of what follows the transformer."""


def _factors(fields: Fields) -> tuple[int, ...]:
    """Read how many times larger the map of every layer becomes; negative, smaller."""
    factors = fields.items("reassemble_factors", (4, 2, 1, Fraction(1, 2)))
    read = [_times(factor) for factor in factors]
    problem = "positive integers, a half and a quarter are accepted"
    fields.require(holds=all(read), problem=problem, name="reassemble_factors")
    return tuple(read) if all(read) else ()


def _times(factor: object) -> int:
    """Return a factor, or how many times smaller it makes, negative; 0 for what is neither."""
    if isinstance(factor, int):
        return factor if is_size(factor) else 0
    exact = Fraction(factor) if isinstance(factor, Fraction | float) else Fraction(0)
    return next((-n for n in (1, 2, 4) if n * exact == 1), 0)


def _resized(width: int, times: int) -> dict[str, Layer]:
    if times < -1:
        return {"shrink": Conv(width, 3, -times, 1)}
    return {} if abs(times) == 1 else {"spread": Spread(width, times)}


def residual(wide: int, *, normed: bool, biased: bool) -> Residual:
    """Return two convolutions behind activations, on a residual branch."""
    made: dict[str, Layer] = {}
    for i in "12":
        made |= {f"act{i}": Activation(), f"conv{i}": Conv(wide, 3, 1, 1, bias=biased)}
        made |= {f"norm{i}": BatchNorm()} if normed else {}
    return Residual(Chain(made))


def _head(fields: Fields, wide: int, sides: tuple[int, int]) -> Layer:
    if fields.head.endswith(SEMANTIC):
        classes = classes_of(fields)
        conv = convolved(Conv(wide, 3, 1, 1, bias=False), "relu")
        told = Chain({"conv": conv, "classes": Conv(classes, 1)})
        beside = fields.flag("use_auxiliary_head", default=True)
        return Fork({"own": told, **({"auxiliary": told} if beside else {})})
    own = fields.family == "dpt"
    before = own and fields.flag("add_projection", default=False)
    problem = "a projection of 256 channels is added to as many"
    fields.require(holds=not before or wide == _PROJECTED, problem=problem, name="add_projection")
    last = _LAST if own else fields.size("head_hidden_size", _LAST)
    return Chain(
        {
            **({"project": Conv(wide, 3, 1, 1), "act": Activation()} if before else {}),
            "conv1": Conv(wide // 2, 3, 1, 1),
            "enlarge": Enlarged() if own else Enlarged(sides=sides),
            "conv2": Conv(last, 3, 1, 1),
            "act2": Activation(),
            "conv3": Conv(1, 1),
            "act3": Activation(),
        }
    )


_PROJECTED, _LAST = 256, 32
"""Channels that a projection takes and gives, and those before the last convolution."""
