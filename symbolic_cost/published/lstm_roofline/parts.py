"""Times of the parts: cell, softmax, projection, embedding, and the gradients of their weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sympy import Expr, Piecewise, Rational, ceiling

from symbolic_cost.published.lstm_roofline.definitions import IB, ZERO, Definitions, Sizes, W
from symbolic_cost.published.lstm_roofline.inputs import CR, RC, term
from symbolic_cost.symbols import B, V, alpha, alpha_m, dp, e, l, named, s, t_k

b = named("batch")
GATES = term("model", "num_gates")
WIDTH = GATES * e
P = term("model", "projection")
TOKENS = b * l
NONLINEAR = Rational(5, 4)
"""Nonlinear functions per gate: one more than there are gates, of four."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part whose matrix product m k by k n may be spread over nodes.

    Args:
        name: of the part.
        forward: name of its product.
        by_weight: name of the product of the weight's gradient.
        by_input: name of the product of the input's gradient.
        turned: whether the product of the weight's gradient is n m by m k.
    """

    name: str
    forward: str
    by_weight: str
    by_input: str
    turned: bool = False

    @property
    def nodes(self) -> tuple[Expr, Expr]:
        """Nodes along both dimensions; the first alone counts for CR."""
        first, second = (term("schedule", f"kp_{self.name}_dim{place}") for place in (1, 2))
        return first, second


HIDDEN = Part("hidden", "Cf", "Cb_wt", "Cb_act")
SOFTMAX = Part("softmax", "softmax_f", "softmax_b_wt", "softmax_b_act")
PROJECTION = Part("projection", "projection", "projection_b_wt", "projection_b_act", turned=True)


def parts(found: Definitions) -> None:
    """Define the times of all parts [s]."""
    found.define("batch", ceiling(B / dp))
    found.define("sum.Cf", _forward(found, HIDDEN, (b, 2 * e, WIDTH)) + _cell(found, "f"))
    found.define("sum.Cb", _backward(found, HIDDEN, (b, 2 * e, WIDTH)) + _cell(found, "b"))
    exchanged = found.reduction("exchange.R", (2 * e, WIDTH), dp, partial=False)
    found.define("sum.R", exchanged + _gradient(found, "Hidden", 2 * e * WIDTH))
    forward, backward = _summed_width(found)
    found.define(
        "sum.softmax_f", _forward(found, SOFTMAX, (TOKENS, forward, V)) + _words(found, "f")
    )
    found.define(
        "sum.softmax_b", _backward(found, SOFTMAX, (TOKENS, backward, V)) + _words(found, "b")
    )
    _gradient(found, "Softmax", e * V)
    _embedding(found)
    forward = found.define("sum.projection_f", _forward(found, PROJECTION, (TOKENS, e, P)))
    backward = _backward(found, PROJECTION, (TOKENS, e, P))
    repeats = found.structure.kind("projection") == RC and found.keeps("projection as forward")
    found.define("sum.projection_b", forward if repeats else backward)
    _gradient(found, "Projection", e * P)


def _summed_width(found: Definitions) -> tuple[Expr, Expr]:
    """Return the length of the softmax's sum, forward and backward."""
    kind = found.structure.kind("softmax")
    if not found.keeps("sum of the softmax") or kind not in {CR, RC}:
        return e, e
    return P, P if kind == CR else e


# ---------------------------------------------------------------------- products over nodes


def _forward(found: Definitions, part: Part, sizes: Sizes) -> Expr:
    m, k, n = sizes
    first, second = part.nodes
    name = f"exchange.{part.forward}"
    kind = found.structure.kind(part.name)
    if kind == CR:
        took = found.gemm(part.forward, (m, k / first, n))
        return took + found.reduction(name, (m, n), first, partial=True)
    if kind == RC:
        took = found.gemm(part.forward, (m / first, k, n / second))
        return took + found.gather(name, (m / first, n), second, partial=False)
    return found.gemm(part.forward, sizes)


def _backward(found: Definitions, part: Part, sizes: Sizes) -> Expr:
    m, k, n = sizes
    first, second = part.nodes
    kind = found.structure.kind(part.name)
    if kind == CR:
        products = _gradients(found, part, (k / first, m, n), (m, n, k / first))
        gathered = found.gather(f"exchange.{part.by_input}", (m, n), first, partial=False)
        return products + gathered * (2 if found.keeps("gather counted twice") else 1)
    if kind == RC:
        by_weight = (k / first, m, n / second)
        products = _gradients(found, part, by_weight, (m / first, n, k / second))
        return products + sum(_gathers(found, part, sizes), ZERO)
    by_weight = (n, m, k) if part.turned else (k, m, n)
    return _gradients(found, part, by_weight, (m, n, k))


def _gradients(found: Definitions, part: Part, by_weight: Sizes, by_input: Sizes) -> Expr:
    return found.gemm(part.by_input, by_input) + found.gemm(part.by_weight, by_weight)


def _gathers(found: Definitions, part: Part, sizes: Sizes) -> Iterator[Expr]:
    """Yield the times of what the gradients of a row-column product gather."""
    m, k, n = sizes
    first, second = part.nodes
    wt, act = f"exchange.{part.by_weight}", f"exchange.{part.by_input}"
    yield found.gather(f"{wt}.input", (k, m), first, partial=True)
    yield 2 * found.gather(f"{wt}.result", (m, n / second), first, partial=False)
    yield found.gather(f"{act}.result", (m / first, n), second, partial=False)
    yield found.gather(f"{act}.weight", (k, n), second, partial=True)
    yield found.gather(f"{act}.input", (m / first, k), second, partial=False)


# ---------------------------------------------------------------------- elementwise work


def _cell(found: Definitions, way: str) -> Expr:
    """Define the elementwise work of the cell, one layer and step."""
    name, kind = f"point.Hidden.{way}", found.structure.kind("hidden")
    if kind in {CR, RC}:
        return _spread_cell(found, name, kind, way)
    gates = GATES if way == "f" or not found.keeps("gates of the backward cell") else 1
    flop = b * e * gates * (1 + NONLINEAR + 1)
    traffic = s * b * e * gates * (3 * 2 + 2 * NONLINEAR)
    if way == "b":
        sums = 2 * e * WIDTH
        flop += sums
        traffic += 3 * sums * (1 if found.keeps("bytes of weight sums") else s)
    return found.work(name, flop, traffic, launches=15)


def _spread_cell(found: Definitions, name: str, kind: int, way: str) -> Expr:
    first, second = HIDDEN.nodes
    rows, columns = (b, WIDTH / first) if kind == CR else (b / first, WIDTH / second)
    moved = 3 * (b if way == "b" else rows) * columns
    element = 1 if found.keeps("bytes of gate exchanges") else s
    work = rows * columns
    return found.work(name, 4 * work, 11 * s * work, launches=1, moving=element * moved / IB)


def _words(found: Definitions, way: str) -> Expr:
    """Define the elementwise work of the softmax."""
    name, kind = f"point.Softmax.{way}", found.structure.kind("softmax")
    first, second = SOFTMAX.nodes
    forward = way == "f"
    if kind not in {CR, RC}:
        flop = TOKENS * (3 * V - 1) if forward else 5 * TOKENS * V
        return found.work(name, flop, (7 if forward else 11) * s * TOKENS * V, launches=4)
    rows, columns = (TOKENS, V / first) if kind == CR else (TOKENS / first, V / second)
    sums = s * rows * (first if kind == CR else second) / IB
    work = rows * columns
    flop, traffic = (3, 7) if forward else (5, 11)
    moving = sums if forward else ZERO
    return found.work(name, flop * work, traffic * s * work, launches=1, moving=moving)


def _gradient(found: Definitions, name: str, weights: Expr) -> Expr:
    """Define the times of clipping and applying the gradient of some weights."""
    clip = found.work(f"grad.{name}.clip", (2 + 2) * weights, (1 + 2) * s * weights)
    applied = found.work(f"grad.{name}.apply", 3 * weights, (2 + 3 + 2) * s * weights)
    return found.define(f"grad.{name}.time", clip + applied)


def _embedding(found: Definitions) -> None:
    rows = s * TOKENS * e
    traffic = [found.define(f"embedding.{way}.bytes", 2 * rows) for way in "fb"]
    looked_up, added = (moved / W + alpha_m + t_k for moved in traffic)
    exchanged = Piecewise((ZERO, dp <= 1), ((rows / IB + alpha) * 2 * (dp - 1), True))
    found.define("sum.embedding_f", looked_up)
    found.define("sum.embedding_b", added + exchanged)
