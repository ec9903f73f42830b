"""Counting questions, their named answers, and the presets that bundle one answer per question.

Tools disagree about definitions before they disagree about numbers, so no answer is built in:
a preset is passed to every cost and travels with the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from sympy import Expr, Integer, Lambda

from symbolic_cost.errors import ConventionError, UnknownNameError, unknown
from symbolic_cost.symbols import Active, l, message, mu, n, p, s, t


class Role(StrEnum):
    """What the elements of a tensor hold; decides their size."""

    VALUE = "value"
    SINGLE = "single"
    MASK = "mask"
    STATISTIC = "statistic"
    INDEX = "index"
    WEIGHT = "weight"
    WEIGHT_GRADIENT = "weight_gradient"


@dataclass(frozen=True, slots=True)
class ElementSizes:
    """Bytes of one element by role.

    Args:
        value: activations and their gradients.
        mask: dropout masks.
        statistic: saved statistics of rows (mean, reciprocal deviation, log-sum-exp).
        index: token ids.
        single: copies kept in single precision.
        weight: weights used in computation.
        weight_gradient: their gradients.
    """

    value: Expr
    mask: Expr = Integer(1)
    statistic: Expr = Integer(4)
    index: Expr = Integer(8)
    single: Expr = Integer(4)
    weight: Expr = Integer(2)
    weight_gradient: Expr = Integer(2)

    def of(self, role: Role) -> Expr:
        """Return the bytes of one element."""
        size: Expr = getattr(self, role.value)
        return size


@dataclass(frozen=True, slots=True)
class ElementwiseFlop:
    """FLOP of one row of n elements, forward and backward; n is 1 where nothing is summed."""

    forward: Lambda
    backward: Lambda


@dataclass(frozen=True)
class Elementwise:
    """FLOP of every kind of elementwise op.

    Args:
        kinds: the answer by kind.
        default: the answer for kinds not named; None refuses them, since unknown is not zero.
    """

    kinds: Mapping[str, ElementwiseFlop]
    default: ElementwiseFlop | None = None

    def of(self, kind: str, conventions: str) -> ElementwiseFlop:
        """Return the answer for a kind.

        Raises:
            ConventionError: the kind is not answered.
        """
        answer = self.kinds.get(kind, self.default)
        if answer is None:
            raise ConventionError(
                f"conventions {conventions!r} do not say what {kind!r} costs: "
                f"answered are {', '.join(sorted(self.kinds))}"
            )
        return answer


@dataclass(frozen=True)
class Charge:
    """Bytes charged to one rank for a collective, a function of (message, ranks).

    Args:
        name: of the answer.
        rule: for every collective not named in `kinds`.
        kinds: exceptions by collective.
    """

    name: str
    rule: Lambda
    kinds: Mapping[str, Lambda] = field(default_factory=dict)

    def __call__(self, kind: str, size: Expr, ranks: Expr) -> Expr:
        """Charge a message [byte]; one rank is never charged."""
        if ranks == 1:
            return Integer(0)
        rule = self.kinds.get(kind, self.rule)
        charged: Expr = rule(size, ranks)
        vanishes_alone = rule(size, Integer(1)) == 0
        return charged if vanishes_alone else charged * Active(ranks)


class Saved(StrEnum):
    """What is kept of an input that was gathered for use."""

    GATHERED = "gathered"
    SHARD = "shard"


class BackwardTraffic(StrEnum):
    """What the backward pass of one op moves to and from memory."""

    PER_PRODUCT = "per product"
    ONCE = "each tensor once"


class Reread(StrEnum):
    """Which weights of an op its backward pass reads."""

    NEEDED = "those its gradients need"
    ALL = "all"
    NONE = "none"


class Uneven(StrEnum):
    """The local size of an axis that its degree does not divide."""

    QUOTIENT = "exact quotient"
    CEILING = "ceiling"


@dataclass(frozen=True)
class Conventions:
    """One answer per counting question.

    Args:
        name: of the preset.
        meaning: one line.
        source: key of a reference.
        contraction: FLOP per result element of a sum of n products.
        summation: FLOP per result element of a sum of n terms (bias gradients).
        addition: FLOP per element of an added bias.
        elementwise: FLOP of elementwise ops.
        attention_pairs: (query, key) pairs computed, of l queries and t keys.
        charge: bytes charged to a collective.
        reduction_additions: FLOP per element of a reduced message over p ranks.
        sizes: bytes of one element by role.
        saved: what is kept of a gathered input.
        backward_traffic: what backward moves.
        reread: which weights backward reads, by op kind; "needed" where not named.
        uneven: local sizes that do not divide.
    """

    name: str
    meaning: str
    source: str
    contraction: Lambda
    summation: Lambda
    addition: Expr
    elementwise: Elementwise
    attention_pairs: Lambda
    charge: Charge
    reduction_additions: Lambda
    sizes: ElementSizes
    saved: Saved = Saved.SHARD
    backward_traffic: BackwardTraffic = BackwardTraffic.PER_PRODUCT
    reread: Mapping[str, Reread] = field(default_factory=dict)
    uneven: Uneven = Uneven.QUOTIENT


# Answers: FLOP of a contraction of n terms.
MULTIPLY_ADD_EXACT = Lambda(n, 2 * n - 1)
MULTIPLY_ADD_PAIR = Lambda(n, 2 * n)
MULTIPLY_ACCUMULATE = Lambda(n, n)
SUM_EXACT = Lambda(n, n - 1)
SUM_ROUNDED = Lambda(n, n)
NOT_COUNTED = Lambda(n, Integer(0))

# Answers: pairs of the attention mask.
FULL_SQUARE = Lambda((l, t), l * t)
CAUSAL = Lambda((l, t), l * (2 * t - l + 1) / 2)
"""Query i of l sees the keys up to its own position, counted from the end of t keys."""

# Answers: additions of a reduction over p ranks, per element of the full message.
ADDITIONS_OF_RING = Lambda(p, (p - 1) / p)
NO_ADDITIONS = Lambda(p, Integer(0))

# Answers: bytes of a collective.
WHOLE_MESSAGE = Charge("whole message", Lambda((message, p), message))
RING = Charge(
    "ring, bytes sent by one rank",
    Lambda((message, p), message * (p - 1) / p),
    {
        "all-reduce": Lambda((message, p), 2 * message * (p - 1) / p),
        "send-receive": Lambda((message, p), message),
    },
)


def _flop(forward: Expr | int, backward: Expr | int) -> ElementwiseFlop:
    return ElementwiseFlop(Lambda(n, forward), Lambda(n, backward))


OPERATIONS = Elementwise(
    {
        # maximum n-1, subtract n, exp n, sum n-1, divide n | y dy n, sum n-1, subtract n, times y n
        "softmax": _flop(5 * n - 2, 4 * n - 1),
        # softmax as above without the division, log and subtraction | subtract, scale
        "cross_entropy": _flop(4 * n + 1, 2 * n),
        # mean, variance (3), normalise (2), affine (2) | as counted by subramanian-2024
        "layer_norm": _flop(9 * n, 13 * n - 4),
        # square, sum, scale by the reciprocal, affine | as layer_norm without the mean's part
        "rms_norm": _flop(4 * n, 9 * n - 2),
        "gelu": _flop(8 * n, 13 * n),
        "relu": _flop(n, n),
        "silu": _flop(5 * n, 9 * n),
        "tanh": _flop(n, 3 * n),
        "dropout": _flop(n, n),
        "add": _flop(n, 0),
        "mul": _flop(n, 2 * n),
        "scale": _flop(n, n),
        "embedding": _flop(0, n),
    }
)
"""One per addition, multiplication, comparison or transcendental function."""

MATMUL_ALONE = Elementwise({}, default=_flop(0, 0))
"""Elementwise ops are left out of the count."""

TABLES = Elementwise(
    {
        "softmax": _flop(3 * n - 1, 4 * n - 1),
        "layer_norm": _flop(9 * n, 13 * n - 4),
        "activation": _flop(n, n),
        "dropout": _flop(n, n),
    }
)
"""Softmax: exp, sum, divide; an activation function is one operation."""

MIXED = ElementSizes(value=Integer(2))
"""Two-byte values, weights and gradients, one-byte masks, four-byte statistics."""

EXACT = Conventions(
    name="exact",
    meaning="every multiplication and addition once, as a loop would count them",
    source="definition",
    contraction=MULTIPLY_ADD_EXACT,
    summation=SUM_EXACT,
    addition=Integer(1),
    elementwise=OPERATIONS,
    attention_pairs=FULL_SQUARE,
    charge=RING,
    reduction_additions=ADDITIONS_OF_RING,
    sizes=MIXED,
    saved=Saved.GATHERED,
)

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

MODEL_FLOP = Conventions(
    name="model-flop",
    meaning="2 FLOP per multiply-accumulate of matrix products alone",
    source="narayanan-2021",
    contraction=MULTIPLY_ADD_PAIR,
    summation=NOT_COUNTED,
    addition=Integer(0),
    elementwise=MATMUL_ALONE,
    attention_pairs=FULL_SQUARE,
    charge=RING,
    reduction_additions=NO_ADDITIONS,
    sizes=MIXED,
)

MEGATRON_2022 = Conventions(
    name="megatron-2022",
    meaning="16-bit activations, 1-byte masks, statistics neglected, matrix products alone",
    source="korthikanti-2022",
    contraction=MULTIPLY_ADD_PAIR,
    summation=NOT_COUNTED,
    addition=Integer(0),
    elementwise=MATMUL_ALONE,
    attention_pairs=FULL_SQUARE,
    charge=RING,
    reduction_additions=NO_ADDITIONS,
    sizes=ElementSizes(value=Integer(2), statistic=Integer(0), index=Integer(0)),
    saved=Saved.SHARD,
)

_TABLE_SIZES = ElementSizes(
    value=s, mask=mu, statistic=Integer(0), single=s, weight=s, weight_gradient=s
)

TRANSFORMER_TABLES_AS_PRINTED = Conventions(
    name="transformer-tables-as-printed",
    meaning="2k-1 FLOP, whole messages, each backward tensor once",
    source="subramanian-2024",
    contraction=MULTIPLY_ADD_EXACT,
    summation=SUM_ROUNDED,
    addition=Integer(1),
    elementwise=TABLES,
    attention_pairs=FULL_SQUARE,
    charge=WHOLE_MESSAGE,
    reduction_additions=NO_ADDITIONS,
    sizes=_TABLE_SIZES,
    saved=Saved.GATHERED,
    backward_traffic=BackwardTraffic.ONCE,
    reread={"einsum": Reread.ALL, "layer_norm": Reread.NONE},
)

_PRESETS = (EXACT, STANDARD, MODEL_FLOP, MEGATRON_2022, TRANSFORMER_TABLES_AS_PRINTED)

PRESETS: dict[str, Conventions] = {preset.name: preset for preset in _PRESETS}
"""Every preset by name."""


def conventions(name: str) -> Conventions:
    """Return a preset by name.

    Raises:
        UnknownNameError: no such preset; the closest are offered.
    """
    if name not in PRESETS:
        raise UnknownNameError(unknown("conventions", name, PRESETS))
    return PRESETS[name]
