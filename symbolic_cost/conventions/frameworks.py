"""What frameworks' counters count, and the rules of thumb of papers."""

from dataclasses import replace

from sympy import Integer, Lambda

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
)
from symbolic_cost.symbols import n

_BACKWARD_OF_TORCH = {
    "rms_norm": "rms_norm_single",
    "rms_norm_wide": "rms_norm_wide_single",
    "rms_norm_shifted": "rms_norm_shifted_single",
    "layer_norm_bare": "layer_norm_bare_single",
    "layer_norm_written": "layer_norm_written_single",
    "cross_entropy": "cross_entropy_targets",
    "cross_entropy_values": "cross_entropy_values_targets",
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
        value=Integer(4),
        cast=Integer(0),
        weight=Integer(4),
        weight_gradient=Integer(4),
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
