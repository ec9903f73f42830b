"""Detectors with a transformer of object queries: DETR and its kin."""

from collections.abc import Callable, Mapping

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Reduced, Residual, perceptron
from symbolic_cost.layers.mask_heads import Heatmaps, Stacked
from symbolic_cost.layers.object_queries import Conditional, Levels, Sampled, Sequence, Sine, Times
from symbolic_cost.layers.skips import (
    Constant,
    Fork,
    Idle,
    Learned,
    Plus,
    SetAside,
    Take,
    predictor,
)
from symbolic_cost.layers.unet import GROUPS, Enlarged, Repeated
from symbolic_cost.layers.upsampling import Beside
from symbolic_cost.models.build import Fields, Model, Shape, classes_of
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.vision.backbones import residual
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.records import dataclass

Named = dict[str, Layer]
"""Layers by name, in order."""

_SOURCES = {"conditional_detr": "meng-2021", "deformable_detr": "zhu-2020"}

SIDES = (800, 1066)
"""A photograph whose shorter side has 800 pixels, as these models take it."""


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields and declare the detector."""
    backbone, fixed = residual(fields)
    layers = _NETWORKS[fields.family](fields)
    if fields.head.endswith("Model"):
        layers = {name: layer for name, layer in layers.items() if name != "heads"}
    elif fields.head.endswith("Segmentation"):
        layers |= _masks(fields)
    sides = sides_of(fields, SIDES, said=False)
    whole = Chain({"backbone": backbone, **layers})
    source = _SOURCES.get(fields.family, "carion-2020")
    return pictured(fields, shape, whole, sides, source, fixed=fixed)


def branch(layer: Layer, *, before: bool = False) -> Named:
    """Return a layer on a residual branch, its norm before it or behind the sum."""
    if before:
        return {"sum": Residual(Chain({"norm": Normed(), "own": layer}))}
    return {"sum": Residual(Chain({"own": layer})), "norm": Normed()}


def block(layers: Mapping[str, Layer], *, before: bool = False) -> Chain:
    """Return layers, each on a residual branch."""
    return Chain({n: Chain(branch(layer, before=before)) for n, layer in layers.items()})


@dataclass(frozen=True)
class Ends:
    """Sizes of the encoder and the decoder.

    Args:
        heads: of both.
        wide: widths of the perceptrons of both.
        depths: of both.
    """

    width: int
    function: str
    heads: tuple[int, int]
    wide: tuple[int, int]
    depths: tuple[int, int]
    queries: int

    def mlp(self, place: int) -> Chain:
        """Return the perceptron of the encoder or of the decoder."""
        return perceptron(self.wide[place], self.width, self.function)


def ends(fields: Fields, queries: int, wide: int) -> Ends:
    """Read the sizes of the encoder and the decoder."""
    width, both = fields.size("d_model", 256), ("encoder", "decoder")
    kind = fields.text("position_embedding_type", "sine", ("sine", "learned"))
    if kind != "sine":
        fields.note("position_embedding_type", "only sine is declared")
    e, d = (divided(fields, f"{part}_attention_heads", 8, width) for part in both)
    f, g = (fields.size(f"{part}_ffn_dim", wide) for part in both)
    n, m = (fields.size(f"{part}_layers", 6) for part in both)
    number = fields.size("num_queries", queries)
    return Ends(width, function_of(fields), (e, d), (f, g), (n, m), number)


_PLACES = Fork({"places": Chain({"pixels": Constant(), "put": SetAside("places")})})


def detr(fields: Fields) -> Named:
    """Return the transformer of DETR, or of Table Transformer, whose norms stand before."""
    before = fields.family == "table-transformer"
    sizes = ends(fields, 100, 2048)
    own, asked = sizes.heads
    encoder = block({"own": Reduced(own, place="places"), "mlp": sizes.mlp(0)}, before=before)
    seeing = Reduced(asked, attended="memory", place="queries", place_seen="places")
    layers: Named = {"own": Reduced(asked, place="queries"), "seen": seeing, "mlp": sizes.mlp(1)}
    decoder = block(layers, before=before)
    return {
        "project": Conv(sizes.width, 1),
        "projected": SetAside("projected"),
        "places": _PLACES,
        "encoder": Repeated(encoder, sizes.depths[0]),
        **({"last": Normed()} if before else {}),
        "memory": SetAside("memory"),
        "queries": Learned(sizes.queries, sizes.width),
        "put": SetAside("queries"),
        "zeros": Constant(),
        "decoder.0": decoder,
        **repeated("decoder.1", decoder, sizes.depths[1] - 1),
        "norm": Normed(),
        "heads": heads_of(classes_of(fields) + 1, sizes.width),
    }


def _masks(fields: Fields) -> Named:
    """Return the masks of a DETR: convolutions of one map per query, with those of the backbone."""
    timm = fields.flag("use_timm_backbone", default=True)
    problem = "true is accepted: maps of all stages are taken"
    fields.require(holds=timm, problem=problem, name="use_timm_backbone")
    width, number = fields.size("d_model", 256), fields.size("num_queries", 100)
    heads = fields.size("encoder_attention_heads", 8)
    channels = (width + heads, *(width >> i for i in range(1, 5)))
    fine = (width + heads) % 8 == 0 and all(c and c % min(8, c) == 0 for c in channels)
    problem = f"groups of 8 do not divide {list(channels)} channels"
    fields.require(holds=fine, problem=problem, name="d_model")
    divided(fields, "encoder_attention_heads", 8, width)
    ended: Named = {"norm": GROUPS, "act": Activation(function_of(fields))}
    first, second, *others = (Chain({"conv": Conv(c, 3, 1, 1), **ended}) for c in channels)
    layers: Named = {"looks": Heatmaps(heads, "memory"), "put": SetAside("looks")}
    layers |= {"map": Take("projected"), "each": Stacked(number), "beside": Beside(("looks",))}
    layers |= {"conv1": first, "conv2": second}
    for i, (stage, fused) in enumerate(zip((3, 2, 1), others, strict=True)):
        side: Named = {"put": SetAside("above"), "take": Take(f"map{stage}")}
        side |= {
            "each": Stacked(number),
            "adapt": Conv(width >> i + 1, 1),
            "side": SetAside("side"),
        }
        side |= {"above": Take("above"), "fit": Enlarged("side"), "sum": Plus("side")}
        layers[f"stage{i}"] = Chain({**side, "fuse": fused})
    return {"masks": Chain({**layers, "last": Conv(1, 3, 1, 1)})}


def conditional(fields: Fields) -> Named:
    """Return the transformer of Conditional DETR: queries ask for contents and places apart."""
    sizes = ends(fields, 300, 2048)
    (own, asked), width = sizes.heads, sizes.width
    encoder = block({"own": Reduced(own, place="places"), "mlp": sizes.mlp(0)})

    def decoder(place: str) -> Chain:
        seeing = Conditional(asked, "memory", place, "sine", "places")
        layers: Named = {
            "own": Conditional(asked, place="queries"),
            "seen": seeing,
            "mlp": sizes.mlp(1),
        }
        return block(layers)

    scaled = predictor(width, width, 2, "query_scale")
    later: Named = {
        "sine": Fork(
            {"of": Chain({"scale": scaled, "by": Times("first_sine"), "put": SetAside("sine")})}
        ),
        "block": decoder(""),
    }
    points: Named = {"point": predictor(width, 2, 2), "act": Activation("sigmoid")}
    points |= {"sine": Sine(width), "put": SetAside("sine"), "first": SetAside("first_sine")}
    return {
        "project": Conv(width, 1),
        "places": _PLACES,
        "encoder": Repeated(encoder, sizes.depths[0]),
        "memory": SetAside("memory"),
        "queries": Learned(sizes.queries, width),
        "put": SetAside("queries"),
        "points": Fork({"of": Chain(points)}),
        "zeros": Constant(),
        "decoder.0": decoder("queries"),
        # It scales what layers behind the first one ask for.
        **({"scale": Idle(predictor(width, width, 2))} if sizes.depths[1] == 1 else {}),
        **repeated("decoder.1", Chain(later), sizes.depths[1] - 1),
        "norm": Normed(),
        "heads": heads_of(classes_of(fields), width),
    }


def deformable(fields: Fields) -> Named:
    """Return the transformer of Deformable DETR, which samples maps of several sides."""
    sizes, levels = ends(fields, 300, 1024), fields.size("num_feature_levels", 4)
    points = [fields.size(f"{part}_n_points", 4) for part in ("encoder", "decoder")]
    (own, asked), width = sizes.heads, sizes.width
    fields.require(
        holds=levels != 2,  # noqa: PLR2004 - fewer than the backbone gives
        problem="1 map, or 3 and more, are accepted",
        name="num_feature_levels",
    )
    taken = ("map4",) if levels == 1 else ("map2", "map3", "map4")
    maps, titles = level_maps(taken, levels, width)
    sampled = Sampled(own, levels * points[0], place="places")
    encoder = block({"own": sampled, "mlp": sizes.mlp(0)})
    seeing = Sampled(asked, levels * points[1], "memory", "queries")
    heads = heads_of(classes_of(fields), width, "of_all")
    decoder: Named = {
        "block": block(
            {"own": Reduced(asked, place="queries"), "seen": seeing, "mlp": sizes.mlp(1)}
        ),
        **({} if fields.head.endswith("Model") else {"heads": heads}),
    }
    places: Named = {"places": Chain({"of": Levels(levels), "put": SetAside("places")})}
    return {
        **maps,
        "sequence": Sequence(titles),
        "places": Fork(places),
        "encoder": Repeated(encoder, sizes.depths[0]),
        "memory": SetAside("memory"),
        "queries": Learned(sizes.queries, width),
        "put": SetAside("queries"),
        "points": Mix(2),
        "targets": Learned(sizes.queries, width),
        "decoder": Repeated(Chain(decoder), sizes.depths[1]),
    }


def level_maps(taken: tuple[str, ...], levels: int, width: int) -> tuple[Named, tuple[str, ...]]:
    """Return projections of maps aside to so many levels, and the names of these."""
    titles = tuple(f"level{i}" for i in range(levels))
    maps: Named = {}
    for i, title in enumerate(titles):
        step = Conv(width, 1) if i < len(taken) else Conv(width, 3, 2, 1)
        first = {"take": Take(taken[min(i, len(taken) - 1)])} if i <= len(taken) else {}
        maps[title] = Chain({**first, "conv": step, "norm": GROUPS, "put": SetAside(title)})
    return maps, titles


def repeated(name: str, layer: Layer, times: int) -> Named:
    """Return a layer that runs several times; nothing if it never does."""
    return {name: Repeated(layer, times)} if times else {}


def heads_of(classes: int, width: int, shared: str = "") -> Fork:
    """Return the classes and the box of every query, perhaps with weights that layers share."""
    boxes = f"{shared}.boxes" if shared else ""
    box = Chain({"box": predictor(width, 4, 3, boxes), "act": Activation("sigmoid")})
    return Fork({"classes": Mix(classes, shared=shared), "boxes": box})


def function_of(fields: Fields, default: str = "relu") -> str:
    """Read the activation function."""
    return FUNCTIONS[fields.text("activation_function", default, tuple(FUNCTIONS))]


def divided(fields: Fields, name: str, default: int, width: int) -> int:
    """Read a number of heads, which divides a width."""
    heads = fields.size(name, default)
    problem = f"{heads} heads do not divide {width} channels"
    fields.require(holds=width % heads == 0, problem=problem, name=name)
    return heads if width % heads == 0 else 1


_NETWORKS: Mapping[str, Callable[[Fields], Named]] = {
    "detr": detr,
    "table-transformer": detr,
    "conditional_detr": conditional,
    "deformable_detr": deformable,
}
"""Makes the layers behind the backbone, by model_type."""
