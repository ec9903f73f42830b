"""The presets: one bundle of answers per publication or common use, as data."""

from dataclasses import replace

from sympy import Integer

from symbolic_cost.conventions.answers import (
    ADDITIONS_OF_RING,
    CAUSAL,
    CAUSAL_WINDOW,
    MATMUL_ALONE,
    MIXED,
    MULTIPLY_ADD_EXACT,
    MULTIPLY_ADD_PAIR,
    NO_ADDITIONS,
    NOT_COUNTED,
    OPERATIONS,
    RING,
    SUM_EXACT,
    SUM_ROUNDED,
    TABLES,
    WHOLE_MESSAGE,
)
from symbolic_cost.conventions.frameworks import FRAMEWORKS, PROFILERS
from symbolic_cost.conventions.questions import (
    FULL_SQUARE,
    BackwardTraffic,
    Conventions,
    ElementSizes,
    Reread,
    Saved,
)
from symbolic_cost.errors import looked_up
from symbolic_cost.symbols import mu, s

STANDARD = Conventions(
    name="standard",
    meaning="2 FLOP per multiply-accumulate, elementwise ops counted, ring bytes, 16-bit values",
    source="definition",
    contraction=MULTIPLY_ADD_PAIR,
    summation=SUM_ROUNDED,
    addition=Integer(1),
    elementwise=OPERATIONS,
    attention_pairs=FULL_SQUARE,
    charge=RING,
    reduction_additions=NO_ADDITIONS,
    sizes=MIXED,
)

EXACT = replace(
    STANDARD,
    name="exact",
    meaning="every multiplication and addition once, as a loop would count them",
    contraction=MULTIPLY_ADD_EXACT,
    summation=SUM_EXACT,
    reduction_additions=ADDITIONS_OF_RING,
    saved=Saved.GATHERED,
)

MODEL_FLOP = replace(
    STANDARD,
    name="model-flop",
    meaning="2 FLOP per multiply-accumulate of matrix products alone",
    source="narayanan-2021",
    summation=NOT_COUNTED,
    addition=Integer(0),
    elementwise=MATMUL_ALONE,
    fused_recompute=False,
)

MODEL_FLOP_CAUSAL = replace(
    MODEL_FLOP,
    name="model-flop-causal",
    meaning="as model-flop, of the query-key pairs that the mask or the window keeps",
    source="dao-2022",
    attention_pairs=CAUSAL,
    window_pairs=CAUSAL_WINDOW,
)

MEGATRON_2022 = replace(
    MODEL_FLOP,
    name="megatron-2022",
    meaning="16-bit activations, 1-byte masks, statistics neglected, matrix products alone",
    source="korthikanti-2022",
    sizes=replace(MIXED, statistic=Integer(0), index=Integer(0)),
)

_TABLE_SIZES = ElementSizes(
    value=s, mask=mu, statistic=Integer(0), single=s, weight=s, weight_gradient=s
)

TRANSFORMER_TABLES_AS_PRINTED = replace(
    STANDARD,
    name="transformer-tables-as-printed",
    meaning="2k-1 FLOP, whole messages, each backward tensor once",
    source="subramanian-2024",
    contraction=MULTIPLY_ADD_EXACT,
    elementwise=TABLES,
    charge=WHOLE_MESSAGE,
    sizes=_TABLE_SIZES,
    saved=Saved.GATHERED,
    backward_traffic=BackwardTraffic.ONCE,
    reread={"einsum": Reread.ALL, "layer_norm": Reread.NONE},
)

TRANSFORMER_TABLES_AS_CODED = replace(
    TRANSFORMER_TABLES_AS_PRINTED,
    name="transformer-tables-as-coded",
    meaning="as printed, but the bytes and the additions of ring collectives",
    charge=RING,
    reduction_additions=ADDITIONS_OF_RING,
)

TRANSFORMER_TABLES_AS_MEANT = replace(
    TRANSFORMER_TABLES_AS_CODED,
    name="transformer-tables-as-meant",
    meaning="as coded, and the statistics of norms have a size",
    sizes=replace(_TABLE_SIZES, statistic=s),
)

MEGATRON_REPORT = replace(
    MODEL_FLOP,
    name="megatron-report",
    meaning="words of one size, masks of half a word, whole messages",
    source="megatron-report",
    charge=WHOLE_MESSAGE,
    sizes=replace(_TABLE_SIZES, mask=s / 2),
)

_PRESETS = (
    EXACT,
    STANDARD,
    MODEL_FLOP,
    MODEL_FLOP_CAUSAL,
    MEGATRON_2022,
    TRANSFORMER_TABLES_AS_PRINTED,
    TRANSFORMER_TABLES_AS_CODED,
    TRANSFORMER_TABLES_AS_MEANT,
    MEGATRON_REPORT,
    *PROFILERS,
    *FRAMEWORKS,
)

PRESETS: dict[str, Conventions] = {preset.name: preset for preset in _PRESETS}
"""Every preset by name."""


def preset(name: str) -> Conventions:
    """Return a preset by name.

    Raises:
        UnknownNameError: no such preset; the closest are offered.
    """
    return looked_up("conventions", name, PRESETS)
