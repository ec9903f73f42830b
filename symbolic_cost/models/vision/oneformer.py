"""Masks told by queries that begin as the name of a task: OneFormer.

As Mask2Former, but for what the queries begin with: a task in so many words, which a transformer of
its own turns over the pixels; the last query is the task itself.

Source: jain-2023, section 3.
"""

from symbolic_cost.layers.conv import Chain, Conv, Maps, Trail
from symbolic_cost.layers.maps import Normed, Reduced, Shifted, perceptron
from symbolic_cost.layers.object_queries import Sequence, Some
from symbolic_cost.layers.skips import Constant, Held, Learned, SetAside, Take
from symbolic_cost.models.build import Fields, Model, Shape, classes_of
from symbolic_cost.models.vision.backbones import hierarchy
from symbolic_cost.models.vision.detection import Named, block, divided, repeated
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maskformer import LEVELS, grouped, sampled, told
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Given:
    """A vector of so many numbers for every sample, from outside."""

    channels: int

    def declare(self, name: str, trail: Trail) -> None:
        """Take it."""
        axes = (trail.at.axes[0], trail.new_axis("c", self.channels))
        trail.at = Maps(name, axes, constant=True)


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a OneFormer; the texts that it is trained with are not declared."""
    backbone, widths = hierarchy(fields)
    fits = len(widths) == LEVELS + 1
    fields.require(holds=fits, problem="4 stages are accepted", name="backbone_config")
    width = _width(fields)
    heads, depth = divided(fields, "num_attention_heads", 8, width), _depth(fields)
    number, words = fields.size("num_queries", 150), fields.size("task_seq_len", 77)
    fields.require(holds=number > 1, problem="2 and more are accepted", name="num_queries")
    layers = {"backbone": backbone, **sampled(fields, width, heads)}
    layers |= {"pixels": Chain({"project": Conv(width, 1), "put": SetAside("pixels")})}
    for i in range(LEVELS):
        own: Named = {"take": Take(f"level{i}"), "level": Shifted(), "put": SetAside(f"seen{i}")}
        layers[f"seen{i}"] = Chain(
            {**own, "constant": Constant(), "places": SetAside(f"places{i}")}
        )
    layers["task"] = Chain(_task(fields, words, width))
    mlp = perceptron(fields.size("dim_feedforward", 2048), width, "relu")
    before = fields.flag("pre_norm", default=False)
    layers |= _begun(fields, number, width, block(_layer(heads, "", mlp), before=before))
    ends = told(width, width, classes_of(fields) + 1)
    layers |= {"queries": Sequence(("objects", "task")), "heads": ends}
    for i in range(depth - 1):
        own = _layer(heads, str(i % LEVELS), mlp)
        own = {name: own[name] for name in ("seen", "own", "mlp")}
        layers[f"layer{i}"] = Chain({"block": block(own, before=before), "heads": ends})
    learned = fields.source.values.get("contrastive_temperature", 1) is not None
    if learned and not fields.head.endswith("Model"):
        layers["contrast"] = Held({"scale": (1,)})
    sides = sides_of(fields, (512, 512), said=False)
    return pictured(fields, shape, Chain(layers), sides, "jain-2023")


def _width(fields: Fields) -> int:
    """Read the one width of all: pixels become places of queries, and no projection is stored."""
    width = fields.size("hidden_dim", 256)
    for name in ("conv_dim", "mask_dim"):
        problem = f"only the {width} of hidden_dim is declared"
        fields.require(holds=fields.size(name, 256) == width, problem=problem, name=name)
    grouped(fields, "conv_dim", width)
    return width


def _depth(fields: Fields) -> int:
    depth = fields.size("decoder_layers", 10)
    problem = "2 and more are accepted: the first is no layer"
    fields.require(holds=depth > 1, problem=problem, name="decoder_layers")
    return depth


def _task(fields: Fields, words: int, width: int) -> Named:
    """Return the vector of a task, set aside as one position."""
    normed: Named = {"norm": Normed(shared="norm")}
    return {
        "words": Given(words),
        "mlp": perceptron(width, width, "relu"),
        "one": Some(1),
        **(normed if fields.flag("use_task_norm", default=True) else {}),
        "put": SetAside("task"),
    }


def _begun(fields: Fields, number: int, width: int, layer: Chain) -> Named:
    """Return what queries begin with: the task, turned over the positions of all pixels."""
    spread = fields.flag("use_task_norm", default=True)
    grid: Named = {"take": Take("pixels"), "project": Conv(width, 1), "put": SetAside("places")}
    grid |= {"constant": Constant(), "grid": SetAside("seen")}
    first: Named = {"some": Some(number - 1), "put": SetAside("first")}
    begun: Named = {"task": Take("task"), "spread": Some(number - 1)} if spread else {}
    begun = begun or {"zeros": Constant()}
    return {
        "grid": Chain(grid),
        "vectors": Learned(number, width),
        "put": SetAside("queries"),
        "asked": Chain(first),
        "begun": Chain(begun),
        "query.0": layer,  # of zeros, if the task is not normalised: nothing flows back into them
        **repeated("query.1", layer, fields.size("query_dec_layers", 2) - 1),
        "norm": Normed(),
        "objects": SetAside("objects"),
    }


def _layer(heads: int, level: str, mlp: Chain) -> Named:
    """Return what a layer of queries does: among each other, over pixels, each for itself."""
    place = "queries" if level else "first"
    sees = Reduced(heads, attended=f"seen{level}", place=place, place_seen=f"places{level}")
    return {"own": Reduced(heads, place=place), "seen": sees, "mlp": mlp}
