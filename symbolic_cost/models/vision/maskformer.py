"""Masks told by queries: MaskFormer and Mask2Former."""

from symbolic_cost.layers.conv import Activation, Chain, Conv
from symbolic_cost.layers.maps import Mix, Normed, Reduced, Shifted, perceptron
from symbolic_cost.layers.mask_heads import Masks
from symbolic_cost.layers.object_queries import Levels, Sampled, Sequence
from symbolic_cost.layers.skips import Constant, Fork, Learned, Plus, SetAside, Take, predictor
from symbolic_cost.layers.unet import GROUPS, Enlarged, Repeated
from symbolic_cost.layers.upsampling import Carved
from symbolic_cost.models.build import Fields, Model, Shape, classes_of
from symbolic_cost.models.vision.backbones import hierarchy
from symbolic_cost.models.vision.detection import Named, block, divided, function_of, repeated
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.segment import part_of


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a MaskFormer: maps fused from the last to the first, queries that see the last."""
    backbone, widths = hierarchy(fields)
    decoder = part_of(fields, "decoder_config")
    decoder.text("model_type", "detr", ("detr",))
    wide, mask = fields.size("fpn_feature_size", 256), fields.size("mask_feature_size", 256)
    grouped(fields, "fpn_feature_size", wide)
    problem = "2 and more are accepted: a sum over one is no product"
    fields.require(holds=mask > 1, problem=problem, name="mask_feature_size")
    last = len(widths) - 1
    maps: Named = {"stem": _fused(wide)}
    for i in range(last - 1, -1, -1):
        side: Named = {"put": SetAside("above"), "take": Take(f"map{i}")}
        side |= {"project": Conv(wide, 1, bias=False), "norm": GROUPS, "side": SetAside("side")}
        side |= {"above": Take("above"), "fit": Enlarged("side"), "sum": Plus("side")}
        maps[f"level{i}"] = Chain({**side, "fuse": _fused(wide)})
    maps |= {"project": Conv(mask, 3, 1, 1), "put": SetAside("pixels")}
    width, heads = decoder.size("d_model", 256), decoder.size("decoder_attention_heads", 8)
    divided(decoder, "decoder_attention_heads", 8, width)
    decoder.ignore("position_embedding_type")  # it computes positions, whatever this says
    mlp = perceptron(decoder.size("decoder_ffn_dim", 2048), width, function_of(decoder))
    depth, number = decoder.size("decoder_layers", 6), decoder.size("num_queries", 100)
    sees = Reduced(heads, attended="memory", place="queries", place_seen="places")
    layer = block({"own": Reduced(heads, place="queries"), "seen": sees, "mlp": mlp})
    seen: Named = {"map": Take(f"map{last}")}
    seen |= {"project": Conv(width, 1)} if widths[-1] != width else {}
    seen |= {"memory": SetAside("memory"), "constant": Constant(), "places": SetAside("places")}
    # Zeros that learn, as the code has it while it trains: gradients flow into them.
    queries: Named = {
        "queries": Learned(number, width),
        "put": SetAside("queries"),
        "zeros": Activation("copy"),
    }
    queries |= {**repeated("layers", layer, depth), "norm": Normed()}
    problems = decoder.not_understood().values()
    fields.problems += problems
    layers: Named = {
        "backbone": backbone,
        "pixels": Chain({"map": Take(f"map{last}"), **maps}),
        "seen": Chain(seen),
        "decoder": Chain(queries),
    }
    if not fields.head.endswith("Model"):
        layers["classes"] = Fork({"own": Mix(classes_of(fields) + 1)})
        layers |= {"vectors": predictor(width, mask, 3), "put": SetAside("vectors")}
        layers |= {"map": Take("pixels"), "masks": Masks(("vectors",))}
    sides = sides_of(fields, (512, 512), said=False)
    return pictured(fields, shape, Chain(layers), sides, "cheng-2021")


def _fused(wide: int) -> Chain:
    conv = Conv(wide, 3, 1, 1, bias=False)
    return Chain({"conv": conv, "norm": GROUPS, "act": Activation()})


def grouped(fields: Fields, name: str, width: int) -> None:
    """Note channels that the groups of a norm do not divide."""
    problem = "a multiple of 32 is accepted"
    fields.require(holds=width % 32 == 0, problem=problem, name=name)


LEVELS, _POINTS = 3, 4
"""Maps that are sampled, and places on each."""


def second(fields: Fields, shape: Shape) -> Model:
    """Declare a Mask2Former: sampled maps, and queries that see one of them in every layer."""
    backbone, widths = hierarchy(fields)
    fits = len(widths) == LEVELS + 1
    fields.require(holds=fits, problem="4 stages are accepted", name="backbone_config")
    wide, mask = fields.size("feature_size", 256), fields.size("mask_feature_size", 256)
    grouped(fields, "feature_size", wide)
    width, heads = fields.size("hidden_dim", 256), divided(fields, "num_attention_heads", 8, wide)
    divided(fields, "num_attention_heads", 8, width)
    layers = {"backbone": backbone, **sampled(fields, wide, heads)}
    layers |= {"pixels": Chain({"project": Conv(mask, 1), "put": SetAside("pixels")})}
    projected = fields.flag("enforce_input_projection", default=False) or wide != width
    for i in range(LEVELS):
        own: Named = {"take": Take(f"level{i}")}
        own |= {"project": Conv(width, 1)} if projected else {}
        own |= {"level": Shifted(), "put": SetAside(f"seen{i}")}
        layers[f"seen{i}"] = Chain(
            {**own, "constant": Constant(), "places": SetAside(f"places{i}")}
        )
    mlp = perceptron(fields.size("dim_feedforward", 2048), width, function_of(fields))
    number, before = fields.size("num_queries", 100), fields.flag("pre_norm", default=False)
    ends = told(width, mask, 0 if fields.head.endswith("Model") else classes_of(fields) + 1)
    layers |= {"places": Learned(number, width), "put": SetAside("queries")}
    layers |= {"queries": Learned(number, width), "heads": ends}
    for i in range(fields.size("decoder_layers", 10) - 1):
        level = i % LEVELS
        sees = Reduced(heads, attended=f"seen{level}", place="queries", place_seen=f"places{level}")
        own = {"seen": sees, "own": Reduced(heads, place="queries"), "mlp": mlp}
        layers[f"layer{i}"] = Chain({"block": block(own, before=before), "heads": ends})
    sides = sides_of(fields, (512, 512), said=False)
    return pictured(fields, shape, Chain(layers), sides, "cheng-2022")


def sampled(fields: Fields, wide: int, heads: int) -> Named:
    """Return the encoder of the last three maps, and the first one fused with the largest."""
    titles = tuple(f"sampled{i}" for i in range(LEVELS))
    layers: Named = {}
    for i, title in enumerate(titles):
        own: Named = {"take": Take(f"map{LEVELS - i}"), "conv": Conv(wide, 1), "norm": GROUPS}
        layers[title] = Chain({**own, "put": SetAside(title)})
    mlp = perceptron(fields.size("encoder_feedforward_dim", 1024), wide, "relu")
    sampled = Sampled(heads, LEVELS * _POINTS, place="levels")
    places: Named = {"places": Chain({"of": Levels(LEVELS), "put": SetAside("levels")})}
    encoder = Repeated(block({"own": sampled, "mlp": mlp}), fields.size("encoder_layers", 6))
    layers |= {"sequence": Sequence(titles), "levels": Fork(places), "encoder": encoder}
    carved: Named = {
        f"level{i}": Chain({"carve": Carved(title), "put": SetAside(f"level{i}")})
        for i, title in enumerate(titles)
    }
    side: Named = {"take": Take("map0"), "conv": Conv(wide, 1, bias=False), "norm": GROUPS}
    fused: Named = {
        "above": Take(f"level{LEVELS - 1}"),
        "fit": Enlarged("side"),
        "sum": Plus("side"),
    }
    first: Named = {**side, "put": SetAside("side"), **fused, "fuse": _fused(wide)}
    return {**layers, "levels_again": Fork(carved), "first": Chain(first)}


def told(width: int, mask: int, classes: int) -> Fork:
    """Return what queries tell: masks, and classes if there are any; all of them by one network."""
    vectors = predictor(width, mask, 3, "vectors")
    masks: Named = {"vectors": vectors, "put": SetAside("vectors"), "map": Take("pixels")}
    own: Named = {"masks": Chain({**masks, "masks": Masks(("vectors",))})}
    own |= {"classes": Mix(classes, shared="classes")} if classes else {}
    normed = Chain({"norm": Normed(shared="norm"), "both": Fork(own)})
    return Fork({"own": normed})
