"""Sections of models of several parts that say their sizes otherwise than their families do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.ops.declare import Op, stored

GLM_TOWERS = ("glm4v_vision", "glm4v_moe_vision")


def glm(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tower's fields whose `intermediate_size` is that of the connector.

    Its own perceptron is as wide as what it gives; its table has a row for every patch.
    """
    own = dict(values)
    image, side = own.pop("image_size", None), own.get("patch_size")
    if is_size(image) and is_size(side):
        own["num_position_embeddings"] = (image // side) ** 2
    own[MERGER] = own.get("intermediate_size")
    return own | {"intermediate_size": own.get("out_hidden_size")}


def large(fields: Fields, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the tower that a Phi-3 names: the large CLIP."""
    if not (
        str(values.get("model_name", _LARGE)).endswith(_LARGE)
        and values.get("name") == "clip_vision_model"
    ):
        fields.note("img_processor", f"only {_LARGE} is declared")
    sizes = {"hidden_size": 1024, "intermediate_size": 4096, "image_size": 336, "patch_size": 14}
    return sizes | {"num_hidden_layers": 24, "num_attention_heads": 16, "hidden_act": "quick_gelu"}


_LARGE = "clip-vit-large-patch14-336"
MERGER = "intermediate_size of the connector"


def resampler(fields: Fields, key: str) -> tuple[tuple[Op, ...], dict[str, Expr]]:
    """Return the weights of a resampler that does not run, and the sizes of their axes."""
    part = fields.part(key)
    fields.require(holds=part is not None, problem="an object is needed", name=key)
    part = part or replace(fields, source=replace(fields.source, values={}))
    part.ignore("hidden_size", "hidden_act")
    sizes = {
        "n_lat": part.size("resampler_n_latents", 64),
        "n_per": part.size("resampler_depth", 3),
        "h_p": part.size("resampler_n_heads", 16),
        "d_p": part.size("resampler_head_dim", 96),
        "k_p": part.size("num_key_value_heads", 4),
        "four": 4,
        "three": 3,
    }
    fields.problems += part.not_understood().values()
    keys = "n_per e k_p d_p"
    layer = {"q": "n_per e h_p d_p", "k": keys, "v": keys, "o": "n_per h_p d_p e"}
    layer |= dict.fromkeys(("gate", "up", "down"), "n_per e n_e four") | {"norm": "n_per three e"}
    ops = (stored("latents", w="n_lat e", norm="e"), stored("resampler", **layer))
    return ops, {axis: Integer(size) for axis, size in sizes.items()}
