"""Activation functions and kernels of attention, by the names that configurations use."""

from collections.abc import Mapping
from types import MappingProxyType

from symbolic_cost.layers.attention_core import Core

ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
    "quick_gelu": "quick_gelu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "xielu": "xielu",
}
"""Functions by the names that configurations use."""

CORES = {
    "eager": Core.EAGER,
    "torch": Core.EAGER,
    "sdpa": Core.SDPA,
    "flash_attention_2": Core.FLASH,
    # How PyTorch runs sdpa on a CPU where probabilities are dropped out: in single precision.
    "sdpa_math": Core.SINGLE,
}
"""How attention runs, by the names that configurations use; op by op unless given."""

FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "quick_gelu": "silu",
        "gelu_10": "gelu",
        "gelu_python": "gelu",
        "gelu_accurate": "gelu_tanh",
        "tanh": "tanh",
        "relu6": "relu6",
        "sigmoid": "sigmoid",
        "leaky_relu": "leaky_relu",
    }
    | ACTIVATIONS
)
"""Functions by the names that configurations use."""
