"""Configurations of timm, which name an architecture: what it says is spelt out.

Sizes by name are those of vision_transformer, resnet, convnext, swin_transformer, efficientnet in
timm/models.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from symbolic_cost.errors import InputError, shown
from symbolic_cost.models.configfile import Document

_ACCEPTED = (
    "vit_{tiny,small,base,large,huge}_patchP_S, resnet{18,34,50,101,152}, "
    "convnext_{tiny,small,base,large,xlarge}, swin_{tiny,small,base,large}_patchP_windowW_S, "
    "efficientnet_b{0,2,3,4,5}"
)
_VIT = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12),
        "large": (1024, 24, 16), "huge": (1280, 32, 16)}  # fmt: skip
_RESNET = {"18": (2, 2, 2, 2), "34": (3, 4, 6, 3), "50": (3, 4, 6, 3), "101": (3, 4, 23, 3),
           "152": (3, 8, 36, 3)}  # fmt: skip
_CONVNEXT = {"tiny": ((3, 3, 9, 3), 96), "small": ((3, 3, 27, 3), 96),
             "base": ((3, 3, 27, 3), 128), "large": ((3, 3, 27, 3), 192),
             "xlarge": ((3, 3, 27, 3), 256)}  # fmt: skip
_SWIN = {"tiny": (96, (2, 2, 6, 2), (3, 6, 12, 24)), "small": (96, (2, 2, 18, 2), (3, 6, 12, 24)),
         "base": (128, (2, 2, 18, 2), (4, 8, 16, 32)),
         "large": (192, (2, 2, 18, 2), (6, 12, 24, 48))}  # fmt: skip
# Tenths of width and depth, image, last width; b1 sees 240 x 240, which its strides do not divide.
_EFFICIENT = {"0": (10, 10, 224, 1280), "2": (11, 12, 256, 1408), "3": (12, 14, 288, 1536),
              "4": (14, 18, 320, 1792), "5": (16, 22, 448, 2048)}  # fmt: skip
_READ = ("architecture", "num_classes", "num_features", "global_pool", "pretrained_cfg",
         "model_args", "head_hidden_size", "model_name")  # fmt: skip
_SPATIAL = 3


def is_timm(config: Document) -> bool:
    """Tell whether a configuration is one of timm."""
    return isinstance(config.values["architecture"], str) and "num_classes" in config.values


def timm_config(source: Document) -> dict[str, Any]:
    """Return the configuration that one of timm means.

    Raises:
        InputError: an architecture that is none of the known, or keys that are not understood.
    """
    values = source.values
    name = values["architecture"].partition(".")[0]
    problems = [f"{source.where(k)} is not understood" for k in values if k not in _READ]
    if values.get("model_args"):
        problems.append(f"{source.where('model_args')}: {shown(values['model_args'])} is not read")
    config = spelt(name)
    if config is None:
        problems.append(f"{source.where('architecture')}: {shown(name)}: {_ACCEPTED} are read")
        raise InputError(problems)
    problems += _contradictions(source, config)
    if problems:
        raise InputError(problems)
    classes = values["num_classes"]
    return {**config, "num_labels": classes, "architectures": [_HEADS[config["model_type"]]]}


def spelt(name: str) -> dict[str, Any] | None:
    """Return the fields that an architecture means; None of one that is not known."""
    for pattern, fields in _SPELT.items():
        match = re.fullmatch(pattern, name)
        if match is not None:
            return fields(match)
    return None


_HEADS = {
    "vit": "ViTForImageClassification",
    "resnet": "ResNetForImageClassification",
    "convnext": "ConvNextForImageClassification",
    "swin": "SwinForImageClassification",
    "efficientnet": "EfficientNetForImageClassification",
}


def _contradictions(source: Document, config: Mapping[str, Any]) -> list[str]:
    """Say what a configuration says otherwise than the name of its architecture."""
    values, problems = source.values, []
    pretrained = values.get("pretrained_cfg")
    size = pretrained.get("input_size") if isinstance(pretrained, dict) else None
    image = config.get("image_size")
    if size is not None and image is not None and size != [_SPATIAL, image, image]:
        problems.append(
            f"{source.where('pretrained_cfg')}: input_size = {shown(size)}: {image} by name"
        )
    widths = config.get("hidden_sizes") or [config.get("hidden_size", config.get("hidden_dim", 0))]
    wide = config["embed_dim"] * 8 if "embed_dim" in config else widths[-1]
    features = values.get("num_features", wide)
    if features != wide:
        problems.append(f"{source.where('num_features')} = {shown(features)}: {wide} by name")
    pool = values.get("global_pool", "")
    accepted = ("token", "") if config["model_type"] == "vit" else ("avg", "")
    if pool not in accepted:
        problems.append(f"{source.where('global_pool')} = {shown(pool)}: {accepted[0]} is read")
    return problems


def _vit(match: re.Match[str]) -> dict[str, Any]:
    width, depth, heads = _VIT[match["size"]]
    return {
        "model_type": "vit", "hidden_size": width, "num_hidden_layers": depth,
        "num_attention_heads": heads, "intermediate_size": 4 * width,
        "patch_size": int(match["patch"]), "image_size": int(match["image"]), "hidden_act": "gelu",
    }  # fmt: skip


def _resnet(match: re.Match[str]) -> dict[str, Any]:
    deep = int(match["size"]) >= 50  # noqa: PLR2004 - the first of bottlenecks
    widths = [64, 128, 256, 512]
    return {
        "model_type": "resnet", "depths": list(_RESNET[match["size"]]), "embedding_size": 64,
        "hidden_sizes": [4 * width for width in widths] if deep else widths,
        "layer_type": "bottleneck" if deep else "basic",
    }  # fmt: skip


def _convnext(match: re.Match[str]) -> dict[str, Any]:
    depths, width = _CONVNEXT[match["size"]]
    sizes = [width * 2**stage for stage in range(4)]
    return {"model_type": "convnext", "depths": list(depths), "hidden_sizes": sizes}


def _swin(match: re.Match[str]) -> dict[str, Any]:
    width, depths, heads = _SWIN[match["size"]]
    return {
        "model_type": "swin", "embed_dim": width, "depths": list(depths), "num_heads": list(heads),
        "patch_size": int(match["patch"]), "window_size": int(match["window"]),
        "image_size": int(match["image"]),
    }  # fmt: skip


def _efficientnet(match: re.Match[str]) -> dict[str, Any]:
    width, depth, image, last = _EFFICIENT[match["size"]]
    return {
        "model_type": "efficientnet", "width_coefficient": width / 10,
        "depth_coefficient": depth / 10,
        "image_size": image, "hidden_dim": last, "in_channels": [32, 16, 24, 40, 80, 112, 192],
        "out_channels": [16, 24, 40, 80, 112, 192, 320], "kernel_sizes": [3, 3, 5, 3, 5, 5, 3],
        "strides": [1, 2, 2, 2, 1, 2, 1], "num_block_repeats": [1, 2, 2, 3, 3, 4, 1],
        "expand_ratios": [1, 6, 6, 6, 6, 6, 6], "depthwise_padding": [], "depth_divisor": 8,
    }  # fmt: skip


_SPELT: Mapping[str, Callable[[re.Match[str]], dict[str, Any]]] = {
    r"vit_(?P<size>tiny|small|base|large|huge)_patch(?P<patch>\d{1,3})_(?P<image>\d{1,4})": _vit,
    r"resnet(?P<size>18|34|50|101|152)": _resnet,
    r"convnext_(?P<size>tiny|small|base|large|xlarge)": _convnext,
    r"swin_(?P<size>tiny|small|base|large)_patch(?P<patch>\d{1,3})"
    r"_window(?P<window>\d{1,3})_(?P<image>\d{1,4})": _swin,
    r"efficientnet_b(?P<size>[02345])": _efficientnet,
}
