"""Networks whose maps others take: those of every stage stand aside, as "map1", "map2" and on."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from symbolic_cost.errors import quote
from symbolic_cost.layers.conv import Chain, Layer
from symbolic_cost.layers.maps import Normed
from symbolic_cost.layers.skips import Fork, SetAside, Unread, frozen, rebuilt
from symbolic_cost.layers.window_attention import Windowed
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.stored.timm import spelt
from symbolic_cost.models.vision.cnn_config import read
from symbolic_cost.models.vision.cnn_residual import trunk
from symbolic_cost.models.vision.config import last_alone
from symbolic_cost.models.vision.image_model import pictured
from symbolic_cost.models.vision.maps_families import convnext, swin
from symbolic_cost.models.vision.sides import square_side
from symbolic_cost.ops.graph import Model


def residual(fields: Fields) -> tuple[Chain, tuple[str, ...]]:
    """Return a detector's residual network, with frozen norms, and what of it is not trained.

    It is one of timm, by `backbone` or by its section, all of which Transformers trains; or one of
    Hugging Face, by its section, of which it trains nothing: names of stages to train match none.
    """
    inner = fields.source.values.get("backbone_config")
    fields.ignore("backbone", "backbone_config", "use_pretrained_backbone")
    values = inner if isinstance(inner, Mapping) else {}
    if inner is not None and not values:
        fields.note("backbone_config", "an object is accepted")
    timm = fields.flag("use_timm_backbone", default=True)
    own = values.get("model_type") != "timm_backbone" if values else not timm
    several = fields.family == "deformable_detr"
    _checked_arguments(fields, several=several)
    if own and several:
        fields.note("backbone_config", "one of timm is accepted")
    stated = values
    if not own:
        values = _of_timm(fields, values)
    source = replace(fields.source, values=values)
    resnet = Fields(source, "resnet", FAMILIES["resnet"], problems=fields.problems)
    blocks, widths, branch, first = read(resnet)
    _checked_ends(fields, stated, len(blocks), own=own, several=several)
    for part in (resnet,) if own else (resnet, fields):
        colours = part.size("num_channels", _COLOURS) == _COLOURS
        part.require(holds=colours, problem="3 channels are accepted", name="num_channels")
    fields.ignore("num_channels")
    fields.problems += resnet.not_understood().values()
    dilated = fields.flag("dilation", default=False)
    fields.require(holds=not (own and dilated), problem="only false is declared", name="dilation")
    if fields.problems:  # the lists of stages may not go together
        return Chain({}), ()
    layers = trunk(blocks, widths, branch, first, last=1 if dilated else 2)
    named = {f"layer{stage}": f"map{stage}" for stage in range(1, len(blocks) + 1)}
    made = {name: frozen(layer) for name, layer in layers.items()}
    return tapped(made, named), ("backbone.",) if own else ()


def _of_timm(fields: Fields, values: Mapping[str, Any]) -> Mapping[str, Any]:
    name = (values or fields.source.values).get("backbone") or "resnet50"
    spelled = spelt(name) if isinstance(name, str) and name.startswith("resnet") else None
    if spelled is None:
        fields.note("backbone", f"{quote(name)}: resnet18, 34, 50, 101 or 152 is accepted")
    known = ("model_type", "backbone", "num_channels", "features_only", "out_indices")
    strange = [key for key in values if key not in (*known, "use_pretrained_backbone")]
    problem = f"{', '.join(strange)} not understood"
    fields.require(holds=not strange, problem=problem, name="backbone_config")
    return {**(spelled or {}), "num_channels": values.get("num_channels")}


def _checked_ends(
    fields: Fields, stated: Mapping[str, Any], stages: int, *, own: bool, several: bool
) -> None:
    """Note a section that hands on other maps than the last, or than those that are sampled."""
    ends = stated.get("out_features"), stated.get("out_indices")
    lasts = [end[-1] for end in ends if isinstance(end, list | tuple) and end]
    fine = all(last in (f"stage{stages}", stages) for last in lasts)
    if several and stated:
        one = fields.size("num_feature_levels", 4) == 1
        fine = ends[1] == ([stages] if one else [2, 3, 4])
    problem = "the last map is accepted" if own or not several else "out_indices of [2, 3, 4]"
    fields.require(holds=fine, problem=problem, name="backbone_config")


def _checked_arguments(fields: Fields, *, several: bool) -> None:
    """Note arguments for timm that would change its network."""
    arguments = fields.source.values.get("backbone_kwargs") or {}
    fields.ignore("backbone_kwargs")
    maps = [2, 3, 4] if several else [1, 2, 3, 4]
    harmless = isinstance(arguments, Mapping) and all(
        (name in ("in_chans", "num_channels") and value == _COLOURS)
        or (name == "out_indices" and value == maps)
        for name, value in arguments.items()
    )
    problem = f"in_chans = 3 and out_indices = {maps} are accepted"
    fields.require(holds=harmless, problem=problem, name="backbone_kwargs")


def tapped(layers: Mapping[str, Layer], named: Mapping[str, str]) -> Chain:
    """Return layers with what some of them make set aside, under names."""
    made: dict[str, Layer] = {}
    for name, layer in layers.items():
        made[name] = layer
        if name in named:
            made[f"{name}.put"] = SetAside(named[name])
    return Chain(made)


def hierarchy(
    fields: Fields, kinds: Iterable[str] = (), first: int = 1
) -> tuple[Chain, tuple[int, ...]]:
    """Return the network of a section, whose stages are taken, and the channels of all stages.

    The maps are normalised apart where the network is a Swin or a ConvNeXt.

    Args:
        fields: of the whole.
        kinds: of networks that are accepted; those that are known, unless some are given.
        first: stage that is taken, with all behind it.
    """
    values = fields.source.values.get("backbone_config")
    stated = values if isinstance(values, Mapping) else {}
    kind = stated.get("model_type")
    fields.ignore("backbone_config", "use_pretrained_backbone", "use_timm_backbone")
    fields.ignore("backbone_kwargs")
    kinds = tuple(kinds) or tuple(_HIERARCHIES)
    known = kind in kinds and fields.source.values.get("backbone") is None
    problem = f"an object of model_type {', '.join(kinds)} is accepted"
    fields.require(holds=known, problem=problem, name="backbone_config")
    if not known:
        return Chain({}), (1,) * 4
    source = replace(fields.source, values=stated)
    inner = Fields(source, str(kind), FAMILIES[str(kind)], problems=fields.problems)
    layers, depths, widths = _HIERARCHIES[str(kind)](inner)
    if fields.problems:
        return Chain({}), (1,) * 4
    numbers = range(first, len(depths) + 1)
    every = tuple(f"stage{i}" for i in numbers)
    for name in [name for name in layers if name.endswith(".taken")][: first - 1]:
        del layers[name]
    named, numbered = inner.items("out_features"), inner.items("out_indices")
    taken = named or tuple(f"stage{i}" for i in numbered)
    if fields.family == "maskformer" and kind == "swin":  # takes all, whatever its section says
        taken, numbered = every, ()
    fine = taken == every and numbered in ((), tuple(numbers))
    inner.require(holds=fine, problem=f"{list(every)} is accepted", name="out_features")
    channels = inner.size("num_channels", 3)
    problem = "3 channels are accepted"
    inner.require(holds=channels == _COLOURS, problem=problem, name="num_channels")
    fields.problems += inner.not_understood().values()
    return Chain(layers), widths


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a hierarchical network by itself, whose last map is normalised and taken."""
    side, channels = square_side(fields, "image_size", 224), fields.size("num_channels", 3)
    layers, depths, _ = _HIERARCHIES[fields.family.removesuffix("v2")](fields)
    last_alone(fields, len(depths), "depths")
    for name in [name for name in layers if name.endswith(".taken")][:-1]:
        del layers[name]
    return pictured(fields, shape, Chain(layers), (side, side), "he-2015", channels=channels)


_COLOURS = 3

Read = tuple[dict[str, Layer], tuple[int, ...], tuple[int, ...]]
"""Layers, and blocks and channels of every stage."""


def _swin(fields: Fields) -> Read:
    layers, depths = swin(fields), fields.items("depths")
    width = fields.size("embed_dim")
    placed = fields.flag("use_absolute_embeddings", default=False)
    problem = "only false is declared"
    fields.require(holds=not placed, problem=problem, name="use_absolute_embeddings")
    fields.ignore("image_size")

    def wide(one: Layer) -> Layer:
        return replace(one, least=one.side) if isinstance(one, Windowed) else one

    padded = {name: rebuilt(layer, wide) for name, layer in layers.items()}
    return _normed(padded, depths, ".mlp"), depths, tuple(width << i for i in range(len(depths)))


def _convnext(fields: Fields) -> Read:
    layers, depths = convnext(fields), fields.items("depths")
    layers.pop("last")
    fields.ignore("image_size")
    return _normed(layers, depths, ""), depths, fields.items("hidden_sizes")


def _normed(layers: dict[str, Layer], depths: tuple[int, ...], end: str) -> dict[str, Layer]:
    """Return layers with the map of every stage normalised and set aside."""
    layers.pop("mean")
    if not all(map(is_size, depths)):  # noted already
        return {}
    ends = {f"stage{i}.{depth - 1}{end}": i for i, depth in enumerate(depths)}
    made: dict[str, Layer] = {}
    for name, layer in layers.items():
        made[name] = Unread(layer) if name == "last" else layer
        if name in ends:
            own: dict[str, Layer] = {"norm": Normed(), "put": SetAside(f"map{ends[name]}")}
            made[f"{name}.taken"] = Fork({"own": Chain(own)})
    return made


def _resnet(fields: Fields) -> Read:
    blocks, widths, branch, first = read(fields)
    if fields.problems:
        return {}, (), ()
    named = {f"layer{i + 1}": f"map{i}" for i in range(len(blocks))}
    return dict(tapped(trunk(blocks, widths, branch, first), named).layers), blocks, widths


_HIERARCHIES: Mapping[str, Callable[[Fields], Read]] = {
    "swin": _swin,
    "convnext": _convnext,
    "resnet": _resnet,
}
