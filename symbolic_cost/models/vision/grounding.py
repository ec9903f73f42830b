"""Detectors of what a text names, whose image and text meet in every layer: Grounding DINO."""

from dataclasses import replace

from symbolic_cost.errors import InputError
from symbolic_cost.layers.conv import Activation, Chain, Layer
from symbolic_cost.layers.maps import Mix, Normed, Reduced, perceptron
from symbolic_cost.layers.mask_heads import Masks, Scalar
from symbolic_cost.layers.object_queries import Chosen, Levels, Sampled, Sequence
from symbolic_cost.layers.skips import Constant, Fork, Learned, SetAside, Take, Unread, predictor
from symbolic_cost.layers.text_matching import Meeting, Typed, Words
from symbolic_cost.layers.unet import Repeated
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.vision.backbones import hierarchy
from symbolic_cost.models.vision.detection import (
    SIDES,
    Ends,
    Named,
    block,
    divided,
    ends,
    level_maps,
)
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import function_of

_MAPS = 3
"""Maps that the network of the image hands on: those of its last stages."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a detector on images with one text each, of as many tokens as a sequence has.

    Raises:
        InputError: every problem of the fields.
    """
    backbone, widths = hierarchy(fields, ("swin",), 2)
    problem = "4 stages are accepted"
    fields.require(holds=len(widths) == _MAPS + 1, problem=problem, name="backbone_config")
    sizes, levels = ends(fields, 900, 2048), fields.size("num_feature_levels", 4)
    fields.require(holds=levels >= _MAPS, problem="3 and more", name="num_feature_levels")
    grouped = sizes.width % 32 == 0
    fields.require(holds=grouped, problem="a multiple of 32 is accepted", name="d_model")
    longest = fields.size("max_text_len", 256)
    text = text_tower(fields, shape)
    maps, titles = level_maps(tuple(f"map{i}" for i in range(1, _MAPS + 1)), levels, sizes.width)
    words: Named = {"tower": Chain(text), "project": Mix(sizes.width)}
    words |= {"put": SetAside("text"), "kept": SetAside("words")}
    words["places"] = Chain({"of": Constant(), "put": SetAside("text places")})
    places = Chain({"of": Levels(levels), "put": SetAside("places")})
    sides = sides_of(fields, SIDES, said=False)
    layers: Named = {
        "backbone": backbone,
        "text": Fork({"own": Chain(words)}),
        **maps,
        "sequence": Sequence(titles),
        "places": Fork({"of": places}),
        **_encoder(fields, sizes, levels),
        **_chosen(fields, sizes),
        **_decoder(fields, sizes, levels),
    }
    fields.assume("input_ids", "one text for each image")
    if shape.l.is_number and shape.l > longest:
        raise InputError(f"{shape.l} tokens of a text: {longest} (max_text_len) are accepted")
    return pictured(fields, shape, Chain(layers), sides, "liu-2023-grounding")


def text_tower(fields: Fields, shape: Shape) -> Named:
    """Read a BERT, whose pooler is left out."""
    part = fields.part("text_config") or replace(fields, source=replace(fields.source, values={}))
    part = Fields(part.source, "bert", FAMILIES["bert"], problems=fields.problems)
    part.text("model_type", "bert", ("bert",))
    width, heads = part.size("hidden_size", 768), part.size("num_attention_heads", 12)
    divided(part, "num_attention_heads", 12, width)
    places, length = part.size("max_position_embeddings", 512), shape.l
    mlp = perceptron(part.size("intermediate_size", 3072), width, function_of(part, "gelu"))
    layers: Named = {
        "words": Words(part.size("vocab_size", 30522), places, width, length),
        "kinds": Typed(part.size("type_vocab_size", 2)),
        "norm": Normed(),
        "blocks": Repeated(
            block({"own": Reduced(heads), "mlp": mlp}), part.size("num_hidden_layers", 12)
        ),
    }
    fields.problems += part.not_understood().values()
    return layers


def _encoder(fields: Fields, sizes: Ends, levels: int) -> Named:
    heads, points = sizes.heads[0], fields.size("encoder_n_points", 4)
    half, wide = max(heads // 2, 1), sizes.wide[0] // 2
    fits = heads > 1 and wide % half == 0 and sizes.width % half == 0
    problem = f"halves of {heads} heads do not divide {wide} and {sizes.width} channels"
    fields.require(holds=fits, problem=problem, name="encoder_attention_heads")
    enhanced: Named = {"own": Reduced(half, place="text places")}
    enhanced["mlp"] = perceptron(wide, sizes.width, sizes.function)
    seen: Named = {"own": Sampled(heads, levels * points, place="places"), "mlp": sizes.mlp(0)}
    text = Chain({"take": Take("text"), "enhanced": block(enhanced), "put": SetAside("text")})
    normed = Chain({"take": Take("text"), "norm": Normed(), "put": SetAside("text")})
    layer: Named = {"norm": Normed(), "normed": Fork({"text": normed})}
    layer |= {"meet": Meeting(half, wide, "text"), "text": Fork({"own": text})}
    layer["image"] = block(seen)
    return {f"encoder.{i}": Chain(layer) for i in range(sizes.depths[0])}


def _classes(fields: Fields, name: str, text: str = "text") -> Chain:
    newer = fields.family == "mm-grounding-dino"
    return Chain({"scores": Masks((text,)), **({"shift": Scalar("add", name)} if newer else {})})


def _chosen(fields: Fields, sizes: Ends) -> Named:
    """Return the choice of positions by their scores, and what the decoder starts with."""
    learned = fields.flag("embedding_init_target", default=True)
    scores: Named = {"classes": _classes(fields, "chosen"), "boxes": predictor(sizes.width, 4, 3)}
    layers: Named = {"memory": SetAside("memory"), "output": Mix(sizes.width), "norm": Normed()}
    layers |= {"scores": Fork(scores), "chosen": Chosen(sizes.queries)}
    layers |= {"targets": Learned(sizes.queries, sizes.width)} if learned else {}
    return layers | {"first": Fork({"classes": _classes(fields, "chosen", "words")})}


def _decoder(fields: Fields, sizes: Ends, levels: int) -> Named:
    """Return the layers that refine boxes, each with the boxes and classes that it gives."""
    heads, points = sizes.heads[1], fields.size("decoder_n_points", 4)
    one_box = fields.flag("decoder_bbox_embed_share", default=True)
    one_class = fields.flag("decoder_cls_embed_share", default=True)
    asked = predictor(sizes.width, sizes.width, 2, "reference")
    own: Named = {"own": Reduced(heads, place="queries")}
    own["told"] = Reduced(heads, attended="text", place="queries")
    own["seen"] = Sampled(heads, levels * points, "memory", "queries")
    own["mlp"] = sizes.mlp(1)
    layers: Named = {}
    for i in range(sizes.depths[1]):
        boxes = predictor(sizes.width, 4, 3, f"boxes{'' if one_box else i}")
        box = Chain({"box": boxes, "act": Activation("sigmoid")})
        classes = _classes(fields, f"classes{'' if one_class else i}")
        ends_of: dict[str, Layer] = {"norm": Normed(shared="decoded")}
        ends_of["both"] = Fork({"boxes": box, "classes": classes})
        queries = Chain(
            {"of": Constant(2 * sizes.width), "asked": asked, "put": SetAside("queries")}
        )
        layers[f"decoder.{i}"] = Chain(
            {
                "queries": Fork({"of": queries}),
                "block": block(own),
                "refine": Unread(boxes),
                "heads": Fork({"own": Chain(ends_of)}),
            }
        )
    return layers
