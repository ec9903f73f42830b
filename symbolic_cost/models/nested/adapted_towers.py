"""Phi-4-multimodal as it is published: a language model with adapters for what it sees and hears.

Its file names the networks of `phi4_multimodal` in other words, and adapters of Transformers' class
without any: two low-rank products beside every linear layer of the blocks, one pair for each kind
of input. Texts run without them, so that their weights are held and do no work.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Integer

from symbolic_cost.errors import refuse
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.families import Family
from symbolic_cost.models.nested import undeclared_towers
from symbolic_cost.ops.declare import Axis, Model, Part, Place, Role, stored

_FIXED: Mapping[str, Mapping[str, Any]] = {
    "audio_processor": {"name": "cascades"},
    "config": {
        "batch_norm": False,
        "bias_in_glu": True,
        "causal": True,
        "cnn_layer_norm": True,
        "depthwise_multiplier": 1,
        "ext_pw_kernel_size": 1,
        "input_layer": "nemo_conv",
        "time_reduction": 8,
    },
    "relative_attention_bias_args": {"type": "t5", "t5_bias_symmetric": False},
    "embd_layer": {"embedding_cls": "image_audio"},
    "audio_embd_layer": {
        "compression_rate": 8,
        "downsample_rate": 1,
        "embedding_cls": "audio",
        "projection_cls": "mlp",
        "use_conv_downsample": False,
        "use_qformer": False,
    },
    "image_embd_layer": {
        "crop_size": 448,
        "embedding_cls": "tune_image",
        "hd_transform_order": "sub_glb",
        "image_token_compression_cls": "avg_pool_2d",
        "projection_cls": "mlp",
        "use_hd_transform": True,
        "with_learnable_separator": True,
    },
    "vision_lora": {
        "layer": r"layers.*((self_attn\.(qkv_proj|o_proj))|(mlp\.(gate_up|down)_proj))"
    },
    "speech_lora": {
        "layer": r"((layers.*self_attn\.(qkv|o)_proj)|(layers.*mlp\.(gate_up|down)_proj))"
    },
}
"""By object: what its keys are, where only one value is declared."""

_COSTLESS = {
    "config": (
        *("activation", "activation_checkpointing", "conv_activation", "conv_glu_type"),
        *("chunk_size", "left_chunk", "encoder_embedding_config"),
    ),
    "audio_embd_layer": ("enable_gradient_checkpointing",),
    "image_embd_layer": ("enable_gradient_checkpointing",),
    "vision_lora": ("dp", "lora_alpha"),
    "speech_lora": ("dp", "lora_alpha"),
}
"""By object: keys that no count depends on."""

_READ: Mapping[str, tuple[str, ...]] = {
    "audio_processor": ("config",),
    "config": (
        *("attention_dim", "attention_heads", "linear_units", "num_blocks", "kernel_size"),
        *("input_size", "nemo_conv_settings", "relative_attention_bias_args"),
        *("ext_pw_out_channel", "depthwise_seperable_out_channel"),
    ),
    "nemo_conv_settings": ("conv_channels",),
    "relative_attention_bias_args": ("t5_bias_max_distance",),
    "embd_layer": ("audio_embd_layer", "image_embd_layer"),
    "audio_embd_layer": (),
    "image_embd_layer": (),
    "vision_lora": ("r",),
    "speech_lora": ("r",),
}
"""By object: keys that are read."""

_ADAPTERS = ("vision_lora", "speech_lora")


def phi4mm(fields: Fields, shape: Shape) -> Model:
    """Declare the language model, and hold the weights of its towers and adapters.

    Raises:
        InputError: every problem; or images, whose work is not declared.
    """
    heard, embedding = _object(fields, "audio_processor"), _object(fields, "embd_layer")
    ranks = {name: _object(fields, name).size("r") for name in _ADAPTERS}
    _object(embedding, "audio_embd_layer")
    _object(embedding, "image_embd_layer")
    towers = {"audio_config": _audio(_object(heard, "config")), "vision_config": {}}
    refuse(dict.fromkeys(fields.problems))
    fields.source = replace(fields.source, values={**fields.source.values, **towers})
    model = undeclared_towers.build(fields, shape)
    fields.assume("audio_processor", fields.ignored.pop("audio_config"))
    fields.assume("embd_layer", fields.ignored.pop("vision_config"))
    for name, rank in ranks.items():
        fields.assume(name, "text alone: it has weights and no work")
        model = _adapted(model, name.partition("_")[0], rank)
    return model


def _object(fields: Fields, name: str) -> Fields:
    """Return the fields of an object, and note what is not declared of it."""
    part = fields.part(name)
    fields.require(
        holds=part is not None, problem="an object with the fields is accepted", name=name
    )
    fixed = _FIXED.get(name, {})
    inner = part or fields.holding(fixed)
    inner.record = Family("", (), fixed=fixed, costless=(*_COSTLESS.get(name, ()), *_READ[name]))
    for key, value in fixed.items():
        given = key == "t5_bias_symmetric" or inner.source.values.get(key) is not None
        inner.require(holds=given, problem=f"only {json.dumps(value)} is declared", name=key)
    fields.problems += inner.not_understood().values()
    return inner


def _audio(heard: Fields) -> dict[str, int]:
    """Return the fields of the conformer, by their names in Transformers."""
    width = heard.size("attention_dim", 1)
    for name in ("ext_pw_out_channel", "depthwise_seperable_out_channel"):
        problem = f"only {width}, the width of attention_dim, is declared"
        heard.require(holds=heard.source.values.get(name) == width, problem=problem, name=name)
    sizes = {
        "hidden_size": heard.size("attention_dim"),
        "num_attention_heads": heard.size("attention_heads"),
        "intermediate_size": heard.size("linear_units"),
        **{name: heard.size(name) for name in ("num_blocks", "kernel_size", "input_size")},
        "nemo_conv_channels": _object(heard, "nemo_conv_settings").size("conv_channels"),
        "bias_max_distance": _object(heard, "relative_attention_bias_args").size(
            "t5_bias_max_distance"
        ),
    }
    return sizes | {"ext_pw_out_channel": width, "depthwise_separable_out_channel": width}


def _adapted(model: Model, name: str, rank: int) -> Model:
    """Return the model with the weights of adapters beside every linear layer of its blocks."""
    e, f, h, k, d = (int(model.sizes[axis]) for axis in "efhkd")
    widths = {"qkv": (e, (h + 2 * k) * d), "proj": (h * d, e), "up": (e, 2 * f), "down": (f, e)}
    sizes = {f"r_{name}": Integer(rank)}
    sizes |= {f"n_{size}": Integer(size) for pair in widths.values() for size in pair}
    held = tuple(
        stored(layer, a=f"n_{wide} r_{name}", b=f"r_{name} n_{out}")
        for layer, (wide, out) in widths.items()
    )
    layers = sum(part.repeat for part in model.parts if part.is_block)
    part = Part(f"{name}_lora", held, layers, place=Place.END)
    new = {axis: Axis(axis, Role.WHOLE) for axis in sizes if axis not in model.axes}
    return replace(
        model,
        parts=(part, *model.parts),
        sizes={**sizes, **model.sizes},
        axes={**new, **model.axes},
    )
