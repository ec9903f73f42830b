"""What the Flops Profiler of DeepSpeed counts, in two of its versions.

It sees calls of PyTorch functions. Operators (+, *), tanh, sigmoid, root-mean-square norms, the
bias of a linear layer, fused attention and whatever was bound before it patched the functions (GELU
of Hugging Face) are not seen and cost nothing. Where product and bias are one call, the elements of
the bias are counted once. It counts forward; backward is defined as twice that.
"""

from dataclasses import replace

from sympy import Expr, Integer, Lambda

from symbolic_cost.conventions.answers import (
    FREE,
    MATMUL_ALONE,
    MULTIPLY_ACCUMULATE,
    MULTIPLY_ADD_PAIR,
    NO_ADDITIONS,
    NO_PAIRS,
    NOT_COUNTED,
    RING,
    elementwise_flop,
)
from symbolic_cost.conventions.questions import (
    FULL_SQUARE,
    Conventions,
    ElementSizes,
    Elementwise,
    ElementwiseFlop,
)
from symbolic_cost.symbols import n


def _seen(forward: Expr) -> ElementwiseFlop:
    return elementwise_flop(forward, 2 * forward)


_PER_ELEMENT = ("softmax", "relu", "leaky_relu", "prelu", "elu", "silu", "interpolate", "pooled")
_NORMS = ("layer_norm", "group_norm", "instance_norm")

FLOPS_PROFILER = Conventions(
    name="flops-profiler",
    meaning="calls seen by the Flops Profiler of 2023, models in evaluation",
    source="flops-profiler",
    contraction=MULTIPLY_ADD_PAIR,
    summation=NOT_COUNTED,
    addition=Integer(0),
    elementwise=Elementwise(
        {
            **dict.fromkeys(_NORMS, _seen(5 * n)),
            "layer_norm_bare": _seen(4 * n),
            "batch_norm": _seen(2 * n),
            "rnn_cell": _seen(n),
            "gru_cell": _seen(7 * n),
            "lstm_cell": _seen(10 * n),
            **dict.fromkeys(_PER_ELEMENT, _seen(n)),
        },
        default=FREE,
    ),
    attention_pairs=FULL_SQUARE,
    charge=RING,
    reduction_additions=NO_ADDITIONS,
    sizes=ElementSizes(value=Integer(4), weight=Integer(4), weight_gradient=Integer(4)),
    contraction_kinds={"recurrent": MULTIPLY_ACCUMULATE},
    addition_kinds={"conv": Integer(1), "recurrent": Integer(1)},
    called_addition=Integer(1),
    unseen=frozenset({"fused"}),
    fused_recompute=False,
)

FLOPS_PROFILER_MACS = replace(
    FLOPS_PROFILER,
    name="flops-profiler-macs",
    meaning="multiply-accumulates as the Flops Profiler of 2023 names them",
    contraction=MULTIPLY_ACCUMULATE,
    elementwise=MATMUL_ALONE,
    contraction_kinds={"recurrent": NOT_COUNTED},
    addition_kinds={},
    called_addition=Integer(0),
)

_MACS_2021 = {"softmax": _seen(n), "pooled": _seen(n)}
_FLOP_2021 = {"softmax": _seen(2 * n), "pooled": _seen(2 * n)}

FLOPS_PROFILER_2021 = replace(
    FLOPS_PROFILER,
    name="flops-profiler-megatron-2021",
    meaning="twice the multiply-accumulates of 2021: softmax is some, attention products are none",
    elementwise=Elementwise(_FLOP_2021, default=FREE),
    attention_pairs=NO_PAIRS,
    unmasked_pairs=NO_PAIRS,
    contraction_kinds={"conv": Lambda(n, 2 * n + 2)},
    addition_kinds={},
    called_addition=Integer(0),
)

FLOPS_PROFILER_2021_MACS = replace(
    FLOPS_PROFILER_2021,
    name="flops-profiler-megatron-2021-macs",
    meaning="multiply-accumulates as the Flops Profiler of 2021 counted them",
    contraction=MULTIPLY_ACCUMULATE,
    elementwise=Elementwise(_MACS_2021, default=FREE),
    contraction_kinds={"conv": Lambda(n, n + 1)},
)

PROFILERS = (
    FLOPS_PROFILER,
    FLOPS_PROFILER_MACS,
    FLOPS_PROFILER_2021,
    FLOPS_PROFILER_2021_MACS,
)
"""The presets of this module."""
