"""Masks of what a text names, by a small decoder above a frozen CLIP: CLIPSeg."""

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Placed, Reduced, perceptron
from symbolic_cost.layers.pyramid import FirstPosition, Token
from symbolic_cost.layers.skips import Detached, Fork, Idle, Learned, Plus, SetAside, Take, Unread
from symbolic_cost.layers.text_matching import Filmed, Words
from symbolic_cost.layers.unet import Repeated
from symbolic_cost.layers.upsampling import Grid, Spread
from symbolic_cost.models.build import Fields, Model, Shape, is_size
from symbolic_cost.models.vision.detection import block
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import divided
from symbolic_cost.models.vision.owl import tower
from symbolic_cost.models.vision.segment import part_of


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the model on images with one text each, of as many tokens as a sequence has.

    Raises:
        InputError: every problem of the fields.
    """
    vision, text = (part_of(fields, name) for name in ("vision_config", "text_config"))
    for part, kind in ((vision, "vision"), (text, "text")):
        part.text("model_type", f"clipseg_{kind}_model", (f"clipseg_{kind}_model",))
    common = fields.size("projection_dim", 512)
    sides, step = sides_of(vision, (224, 224)), vision.size("patch_size", 32)
    fits = sides[0] == sides[1] >= step
    vision.require(holds=fits, problem="a square of patches is accepted", name="image_size")
    layers: dict[str, Layer] = {
        "clip.text": Fork({"own": _text(text, shape, common)}),
        "clip.scale": Idle(Learned(1, 1)),
        "clip.vision": _vision(fields, vision, step, common),
        "decoder": _decoder(fields, max(sides[0] // step, 1), step),
    }
    channels = vision.size("num_channels", 3)
    for part in (vision, text):
        fields.problems += part.not_understood().values()
    fields.assume("input_ids", "one text for each image")
    whole = Chain(layers)
    return pictured(
        fields, shape, whole, sides, "lueddecke-2021", channels=channels, fixed=("clip.",)
    )


def _text(fields: Fields, shape: Shape, common: int) -> Chain:
    """Return the tower of the text, whose vector stands aside."""
    width, places = fields.size("hidden_size", 512), fields.size("max_position_embeddings", 77)
    length = shape.l if shape.c == 0 else shape.c
    words = Words(fields.size("vocab_size", 49408), places, width, length)
    layers: dict[str, Layer] = {"words": words, "blocks": tower(fields, width, 2048, 8)}
    layers |= {"norm": Normed(), "first": FirstPosition(), "project": Mix(common, bias=False)}
    return Chain({**layers, "cut": Detached(), "put": SetAside("text")})


def _vision(fields: Fields, vision: Fields, step: int, common: int) -> Chain:
    width, whole = (
        vision.size("hidden_size", 768),
        tower(vision, vision.size("hidden_size", 768), 3072, 12),
    )
    taken = [i + 1 for i in _decoder_layers(fields)]
    if taken[-1] > whole.times:
        fields.note("extract_layers", f"layers below {whole.times} are accepted")
    layers: dict[str, Layer] = {"patch": Conv(width, step, step, bias=False), "token": Token()}
    layers |= {"place": Placed(), "norm": Normed()}
    for i, (before, number) in enumerate(zip((0, *taken), (*taken, whole.times), strict=True)):
        if number > before:
            layers[f"blocks{i}"] = Repeated(whole.layer, number - before)
        if i < len(taken):
            layers[f"taken{i}"] = Fork(
                {"own": Chain({"cut": Detached(), "put": SetAside(f"map{i}")})}
            )
    pooled: dict[str, Layer] = {"first": FirstPosition(), "last": Normed()}
    return Chain(layers | {"pooled": Unread(Chain({**pooled, "own": Mix(common, bias=False)}))})


def _decoder_layers(fields: Fields) -> tuple[int, ...]:
    taken = fields.items("extract_layers", (3, 6, 9))
    fine = (
        bool(taken)
        and all(is_size(i) or i == 0 for i in taken)
        and sorted(set(taken)) == list(taken)
    )
    fields.require(holds=fine, problem="rising numbers are accepted", name="extract_layers")
    return taken if fine else (1,)


def _decoder(fields: Fields, side: int, step: int) -> Chain:
    """Return the decoder, from the last layer that is taken to the first."""
    width, heads = fields.size("reduce_dim", 64), fields.size("decoder_num_attention_heads", 4)
    divided(fields, "decoder_num_attention_heads", (width,), (heads,))
    wide = fields.size("decoder_intermediate_size", 2048)
    asked = fields.source.values.get("conditional_layer", 0)
    number = len(_decoder_layers(fields))
    fields.ignore("conditional_layer")
    known = (is_size(asked) or asked == 0) and asked < number
    fields.require(holds=known, problem=f"below {number} is accepted", name="conditional_layer")
    own = block({"attention": Reduced(heads), "mlp": perceptron(wide, width, "relu")})
    layers: dict[str, Layer] = {}
    for i in range(number):
        layers |= {f"put{i}": SetAside("so far")} if i else {}
        layers |= {f"take{i}": Take(f"map{number - 1 - i}"), f"reduce{i}": Mix(width)}
        layers |= {f"add{i}": Plus("so far")} if i else {}
        layers |= {"film": Filmed("text")} if i == asked else {}
        layers[f"layer{i}"] = own
    layers["grid"] = Grid(side, side)
    if not fields.flag("use_complex_transposed_convolution", default=False):
        return Chain(layers | {"spread": Spread(1, step)})
    quarter = step // 4
    if quarter <= 0:
        fields.note(
            "use_complex_transposed_convolution", "patches of four pixels and more are accepted"
        )
    layers |= {"conv": Conv(width, 3, 1, 1), "act": Activation()}
    layers |= {"wider": Spread(max(width // 2, 1), max(quarter, 1)), "act2": Activation()}
    return Chain(layers | {"spread": Spread(1, max(quarter, 1))})
