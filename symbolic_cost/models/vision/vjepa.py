"""V-JEPA 2: a transformer of tubes of a video, and one that tells the features of all of them."""

from symbolic_cost.layers.conv import Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Reduced, Residual, Unprojected, perceptron
from symbolic_cost.layers.object_queries import Sequence, Some
from symbolic_cost.layers.pyramid import FirstPosition
from symbolic_cost.layers.skips import Filled, Idle, Learned, SetAside
from symbolic_cost.layers.text_matching import Behind
from symbolic_cost.layers.unet import Repeated
from symbolic_cost.models.build import Fields, Model, Shape, classes_of
from symbolic_cost.models.vision.image_model import pictured
from symbolic_cost.models.vision.maps_families import blocks, divided, function_of, ratio_of

_RATIO = 4
"""Of the perceptrons of a pooler."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the model on videos, all of whose tubes are seen and told.

    The frames of a tube are channels of one image, and tubes lie below each other.
    """
    width, step, side = (
        fields.size("hidden_size", 1024),
        fields.size("patch_size", 16),
        _side(fields),
    )
    frames, tube = fields.size("frames_per_clip", 64), fields.size("tubelet_size", 2)
    fields.require(holds=frames >= tube, problem=f"tubes of {tube} frames", name="frames_per_clip")
    depth, grid = max(frames // tube, 1), max(side // step, 1)
    encoder = _blocks(fields, "", width, 16, 24)
    layers: dict[str, Layer] = {"patch": Conv(width, step, step), "put": SetAside("patches")}
    layers |= {"sequence": Sequence(("patches",)), "encoder": encoder, "norm": Normed()}
    told = _predictor(fields, width, depth * grid**2)
    if fields.head.endswith("Classification"):
        layers |= {"predictor": Idle(told), "pooler": _pooler(fields, width)}
        layers["classes"] = Mix(classes_of(fields))
    else:
        layers["predictor"] = told
    fields.ignore("num_pooler_layers")
    channels = fields.size("in_chans", 3) * tube
    sides = (depth * grid * step, grid * step)
    return pictured(fields, shape, Chain(layers), sides, "assran-2025", channels=channels)


def _side(fields: Fields) -> int:
    side, step = fields.size("crop_size", 256), fields.size("patch_size", 16)
    fields.require(holds=side >= step, problem=f"patches of {step} do not fit", name="crop_size")
    return side


def _blocks(fields: Fields, part: str, width: int, heads: int, depth: int) -> Repeated:
    """Read the blocks of the encoder or, by the beginning of their names, of the predictor."""
    number, biased = (
        fields.size(f"{part}num_attention_heads", heads),
        fields.flag("qkv_bias", default=True),
    )
    divided(fields, f"{part}num_attention_heads", (width,), (number,))
    least = width // number >= 6  # noqa: PLR2004 - two features for each of three coordinates
    problem = "6 features of a head and more are accepted"
    fields.require(holds=least, problem=problem, name=f"{part}num_attention_heads")
    wide = int(width * ratio_of(fields, f"{part}mlp_ratio", _RATIO))
    mlp = perceptron(wide, width, function_of(fields, "gelu"))
    own = Chain(blocks("own", Reduced(number, bias=biased), mlp))
    return Repeated(own, fields.size(f"{part}num_hidden_layers", depth))


def _predictor(fields: Fields, width: int, number: int) -> Chain:
    inner = fields.size("pred_hidden_size", 384)
    layers: dict[str, Layer] = {"embed": Mix(inner), "put": SetAside("context")}
    layers |= {"masks": Filled(fields.size("pred_num_mask_tokens", 10), "context")}
    layers |= {"behind": Behind("context"), "blocks": _blocks(fields, "pred_", inner, 12, 12)}
    return Chain(layers | {"norm": Normed(), "told": Some(number), "last": Mix(width)})


def _pooler(fields: Fields, width: int) -> Chain:
    heads = fields.size("num_attention_heads", 16)
    mlp = perceptron(_RATIO * width, width, function_of(fields, "gelu"))
    depth = fields.size("num_pooler_layers", 3)
    layers: dict[str, Layer] = {"own": Repeated(Chain(blocks("own", Reduced(heads), mlp)), depth)}
    layers |= {"norm": Normed(), "put": SetAside("seen"), "query": Learned(1, width)}
    layers["asks"] = Residual(Chain({"own": Unprojected(heads, attended="seen")}))
    layers["mlp"] = Residual(Chain({"norm": Normed(), "own": mlp}))
    return Chain(layers | {"first": FirstPosition()})
