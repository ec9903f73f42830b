"""Depth Pro: a transformer on crops of an image at several scales, one on all of it, and fusion."""

from collections.abc import Mapping
from math import log2

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Reduced
from symbolic_cost.layers.skips import Detached, Fork, Idle, Plus, SetAside, Take
from symbolic_cost.layers.unet import Enlarged, Repeated
from symbolic_cost.layers.upsampling import Beside, Crops, Merged, Spread
from symbolic_cost.models.build import Fields, Model, Shape, is_size
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.vision.depth import residual
from symbolic_cost.models.vision.detection import Named
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import blocks, divided, lists
from symbolic_cost.models.vision.tokens import DINO, dino
from symbolic_cost.records import dataclass, replace

_LAST = 32
"""Channels before the last convolution."""


@dataclass(frozen=True)
class _Scales:
    """Crops of every scale of the image, and the sides of their maps in the end.

    Args:
        crops: of a scale, of the smallest first.
        sides: of the image [pixels].
        base: sides of the map of the smallest.
    """

    crops: tuple[int, ...]
    sides: tuple[int, int]
    base: tuple[int, int]


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields and declare the network; images are so large that the smallest is a crop."""
    scales = _scales(fields)
    image, patch = (_dino(fields, name) for name in ("image_model_config", "patch_model_config"))
    hooks = fields.items("intermediate_hook_ids", (11, 5))
    (dims,), (others,) = lists(fields, "scaled_images_feature_dims"), lists(fields, _DIMS)
    depth = patch.size("num_hidden_layers", 12)
    inside = all((is_size(i) or i == 0) and i < depth for i in hooks)
    problem = f"as many layers below {depth} as {_DIMS} has are accepted"
    fields.require(
        holds=inside and len(hooks) == len(others), problem=problem, name="intermediate_hook_ids"
    )
    problem = f"{len(scales.crops)} sizes are accepted"
    fields.require(
        holds=len(dims) == len(scales.crops), problem=problem, name="scaled_images_feature_dims"
    )
    wide = fields.size("fusion_hidden_size", 256)
    layers: Named = {}
    if not fields.problems:
        maps = {f"hook{i}": i + 1 for i in hooks}
        layers = {"image": SetAside("image"), "crops": _tower(patch, sum(scales.crops), maps)}
        layers |= _features(scales, hooks, len(dims))
        layers |= {"again": Take("image"), "whole": _tower(image, 1, {})}
        layers["whole.map"] = Chain({"merge": Merged(scales.base), "wider": Spread(dims[0], 2)})
        layers |= {"whole.put": SetAside("whole"), **_neck(dims, others, wide)}
        layers |= _fusion(fields, wide, len(dims) + len(others))
        layers |= _fov(fields, scales, wide)
    channels = image.size("num_channels", 3)
    for part in (image, patch):
        fields.problems += part.not_understood().values()
    whole = Chain(layers)
    return pictured(fields, shape, whole, scales.sides, "bochkovskii-2024", channels=channels)


_DIMS = "intermediate_feature_dims"


def _scales(fields: Fields) -> _Scales:
    side = fields.size("patch_size", 384)
    ratios = fields.items("scaled_images_ratios", (1 / 4, 1 / 2, 1))
    overlaps = fields.items("scaled_images_overlap_ratios", (0, 1 / 2, 1 / 4))
    fine = len(ratios) == len(overlaps) > 0 and all(map(_is_share, ratios))
    fine = fine and list(ratios) == sorted(ratios)
    fine = fine and all(one == 0 or (_is_share(one) and one < 1) for one in overlaps)
    problem = "rising shares of the image, and as many of crops, are accepted"
    fields.require(holds=fine, problem=problem, name="scaled_images_ratios")
    least = round(side / ratios[0]) if fine else side
    sides = sides_of(fields, (least, least), said=False)
    within = not fine or ratios[0] * min(sides) >= side
    fields.require(holds=within, problem=f"{least} and more", name="image_size")
    crops = []
    for ratio, overlap in zip(ratios, overlaps, strict=False) if fine and within else ():
        step = max(int(side * (1 - overlap)), 1)
        number = [(int(whole * ratio) - side) // step + 1 for whole in sides]
        square = number[0] == number[1]
        fields.require(holds=square, problem="a square is accepted", name="image_size")
        crops.append(number[0] * number[1])
    halvings = int(log2(max(sides[1] / (side // _step(fields)), 1)))
    return _Scales(tuple(crops), sides, (sides[0] >> halvings, sides[1] >> halvings))


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


def _dino(fields: Fields, name: str) -> Fields:
    """Return the fields of a DINOv2 on crops, whatever side its section says."""
    part = fields.part(name)
    fields.require(holds=part is not None, problem="an object is needed", name=name)
    values = {} if part is None else dict(part.source.values)
    values["image_size"] = fields.size("patch_size", 384)
    source = replace(fields.source, values={**DINO, **values})
    inner = Fields(source, "dinov2", FAMILIES["dinov2"], problems=fields.problems)
    inner.text("model_type", "dinov2", ("dinov2",))
    step, side = inner.size("patch_size", 14), inner.size("image_size")
    inner.require(holds=step <= side, problem=f"at most {side} is accepted", name="patch_size")
    heads, width = inner.size("num_attention_heads"), inner.size("hidden_size")
    divided(inner, "num_attention_heads", (width,), (heads,))
    first = fields.source.values.get("image_model_config")
    channels = first.get("num_channels", 3) if isinstance(first, Mapping) else 3
    alike = inner.size("num_channels", 3) == channels
    inner.require(holds=alike, problem=f"{channels}, as in image_model_config", name="num_channels")
    inner.ignore("out_features", "out_indices", "reshape_hidden_states", "apply_layernorm")
    return inner


def _tower(fields: Fields, number: int, taken: Mapping[str, int]) -> Chain:
    """Return a transformer on so many crops, some of whose layers stand aside."""
    width, step, depth = (
        fields.size(n) for n in ("hidden_size", "patch_size", "num_hidden_layers")
    )
    heads, biased = fields.size("num_attention_heads"), fields.flag("qkv_bias", default=True)
    own, side = dino(fields), fields.size("image_size") // step * step
    mixed = Reduced(heads, bias=biased, apart=True)
    block = Chain(blocks("own", mixed, own.mlp, scaled=True))
    layers: Named = {"crops": Enlarged(sides=(number * side, side)), "cut": Detached()}
    layers |= {"patch": Conv(width, step, step), "tokens": Crops(number)}
    layers |= {"mask": own.first} if own.first else {}
    ends = sorted({*taken.values(), depth})
    for before, end in zip((0, *ends), ends, strict=False):
        layers[f"blocks{end}"] = Repeated(block, end - before)
        layers |= {f"put.{name}": SetAside(name) for name, last in taken.items() if last == end}
    return Chain(layers | {"last": Normed()})


def _features(scales: _Scales, hooks: tuple[int, ...], number: int) -> Named:
    sides = [(scales.base[0] << i, scales.base[1] << i) for i in range(number)]
    maps: dict[str, Layer] = {
        f"scale{i}": Chain({"merge": Merged(side), "put": SetAside(f"map{i}")})
        for i, side in enumerate(sides)
    }
    for i, hook in enumerate(hooks):
        own: Named = {"take": Take(f"hook{hook}"), "merge": Merged(sides[-1])}
        maps[f"hook{i}"] = Chain(own | {"put": SetAside(f"map{number + i}")})
    return {"maps": Fork(maps)}


def _neck(dims: tuple[int, ...], others: tuple[int, ...], wide: int) -> Named:
    layers: Named = {}
    for i, width in enumerate((*dims, *others)):
        later = i - len(dims)
        middle = wide if later == 0 else width
        own: Named = {"take": Take(f"map{i}"), "project": Conv(middle, 1, bias=False)}
        for j in range(2 + later if later >= 0 else 1):
            own[f"wider{j}"] = Spread(width, 2, bias=False)
        if i == 0:
            own |= {"beside": Beside(("whole",)), "fuse": Conv(width, 1)}
        if i + 1 < len(dims) + len(others) or width != wide:
            own["last"] = Conv(wide, 3, 1, 1, bias=False)
        layers[f"neck{i}"] = Chain(own | {"put": SetAside(f"level{i}")})
    return layers


def _fusion(fields: Fields, wide: int, number: int) -> Named:
    """Return the fusion of maps from the smallest on, and the depths."""
    normed = fields.flag("use_batch_norm_in_fusion_residual", default=False)
    biased = fields.flag("use_bias_in_fusion_residual", default=True)
    step = residual(wide, normed=normed, biased=biased)
    layers: Named = {}
    for i in range(number):
        own: Named = {"take": Take(f"level{i}")}
        own |= {"side": step, "plus": Plus("fused")} if i else {"idle": Idle(step)}
        own["own"] = step
        own |= {"wider": Spread(wide, 2, bias=False)} if i + 1 < number else {}
        layers[f"fusion{i}"] = Chain(own | {"project": Conv(wide, 1), "put": SetAside("fused")})
    half = wide // 2
    fields.require(holds=wide % 2 == 0, problem="an even number", name="fusion_hidden_size")
    head: Named = {"conv1": Conv(half, 3, 1, 1), "wider": Spread(half, 2)}
    head |= {"conv2": Conv(_LAST, 3, 1, 1), "act2": Activation()}
    return {
        **layers,
        "head": Fork({"own": Chain({**head, "conv3": Conv(1, 1), "act3": Activation()})}),
    }


def _fov(fields: Fields, scales: _Scales, wide: int) -> Named:
    """Return what tells the field of view, of a transformer of its own."""
    number, model = fields.size("num_fov_head_layers", 2), "fov_model_config"
    if not fields.flag("use_fov_model", default=False):
        fields.ignore(model)
        return {}
    inner = _dino(fields, model)
    left = wide >> number
    fields.require(holds=left > 0, problem="too few channels", name="num_fov_head_layers")
    side = fields.size("patch_size", 384) // _step(fields)
    layers: Named = {"take": Take("image"), "own": _tower(inner, 1, {}), "neck": Mix(wide // 2)}
    layers |= {"map": Merged(scales.base), "put": SetAside("seen"), "level": Take("level0")}
    layers |= {"cut": Detached(), "conv": Conv(wide // 2, 3, 2, 1), "act": Activation()}
    layers |= {"plus": Plus("seen"), "fit": Enlarged(sides=(side, side))}
    for i in range(number):
        layers |= {f"conv{i}": Conv(-(-wide // 2 ** (i + 2)), 3, 2, 1), f"act{i}": Activation()}
    layers["last"] = Conv(1, int((side - 1) / 2**number + 1))
    fields.problems += inner.not_understood().values()
    return {"fov": Chain(layers)}


def _step(fields: Fields) -> int:
    inner = fields.source.values.get("image_model_config")
    step = inner.get("patch_size", 14) if isinstance(inner, Mapping) else 14
    return step if is_size(step) and step <= fields.size("patch_size", 384) else 1
