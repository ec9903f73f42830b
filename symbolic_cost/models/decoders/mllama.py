"""Builder of Llama 3.2 Vision on texts: what sees images has weights and does no work.

Layers that attend to an image are left out where there is none, as Transformers does.
"""

from dataclasses import replace

from sympy import Integer

from symbolic_cost.errors import InputError
from symbolic_cost.layers.attention import Bias, HeadNorm, Rotated
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch
from symbolic_cost.models.build import Fields, Shape, bound, is_size
from symbolic_cost.models.config import imported
from symbolic_cost.models.decoders import decoder
from symbolic_cost.models.encoders import encoder
from symbolic_cost.models.encoders.sizes import AXES as ENCODER_AXES
from symbolic_cost.models.nested.towers import tower
from symbolic_cost.ops.declare import Model, Part, axes, glossary
from symbolic_cost.ops.unread import stored, unused_weights

_NEW_ROWS = 8
"""Rows that the token table has more than the head: tokens of images."""

_CROSS = (
    *Branch(Norm.RMS).around(
        "cross", replace(decoder.ATTENTION, head_norm=HeadNorm.HEAD, rotated=Rotated.NOTHING).ops()
    ),
    *Branch(Norm.RMS).around("mlp", GatedMLP().ops()),
)
_SEEING = (
    *Branch().around("attention", replace(encoder.ATTENTION, bias=Bias.NONE).ops()),
    *Branch().around("mlp", MLP().ops()),
)
_AXES = axes("ch whole, px whole, n_t whole, tiles whole, ratios whole, two whole")
_TABLES = {
    "patch": "e ch px",
    "class": "e",
    "places": "n_t e",
    "tile_places": "ratios tiles n_t e",
    "before": "ratios tiles e",
    "after": "ratios tiles e",
    **dict.fromkeys(("gate", "gate_before", "gate_after"), "one"),
    **dict.fromkeys(("norm_before", "norm_after"), "two e"),
}


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the model.

    Raises:
        InputError: every problem of a section, or an image.
    """
    if shape.i != 0:
        raise InputError(
            "images of mllama are attended to, and take no tokens: image_tokens = 0 is accepted, "
            "which counts the text"
        )
    fields.assume("vision_config", "text alone: what attends to images has weights and no work")
    seeing, text = fields.part("vision_config"), fields.part("text_config")
    if seeing is None or text is None:
        raise InputError("mllama: an object vision_config and an object text_config are accepted")
    tied = [part.flag("tie_word_embeddings", default=False) for part in (fields, text)]
    if any(tied):
        fields.note("tie_word_embeddings", "only false is declared")
    model, crossed = _text(text, shape)
    vision, width = _tower(seeing, shape)
    fields.problems += seeing.not_understood().values()
    fields.refuse()
    seen = tower(vision, "vision")
    linear = stored("linear", w="w_image e", bias="e")
    parts = (
        *seen.parts,
        Part("projector", (linear, stored("new_rows", w="n_new e"))),
        *model.parts,
        Part("cross.block", (*unused_weights(_CROSS), stored("gates", w="two")), Integer(crossed)),
    )
    own = {"w_image": Integer(width), "n_new": Integer(_NEW_ROWS)}
    known = glossary(model.axes, seen.axes, axes("w_image hidden, n_new whole, two whole"))
    return replace(model, parts=parts, sizes={**model.sizes, **seen.sizes, **own}, axes=known)


def _text(text: Fields, shape: Shape) -> tuple[Model, int]:
    """Return the language model without its layers that attend to images, and their number."""
    layers = text.size("num_hidden_layers", 40)
    listed = text.items("cross_attention_layers", (3, 8, 13, 18, 23, 28, 33, 38))
    places = {place for place in listed if place == 0 or is_size(place)}
    text.require(
        holds=len(places) == len(listed) < layers and all(place < layers for place in places),
        problem=f"numbers of layers, from 0 to {layers - 1}, some but not all, are accepted",
        name="cross_attention_layers",
    )
    values = dict(text.source.values)
    values.pop("cross_attention_layers", None)
    for name in _NEVER:
        value = values.pop(name, None)
        text.require(holds=not value, problem=f"not declared for {text.family}", name=name)
    own = {"num_key_value_heads": 8, **values}
    own |= {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
    own |= {"num_hidden_layers": max(layers - len(places), 1)}
    return bound(imported(replace(text.source, values=own), shape).model), len(listed)


_NEVER = ("head_dim", "attention_bias", "mlp_bias")
"""What a Llama may have and this text never has."""


def _tower(fields: Fields, shape: Shape) -> tuple[Model, int]:
    """Return the weights of the tower as a model, and the width of what it gives."""
    side = fields.size("image_size", 448) // fields.size("patch_size", 14)
    layers, late = fields.size("num_hidden_layers", 32), fields.size("num_global_layers", 8)
    width, heads = fields.size("hidden_size", 1280), fields.size("attention_heads", 16)
    if width % heads != 0:
        fields.note("attention_heads", f"they do not divide {width}")
    sizes = {
        "b": shape.b,
        "e": Integer(width),
        "f": Integer(fields.size("intermediate_size", 5120)),
        "h": Integer(heads),
        "d": Integer(width // heads),
        "ch": Integer(fields.size("num_channels", 3)),
        "px": Integer(fields.size("patch_size", 14) ** 2),
        "n_t": Integer(side**2 + 1),
        "tiles": Integer(fields.size("max_num_tiles", 4)),
        "ratios": Integer(len(fields.items("supported_aspect_ratios", range(8))) + 1),
        "one": Integer(1),
        "two": Integer(2),
    }
    fields.ignore("hidden_act", "intermediate_layers_indices", "tie_word_embeddings")
    parts = (
        Part("embedding", tuple(stored(name, w=shape) for name, shape in _TABLES.items())),
        Part("block", unused_weights(_SEEING), Integer(layers)),
        Part("global.block", (*unused_weights(_SEEING), stored("gates", w="two")), Integer(late)),
    )
    model = Model("vision", parts, sizes, axes=glossary(ENCODER_AXES, _AXES))
    return model, fields.size("vision_output_dim", 7680)
