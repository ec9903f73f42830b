"""Times of the parts: cell, softmax, projection, embedding, and the gradients of their weights."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from sympy import Add, Expr, Integer, Mul, Piecewise, Rational, ceiling

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.conventions.questions import ElementSizes
from symbolic_cost.ledger import CollectiveKind, Phase, Quantity
from symbolic_cost.ops.declare import Model, pointwise
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import Einsum, einsum
from symbolic_cost.ops.op import Contraction
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.update import TRAFFIC
from symbolic_cost.published.lstm_roofline.definitions import (
    IB,
    LINK,
    RING,
    ZERO,
    Definitions,
    Sizes,
    W,
)
from symbolic_cost.published.lstm_roofline.inputs import CR, NONE, RC, term
from symbolic_cost.symbols import B, V, alpha_m, dp, e, l, named, s, t_k

b = named("batch")
GATES = term("model", "num_gates")
WIDTH = GATES * e
P = term("model", "projection")
TOKENS = b * l
NONLINEAR = Rational(5, 4)
"""Nonlinear functions per gate: one more than there are gates, of four."""


class Product(NamedTuple):
    """A part whose matrix product m k by k n may be spread over nodes.

    `products` are the names of the forward product, the gradient of the input and that of the
    weight, which `op` declares over the axes m, k and n of `sizes`.
    """

    name: str
    products: Mapping[Phase, str]
    op: Einsum
    sizes: dict[str, Expr]

    @property
    def nodes(self) -> tuple[Expr, Expr]:
        """Nodes along both dimensions; the first alone counts for CR."""
        first, second = (term("schedule", f"kp_{self.name}_dim{place}") for place in (1, 2))
        return first, second

    @property
    def weights(self) -> Expr:
        """Elements of the weights."""
        return Add(*(Mul(*(self.sizes[axis] for axis in w.axes)) for w in self.op.weights))

    def product(self, phase: Phase, kind: int) -> Sizes:
        """Return rows, length of the sum and columns of a product on one node."""
        kernel = next(kernel for kernel in self.op.kernels() if kernel.phase is phase)
        contraction = next(work for work in kernel.work if isinstance(work, Contraction))
        (rows, columns), (summed,) = contraction.result, contraction.summed
        split = {axis: self.nodes[place] for axis, place in _SPLIT[kind][phase].items()}
        m, k, n = (self.sizes[axis] / split.get(axis, 1) for axis in (rows, summed, columns))
        return m, k, n


_PHASES = (Phase.FORWARD, Phase.BACKWARD_INPUT, Phase.BACKWARD_WEIGHT)
_SPLIT: Mapping[int, Mapping[Phase, Mapping[str, int]]] = {
    NONE: {phase: {} for phase in _PHASES},
    CR: {phase: {"k": 0} for phase in _PHASES},
    RC: {
        Phase.FORWARD: {"m": 0, "n": 1},
        Phase.BACKWARD_INPUT: {"m": 0, "k": 1},
        Phase.BACKWARD_WEIGHT: {"k": 0, "n": 1},
    },
}
"""Which dimension of the nodes splits an axis, by kind and product."""


def _part(name: str, products: str, pattern: str, *sizes: Expr) -> Product:
    names = dict(zip(_PHASES, products.split(), strict=True))
    return Product(name, names, einsum(name, pattern), dict(zip("mkn", sizes, strict=True)))


_BIASED = "x[m k], *w[k n] + *bias[n] -> y[m n]"
HIDDEN = _part("hidden", "Cf Cb_act Cb_wt", _BIASED, b, 2 * e, WIDTH)
SOFTMAX = _part("softmax", "softmax_f softmax_b_act softmax_b_wt", _BIASED, TOKENS, e, V)
PROJECTION = _part(
    "projection",
    "projection projection_b_act projection_b_wt",
    "x[m k], *w[n k] -> y[m n]",
    *(TOKENS, e, P),
)


def parts(to: Definitions) -> None:
    """Define the times of all parts [s]."""
    to.define("batch", ceiling(B / dp))
    to.define("sum.Cf", _forward(to, HIDDEN) + _cell(to, "f"))
    to.define("sum.Cb", _backward(to, HIDDEN) + _cell(to, "b"))
    exchanged = to.exchange("exchange.R", (2 * e, WIDTH), dp, partial=False, sums=True)
    to.define("sum.R", exchanged + _gradient(to, "Hidden", 2 * e * WIDTH))
    kind = to.structure.kind("softmax")
    slip = kind != NONE and to.keeps("sum of the softmax")
    forward, backward = (
        SOFTMAX._replace(sizes=SOFTMAX.sizes | {"k": P if narrow else e})
        for narrow in (slip, slip and kind == CR)
    )
    to.define("sum.softmax_f", _forward(to, forward) + _words(to, "f"))
    to.define("sum.softmax_b", _backward(to, backward) + _words(to, "b"))
    _gradient(to, "Softmax", e * V)
    _embedding(to)
    once = to.define("sum.projection_f", _forward(to, PROJECTION))
    again = _backward(to, PROJECTION)
    repeats = to.structure.kind("projection") == RC and to.keeps("projection as forward")
    to.define("sum.projection_b", once if repeats else again)
    _gradient(to, "Projection", e * P)


def _gemm(to: Definitions, part: Product, phase: Phase) -> Expr:
    sizes = part.product(phase, to.structure.kind(part.name))
    return to.gemm(part.products[phase], sizes)


def _forward(to: Definitions, part: Product) -> Expr:
    took = _gemm(to, part, Phase.FORWARD)
    m, n = part.sizes["m"], part.sizes["n"]
    (first, second), name = part.nodes, f"exchange.{part.products[Phase.FORWARD]}"
    kind = to.structure.kind(part.name)
    if kind == CR:
        took += to.exchange(name, (m, n), first, partial=True, sums=True)
    if kind == RC:
        took += to.exchange(name, (m / first, n), second, partial=False)
    return took


def _backward(to: Definitions, part: Product) -> Expr:
    took = _gemm(to, part, Phase.BACKWARD_INPUT) + _gemm(to, part, Phase.BACKWARD_WEIGHT)
    kind, (first, second) = to.structure.kind(part.name), part.nodes
    (m, k, n), gather = part.sizes.values(), to.exchange
    act, wt = (f"exchange.{part.products[phase]}" for phase in _PHASES[1:])
    if kind == CR:
        gathered = gather(act, (m, n), first, partial=False)
        took += gathered * (2 if to.keeps("gather counted twice") else 1)
    if kind == RC:
        took += gather(f"{wt}.input", (k, m), first, partial=True)
        took += 2 * gather(f"{wt}.result", (m, n / second), first, partial=False)
        took += gather(f"{act}.result", (m / first, n), second, partial=False)
        took += gather(f"{act}.weight", (k, n), second, partial=True)
        took += gather(f"{act}.input", (m / first, k), second, partial=False)
    return took


_KERNELS = Model(
    "elementwise",
    (
        fragment("one", (pointwise("op", "x[b e] -> y[b e]", "tanh"),)),
        fragment("two", (pointwise("op", "x[b e], z[b e] -> y[b e]", "add"),)),
    ),
    {"b": Integer(1), "e": Integer(1)},
)
"""A kernel of one operand and one of two, on one element."""


@cache
def _elementwise(one: Expr | int, two: Expr | int) -> tuple[Expr, Expr]:
    """Return FLOP and bytes per element of so many kernels of one operand and of two.

    A product, a nonlinear function and a sum, one and two, are 3 FLOP and read and write 8 values.
    """
    rules = replace(STANDARD, sizes=ElementSizes(value=s))
    table = cost(_KERNELS, rules).select(phase=Phase.FORWARD)
    times = {"one": one, "two": two}
    flop, traffic = (
        Add(*(times[row.part] * row.expr for row in table if row.quantity in quantities))
        for quantities in ((Quantity.FLOP,), TRAFFIC)
    )
    return flop, traffic


def _cell(to: Definitions, way: str) -> Expr:
    """Define the elementwise work of the cell, one layer and step: product, function, sum."""
    name, kind = f"point.Hidden.{way}", to.structure.kind("hidden")
    if kind != NONE:
        return _spread_cell(to, name, kind, way)
    gates = GATES if way == "f" or not to.keeps("gates of the backward cell") else 1
    flop, traffic = (each * b * e * gates for each in _elementwise(NONLINEAR, 2))
    if way == "b":
        added, moved = (each * 2 * e * WIDTH for each in _elementwise(0, 1))
        flop += added
        traffic += moved / (s if to.keeps("bytes of weight sums") else 1)
    return to.work(name, flop, traffic, launches=15)


def _spread_cell(to: Definitions, name: str, kind: int, way: str) -> Expr:
    first, second = HIDDEN.nodes
    rows, columns = (b, WIDTH / first) if kind == CR else (b / first, WIDTH / second)
    moved = 3 * (b if way == "b" else rows) * columns
    element = 1 if to.keeps("bytes of gate exchanges") else s
    flop, traffic = (each * rows * columns for each in _elementwise(1, 3))
    return to.work(name, flop, traffic, launches=1, moving=element * moved / IB)


def _words(to: Definitions, way: str) -> Expr:
    """Define the elementwise work of the softmax: exp, sum and quotient; backward two more."""
    name, kind = f"point.Softmax.{way}", to.structure.kind("softmax")
    first, second = SOFTMAX.nodes
    forward = way == "f"
    each = _elementwise(2 if forward else 4, 1)
    if kind == NONE:
        flop, traffic = (one * TOKENS * V for one in each)
        # The first term of a sum is not added to anything.
        return to.work(name, flop - (TOKENS if forward else 0), traffic, launches=4)
    rows, columns = (TOKENS, V / first) if kind == CR else (TOKENS / first, V / second)
    sums = s * rows * (first if kind == CR else second) / IB
    flop, traffic = (one * rows * columns for one in each)
    return to.work(name, flop, traffic, launches=1, moving=sums if forward else ZERO)


def _gradient(to: Definitions, name: str, weights: Expr) -> Expr:
    """Define the times of clipping and applying the gradient of some weights."""
    clip = to.work(f"grad.{name}.clip", (2 + 2) * weights, (1 + 2) * s * weights)
    applied = to.work(f"grad.{name}.apply", *(each * weights for each in _elementwise(2, 1)))
    return to.define(f"grad.{name}.time", clip + applied)


def _embedding(to: Definitions) -> None:
    rows = s * TOKENS * e
    traffic = [to.define(f"embedding.{way}.bytes", 2 * rows) for way in "fb"]
    looked_up, added = (moved / W + alpha_m + t_k for moved in traffic)
    sent = RING.time(CollectiveKind.SEND_RECEIVE, rows, dp, LINK)
    exchanged = Piecewise((ZERO, dp <= 1), (2 * (dp - 1) * sent, True))
    to.define("sum.embedding_f", looked_up)
    to.define("sum.embedding_b", added + exchanged)
