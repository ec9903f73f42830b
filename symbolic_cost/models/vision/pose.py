"""Joints of people in images, as a map of each: ViTPose."""

from symbolic_cost.layers.conv import Activation, BatchNorm, Chain, Conv, Layer
from symbolic_cost.layers.maps import Mix, Normed, Placed, Reduced, Shifted, perceptron
from symbolic_cost.layers.skips import Plus, SetAside, Take
from symbolic_cost.layers.unet import Enlarged, Repeated
from symbolic_cost.layers.upsampling import Beside, Spread
from symbolic_cost.models.build import Fields, Model, Shape, classes_of
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import blocks, divided, function_of
from symbolic_cost.models.vision.segment import part_of
from symbolic_cost.models.vision.sides import side_lengths

_AROUND = 2
"""Positions that are added on every side of the image."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a transformer of patches and a map of every joint.

    Raises:
        InputError: every problem of the fields.
    """
    inner = part_of(fields, "backbone_config")
    inner.text("model_type", "vitpose_backbone", ("vitpose_backbone",))
    sides, step = _sides(inner)
    tower, channels = _tower(inner, step), inner.size("num_channels", 3)
    times = fields.size("scale_factor", 4)
    larger = tuple(times * max(side // part, 1) for side, part in zip(sides, step, strict=True))
    if fields.flag("use_simple_decoder", default=True):
        grown: dict[str, Layer] = {"act": Activation(), "grow": Enlarged(sides=larger)}
    else:
        grown = {}
        for name in ("wider0", "wider1"):
            twice: dict[str, Layer] = {
                "own": Spread(256, 4, 2, bias=False),
                "norm": BatchNorm(),
                "act": Activation(),
            }
            grown[name] = Chain(twice)
    kernel = 1 if "wider0" in grown else 3
    joints = Conv(classes_of(fields), kernel, 1, kernel // 2)
    fields.problems += inner.not_understood().values()
    whole = Chain({"backbone": tower, **grown, "joints": joints})
    return pictured(fields, shape, whole, sides, "xu-2022", channels=channels)


def _sides(fields: Fields) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Read the image and its patches, of which the border leaves as many as without it."""
    given = fields.source.values.get("image_size") is not None
    sides = sides_of(fields, (256, 256)) if given else (256, 192)
    step = side_lengths(fields, "patch_size", 16)
    pairs = [*zip(sides, step, strict=True)]
    fits = all(
        side >= part and (side + 2 * _AROUND) // part == side // part for side, part in pairs
    )
    problem = f"whole patches of an image of {list(sides)} are accepted"
    fields.require(holds=fits, problem=problem, name="patch_size")
    return sides, step


def _tower(fields: Fields, step: tuple[int, ...]) -> Chain:
    width, depth = fields.size("hidden_size", 768), fields.size("num_hidden_layers", 12)
    heads, biased = fields.size("num_attention_heads", 12), fields.flag("qkv_bias", default=True)
    divided(fields, "num_attention_heads", (width,), (heads,))
    for name, last in (("out_indices", [depth]), ("out_features", [f"stage{depth}"])):
        stated = list(fields.items(name, last))
        fields.require(holds=stated == last, problem=f"only {last} is declared", name=name)
    block = Chain(blocks("own", Reduced(heads, bias=biased), _perceptron(fields, width)))
    first = Conv(width, step[0], step[0], _AROUND)
    fields.require(holds=len(set(step)) == 1, problem="a square is accepted", name="patch_size")
    layers: dict[str, Layer] = {"patch": first, "place": Placed(), "every": Shifted()}
    return Chain(layers | {"blocks": Repeated(block, depth), "last": Normed()})


def _perceptron(fields: Fields, width: int) -> Chain:
    """Return the perceptron of a block; experts make some of its channels, and all of them run."""
    wide, experts = width * fields.size("mlp_ratio", 4), fields.size("num_experts", 1)
    function, part = function_of(fields, "gelu"), fields.size("part_features", 256)
    if experts == 1:
        return perceptron(wide, width, function)
    if part >= width:
        fields.note("part_features", f"fewer than the {width} of hidden_size")
    layers: dict[str, Layer] = {
        "fc1": Mix(wide),
        "act": Activation(function),
        "put": SetAside("inner"),
    }
    for i in range(experts):
        layers |= {f"take{i}": Take("inner"), f"expert{i}": Mix(min(part, width))}
        layers |= {f"add{i}": Plus("experts")} if i else {}
        layers[f"put{i}"] = SetAside("experts")
    layers |= {"again": Take("inner"), "fc2": Mix(max(width - part, 1))}
    return Chain(layers | {"beside": Beside(("experts",))})
