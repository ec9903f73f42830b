"""Counting questions and the types of their answers.

Tools disagree about definitions before they disagree about numbers, so no answer is built in:
a preset is passed to every cost and travels with the table.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from sympy import Expr, Integer, Lambda

from symbolic_cost.algebra import applied
from symbolic_cost.checking import checked
from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import ConventionError
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, l, n, t


class Role(StrEnum):
    """What the elements of a tensor hold; decides their size."""

    VALUE = "value"
    FACTOR = "factor"
    SINGLE = "single"
    CAST = "cast"
    MASK = "mask"
    STATISTIC = "statistic"
    MOMENT = "moment"
    INDEX = "index"
    BUFFER = "buffer"
    WEIGHT = "weight"
    WEIGHT_GRADIENT = "weight_gradient"


@dataclass(frozen=True, slots=True)
class ElementSizes:
    """Bytes of one element by role.

    Args:
        value: activations and their gradients.
        factor: copies of values that products with hidden matrices keep for those of backward;
            they keep the values themselves unless given.
        statistic: saved statistics of rows (mean, reciprocal deviation, log-sum-exp).
        moment: saved mean and reciprocal deviation of a layer norm; as statistic unless given.
        buffer: constants that belong to the model, such as the numbers of positions.
        single: copies kept in single precision.
        cast: such copies of values that are none where values are in single precision themselves.
        weight: weights used in computation.
        others: of these, all but hidden matrices; as weight unless given.
        gathered: weights as they move between ranks; as weight unless given.
        reduced: their gradients as they move; as weight_gradient unless given.
    """

    value: Expr
    mask: Expr = Integer(1)
    statistic: Expr = Integer(4)
    index: Expr = Integer(8)
    single: Expr = Integer(4)
    weight: Expr = Integer(2)
    weight_gradient: Expr = Integer(2)
    cast: Expr = Integer(4)
    moment: Expr | None = None
    buffer: Expr = Integer(0)
    gathered: Expr | None = None
    reduced: Expr | None = None
    others: Expr | None = None
    factor: Expr | None = None

    def moved(self, role: Role) -> Expr:
        """Return the bytes of one element between ranks."""
        sizes = {Role.WEIGHT: self.gathered, Role.WEIGHT_GRADIENT: self.reduced}
        size = sizes.get(role)
        return self.of(role) if size is None else size

    def of(self, role: Role) -> Expr:
        """Return the bytes of one element."""
        size: Expr | None = getattr(self, role.value)
        unless = self.value if role is Role.FACTOR else self.statistic
        return unless if size is None else size


@dataclass(frozen=True, slots=True)
class ElementwiseFlop:
    """FLOP of one row of n elements, forward and backward; n is 1 where nothing is summed.

    Args:
        reason: what is counted, forward | backward.
        source: of the numbers; that of the conventions if empty.
    """

    forward: Lambda
    backward: Lambda
    reason: str = field(default="", compare=False)
    source: str = field(default="", compare=False)


@dataclass(frozen=True)
class Elementwise:
    """FLOP of every kind of elementwise op.

    Args:
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
        charged = self.of(kind, size, ranks)
        vanishes_alone = self.of(kind, size, Integer(1)) == 0
        return charged if vanishes_alone else charged * Active(ranks)

    def of(self, kind: str, size: Expr, ranks: Expr) -> Expr:
        """Charge a message [byte] to one of several ranks."""
        return applied(self.kinds.get(kind, self.rule), size, ranks)


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


FULL_SQUARE = Lambda((l, t), l * t)
"""Every query meets every key."""

WITHIN_GROUPS = Lambda(n, Integer(1))
"""The weight gradient of a convolution of n groups is counted once."""


@checked
@dataclass(frozen=True)
class Conventions(NotebookTable):
    """One answer per counting question.

    Args:
        contraction: FLOP per result element of a sum of n products.
        summation: FLOP per result element of a sum of n terms (bias gradients).
        addition: FLOP per element of an added bias.
        elementwise: FLOP of elementwise ops.
        attention_pairs: (query, key) pairs computed, of l queries and t keys under a causal mask.
        charge: bytes charged to a collective.
        reduction_additions: FLOP per element of a reduced message over p ranks.
        sizes: bytes of one element by role.
        saved: what is kept of a gathered input.
        reread: which weights backward reads, by op kind; "needed" where not named.
        grouped_gradient: how often the weight gradient of a convolution of n groups is counted.
        unmasked_pairs: the same without a mask.
        window_pairs: the same where a query sees no more keys than a window W; as without a window
            unless given.
        contraction_kinds: exceptions to `contraction` by op kind.
        addition_kinds: exceptions to `addition` by op kind.
        called_addition: FLOP per element of a bias itself where product and bias are one call.
        unseen: op kinds of which nothing is counted.
        fused_recompute: whether what a fused kernel computes again in backward is counted.
        kept_as: elementwise functions that save for backward what another one does.
        joined: names of ops of one scope that are one kernel, group by group; what one of them
            hands to another alone is not kept.
        remade: ends of paths of ops that are one kernel, group by group, whose backward makes all
            values inside of it again.
        absorbed: ends of paths of ops that run inside the kernels of their neighbours: one that
            scales the rows of a product scales those of its input, and keeps no product.
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
    grouped_gradient: Lambda = WITHIN_GROUPS
    unmasked_pairs: Lambda = FULL_SQUARE
    window_pairs: Lambda | None = None
    fused_recompute: bool = True
    contraction_kinds: Mapping[str, Lambda] = field(default_factory=dict)
    addition_kinds: Mapping[str, Expr] = field(default_factory=dict)
    called_addition: Expr = Integer(0)
    unseen: frozenset[str] = frozenset()
    kept_as: Mapping[str, str] = field(default_factory=dict)
    joined: tuple[tuple[str, ...], ...] = ()
    remade: tuple[tuple[str, ...], ...] = ()
    absorbed: tuple[str, ...] = ()

    def contraction_of(self, kind: str) -> Lambda:
        """Return the FLOP per result element of a sum of n products in an op kind."""
        return self.contraction_kinds.get(kind, self.contraction)

    def addition_of(self, kind: str) -> Expr:
        """Return the FLOP per element of a bias added in an op kind."""
        return self.addition_kinds.get(kind, self.addition)
