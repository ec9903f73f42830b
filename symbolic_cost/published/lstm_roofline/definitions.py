"""The model's definitions in the making: rooflines, matrix products and exchanges."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, Integer, Piecewise, ceiling

from symbolic_cost.extrema import Min
from symbolic_cost.published.lstm_roofline.inputs import Structure, term
from symbolic_cost.published.lstm_roofline.tiles import reloads
from symbolic_cost.symbols import alpha, alpha_m, named, s, t_k
from symbolic_cost.systems.rooflines import ROOFLINES

ZERO = Integer(0)
ROOFLINE = ROOFLINES["ridge"]

F = named("rate.core")
W = named("rate.memory")
W_L2 = named("rate.L2")
IB = named("rate.IB")
RIDGE = named("ridge")
TILES = {"gmem": named("tile.L2"), "l2mem": named("tile.shared_mem")}
"""Side of the tiles in the memory behind which traffic is counted."""

SMALL = 128
"""Exchanges below this size are broadcast [byte]."""

Sizes = tuple[Expr, Expr, Expr]
"""A product m k by k n as (m, k, n)."""


class Definitions(dict[str, Expr]):
    """Definitions in order.

    Args:
        structure: what decides which there are.
    """

    def __init__(self, structure: Structure) -> None:
        super().__init__()
        self.structure = structure

    def define(self, name: str, expr: Expr) -> Expr:
        """Define a name and return its symbol."""
        self[name] = expr
        return named(name)

    def define_all(self, prefix: str, exprs: Mapping[str, Expr]) -> None:
        """Define names behind a prefix."""
        for name, expr in exprs.items():
            self.define(f"{prefix}.{name}", expr)

    def keeps(self, slip: str) -> bool:
        """Say whether a slip is kept."""
        return slip in self.structure.slips

    # ------------------------------------------------------------------ rooflines

    def roofline(
        self, name: str, flop: Expr, traffic: Expr, inner: Expr = ZERO, launch: Expr = ZERO
    ) -> Expr:
        """Define the time of work [s], and its intensities.

        Args:
            name: of the work.
            flop: computed [FLOP].
            traffic: through the outer memory [byte].
            inner: time of the traffic through the inner one [s].
            launch: of its kernels [s].
        """
        self.define(f"{name}.inflection_point", RIDGE)
        self.define(f"{name}.comp_int", flop / traffic)
        took = ROOFLINE.time(flop / F, traffic / W, (inner,), latency=alpha_m, launch=launch)
        return self.define(f"{name}.time", took)

    def work(
        self, name: str, flop: Expr, traffic: Expr, launches: int = 0, moving: Expr = ZERO
    ) -> Expr:
        """Define FLOP, bytes and time of elementwise work [s].

        Args:
            name: of the work.
            flop: computed [FLOP].
            traffic: read and written [byte].
            launches: of kernels.
            moving: time of what is exchanged [s].
        """
        flop = self.define(f"{name}.flop", flop)
        traffic = self.define(f"{name}.bytes", traffic)
        return self.roofline(name, flop, traffic, launch=launches * t_k + moving)

    # ------------------------------------------------------------------ products

    def gemm(self, name: str, sizes: Sizes) -> Expr:
        """Define everything of a matrix product and return its time in the faster orientation.

        Args:
            name: of the product.
            sizes: m, k, n.
        """
        m, k, n = (
            self.define(f"gemm.{name}.{axis}", size)
            for axis, size in zip("mkn", sizes, strict=True)
        )
        plain = self._oriented(f"gemm.{name}.AB", (m, k, n))
        turned = self._oriented(f"gemm.{name}.BA", (n, k, m))
        chosen = plain["time"] <= turned["time"]
        for cost in ("flop", "gmem_bytes", "l2mem_bytes"):
            choice = Piecewise((plain[cost], chosen), (turned[cost], True))
            self.define(f"gemm.{name}.{cost}", choice)
        return self.define(f"gemm.{name}.time", Min(plain["time"], turned["time"]))

    def _oriented(self, name: str, sizes: Sizes) -> dict[str, Expr]:
        m, k, n = sizes
        moved = {level: self._traffic(f"{name}.{level}", level, sizes) for level in TILES}
        flop = 2 * m * k * n
        if self.structure.algorithmic:
            moved["l2mem"] = ZERO
        else:
            once, per_tile = (
                term("code_constants", f"epilogue_flop{end}") for end in ("", "_per_tile")
            )
            flop += m * n * (once + per_tile * ceiling(k / TILES["l2mem"]))
        flop = self.define(f"{name}.flop", flop)
        inner = Piecewise((ZERO, W_L2 <= 0), (moved["l2mem"] / W_L2, True))
        inner = self.define(f"{name}.l2_time", inner)
        return {
            "flop": flop,
            "gmem_bytes": moved["gmem"],
            "l2mem_bytes": moved["l2mem"],
            "time": self.roofline(name, flop, moved["gmem"], inner, launch=t_k),
        }

    def _traffic(self, name: str, level: str, sizes: Sizes) -> Expr:
        side = ZERO if self.structure.algorithmic else TILES[level]
        left, right = reloads(side, *sizes)
        left, _, right = (
            self.define(f"{name}.reload_{matrices}", times)
            for matrices, times in (("AB", left), ("AC", Integer(1)), ("BC", right))
        )
        m, k, n = sizes
        return self.define(f"{name}_bytes", s * (m * k * left + k * n * right + m * n))

    # ------------------------------------------------------------------ exchanges

    def reduction(self, name: str, sizes: tuple[Expr, Expr], q: Expr, *, partial: bool) -> Expr:
        """Define the time of adding up d0 d1 elements over q nodes [s].

        Args:
            name: of the exchange.
            sizes: d0, d1.
            q: nodes.
            partial: whether each node ends with its share alone.
        """
        d0, d1 = sizes
        part = d0 * d1 / q if partial else d0 * d1
        ring_sum = self.roofline(f"{name}.ring_sum", d0 * d1 / q, 3 * s * d0 * d1 / q)
        small_sum = self.roofline(f"{name}.small_sum", part * (q - 1), 3 * s * part * (q - 1))
        step = s * d0 * d1 / (q * IB) + alpha
        ring = ((1 if partial else 2) * step + ring_sum + t_k) * (q - 1)
        return self._exchange(name, s * d0 * d1, q, self._sent(part) + small_sum, ring)

    def gather(self, name: str, sizes: tuple[Expr, Expr], q: Expr, *, partial: bool) -> Expr:
        """Define the time of collecting d0 d1 elements from q nodes [s].

        Args:
            name: of the exchange.
            sizes: d0, d1.
            q: nodes.
            partial: whether a small one sends shares only.
        """
        d0, d1 = sizes
        part = d0 * d1 / q if partial else d0 * d1
        ring = (s * d0 * d1 / (q * IB) + alpha) * (q - 1)
        return self._exchange(name, s * d0 * d1, q, self._sent(part), ring)

    def _sent(self, elements: Expr) -> Expr:
        """Return the time of a broadcast."""
        return s * elements / (1 if self.keeps("seconds of small exchanges") else IB)

    def _exchange(self, name: str, message: Expr, q: Expr, small: Expr, ring: Expr) -> Expr:
        return self.define(name, Piecewise((ZERO, q <= 1), (small, message < SMALL), (ring, True)))
