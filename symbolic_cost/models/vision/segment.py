"""Segment Anything: a transformer of windows, and a decoder of masks that meets its map."""

from collections.abc import Mapping
from dataclasses import replace

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Normed, Placed, Reduced, Shifted, perceptron
from symbolic_cost.layers.mask_heads import Coordinates, Masks
from symbolic_cost.layers.pyramid import FirstPosition
from symbolic_cost.layers.skips import Constant, Fork, Idle, Learned, SetAside, Take, predictor
from symbolic_cost.layers.unet import Repeated
from symbolic_cost.layers.upsampling import Spread
from symbolic_cost.layers.window_attention import Decomposed
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.vision.detection import branch
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import divided, function_of, ratio_of


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a SAM on images without prompts: its tokens are those of the masks."""
    vision, prompt, decoder = (
        part_of(fields, name)
        for name in ("vision_config", "prompt_encoder_config", "mask_decoder_config")
    )
    channels = vision.size("output_channels", 256)
    sides = sides_of(vision, (1024, 1024))
    step = vision.size("patch_size", 16)
    fits = sides[0] == sides[1] and sides[0] % step == 0
    vision.require(holds=fits, problem="a square of whole patches is accepted", name="image_size")
    grid = prompt.size("image_size", 1024) // prompt.size("patch_size", 16)
    same = grid == sides[0] // step
    prompt.require(holds=same, problem="a map as large as that of the image", name="image_size")
    halves = 2 * vision.size("num_pos_feats", 128)
    for part, name, own in (
        (prompt, "hidden_size", prompt.size("hidden_size", 256)),
        (decoder, "hidden_size", decoder.size("hidden_size", 256)),
        (vision, "num_pos_feats", halves),
    ):
        part.require(holds=own == channels, problem=f"{channels} channels are accepted", name=name)
    layers = {
        **_vision(vision, channels, step),
        "coordinates": Fork(
            {"own": Chain({"of": Coordinates(channels), "put": SetAside("places")})}
        ),
        "unprompted": unprompted(prompt, channels, 1),
        "image": SetAside("image"),
        **_decoder(decoder, channels),
    }
    pixels = vision.size("num_channels", 3)
    for part in (vision, prompt, decoder):
        fields.problems += part.not_understood().values()
    fields.assume("input_points", "no prompts: images alone")
    return pictured(fields, shape, Chain(layers), sides, "kirillov-2023", channels=pixels)


def part_of(fields: Fields, name: str) -> Fields:
    """Return the fields of a section, which may be missing; it tells its problems with all."""
    values = fields.source.values.get(name)
    fields.ignore(name)
    if values is not None and not isinstance(values, Mapping):
        fields.note(name, "an object is accepted")
    inner = values if isinstance(values, Mapping) else {}
    source = replace(fields.source, values=inner)
    return Fields(source, fields.family, fields.record, problems=fields.problems)


def _vision(fields: Fields, channels: int, step: int) -> dict[str, Layer]:
    width, depth = fields.size("hidden_size", 768), fields.size("num_hidden_layers", 12)
    heads = fields.size("num_attention_heads", 12)
    divided(fields, "num_attention_heads", (width,), (heads,))
    ratio = ratio_of(fields, "mlp_ratio", 4)
    wide = fields.optional_size("mlp_dim") or int(width * ratio)
    function, biased = function_of(fields, "gelu"), fields.flag("qkv_bias", default=True)
    placed = fields.flag("use_abs_pos", default=True)
    far = fields.flag("use_rel_pos", default=True)
    side = fields.optional_size("window_size", 14) or 0
    whole = set(fields.items("global_attn_indexes", (2, 5, 8, 11)))
    layers: dict[str, Layer] = {"patch": Conv(width, step, step)}
    layers |= {"place": Placed()} if placed else {}
    windows = [0 if i in whole else side for i in range(depth)]
    mlp = perceptron(wide, width, function)
    first = 0
    for i in range(depth):
        if i + 1 == depth or windows[i + 1] != windows[i]:
            own = Decomposed(heads, windows[i], biased, far)
            block = {
                "attention": Chain(branch(own, before=True)),
                "mlp": Chain(branch(mlp, before=True)),
            }
            layers[f"blocks.{first}"] = Repeated(Chain(block), i + 1 - first)
            first = i + 1
    neck: dict[str, Layer] = {"conv1": Conv(channels, 1, bias=False), "norm1": Normed()}
    neck |= {"conv2": Conv(channels, 3, 1, 1, bias=False), "norm2": Normed()}
    return {"vision": Chain(layers), "neck": Chain(neck)}


def unprompted(fields: Fields, channels: int, further: int) -> Chain:
    """Return the weights of prompts, which do not run, and what stands in for a mask.

    Args:
        fields: of the section of prompts.
        channels: of the image's map.
        further: vectors that points have besides those of their kinds.
    """
    middle = fields.size("mask_input_channels", 16)
    problem = "a multiple of 4 is accepted"
    fields.require(holds=middle % 4 == 0, problem=problem, name="mask_input_channels")
    points = Learned(fields.size("num_point_embeddings", 4) + further, channels)
    masks: dict[str, Layer] = {
        "mask": Constant(1),
        "conv1": Conv(middle // 4, 2, 2),
        "norm1": Normed(),
        "conv2": Conv(middle, 2, 2),
        "norm2": Normed(),
        "conv3": Conv(channels, 1),
    }
    return Chain({"points": Idle(points), "masks": Idle(Chain(masks)), "no_mask": Shifted()})


def _decoder(fields: Fields, channels: int) -> dict[str, Layer]:
    masks = fields.size("num_multimask_outputs", 3) + 1
    mlp = perceptron(fields.size("mlp_dim", 2048), channels, function_of(fields, "relu"))
    return {
        "queries": Learned(masks + 1, channels),
        # blocks halve the channels, whatever the rate is
        **two_way(fields, channels, mlp, channels // 2),
        "heads": Fork(heads(fields, channels)),
        "map": Take("image"),
        "spread1": Spread(channels // 4, 2),
        "norm": Normed(),
        "act1": Activation("gelu"),
        "spread2": Spread(channels // 8, 2),
        "act2": Activation("gelu"),
        "masks": Masks(tuple(f"vector{i}" for i in range(masks))),
    }


def two_way(fields: Fields, channels: int, mlp: Layer, width: int) -> dict[str, Layer]:
    """Return a transformer of the tokens at hand and the image aside, which meet both ways.

    Args:
        fields: of the section of the decoder.
        channels: of tokens and map.
        mlp: of a block.
        width: of the attention of its blocks.
    """
    heads, rate = fields.size("num_attention_heads", 8), fields.size("attention_downsample_rate", 2)
    divided(
        fields, "num_attention_heads", (channels, width, channels // rate), (heads, heads, heads)
    )
    asks, last = (
        Reduced(heads, attended="image", place="tokens", place_seen="places", width=width)
        for width in (width, channels // rate)
    )
    told = replace(asks, attended="own", place="places", place_seen="tokens")
    layers: dict[str, Layer] = {"put": SetAside("tokens")}
    for i in range(fields.size("num_hidden_layers", 2)):
        own = branch(Reduced(heads, place="tokens")) if i else {"own": Reduced(heads), **_NORM}
        sees: dict[str, Layer] = {"take": Take("image"), **branch(told), "put": SetAside("image")}
        block = {"own": Chain(own), "asks": Chain(branch(asks)), "mlp": Chain(branch(mlp))}
        layers[f"decoder.{i}"] = Chain(
            {**block, "put": SetAside("own"), "told": Fork({"map": Chain(sees)})}
        )
    return layers | {"last": Chain(branch(last))}


def heads(fields: Fields, channels: int) -> dict[str, Layer]:
    """Return the vector of every mask, which stands aside, and the quality of all."""
    masks = fields.size("num_multimask_outputs", 3) + 1
    depth, hidden = fields.size("iou_head_depth", 3), fields.size("iou_head_hidden_dim", 256)
    vectors: dict[str, Layer] = {
        f"vector{i}": Chain(
            {
                "first": FirstPosition(),
                "mlp": predictor(channels, channels // 8, 3),
                "put": SetAside(f"vector{i}"),
            }
        )
        for i in range(masks)
    }
    quality = predictor(hidden, masks, max(depth, 2))
    return {**vectors, "quality": Chain({"first": FirstPosition(), "mlp": quality})}


_NORM: dict[str, Layer] = {"norm": Normed()}
