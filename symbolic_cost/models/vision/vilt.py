"""A transformer of a text and the patches of an image, one behind the other: ViLT."""

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Placed, Reduced, perceptron
from symbolic_cost.layers.pyramid import FirstPosition, Token
from symbolic_cost.layers.skips import Fork, SetAside
from symbolic_cost.layers.text_matching import Behind, Typed, Words
from symbolic_cost.layers.unet import Repeated
from symbolic_cost.models.build import Fields, Model, Shape, classes_of
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import blocks, divided, function_of


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the model on images with one text each, of as many tokens as a sequence has.

    Raises:
        InputError: every problem of the fields.
    """
    width, heads = fields.size("hidden_size", 768), fields.size("num_attention_heads", 12)
    divided(fields, "num_attention_heads", (width,), (heads,))
    sides, step = sides_of(fields, (384, 384)), fields.size("patch_size", 32)
    fits = sides[0] == sides[1] >= step
    fields.require(holds=fits, problem="a square of patches is accepted", name="image_size")
    length, places = (
        shape.l if shape.c == 0 else shape.c,
        fields.size("max_position_embeddings", 40),
    )
    words = Words(fields.size("vocab_size", 30522), places, width, length)
    kinds = Typed(fields.size("type_vocab_size", 2))
    text: dict[str, Layer] = {
        "words": words,
        "kinds": kinds,
        "norm": Normed(),
        "put": SetAside("text"),
    }
    biased, wide = fields.flag("qkv_bias", default=True), fields.size("intermediate_size", 3072)
    mlp = perceptron(wide, width, function_of(fields, "gelu"))
    block = Chain(blocks("own", Reduced(heads, bias=biased), mlp))
    layers: dict[str, Layer] = {
        "text": Fork({"own": Chain(text)}),
        "patch": Conv(width, step, step),
        "token": Token(),
        "place": Placed(),
        "behind": Behind("text"),
        "modality": Typed(fields.size("modality_type_vocab_size", 2)),
        "blocks": Repeated(block, fields.size("num_hidden_layers", 12)),
        "norm": Normed(),
        "first": FirstPosition(),
        "pooler": Mix(width),
        "tanh": Activation("tanh"),
        **_head(fields, width),
    }
    fields.assume("input_ids", "one text for each image")
    channels = fields.size("num_channels", 3)
    return pictured(fields, shape, Chain(layers), sides, "kim-2021", channels=channels)


def _head(fields: Fields, width: int) -> dict[str, Layer]:
    if fields.head.endswith("Retrieval"):
        return {"rank": Mix(1)}
    if fields.head.endswith("Model"):
        return {}
    hidden: dict[str, Layer] = {"wide": Mix(2 * width), "last": Normed(), "act": Activation("gelu")}
    return {**hidden, "classes": Mix(classes_of(fields))}
