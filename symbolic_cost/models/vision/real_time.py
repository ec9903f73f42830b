"""RT-DETR: maps of three sides that mix with each other, and queries that are chosen positions."""

from collections.abc import Callable, Mapping

from symbolic_cost.layers.conv import BatchNorm, Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Reduced, Residual, chain, perceptron
from symbolic_cost.layers.object_queries import Chosen, Sampled, Sequence
from symbolic_cost.layers.skips import (
    Constant,
    Fork,
    Idle,
    Learned,
    SetAside,
    Take,
    frozen,
    predictor,
)
from symbolic_cost.layers.unet import Enlarged, Repeated
from symbolic_cost.layers.upsampling import Beside, Pool
from symbolic_cost.models.build import Fields, Model, Shape, classes_of
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.vision.backbones import tapped
from symbolic_cost.models.vision.cnn_config import read
from symbolic_cost.models.vision.detection import Named, block, divided, heads_of, repeated
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import convolved, ratio_of
from symbolic_cost.records import dataclass, replace

_MAPS, _STEP = 3, 32
"""Maps that the backbone hands on, and pixels between the places of the last."""


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields and declare the detector."""
    backbone = _backbone(fields)
    layers = {**encoder(fields, _MAPS, mixing), **_decoder(fields)}
    sides = sides_of(fields, (640, 640), said=False)
    whole = all(side % _STEP == 0 for side in sides)
    fields.require(holds=whole, problem=f"multiples of {_STEP} are accepted", name="image_size")
    return pictured(fields, shape, Chain({"backbone": backbone, **layers}), sides, "zhu-2020")


def _backbone(fields: Fields) -> Chain:
    inner = fields.source.values.get("backbone_config")
    fields.ignore("backbone", "backbone_config", "use_timm_backbone")
    stated = inner if isinstance(inner, Mapping) else {}
    known = stated.get("model_type", "rt_detr_resnet") == "rt_detr_resnet"
    known = (
        known
        and (inner is None or bool(stated))
        and not any(fields.source.values.get(name) for name in ("backbone", "use_timm_backbone"))
    )
    problem = "an object of model_type rt_detr_resnet is accepted"
    fields.require(holds=known, problem=problem, name="backbone_config")
    source = replace(fields.source, values=stated)
    own = Fields(source, "resnet", FAMILIES["resnet"], problems=fields.problems)
    depths, widths, _, first = read(own)
    basic = stated.get("layer_type") == "basic"
    _checked(own, depths, basic=basic, first=first, second=widths[0] if widths else first)
    fields.problems += own.not_understood().values()
    if fields.problems:
        return Chain({})
    sizes = ((first // 2, 2), (first // 2, 1), (first, 1))
    layers: Named = {f"stem{i}": conv(n, 3, stride) for i, (n, stride) in enumerate(sizes)}
    layers["pool"] = Pool("max_pool", 3, 2, 1)
    old = first
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True), 1):
        for place in range(depth):
            stride = 2 if stage > 1 and place == 0 else 1
            last, ends = conv(width, 3 if basic else 1, 1, ""), not basic or place == 0
            inner = width if basic else width // 4
            middle = conv(inner, 3, stride)
            branch = chain(middle, last) if basic else chain(conv(inner, 1), middle, last)
            short = _short(old, width, stride, always=basic) if ends else None
            layers[f"stage{stage}.{place}"] = Residual(branch, short, "relu")
            old = width
    count = len(depths)
    named = {f"stage{count - i}.{depths[count - i - 1] - 1}": f"map{2 - i}" for i in range(_MAPS)}
    trained = fields.source.values.get("freeze_backbone_batch_norms", True) is False
    return tapped({n: one if trained else frozen(one) for n, one in layers.items()}, named)


def _checked(own: Fields, depths: tuple[int, ...], *, basic: bool, first: int, second: int) -> None:
    """Note what the code of the residual network does not run."""
    last = len(depths)
    stages = list(range(last - 2, last + 1))
    ends = own.items("out_features") or own.items("out_indices") or tuple(stages)
    fine = ends in (tuple(stages), tuple(f"stage{stage}" for stage in stages))
    own.require(holds=fine, problem=f"{stages} is accepted", name="out_indices")
    colours = own.size("num_channels", 3)
    own.require(holds=colours == 3, problem="3 channels are accepted", name="num_channels")  # noqa: PLR2004
    problem = "an even number is halved"
    own.require(holds=first % 2 == 0, problem=problem, name="embedding_size")
    problem = f"{first}, the channels of the stem, are accepted first"
    own.require(holds=not basic or second == first, problem=problem, name="hidden_sizes")


def _short(old: int, width: int, stride: int, *, always: bool) -> Chain | None:
    """Return the short cut of a block: none, or a product of single places behind a mean."""
    if old == width and stride == 1 and not always:
        return None
    halved = stride != 1 and not (always and old == width)
    mean: Named = {"mean": Pool("avg_pool", 2, 2, (0, 1))} if halved else {}
    return Chain({**mean, "conv": conv(width, 1, 1 if halved else stride, "")})


def conv(channels: int, kernel: int, stride: int = 1, function: str = "relu") -> Chain:
    """Return a convolution that keeps the sides at stride 1, its norm and its activation."""
    own = Conv(channels, kernel, stride, (kernel - 1) // 2, bias=False)
    return convolved(own, function) if function else chain(own, BatchNorm())


@dataclass(frozen=True)
class Mixing:
    """How maps of all sides are mixed with each other.

    Args:
        narrow: before a map is enlarged.
        mixed: behind two maps side by side.
        fewer: halves the sides of a map.
    """

    narrow: Layer
    mixed: Layer
    fewer: Layer


def mixing(fields: Fields, width: int, function: str) -> Mixing:
    """Return that of RT-DETR."""
    inner = int(ratio_of(fields, "hidden_expansion", 1) * width)
    both = chain(
        csp(inner, 3, function), *(() if inner == width else (conv(width, 1, 1, function),))
    )
    return Mixing(conv(width, 1, 1, function), both, conv(width, 3, 2, function))


def encoder(fields: Fields, maps: int, mixing: Callable[[Fields, int, str], Mixing]) -> Named:
    """Return attention on maps of one side each, and their mixing down and up the sides."""
    width, wide = fields.size("encoder_hidden_dim", 256), fields.size("encoder_ffn_dim", 1024)
    heads = divided(fields, "encoder_attention_heads", 8, width)
    depth, before = fields.size("encoder_layers", 1), fields.flag("normalize_before", default=False)
    own, function = (
        FUNCTIONS[fields.text(name, usual, tuple(FUNCTIONS))]
        for name, usual in (
            ("encoder_activation_function", "gelu"),
            ("activation_function", "silu"),
        )
    )
    attended = fields.items("encode_proj_layers")
    fine = all(isinstance(i, int) and 0 <= i < maps for i in attended)
    if not fine:
        fields.note("encode_proj_layers", f"numbers from 0 to {maps - 1} are accepted")
    number = len(fields.items("encoder_in_channels"))
    fields.require(holds=number == maps, problem=f"{maps} are accepted", name="encoder_in_channels")
    layer = block(
        {"own": Reduced(heads, place="places"), "mlp": perceptron(wide, width, own)}, before=before
    )
    layers: Named = {}
    for i in range(maps):
        layers[f"project{i}"] = chain(Take(f"map{i}"), conv(width, 1, 1, ""), SetAside(f"own{i}"))
    places = Fork({"of": chain(Constant(), SetAside("places"))})
    for at, i in enumerate(attended if fine else ()):
        inside: Named = {
            "take": Take(f"own{i}"),
            "places": places,
            "layers": Repeated(layer, depth),
        }
        layers[f"attend{at}"] = Chain({**inside, "put": SetAside(f"own{i}")})

    pieces = mixing(fields, width, function)
    layers["top"] = Take(f"own{maps - 1}")
    for i in range(maps - 1, 0, -1):
        narrow = chain(pieces.narrow, SetAside(f"mixed{i}"), Enlarged(f"own{i - 1}"))
        layers[f"down{i}"] = chain(narrow, Beside((f"own{i - 1}",)), pieces.mixed)
    layers["first"] = SetAside("source0")
    for i in range(1, maps):
        both = Beside((f"mixed{i}",))
        layers[f"up{i}"] = chain(pieces.fewer, both, pieces.mixed, SetAside(f"source{i}"))
    return layers


def csp(inner: int, blocks: int, function: str) -> Residual:
    """Return a branch of repeated convolutions, and one beside it."""
    three = (
        Residual(conv(inner, 3, 1, ""), conv(inner, 1, 1, ""), function) for _ in range(blocks)
    )
    return Residual(chain(conv(inner, 1, 1, function), *three), conv(inner, 1, 1, function))


def _decoder(fields: Fields) -> Named:
    """Return the choice of positions by their classes, and the layers that refine their boxes."""
    width, wide = fields.size("d_model", 256), fields.size("decoder_ffn_dim", 1024)
    heads, levels = (
        divided(fields, "decoder_attention_heads", 8, width),
        fields.size("num_feature_levels", 3),
    )
    points = levels * fields.size("decoder_n_points", 4)
    queries, depth = fields.size("num_queries", 300), fields.size("decoder_layers", 6)
    function = FUNCTIONS[fields.text("decoder_activation_function", "relu", tuple(FUNCTIONS))]
    entered, other = fields.items("decoder_in_channels"), fields.size("encoder_hidden_dim", 256)
    fine = list(entered) == [other] * _MAPS
    if not fine:
        fields.note("decoder_in_channels", f"{_MAPS} times {other} is accepted")
    several = levels in (_MAPS, _MAPS + 1)
    fields.require(holds=several, problem="3 or 4 are accepted", name="num_feature_levels")
    noisy = fields.optional_size("num_denoising", 100)
    classes = classes_of(fields)
    layers: Named = {}
    for i in range(levels):
        step = conv(width, 1, 1, "") if i < _MAPS else conv(width, 3, 2, "")
        layers[f"level{i}"] = chain(Take(f"source{min(i, _MAPS - 1)}"), step, SetAside(f"level{i}"))
    asked = predictor(2 * width, width, 2, "query_pos")
    seeing = Sampled(heads, points, "memory", "queries")
    own: Named = {"own": Reduced(heads, place="queries"), "seen": seeing}
    decoder = Chain(
        {
            "queries": Fork({"of": chain(Constant(4), asked, SetAside("queries"))}),
            "block": block({**own, "mlp": perceptron(wide, width, function)}),
            **({} if fields.head.endswith("Model") else {"heads": heads_of(classes, width)}),
        }
    )
    return {
        **layers,
        "sequence": Sequence(tuple(f"level{i}" for i in range(levels))),
        "memory": SetAside("memory"),
        **({"noise": Idle(Learned(classes + 1, width))} if noisy else {}),
        **chosen(width, classes, queries),
        "decoder.0": decoder,
        **repeated("decoder.1", decoder, depth - 1),
    }


def chosen(width: int, classes: int, queries: int) -> Named:
    """Return the choice of positions by their classes."""
    scores = Fork({"classes": Mix(classes), "boxes": predictor(width, 4, 3)})
    return {"output": chain(Mix(width), Normed()), "scores": scores, "chosen": Chosen(queries)}
