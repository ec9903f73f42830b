"""The traits of the decoder families: a family that mixes known parts is one entry.

A new family is an entry of `TRAITS` here and its name in `families.FAMILIES`. This one normalises
before and after every layer, groups its heads and has experts of which one sees every token:

>>> from symbolic_cost.models.symbolic import symbolic
>>> new = Traits(
...     placing=Placing.SANDWICH,
...     head_norm=HeadNorm.HEAD,
...     sparse=Sparse.ALWAYS,
...     shared=True,
...     tied=True,
... )
>>> model = symbolic("new", traits=new)
>>> [part.path for part in model.parts]
['embedding', 'rotation', 'block', 'head']
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from symbolic_cost.layers.grouped import HeadNorm
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.decoder import Placing
from symbolic_cost.models.traits import Part, Positions, Sparse, Traits, Window

_ATTENTION = MappingProxyType({"attention_bias": ("qkv_bias", "output_bias")})

_SHARE = "partial_rotary_factor"

_GEMMA_3 = Traits(
    placing=Placing.SANDWICH,
    head_norm=HeadNorm.HEAD,
    function="gelu_tanh",
    tied=True,
    scaled=True,
    head_width=256,
    window=Window.ALL_BUT_NTH,
    windowed=4096,
    switches=_ATTENTION,
)

TRAITS: Mapping[str, Traits] = MappingProxyType(
    {
        "gpt2": Traits(
            norm=Norm.LAYER,
            grouped=False,
            qkv_bias=True,
            output_bias=True,
            mlp_bias=True,
            positions=Positions.LEARNED,
            single=False,
            gated=False,
            function="gelu_new",
            tied=True,
            dropout=True,
            attention_dropout=True,
            embedding_dropout=True,
            wide=True,
        ),
        "opt": Traits(
            norm=Norm.LAYER,
            grouped=False,
            qkv_bias=True,
            output_bias=True,
            mlp_bias=True,
            positions=Positions.LEARNED,
            gated=False,
            function="relu",
            tied=True,
            dropout=True,
            offset=2,
            switches={"enable_bias": ("qkv_bias", "output_bias", "mlp_bias")},
        ),
        "bloom": Traits(
            norm=Norm.LAYER,
            grouped=False,
            qkv_bias=True,
            output_bias=True,
            mlp_bias=True,
            positions=Positions.ALIBI,
            gated=False,
            function="gelu_tanh",
            tied=True,
            embedding_norm=True,
            wide=True,
        ),
        "gpt_neox": Traits(
            norm=Norm.LAYER,
            grouped=False,
            parallel_norms=2,
            qkv_bias=True,
            output_bias=True,
            mlp_bias=True,
            part=Part(_SHARE, Fraction(1, 4)),
            gated=False,
            function="gelu",
            switches=_ATTENTION,
        ),
        "gptj": Traits(
            norm=Norm.LAYER,
            grouped=False,
            parallel_norms=1,
            mlp_bias=True,
            part=Part("rotary_dim", 64),
            gated=False,
            function="gelu_new",
            head_bias=True,
            wide=True,
        ),
        "falcon": Traits(
            norm=Norm.LAYER,
            parallel_norms=1,
            gated=False,
            function="gelu",
            tied=True,
            wide=True,
            switches={"bias": ("qkv_bias", "output_bias", "mlp_bias")},
        ),
        "llama": Traits(switches={**_ATTENTION, "mlp_bias": ("mlp_bias",)}),
        "mistral": Traits(window=Window.ALWAYS, windowed=4096),
        "mixtral": Traits(
            window=Window.ALWAYS, sparse=Sparse.ALWAYS, expert_width="intermediate_size"
        ),
        "qwen2": Traits(qkv_bias=True, window=Window.UPPER, windowed=4096),
        "qwen3": Traits(
            head_norm=HeadNorm.HEAD,
            window=Window.UPPER,
            windowed=4096,
            head_width=128,
            switches=_ATTENTION,
        ),
        "qwen3_moe": Traits(
            head_norm=HeadNorm.HEAD,
            window=Window.UPPER,
            windowed=4096,
            sparse=Sparse.EVERY_NTH,
            switches=_ATTENTION,
        ),
        "gemma": Traits(
            function="gelu_tanh", tied=True, scaled=True, head_width=256, switches=_ATTENTION
        ),
        "gemma2": Traits(
            placing=Placing.SANDWICH,
            function="gelu_tanh",
            tied=True,
            scaled=True,
            capped=True,
            head_width=256,
            window=Window.EVEN,
            windowed=4096,
            switches=_ATTENTION,
        ),
        "gemma3_text": _GEMMA_3,
        "gemma3": _GEMMA_3,
        "phi3": Traits(part=Part(_SHARE, 1), window=Window.ALWAYS),
        "deepseek_v2": Traits(latent=True, shared=True, sparse=Sparse.AFTER_FIRST),
        "deepseek_v3": Traits(
            latent=True, query_latent=True, shared=True, sparse=Sparse.AFTER_FIRST
        ),
        "gpt_oss": Traits(
            qkv_bias=True,
            output_bias=True,
            sinks=True,
            router_bias=True,
            expert_bias=True,
            head_width=64,
            window=Window.EVEN,
            windowed=128,
            sparse=Sparse.ALWAYS,
            expert_width="intermediate_size",
            switches=_ATTENTION,
        ),
        "olmo": Traits(norm=Norm.LAYER_BARE, switches=_ATTENTION),
        "olmo2": Traits(placing=Placing.RESULT, head_norm=HeadNorm.WIDTH, switches=_ATTENTION),
        "olmoe": Traits(
            head_norm=HeadNorm.WIDTH,
            sparse=Sparse.ALWAYS,
            expert_width="intermediate_size",
            switches=_ATTENTION,
        ),
        "cohere": Traits(norm=Norm.LAYER_SCALE, parallel_norms=1, tied=True, switches=_ATTENTION),
        "phi": Traits(
            norm=Norm.LAYER,
            parallel_norms=1,
            qkv_bias=True,
            output_bias=True,
            mlp_bias=True,
            part=Part(_SHARE, Fraction(1, 2)),
            gated=False,
            function="gelu_new",
            head_bias=True,
        ),
        "stablelm": Traits(
            norm=Norm.LAYER,
            part=Part(_SHARE, Fraction(1, 4)),
            switches={"use_qkv_bias": ("qkv_bias",)},
        ),
        "starcoder2": Traits(
            norm=Norm.LAYER,
            qkv_bias=True,
            output_bias=True,
            mlp_bias=True,
            gated=False,
            function="gelu_tanh",
            tied=True,
            window=Window.ALWAYS,
            switches={"use_bias": ("qkv_bias", "output_bias", "mlp_bias")},
        ),
        "granite": Traits(scaled=True, switches={**_ATTENTION, "mlp_bias": ("mlp_bias",)}),
    }
)
"""Traits by model_type."""
