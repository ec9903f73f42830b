"""Builder of the vision transformers: from the fields of a configuration to traits and sizes."""

from collections.abc import Callable, Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from math import isqrt

from sympy import Expr

from symbolic_cost.layers.attention import Bias, HeadNorm
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.heads import Boxes, Classes, Projected, Take, Taught
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.layers.pooling import MeanPool
from symbolic_cost.layers.relative import Distances
from symbolic_cost.layers.residual import Outcome
from symbolic_cost.models.build import Fields, Model, Shape, classes_of, is_size
from symbolic_cost.models.encoders.changes import as_wide
from symbolic_cost.models.encoders.config import head_of, head_sizes, running
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.models.vision import divided
from symbolic_cost.models.vision.families import VISION
from symbolic_cost.models.vision.transformer import Sizes

Numbers = dict[str, int]


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration and declare the model; its sequence is the image."""
    family, sizes, numbers, head = read(fields, shape)
    fields.refuse()
    return replace(family.declare(fields.family, shape, sizes, head), bindings=numbers)


def read(fields: Fields, shape: Shape) -> tuple[Encoder, Sizes, Numbers, str]:
    """Read the fields: the family as they change it, its sizes, numbers by symbol, and the head."""
    family = running(fields, VISION[fields.family])
    changes = _CHANGES.get(fields.family)
    if changes is not None:
        family = changes(fields, family)
    head = head_of(fields, family)
    e, layers = fields.size("hidden_size"), fields.size("num_hidden_layers")
    last_alone(fields, layers, "num_hidden_layers")
    f = _inner(fields, family, e)
    numbers = {"e": e, "f": f, **head_sizes(fields, e, grouped=False), "n_layers": layers}
    del numbers["k"]
    numbers["n_ch"] = 1 if fields.family in _HEARD else fields.size("num_channels", 3)
    if isinstance(family.heads.get(head), Classes | Taught):
        numbers["n_classes"] = classes_of(fields)
    elif isinstance(family.heads.get(head), Boxes):
        numbers["n_classes"] = classes_of(fields) + 1  # nothing is a class too
    words = family.words
    sizes = _image(fields, words, numbers) if isinstance(words, Patches) else Sizes()
    others: dict[str, Expr | int] = {"n_mid": layers - 1} if "mid" in family.unused else {}
    if "class_place" in family.unused:
        half = e // numbers["h"] // 2
        fields.require(holds=half > 0, problem="2 features of a head", name="num_attention_heads")
        others["d_half"] = max(half, 1)
    if isinstance(family.heads.get(head), Projected):
        others["w_t"] = fields.size("projection_dim", 512)
    if fields.family == "timesformer":
        frames = fields.size("num_frames", 8)
        patches = int(sizes.patches) // frames
        others = divided.sizes(shape.b, frames, patches, e)
        sizes = replace(sizes, places=patches + 1)
    return family, replace(sizes, b=shape.b, others=others), numbers, head


def last_alone(fields: Fields, stages: int, number: str) -> None:
    """Note that a backbone gives other maps than the last: what is behind them is not trained."""
    given = {"out_features": (f"stage{stages}",), "out_indices": (stages,)}
    for name, last in given.items() if fields.head.endswith("Backbone") else ():
        fine = fields.items(name) in ((), last)
        fields.require(holds=fine, problem=f"{list(last)}, of {number}, is accepted", name=name)


def _inner(fields: Fields, family: Encoder, width: int) -> int:
    """Read the width of the perceptron; two thirds of it, in eights, where it is gated."""
    if fields.source.values.get("mlp_ratio", fields.record.defaults.get("mlp_ratio")) is None:
        return fields.size("intermediate_size")
    wide = width * fields.size("mlp_ratio")
    return (wide * 2 // 3 + 7) // 8 * 8 if isinstance(family.perceptron, GatedMLP) else wide


def _image(fields: Fields, words: Patches, numbers: Numbers) -> Sizes:
    """Read images and patches, and what stands before the patches."""
    if "image_size" not in fields.source.values and "spatial_merge_size" in fields.source.values:
        return _tubes(fields)
    patch = side_lengths(fields, "patch_size", 16)
    image: tuple[int, ...]
    step = patch
    if fields.family in _HEARD:
        image = (fields.size("num_mel_bins", 128), fields.size("max_length", 1024))
        step = (fields.size("frequency_stride", 10), fields.size("time_stride", 10))
    else:
        image = side_lengths(fields, "image_size", 224)
    frames = Piece.FRAMES in words.pieces
    if frames:
        image = (fields.size("num_frames"), *image)
        tubes = fields.source.values.get("tubelet_size")
        if isinstance(tubes, list | tuple):
            patch = side_lengths(fields, "tubelet_size", 16, 3)
        else:
            patch = (fields.size("tubelet_size"), *patch)
        step = patch
    sides = zip(image, patch, step, strict=True)
    grid = [(side - part) // stride + 1 for side, part, stride in sides]
    if min(grid) <= 0:
        fields.note("patch_size", f"patches of {list(patch)} do not fit an image of {list(image)}")
    further = _further(fields) if Piece.FURTHER in words.pieces else 0
    classed = int(Piece.CLASS in words.pieces)
    count = grid[0] * grid[1] * (grid[2] if len(grid) > 2 else 1)  # noqa: PLR2004
    rows = count + classed if words.places is Places.SOME else None
    plain = step == patch and not frames
    square = plain and len(set(image)) == len(set(patch)) == 1 and image[0] % patch[0] == 0
    sizes = Sizes(
        learned=further + classed,
        further=max(further, 1),
        n_rel=(2 * grid[0] - 1) * (2 * grid[-1] - 1) + 3,
        places=rows,
    )
    if square:
        numbers |= {"N_p": grid[0], "s_p": patch[0]}
        return sizes
    return replace(sizes, patches=count, patch=patch, image=image)


def freed(sizes: Sizes, patches: Expr) -> Sizes:
    """Return the sizes of a tower on one image of so many patches, whatever its sides."""
    *others, side = sizes.patch
    return replace(sizes, patches=patches, image=(*others, side * patches))


def side_lengths(fields: Fields, name: str, default: int, number: int = 2) -> tuple[int, ...]:
    """Read a side, or a side for each dimension."""
    fields.need(name)
    stated = fields.source.values.get(name, fields.record.defaults.get(name))
    if not isinstance(stated, list | tuple):
        return (fields.size(name, default),) * number
    sides = fields.items(name)
    fine = len(sides) == number and all(map(is_size, sides))
    fields.require(holds=fine, problem=f"{list(sides)[:4]}: {number} sizes are accepted", name=name)
    return sides if fine else (default,) * number


def square_side(fields: Fields, name: str, default: int) -> int:
    """Read a side of squares, or both: a list of another length makes another model."""
    side, other = side_lengths(fields, name, default)
    fields.require(holds=side == other, problem="two sides alike are accepted", name=name)
    return side


def _tubes(fields: Fields) -> Sizes:
    side, frames = fields.size("patch_size"), fields.size("temporal_patch_size", 2)
    patch = (frames, side, side)
    places = fields.source.values.get("num_position_embeddings")
    rows = fields.size("num_position_embeddings") if places is not None else 1
    sizes = Sizes(patch=patch, image=patch, patches=1, learned=0, places=rows)
    if fields.family != "qwen2_5_vl_vision":
        return sizes
    merge = fields.size("spatial_merge_size", 2)
    inside = fields.size("window_size", 112) // merge // side * merge
    fields.require(holds=inside > 0, problem="smaller than a patch", name="window_size")
    return replace(sizes, window=max(inside, 1) ** 2)


def _further(fields: Fields) -> int:
    if fields.family in _DISTILLED:
        return 1
    if fields.family == "yolos":
        return fields.size("num_detection_tokens", 100)
    return fields.size("num_register_tokens", *(() if fields.family == "dinov3_vit" else (4,)))


_HEARD = ("audio-spectrogram-transformer",)
"""Families whose images are spectrograms, of one channel."""

_DISTILLED = ("deit", "audio-spectrogram-transformer")
"""Families with one more token beside the class token."""


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


def _pixtral(fields: Fields, family: Encoder) -> Encoder:
    width = fields.size("hidden_size") // fields.size("num_attention_heads")
    problem = f"{width} is accepted, the width of a head, all of which is rotated"
    fields.require(holds=fields.size("head_dim", width) == width, problem=problem, name="head_dim")
    return family


Change = Callable[[Fields, Encoder], Encoder]

_CHANGES: Mapping[str, Change] = {
    **dict.fromkeys(
        ("vit", "dpt", "deit", "vit_msn", "vit_mae", "ijepa", "vivit", _DISTILLED[1]), _qkv
    ),
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
}
"""What the fields of a family change besides its sizes."""
