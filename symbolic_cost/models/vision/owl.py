"""Detectors of what a text names: OWL-ViT and OWLv2."""

from symbolic_cost.layers.conv import Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Placed, Reduced, perceptron
from symbolic_cost.layers.pyramid import FirstPosition, Token
from symbolic_cost.layers.skips import Detached, Fork, Idle, Learned, SetAside, Unread, predictor
from symbolic_cost.layers.text_matching import Compared, Matched, ScaledByFirst, Unit, Words
from symbolic_cost.layers.unet import Repeated
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import blocks, divided, function_of
from symbolic_cost.models.vision.segment import part_of


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a detector on images with one text each, of as many tokens as a sequence has."""
    newer = fields.family == "owlv2"
    vision, text = (part_of(fields, name) for name in ("vision_config", "text_config"))
    for part, kind in ((vision, "vision"), (text, "text")):
        name = f"{fields.family}_{kind}_model"
        part.text("model_type", name, (name,))
    width, wide = vision.size("hidden_size", 768), text.size("hidden_size", 512)
    common = fields.size("projection_dim", 512)
    same = common == wide or fields.head.endswith("Model")
    problem = f"{wide}, the hidden_size of the text, is accepted"
    fields.require(holds=same, problem=problem, name="projection_dim")
    sides = sides_of(vision, (768, 768))
    step = vision.size("patch_size", 16 if newer else 32)
    fits = sides[0] == sides[1] >= step
    vision.require(holds=fits, problem="a square of patches is accepted", name="image_size")
    length = shape.l if shape.c == 0 else shape.c
    places = text.size("max_position_embeddings", 16)
    words = Words(text.size("vocab_size", 49408), places, wide, length)
    texts: dict[str, Layer] = {"words": words, "blocks": tower(text, wide, 2048, 8)}
    texts |= {"norm": Normed(), "first": FirstPosition(), "project": Mix(common, bias=False)}
    images: dict[str, Layer] = {"patch": Conv(width, step, step, bias=False), "token": Token()}
    images |= {"place": Placed(), "norm": Normed(), "blocks": tower(vision, width, 3072, 12)}
    pooled: dict[str, Layer] = {"first": FirstPosition(), "norm": Normed(shared="last")}
    pooled |= {"project": Mix(common, bias=False), "unit": Unit()}
    heads: dict[str, Layer] = {
        "classes": Chain({"dense": Mix(wide), "unit": Unit(), "match": Matched("text")}),
        "shift": Mix(1),
        "scale": Mix(1),
        "boxes": predictor(width, 4, 3),
        **({"objects": Chain({"cut": Detached(), "of": predictor(width, 1, 3)})} if newer else {}),
    }
    layers: dict[str, Layer] = {
        "text": Fork({"own": Chain({**texts, "unit": Unit(), "put": SetAside("text")})}),
        "vision": Chain(images),
        "scalar": Idle(Learned(1, 1)),
    }
    compared = Chain({"image": Chain(pooled), "texts": Compared("text")})
    if fields.head.endswith("Model"):
        layers["compare"] = compared
    else:
        layers |= {"compare": Unread(compared), "last": Normed(shared="last")}
        layers |= {"shown": ScaledByFirst(), "norm": Normed(), "heads": Fork(heads)}
    channels = vision.size("num_channels", 3)
    for part in (vision, text):
        fields.problems += part.not_understood().values()
    fields.assume("input_ids", "one text for each image")
    return pictured(fields, shape, Chain(layers), sides, "minderer-2022", channels=channels)


def tower(fields: Fields, width: int, wide: int, heads: int) -> Repeated:
    """Read the blocks of a tower, with its usual perceptron and heads."""
    number = fields.size("num_attention_heads", heads)
    divided(fields, "num_attention_heads", (width,), (number,))
    function = function_of(fields, "quick_gelu")
    mlp = perceptron(fields.size("intermediate_size", wide), width, function)
    return Repeated(
        Chain(blocks("own", Reduced(number), mlp)), fields.size("num_hidden_layers", 12)
    )
