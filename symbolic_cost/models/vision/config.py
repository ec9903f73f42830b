"""Builder of the vision transformers: from the fields of a configuration to traits and sizes."""

from dataclasses import replace

from sympy import Expr

from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.heads import Boxes, Classes, Projected, Taught
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.models.build import Fields, Model, Shape, classes_of
from symbolic_cost.models.encoders.config import head_of, head_sizes, running
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.models.vision import divided
from symbolic_cost.models.vision.changes import CHANGES
from symbolic_cost.models.vision.families import VISION
from symbolic_cost.models.vision.sides import side_lengths
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
    changes = CHANGES.get(fields.family)
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
