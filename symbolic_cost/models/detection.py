"""Detectors with a transformer of object queries: DETR and its kin."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from symbolic_cost.layers.aside import Constant, Fork, Learned, Plus, Put, Take, predictor
from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer, Residual
from symbolic_cost.layers.maps import Mix, Normed, Reduced, perceptron
from symbolic_cost.layers.unet import Repeated
from symbolic_cost.models.backbones import residual
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.labels import classes_of
from symbolic_cost.models.pictured import pictured, sides_of
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model

SIDES = (800, 1066)
"""A photograph whose shorter side has 800 pixels, as these models take it."""


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields and declare the detector.

    Raises:
        InputError: every problem of the fields.
    """
    backbone, fixed = residual(fields)
    layers = _NETWORKS[fields.family](fields)
    sides = sides_of(fields, SIDES, said=False)
    whole = Chain({"backbone": backbone, **layers})
    channels = fields.size("num_channels", 3)
    return pictured(fields, shape, whole, sides, "carion-2020", channels=channels, fixed=fixed)


def branch(layer: Layer, *, before: bool = False) -> dict[str, Layer]:
    """Return a layer on a residual branch, its norm before it or behind the sum."""
    if before:
        return {"sum": Residual(Chain({"norm": Normed(), "own": layer}))}
    return {"sum": Residual(Chain({"own": layer})), "norm": Normed()}


def block(layers: Mapping[str, Layer], *, before: bool = False) -> Chain:
    """Return layers, each on a residual branch."""
    return Chain({n: Chain(branch(layer, before=before)) for n, layer in layers.items()})


def detr(fields: Fields) -> dict[str, Layer]:
    """Return the transformer of DETR, or of Table Transformer, whose norms stand before."""
    before = fields.family == "table-transformer"
    width, function = fields.size("d_model", 256), function_of(fields)
    heads = {
        part: divided(fields, f"{part}_attention_heads", 8, width) for part in ("encoder", "decoder")
    }
    wide = {
        part: perceptron(fields.size(f"{part}_ffn_dim", 2048), width, function)
        for part in ("encoder", "decoder")
    }
    layer = block(
        {"own": Reduced(heads["encoder"], place="places"), "mlp": wide["encoder"]}, before=before
    )
    seeing = Reduced(heads["decoder"], seen="memory", place="queries", place_seen="places")
    decoder = block(
        {
            "own": Reduced(heads["decoder"], place="queries"),
            "seen": seeing,
            "mlp": wide["decoder"],
        },
        before=before,
    )
    depth = fields.size("decoder_layers", 6)
    learned = fields.text("position_embedding_type", "sine", ("sine", "learned")) == "learned"
    fields.require(holds=not learned, problem="sine is declared", name="position_embedding_type")
    last: dict[str, Layer] = {"last": Normed()} if before else {}
    return {
        "project": Conv(width, 1),
        "places": Fork({"of": Chain({"pixels": Constant(), "put": Put("places")})}),
        "encoder": Repeated(layer, fields.size("encoder_layers", 6)),
        **last,
        "memory": Put("memory"),
        "queries": Learned(fields.size("num_queries", 100), width),
        "put": Put("queries"),
        "zeros": Constant(),
        "decoder.0": decoder,
        **({"decoder.1": Repeated(decoder, depth - 1)} if depth > 1 else {}),
        "norm": Normed(),
        "heads": heads_of(classes_of(fields) + 1, width),
    }


def heads_of(classes: int, width: int) -> Fork:
    """Return the classes and the box of every query."""
    box = Chain({"box": predictor(width, 4, 3), "act": Activation("sigmoid")})
    return Fork({"classes": Mix(classes), "boxes": box})


def function_of(fields: Fields, default: str = "relu") -> str:
    """Read the activation function."""
    return FUNCTIONS[fields.text("activation_function", default, tuple(FUNCTIONS))]


def divided(fields: Fields, name: str, default: int, width: int) -> int:
    """Read a number of heads, which divides a width."""
    heads = fields.size(name, default)
    problem = f"{heads} heads do not divide {width} channels"
    fields.require(holds=width % heads == 0, problem=problem, name=name)
    return heads if width % heads == 0 else 1


_NETWORKS: Mapping[str, Callable[[Fields], dict[str, Layer]]] = {
    "detr": detr,
    "table-transformer": detr,
}
"""Makes the layers behind the backbone, by model_type."""
