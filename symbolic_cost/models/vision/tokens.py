"""Vision transformers whose layers others take: "map0", "map1" and so on stand aside."""

from collections.abc import Mapping

from symbolic_cost.layers.conv import Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Placed, Reduced, perceptron
from symbolic_cost.layers.pyramid import Token
from symbolic_cost.layers.skips import Fork, Idle, Learned, SetAside, Unread
from symbolic_cost.layers.unet import Gated, Repeated
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.vision.image_model import sides_of
from symbolic_cost.models.vision.maps_families import (
    SEMANTIC,
    blocks,
    divided,
    function_of,
    ratio_of,
)
from symbolic_cost.models.vision.sides import side_lengths
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class TokenBackbone:
    """A vision transformer and the layers that are taken of it.

    Args:
        chain: the transformer.
        layers: numbers of those that are taken, the first one is 1.
        grid: patches along both sides.
        sides: of the image [pixels].
        whole: those of the patches together [pixels].
    """

    chain: Chain
    layers: tuple[int, ...]
    grid: tuple[int, int]
    width: int
    function: str
    sides: tuple[int, int]
    whole: tuple[int, int]
    channels: int


def taken_of(fields: Fields) -> TokenBackbone:
    """Read a transformer: that of a DPT, or a DINOv2 by its section."""
    stated = fields.source.values.get("backbone_config")
    if stated is None and fields.family == "dpt":
        indices = fields.items("backbone_out_indices", (2, 5, 8, 11))
        numbers = sorted({i + 1 for i in indices if isinstance(i, int)})
        return _read(fields, tuple(numbers), 384, 16, _plain(fields))
    fields.ignore("backbone_config", "backbone_out_indices")
    values = stated if isinstance(stated, Mapping) else {}
    known = values.get("model_type") == "dinov2" and fields.source.values.get("backbone") is None
    fields.require(holds=known, problem="a DINOv2 is accepted", name="backbone_config")
    alone = fields.family == "dpt" and fields.head.endswith(SEMANTIC)
    problem = f"none is accepted: {fields.head} has layers of its own"
    fields.require(holds=not alone, problem=problem, name="backbone_config")
    source = replace(fields.source, values={**DINO, **values})
    inner = Fields(source, "dinov2", FAMILIES["dinov2"], problems=fields.problems)
    flat = not inner.flag("reshape_hidden_states", default=True)
    inner.require(holds=flat, problem="only false is accepted", name="reshape_hidden_states")
    made = _read(inner, _stages(inner), 224, 14, dino(inner))
    fields.problems += inner.not_understood().values()
    if fields.family == "dpt":  # its own sizes hold where it has no backbone
        fields.ignore(*_OWN)
        told = f"images of {made.sides[0]} x {made.sides[1]} pixels, as backbone_config says"
        fields.assume("image_size", told)
    else:
        patch = made.whole[0] // made.grid[0]
        for name, own in (("reassemble_hidden_size", made.width), ("patch_size", patch)):
            holds = fields.size(name, own) == own
            fields.require(holds=holds, problem=f"{own} of the backbone is accepted", name=name)
    return made


_OWN = (
    *("image_size", "patch_size", "num_channels", "hidden_size", "num_hidden_layers"),
    *("num_attention_heads", "intermediate_size", "hidden_act", "qkv_bias"),
)
DINO = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}


@dataclass(frozen=True)
class Parts:
    """What families of transformers differ in.

    Args:
        mlp: of a block.
        outcome: factors on residual branches: "scaled", or none.
        first: weights beside the tokens.
        norm: of a layer that is taken, if any.
    """

    mlp: Chain
    outcome: str = ""
    first: Layer | None = None
    norm: Normed | None = None


def _plain(fields: Fields) -> Parts:
    width = fields.size("hidden_size", 768)
    function = function_of(fields, "gelu")
    return Parts(perceptron(fields.size("intermediate_size", 3072), width, function))


def dino(fields: Fields) -> Parts:
    """Return the parts of a DINOv2."""
    width = fields.size("hidden_size")
    wide, function = int(width * ratio_of(fields, "mlp_ratio", 4)), function_of(fields, "gelu")
    mlp = perceptron(wide, width, function)
    if fields.flag("use_swiglu_ffn", default=False):
        gate = Gated((wide * 2 // 3 + 7) // 8 * 8, "silu")
        mlp = Chain({"fc1": gate, "fc2": Mix(width)})
    mask = Idle(Learned(1, width)) if fields.flag("use_mask_token", default=True) else None
    normed = fields.flag("apply_layernorm", default=True)
    return Parts(mlp, "scaled", mask, Normed(shared="taken") if normed else None)


def _stages(fields: Fields) -> tuple[int, ...]:
    """Read the layers that a backbone gives, the first is 1; the last one alone unless said."""
    indices, features = fields.items("out_indices"), fields.items("out_features")
    number = fields.size("num_hidden_layers", 12)
    fine = all(isinstance(f, str) and f.removeprefix("stage").isdecimal() for f in features)
    fields.require(holds=fine, problem='names like "stage12" are accepted', name="out_features")
    named = tuple(int(f.removeprefix("stage")) for f in features) if fine else ()
    same = not (indices and named) or indices == named
    fields.require(holds=same, problem="contradicts out_features", name="out_indices")
    return indices or named or (number,)


def _read(
    fields: Fields, numbers: tuple[int, ...], side: int, patch: int, own: Parts
) -> TokenBackbone:
    """Read a transformer.

    Args:
        fields: that hold it.
        numbers: of the layers that are taken.
        side: of the image, unless said [pixels].
        patch: side of a patch, unless said [pixels].
        own: what its family has.
    """
    width, depth = fields.size("hidden_size", 768), fields.size("num_hidden_layers", 12)
    heads = fields.size("num_attention_heads", 12)
    divided(fields, "num_attention_heads", (width,), (heads,))
    ordered = all(is_size(n) for n in numbers) and list(numbers) == sorted(set(numbers))
    fields.require(
        holds=ordered and bool(numbers) and numbers[-1] == depth,
        problem=f"rising numbers of layers up to the last of {depth} are accepted",
        name="out_indices" if fields.family == "dinov2" else "backbone_out_indices",
    )
    biased = fields.flag("qkv_bias", default=True)
    sides, step = sides_of(fields, (side, side)), side_lengths(fields, "patch_size", patch)
    fits = step[0] == step[1] and min(sides) >= step[0]
    if not fits:
        fields.note("patch_size", "a square that fits the image is accepted")
    grid = max(sides[0] // step[0], 1), max(sides[1] // step[0], 1)
    square = sides[0] == sides[1]
    fields.require(holds=square, problem="a square image is accepted", name="image_size")
    mixed = Reduced(heads, bias=biased)
    block = Chain(blocks("own", mixed, own.mlp, scaled=bool(own.outcome)))
    layers: dict[str, Layer] = {"patch": Conv(width, step[0], step[0]), "token": Token()}
    layers |= {"place": Placed(), **({"mask": own.first} if own.first else {})}
    for i, (before, number) in enumerate(zip((0, *numbers), numbers, strict=False)):
        layers[f"blocks{i}"] = Repeated(block, number - before) if ordered else block
        tap: dict[str, Layer] = {"norm": own.norm} if own.norm else {}
        layers[f"taken{i}"] = Fork({"own": Chain(tap | {"put": SetAside(f"map{i}")})})
    # A DPT normalises what it does not take.
    layers |= {} if fields.family == "dinov2" else {"last": Unread(Normed())}
    layers |= {} if own.norm or fields.family != "dinov2" else {"last": Idle(Normed())}
    whole = grid[0] * step[0], grid[1] * step[0]
    channels = fields.size("num_channels", 3)
    function = FUNCTIONS[fields.text("hidden_act", "gelu")] if not fields.problems else "gelu"
    return TokenBackbone(Chain(layers), numbers, grid, width, function, sides, whole, channels)
