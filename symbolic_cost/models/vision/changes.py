"""What the fields of a configuration change in a vision transformer besides its sizes."""

from collections.abc import Callable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from math import isqrt

from symbolic_cost.layers.attention import Bias, HeadNorm
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.heads import Classes, Take
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Places
from symbolic_cost.layers.pooling import MeanPool, VectorQuery
from symbolic_cost.layers.relative import Distances
from symbolic_cost.layers.residual import Outcome
from symbolic_cost.models.encoders.changes import as_wide
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.vision.sides import side_lengths


def _biased(fields: Fields, key: str, which: Bias, family: Encoder, *, default: bool) -> Encoder:
    own = family.attention.bias
    biased = fields.flag(key, default=default)
    return family.attended(bias=own | which if biased else own & ~which)


def _qkv(fields: Fields, family: Encoder) -> Encoder:
    fields.ignore("pooler_output_size", "pooler_act", "encoder_stride")
    if fields.head.endswith("Model"):
        as_wide(fields, "pooler_output_size")
    return _biased(fields, "qkv_bias", Bias.INNER, family, default=True)


def _yolos(fields: Fields, family: Encoder) -> Encoder:
    family = _qkv(fields, family)
    # Added between blocks, which costs no product.
    placed = fields.flag("use_mid_position_embeddings", default=True)
    side = fields.size("patch_size", 16)
    sides = side_lengths(fields, "image_size", 512)
    # The table of positions between blocks has a row for every patch's worth of pixels.
    whole = sides[0] * sides[1] // side**2 == (sides[0] // side) * (sides[1] // side)
    if not whole and placed:
        fields.note("patch_size", f"patches of {side} do not divide an image of {list(sides)}")
    return replace(family, unused={"mid": "n_mid r e"} if placed else {})


def _timed(fields: Fields, family: Encoder) -> Encoder:
    """Return a TimeSformer whose patches attend to all others, or in two steps."""
    kinds = ("divided_space_time", "joint_space_time")
    whole = fields.text("attention_type", kinds[0], kinds) == kinds[1]
    own = _qkv(fields, family)
    # `vars` of a value hold what it worked out as well.
    return (
        Encoder(**{f.name: getattr(own, f.name) for f in dataclass_fields(own)}) if whole else own
    )


def _siglip(fields: Fields, family: Encoder) -> Encoder:
    headed = fields.flag("vision_use_head", default=True)
    return family if headed else replace(family, pooler=None)


def _patched(fields: Fields, family: Encoder) -> Encoder:
    """Return a SigLIP whose images of any sides are cut to a number of patches, a square."""
    number, side = fields.size("num_patches", 256), fields.size("patch_size", 16)
    root = isqrt(number)
    fields.require(holds=root**2 == number, problem="a square is accepted", name="num_patches")
    told = "as many positions, interpolated; Transformers 5.24 takes a product, not counted here"
    fields.assume("num_patches", told)
    values = {**fields.source.values, "image_size": root * side}
    fields.source = replace(fields.source, values=values)
    return _siglip(fields, family)


def _internvl(fields: Fields, family: Encoder) -> Encoder:
    fields.ignore("layer_scale_init_value")
    family = _biased(fields, "attention_bias", Bias.INNER, family, default=False)
    norm = fields.text("norm_type", "layer_norm", tuple(_NORMS))
    family = replace(family, branch=replace(family.branch, norm=_NORMS[norm]))
    if fields.flag("use_qk_norm", default=False):
        family = family.attended(head_norm=HeadNorm.WIDTH, norm=Norm.RMS)
    placed = fields.flag("use_absolute_position_embeddings", default=True)
    masked = fields.flag("use_mask_token", default=False)
    return replace(
        family,
        words=family.worded(places=Places.ALL if placed else Places.NONE).words,
        unused={"mask": "one e"} if masked else {},
        last=None if fields.flag("use_mean_pooling", default=True) else Norm.LAYER,
    )


_NORMS = {"layer_norm": Norm.LAYER, "rms_norm": Norm.RMS}


def _dino(fields: Fields, family: Encoder) -> Encoder:
    family = _qkv(fields, family)
    if fields.flag("use_swiglu_ffn", default=False):
        family = replace(family, perceptron=GatedMLP("silu", Bias.BOTH))
    if not fields.flag("use_mask_token", default=True):
        family = replace(family, unused={})
    return family


def _dino3(fields: Fields, family: Encoder) -> Encoder:
    keys = {"query_bias": Bias.QUERY, "value_bias": Bias.VALUE, "proj_bias": Bias.OUTPUT}
    for key, which in keys.items():
        family = _biased(fields, key, which, family, default=True)
    family = _biased(fields, "key_bias", Bias.KEY, family, default=False)
    mlp = Bias.BOTH if fields.flag("mlp_bias", default=True) else Bias.NONE
    perceptron = replace(family.perceptron, bias=mlp)
    if fields.flag("use_gated_mlp", default=False):
        perceptron = GatedMLP(perceptron.function, mlp)
    return replace(family, perceptron=perceptron)


def _beit(fields: Fields, family: Encoder) -> Encoder:
    scaled = fields.source.values.get("layer_scale_init_value", 1)
    fields.ignore("layer_scale_init_value", "vocab_size", "out_features", "out_indices")
    words = family.worded(
        places=Places.ALL
        if fields.flag("use_absolute_position_embeddings", default=False)
        else Places.NONE
    ).words
    shared = fields.flag("use_shared_relative_position_bias", default=False)
    each = fields.flag("use_relative_position_bias", default=False)
    if shared and each:
        fields.note("use_relative_position_bias", "one table for all blocks or one for each")
    table = Distances.ONCE if shared else Distances.EACH if each else Distances.NONE
    family = replace(
        family,
        words=words,
        distances=table,
        branch=family.branch.having(Outcome.SCALE, on=bool(scaled)),
        unused={"mask": "one e"} if fields.flag("use_mask_token", default=False) else {},
    )
    core = replace(family.attention.core, position="" if table is Distances.NONE else "position")
    pooled = fields.family == "beit" and fields.flag("use_mean_pooling", default=True)
    family = replace(family.attended(core=core), pooler=MeanPool() if pooled else None)
    return _mean_pooled(fields, family)


def _mean_pooled(fields: Fields, family: Encoder) -> Encoder:
    """Return the family with a norm of the mean, or with a norm of all positions and the first."""
    if fields.flag("use_mean_pooling", default=True):
        return family
    heads = {name: Classes(Take.FIRST) for name in family.heads}
    return replace(family, last=Norm.LAYER, heads=heads)


def _video(fields: Fields, family: Encoder) -> Encoder:
    family = _biased(fields, "qv_bias", Bias.QUERY | Bias.VALUE, family, default=True)
    return _mean_pooled(fields, family)


def _windowed(fields: Fields, family: Encoder) -> Encoder:
    layers = fields.size("num_hidden_layers")
    listed = fields.items("fullatt_block_indexes", (7, 15, 23, 31))
    whole = {layer for layer in listed if layer in range(layers)}
    fields.assume("window_size", "sides of images are multiples of a window")
    return replace(family, windowed=layers - len(whole))


def _aimv2(fields: Fields, family: Encoder) -> Encoder:
    """Return an AIMv2 with what pools it, and positions that are learned or computed."""
    headed = fields.flag("use_head", default=True)
    bias = Bias.INNER if fields.flag("qkv_bias", default=False) else Bias.NONE
    if not fields.flag("is_native", default=False):
        return replace(family, pooler=VectorQuery(bias) if headed else None)
    quarters = fields.size("hidden_size") % 4 == 0
    told = "sines and cosines of two sides need a width that 4 divides"
    fields.require(holds=quarters, problem=told, name="hidden_size")
    family = family.worded(places=Places.COMPUTED)
    return replace(family, pooler=VectorQuery(bias) if headed else None)


def _pixtral(fields: Fields, family: Encoder) -> Encoder:
    width = fields.size("hidden_size") // fields.size("num_attention_heads")
    problem = f"{width} is accepted, the width of a head, all of which is rotated"
    fields.require(holds=fields.size("head_dim", width) == width, problem=problem, name="head_dim")
    return family


Change = Callable[[Fields, Encoder], Encoder]

CHANGES: Mapping[str, Change] = {
    **dict.fromkeys(("vit", "dpt", "deit", "vit_msn", "vit_mae", "ijepa", "vivit"), _qkv),
    "audio-spectrogram-transformer": _qkv,
    **dict.fromkeys(("dinov2", "dinov2_with_registers"), _dino),
    "dinov3_vit": _dino3,
    "yolos": _yolos,
    **dict.fromkeys(("beit", "data2vec-vision"), _beit),
    "timesformer": _timed,
    "videomae": _video,
    "siglip_vision_model": _siglip,
    "siglip2_vision_model": _patched,
    **dict.fromkeys(("internvl_vision", "intern_vit_6b", "qianfan_ocr_vision"), _internvl),
    "qwen2_5_vl_vision": _windowed,
    "pixtral": _pixtral,
    "aimv2_vision_model": _aimv2,
}
"""What the fields of a family change besides its sizes."""
