"""Activation functions and kernels of attention, by the names that configurations use."""

from collections.abc import Mapping
from types import MappingProxyType

from symbolic_cost.layers.attention_core import Core

FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "silu": "silu",
        "swish": "silu",
        "gelu": "gelu",
        "gelu_new": "gelu_new",
        "gelu_fast": "gelu_new",
        "gelu_pytorch_tanh": "gelu_tanh",
        "gelu_accurate": "gelu_tanh",
        "gelu_python": "gelu",
        "gelu_10": "gelu",
        "quick_gelu": "quick_gelu",
        "relu": "relu",
        "relu2": "relu2",
        "relu6": "relu6",
        "leaky_relu": "leaky_relu",
        "tanh": "tanh",
        "sigmoid": "sigmoid",
        "mish": "mish",
        "hardswish": "hardswish",
    }
)
"""Functions without weights, by the names that configurations use."""

ACTIVATIONS: Mapping[str, str] = MappingProxyType({**FUNCTIONS, "xielu": "xielu"})
"""Those of decoders; one has two learned scalars, where the family has them."""

CORES = {
    "eager": Core.EAGER,
    "torch": Core.EAGER,
    "sdpa": Core.SDPA,
    "flash_attention_2": Core.FLASH,
    # How PyTorch runs sdpa on a CPU where probabilities are dropped out: in single precision.
    "sdpa_math": Core.SINGLE,
}
"""How attention runs, by the names that configurations use; op by op unless given."""
