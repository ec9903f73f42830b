"""What frameworks' counters and profilers count, and the rules of thumb of papers.

The Flops Profiler of DeepSpeed, in two of its versions, sees calls of PyTorch functions. Operators
(+, *), tanh, sigmoid, root-mean-square norms, the bias of a linear layer, fused attention and
whatever was bound before it patched the functions (GELU of Hugging Face) are not seen and cost
nothing. Where product and bias are one call, the elements of the bias are counted once. It counts
forward; backward is defined as twice that.
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
    WITHIN_GROUPS,
    Conventions,
    ElementSizes,
    Elementwise,
    ElementwiseFlop,
)
from symbolic_cost.symbols import n

PARTS_OF_LOSS = {
    "cross_entropy": "cross_entropy_targets",
    "cross_entropy_values": "cross_entropy_values_targets",
}
"""The loss as logarithms of likelihoods and the choice of one, each an op."""

_BACKWARD_OF_TORCH = {
    "rms_norm": "rms_norm_single",
    "rms_norm_wide": "rms_norm_wide_single",
    "rms_norm_shifted": "rms_norm_shifted_single",
    "layer_norm_bare": "layer_norm_bare_single",
    "layer_norm_written": "layer_norm_written_single",
    "gathered_sum": "gathered_sum_apart",
    **PARTS_OF_LOSS,
}
"""Functions of which PyTorch saves more than a fused kernel would."""

TORCH_FLOP_COUNTER = Conventions(
    name="torch-flop-counter",
    meaning="2 FLOP per multiply-accumulate of matrix products, convolutions and attention",
    source="torch-flop-counter",
    contraction=MULTIPLY_ADD_PAIR,
    summation=NOT_COUNTED,
    addition=Integer(0),
    elementwise=MATMUL_ALONE,
    attention_pairs=FULL_SQUARE,
    charge=RING,
    reduction_additions=NO_ADDITIONS,
    sizes=ElementSizes(value=Integer(2), moment=Integer(2)),
    kept_as=_BACKWARD_OF_TORCH,
    fused_recompute=False,
    # The weight gradient of a convolution of n groups is charged as if every group met all others.
    grouped_gradient=Lambda(n, n),
)

TORCH_AUTOGRAD = replace(
    TORCH_FLOP_COUNTER,
    name="torch-autograd",
    meaning="what PyTorch keeps for backward, in bfloat16; norms keep their moments as values",
    source="torch-autograd",
)

TORCH_AUTOGRAD_SINGLE = replace(
    TORCH_AUTOGRAD,
    name="torch-autograd-fp32",
    meaning="what PyTorch keeps for backward, in single precision",
    sizes=ElementSizes(
        value=Integer(4), cast=Integer(0), weight=Integer(4), weight_gradient=Integer(4)
    ),
)

_AFFINE = elementwise_flop(5 * n, 0)
"""A norm with weights; without them one less per element."""

FVCORE = replace(
    TORCH_FLOP_COUNTER,
    name="fvcore",
    meaning="multiply-accumulates of matrix products, and 5 per element of a norm; forward",
    source="fvcore",
    contraction=MULTIPLY_ACCUMULATE,
    elementwise=Elementwise(
        {
            **dict.fromkeys(("layer_norm", "group_norm", "instance_norm"), _AFFINE),
            "layer_norm_bare": elementwise_flop(4 * n, 0),
            "batch_norm": elementwise_flop(2 * n, 0),
        },
        default=FREE,
    ),
    grouped_gradient=WITHIN_GROUPS,
)

PALM_MFU = replace(
    TORCH_FLOP_COUNTER,
    name="palm-mfu",
    meaning="6 FLOP per parameter of a matrix product and token, and the full attention square",
    source="chowdhery-2022",
    grouped_gradient=WITHIN_GROUPS,
)

SIX_ND = replace(
    PALM_MFU,
    name="6nd",
    meaning="6 FLOP per parameter of a matrix product and token; attention scores are left out",
    source="kaplan-2020",
    attention_pairs=NO_PAIRS,
    unmasked_pairs=NO_PAIRS,
)

FRAMEWORKS = (TORCH_FLOP_COUNTER, TORCH_AUTOGRAD, TORCH_AUTOGRAD_SINGLE, FVCORE, PALM_MFU, SIX_ND)
"""The presets of this module."""


def _with_backward(forward: Expr) -> ElementwiseFlop:
    return elementwise_flop(forward, 2 * forward)


_PER_ELEMENT = ("softmax", "relu", "leaky_relu", "prelu", "elu", "silu", "interpolate", "pooled")
_NORMS = ("layer_norm", "group_norm", "instance_norm")

FLOPS_PROFILER = replace(
    TORCH_FLOP_COUNTER,
    name="flops-profiler",
    meaning="calls seen by the Flops Profiler of 2023, models in evaluation",
    source="flops-profiler",
    elementwise=Elementwise(
        {
            **dict.fromkeys(_NORMS, _with_backward(5 * n)),
            "layer_norm_bare": _with_backward(4 * n),
            "batch_norm": _with_backward(2 * n),
            "rnn_cell": _with_backward(n),
            "gru_cell": _with_backward(7 * n),
            "lstm_cell": _with_backward(10 * n),
            **dict.fromkeys(_PER_ELEMENT, _with_backward(n)),
        },
        default=FREE,
    ),
    sizes=ElementSizes(value=Integer(4), weight=Integer(4), weight_gradient=Integer(4)),
    kept_as={},
    grouped_gradient=WITHIN_GROUPS,
    contraction_kinds={"recurrent": MULTIPLY_ACCUMULATE},
    addition_kinds={"conv": Integer(1), "recurrent": Integer(1)},
    called_addition=Integer(1),
    unseen=frozenset({"fused"}),
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

_MACS_2021 = {"softmax": _with_backward(n), "pooled": _with_backward(n)}
_FLOP_2021 = {"softmax": _with_backward(2 * n), "pooled": _with_backward(2 * n)}

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

PROFILERS = (FLOPS_PROFILER, FLOPS_PROFILER_MACS, FLOPS_PROFILER_2021, FLOPS_PROFILER_2021_MACS)
"""The presets of this module."""
