"""D-FINE: an RT-DETR whose boxes are distributions of their edges, refined layer by layer."""

from collections.abc import Mapping
from dataclasses import replace

from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Depthwise
from symbolic_cost.layers.maps import Mix, Normed, Reduced, chain, perceptron
from symbolic_cost.layers.object_queries import Gateway, Looked, Sequence
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
from symbolic_cost.layers.unet import First
from symbolic_cost.layers.upsampling import Beside
from symbolic_cost.models.build import Fields, Model, Shape, classes_of, is_size
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.vision.detection import Named, branch, divided
from symbolic_cost.models.vision.hgnet import stages
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import ratio_of
from symbolic_cost.models.vision.real_time import Mixing, chosen, conv, csp, encoder

_STEP = 32
"""Pixels between the places of the last map."""


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields and declare the detector."""
    maps = max(len(fields.items("decoder_in_channels")), 1)
    backbone = _backbone(fields, maps)
    layers = {**encoder(fields, maps, _mixing), **_decoder(fields, maps)}
    sides = sides_of(fields, (640, 640), said=False)
    whole = all(side % _STEP == 0 for side in sides)
    fields.require(holds=whole, problem=f"multiples of {_STEP} are accepted", name="image_size")
    fields.assume("eval_idx", "classes of the last layer alone, as in use")
    network = Chain({"backbone": backbone, **layers})
    return pictured(fields, shape, network, sides, "peng-2024", fixed=("constants.",))


def _backbone(fields: Fields, maps: int) -> Chain:
    """Read the network of the image, whose last maps stand aside."""
    inner = fields.source.values.get("backbone_config")
    fields.ignore("backbone", "backbone_config")
    stated = inner if isinstance(inner, Mapping) else {}
    known = isinstance(inner, Mapping) and stated.get("model_type") == "hgnet_v2"
    known = known and not fields.source.values.get("backbone")
    problem = "an object of model_type hgnet_v2 is accepted"
    fields.require(holds=known, problem=problem, name="backbone_config")
    source = replace(fields.source, values=stated)
    own = Fields(source, "hgnet_v2", FAMILIES["hgnet_v2"], problems=fields.problems)
    layers = stages(own)
    number = len(own.items("stage_out_channels"))
    lasts = tuple(range(number - maps + 1, number + 1))
    named, numbered = own.items("out_features"), own.items("out_indices")
    fine = named in ((), tuple(f"stage{i}" for i in lasts)) and numbered in ((), lasts)
    fine = fine and bool(named or numbered) and maps < number
    own.require(holds=fine, problem=f"{list(lasts)} is accepted", name="out_indices")
    halved = own.items("stage_downsample")[1:], own.items("stage_downsample_strides")[1:]
    steady = all(halved[0]) and set(halved[1]) == {2}
    own.require(holds=steady, problem="stages that halve", name="stage_downsample")
    fields.problems += own.not_understood().values()
    renamed = {f"stage{i}.put": SetAside(f"map{place}") for place, i in enumerate(lasts)}
    trained = fields.source.values.get("freeze_backbone_batch_norms", True) is False
    return Chain({n: renamed.get(n, o if trained else frozen(o)) for n, o in layers.items()})


def _mixing(fields: Fields, width: int, function: str) -> Mixing:
    """Return branches that are all put side by side, and convolutions that halve the sides."""
    inner = round(ratio_of(fields, "hidden_expansion", 1) * width // 2)
    depth = round(3 * ratio_of(fields, "depth_mult", 1))
    problem = "too few channels are left"
    fields.require(holds=inner > 0, problem=problem, name="hidden_expansion")
    inner = max(inner, 1)
    several: Named = {
        "wide": conv(2 * width, 1, 1, "silu"),
        "put": SetAside("both"),
        "half": First(width),
    }
    for i in range(2):
        several |= {f"csp{i}": csp(inner, depth, function), f"conv{i}": conv(inner, 3, 1, "silu")}
        several[f"put{i}"] = SetAside(f"branch{i}")
    several |= {"take": Take("both"), "beside": Beside(("branch0", "branch1"))}
    several["last"] = conv(width, 1, 1, "silu")
    deep = chain(Depthwise(3, 2, 1, bias=False), BatchNorm())
    return Mixing(conv(width, 1, 1, ""), Chain(several), chain(conv(width, 1, 1, ""), deep))


def _levels(fields: Fields, maps: int, width: int) -> Named:
    levels, other = fields.size("num_feature_levels", 3), fields.size("encoder_hidden_dim", 256)
    fields.require(holds=levels >= maps, problem=f"{maps} and more", name="num_feature_levels")
    entered = fields.items("decoder_in_channels")
    if list(entered) != [other] * maps:
        fields.note("decoder_in_channels", f"{maps} times {other} is accepted")
    layers: Named = {}
    for i in range(levels):
        step = conv(width, 1, 1, "") if i < maps else conv(width, 3, 2, "")
        own = () if width == other else (step,)
        layers[f"level{i}"] = chain(Take(f"source{min(i, maps - 1)}"), *own, SetAside(f"level{i}"))
    return {**layers, "sequence": Sequence(tuple(layers))}


def _points(fields: Fields) -> int:
    levels, points = (
        fields.size("num_feature_levels", 3),
        fields.source.values.get("decoder_n_points"),
    )
    if not isinstance(points, list | tuple):
        return levels * fields.size("decoder_n_points", 4)
    several = fields.items("decoder_n_points")
    fine = len(several) == levels and all(map(is_size, several))
    problem = f"{levels} sizes are accepted"
    fields.require(holds=fine, problem=problem, name="decoder_n_points")
    return sum(several) if fine else levels


def _decoder(fields: Fields, maps: int) -> Named:
    """Return the choice of positions, and the layers that refine the edges of boxes."""
    width, wide = fields.size("d_model", 256), fields.size("decoder_ffn_dim", 1024)
    heads = divided(fields, "decoder_attention_heads", 8, width)
    queries, depth = fields.size("num_queries", 300), fields.size("decoder_layers", 6)
    function = FUNCTIONS[fields.text("decoder_activation_function", "relu", tuple(FUNCTIONS))]
    noisy, classes = fields.optional_size("num_denoising", 100), classes_of(fields)
    edges = 4 * (fields.size("max_num_bins", 32) + 1)
    sure, best = fields.size("lqe_hidden_dim", 64), fields.size("top_prob_values", 4)
    fits = best <= edges // 4
    fields.require(holds=fits, problem=f"at most {edges // 4}", name="top_prob_values")
    quality = predictor(sure, 1, fields.size("lqe_layers", 2))
    seen = Looked(heads, _points(fields), "memory", "queries")
    block: Named = {
        "own": Chain(branch(Reduced(heads, place="queries"))),
        "put": SetAside("before"),
        "seen": seen,
        "gate": Gateway("before"),
        "norm": Normed(),
        "mlp": Chain(branch(perceptron(wide, width, function))),
    }
    asked = predictor(2 * width, width, 2, "query_pos")
    layers: Named = {
        **_levels(fields, maps, width),
        "memory": SetAside("memory"),
        **({"noise": Idle(Learned(classes + 1, width))} if noisy else {}),
        "constants": Idle(chain(Learned(1, 1), Learned(1, 1))),
        **chosen(width, classes, queries),
    }
    for i in range(depth):
        told = Chain({"of": Constant(4 * (best + 1)), "quality": quality})
        ends: Named = {"edges": predictor(width, edges, 3)}
        ends |= (
            {}
            if i
            else {"box": Chain({"of": predictor(width, 4, 3), "act": Activation("sigmoid")})}
        )
        lasts: Named = {"classes": Mix(classes), "quality": told}
        ends |= lasts if i + 1 == depth else {name: Idle(one) for name, one in lasts.items()}
        place = chain(Constant(4), asked, SetAside("queries"))
        layers[f"decoder.{i}"] = Chain(
            {"queries": Fork({"of": place}), "block": Chain(block), "heads": Fork(ends)}
        )
    return layers
