"""Segment Anything 2 on images: a Hiera of padded windows, its pyramid, and a decoder of masks."""

from dataclasses import replace
from itertools import pairwise

from symbolic_cost.layers.conv import Activation, Chain, Conv, Layer
from symbolic_cost.layers.maps import Normed, Shifted, Tiled, perceptron
from symbolic_cost.layers.mask_heads import Masks, Points, Waves
from symbolic_cost.layers.pyramid import FirstPosition
from symbolic_cost.layers.skips import Fork, Learned, Plus, SetAside, Take, predictor
from symbolic_cost.layers.text_matching import Behind
from symbolic_cost.layers.unet import Enlarged
from symbolic_cost.layers.upsampling import Spread
from symbolic_cost.layers.window_attention import Squares
from symbolic_cost.models.build import Fields, Model, Shape
from symbolic_cost.models.vision.hiera import block
from symbolic_cost.models.vision.image_model import pictured, sides_of
from symbolic_cost.models.vision.maps_families import divided, function_of, lists, ratio_of
from symbolic_cost.models.vision.segment import heads, part_of, two_way, unprompted
from symbolic_cost.models.vision.segment_memory import memory
from symbolic_cost.models.vision.sides import side_lengths

_STAGES, _POINTS = 4, 2
"""Stages of the image's network, and points of an empty prompt."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a SAM 2 on images without prompts: an empty point stands in for them."""
    vision, prompt, decoder = (
        part_of(fields, name)
        for name in ("vision_config", "prompt_encoder_config", "mask_decoder_config")
    )
    backbone = part_of(vision, "backbone_config")
    backbone.problems, channels = fields.problems, vision.size("fpn_hidden_size", 256)
    sides = sides_of(backbone, (1024, 1024))
    image, grid = _pyramid(vision, backbone, sides, channels)
    whole = side_lengths(prompt, "image_size", 1024), side_lengths(prompt, "patch_size", 16)
    prompt.require(
        holds=[side // step for side, step in zip(*whole, strict=True)] == grid,
        problem=f"a map of {' x '.join(map(str, grid))}, as of the image, is accepted",
        name="image_size",
    )
    for part in (prompt, decoder):
        same = part.size("hidden_size", 256) == channels
        part.require(holds=same, problem=f"{channels} channels are accepted", name="hidden_size")
    layers: dict[str, Layer] = {
        "vision": image,
        "memory": Shifted(),
        "unprompted": unprompted(prompt, channels, 0),
        "image": SetAside("image"),
        "coordinates": Fork({"own": Chain({"of": Waves(channels), "put": SetAside("places")})}),
        **_decoder(decoder, channels),
        **({"memories": memory(fields, channels)} if fields.head.endswith("VideoModel") else {}),
    }
    pixels = backbone.size("num_channels", 3)
    for part in (vision, backbone, prompt, decoder):
        fields.problems += part.not_understood().values()
    fields.assume("input_points", "no prompts: images alone")
    return pictured(fields, shape, Chain(layers), sides, "ravi-2024", channels=pixels)


def _pyramid(
    fields: Fields, backbone: Fields, sides: tuple[int, int], channels: int
) -> tuple[Chain, list[int]]:
    """Return the network of the image and the neck behind it; the third map is at hand."""
    layers, widths, grids = _hiera(backbone, sides)
    if fields.problems:  # the lists of stages may not go together
        return Chain({}), [1, 1]
    stated = fields.items("backbone_channel_list", (768, 384, 192, 96))
    problem = f"{list(widths[::-1])} is accepted"
    fields.require(holds=stated == widths[::-1], problem=problem, name="backbone_channel_list")
    told = fields.items("backbone_feature_sizes", ((256, 256), (128, 128), (64, 64)))
    told = tuple(list(one) if isinstance(one, list | tuple) else one for one in told)
    problem = f"{grids[:-1]} is accepted"
    fields.require(holds=list(told) == grids[:-1], problem=problem, name="backbone_feature_sizes")
    doubled = grids[-2] == [2 * side for side in grids[-1]]
    problem = "the last stage is to halve the sides"
    backbone.require(holds=doubled, problem=problem, name="num_query_pool_stages")
    for i in range(len(widths)):
        neck: dict[str, Layer] = {"take": Take(f"map{i}"), "conv": Conv(channels, 1)}
        layers[f"neck{i}"] = Chain(neck | {"put": SetAside(f"map{i}")})
    layers |= {"enlarge": Enlarged(), "fused": SetAside("above"), "take": Take("map2")}
    return Chain(layers | {"fuse": Plus("above")}), grids[-2]


def _hiera(
    fields: Fields, sides: tuple[int, int]
) -> tuple[dict[str, Layer], tuple[int, ...], list[list[int]]]:
    names = ("blocks_per_stage", "embed_dim_per_stage", "num_attention_heads_per_stage")
    for name, usual in _USUAL.items():
        if not fields.has(name):
            fields.source = replace(fields.source, values={**fields.source.values, name: usual})
    depths, widths, many, windows = lists(fields, *names, "window_size_per_stage")
    four = len(depths) == _STAGES or bool(fields.problems)
    fields.require(holds=four, problem=f"{_STAGES} stages are accepted", name=names[0])
    divided(fields, names[2], widths, many)
    step, pools = fields.size("query_stride", 2), fields.size("num_query_pool_stages", 3)
    same = fields.size("hidden_size", 96) == widths[0]
    fields.require(holds=same, problem=f"{widths[0]} is accepted", name="hidden_size")
    wider = all(old != new for old, new in pairwise(widths[: pools + 1]))
    fields.require(holds=wider, problem="stages that are pooled widen", name=names[1])
    kernel, stride = fields.size("patch_kernel_size", 7), fields.size("patch_stride", 4)
    padding = fields.size("patch_padding", 3)
    grid = [(side + 2 * padding - kernel) // stride + 1 for side in sides]
    whole = all(side > 0 and side % windows[0] == 0 for side in grid)
    problem = f"windows of {windows[0]} do not divide maps of {grid}"
    fields.require(holds=whole, problem=problem, name="window_size_per_stage")
    background = side_lengths(fields, "window_positional_embedding_background_size", 7)
    everywhere = fields.items("global_attention_blocks", (5, 7, 9))
    ratio, function = ratio_of(fields, "mlp_ratio", 4), function_of(fields, "gelu")
    layers: dict[str, Layer] = {"patch": Conv(widths[0], kernel, stride, padding)}
    layers |= {"place": Tiled(background), "window": Tiled((windows[0], windows[0]))}
    before, grids, place = widths[0], [], 0
    for stage, (depth, width, number) in enumerate(zip(depths, widths, many, strict=True)):
        for i in range(depth):
            pooled = step if i == 0 and 0 < stage <= pools else 1
            side = 0 if place in everywhere else windows[stage - (stage > 0 and i == 0)]
            fits = all(each % pooled == 0 for each in (side, *grid))
            problem = f"steps of {pooled} do not divide windows of {side} and maps of {grid}"
            fields.require(holds=fits, problem=problem, name="query_stride")
            grid, place = [each // pooled for each in grid], place + 1
            mlp = perceptron(int(width * ratio), width, function)
            own = Squares(number, width, 0, pooled, side)
            layers |= block(f"stage{stage}.{i}", own, mlp, before)
            before = width
        layers[f"stage{stage}.put"] = SetAside(f"map{stage}")
        grids.append(grid)
    return layers, widths, grids


_USUAL = {
    "blocks_per_stage": [1, 2, 7, 2],
    "embed_dim_per_stage": [96, 192, 384, 768],
    "num_attention_heads_per_stage": [1, 2, 4, 8],
    "window_size_per_stage": [8, 4, 14, 7],
}


def _decoder(fields: Fields, channels: int) -> dict[str, Layer]:
    masks = fields.size("num_multimask_outputs", 3) + 1
    rate, depth = fields.size("attention_downsample_rate", 2), fields.size("num_hidden_layers", 2)
    mlp = predictor(fields.size("mlp_dim", 2048), channels, max(depth, 2))
    layers: dict[str, Layer] = {
        f"side{i}": Chain(
            {"take": Take(f"map{i}"), "conv": Conv(width, 1), "put": SetAside(f"side{i}")}
        )
        for i, width in enumerate((channels // 8, channels // 4))
    }
    layers |= {"queries": Learned(masks + 2, channels), "asked": SetAside("asked")}
    layers |= {"points": Points(_POINTS, channels), "behind": Behind("asked")}
    score = Chain({"first": FirstPosition(), "mlp": predictor(channels, 1, 3)})
    return {
        **layers,
        **two_way(fields, channels, mlp, channels // rate),
        "heads": Fork({**heads(fields, channels), "score": score}),
        "map": Take("image"),
        "spread1": Spread(channels // 4, 2),
        "add1": Plus("side1"),
        "norm": Normed(),
        "act1": Activation("gelu"),
        "spread2": Spread(channels // 8, 2),
        "add0": Plus("side0"),
        "act2": Activation("gelu"),
        "masks": Masks(tuple(f"vector{i}" for i in range(masks))),
    }
