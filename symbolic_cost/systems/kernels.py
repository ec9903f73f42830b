"""Rates by kind of kernel: how long a product, an attention kernel or a pass over memory takes.

A roofline has one share of the peak for all products and one of the memory for all the rest.
Measured kernels differ by kind and shape, each in the same way on every device:

* a product of area A and length k computes at share/((1 + area/A)(1 + length/k)) of the peak: a
  small result leaves units idle, a short sum does not hide its beginning and end; operands that no
  cache has, as among other kernels, add a part of the time in which memory supplies them. In 8 bits
  none was measured so, and casts have just written them;
* attention over a prompt of l tokens, heads d wide, computes at share/((1 + length/l)(1 + rows/r))
  of it where d is 128 and r queries are those of all heads and prompts, elsewhere in
  (1 + width/d)/(1 + width/128) of that time; what it reads and writes takes its time beside that;
* attention of a decode step reads its cache at a share of the memory's bandwidth;
* norms, activations, rotations, additions and lookups each have a share of the bandwidth;
* a collective runs under the faster of two protocols: one for small messages, which reaches a part
  of the share, and one for large messages, which begins later.

The parameters are fitted to kernels alone (`kernel_fit`), never to steps; kernels.toml says to how
many and how well. For example 4096 x 4096 x 4096 in bf16 on h100: 1.37e11 FLOP at
0.803/((1 + 6e4/1.7e7)(1 + 72/4096)) = 0.79 of 989 TFLOP/s and 4 us for the call make 0.18 ms,
and operands that no cache has 0.02 more.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from sympy import Expr, Integer, Rational

from symbolic_cost.algebra import add, mul
from symbolic_cost.extrema import Max
from symbolic_cost.ledger import Collective, CollectiveKind, Quantity, Row, Units
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active
from symbolic_cost.systems.collectives import COLLECTIVES
from symbolic_cost.systems.kernel_formulas import NORMAL_WIDTH, AttentionKernels, Calls, Products
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.network import Hop, Hops
from symbolic_cost.systems.routing import EACH, Routing

_NARROW = ("fp8", "fp4")

PASSES: Mapping[str, str] = {
    **dict.fromkeys(
        ("layer_norm", "layer_norm_bare", "layer_norm_written", "rms_norm", "rms_norm_shifted"),
        "norm",
    ),
    **dict.fromkeys(
        ("add", "sum", "scale", "dropout", "cross_entropy", "cross_entropy_values"), "addition"
    ),
    **dict.fromkeys(("rotary", "copy"), "rotation"),
    "embedding": "lookup",
}
"""What kind of pass over memory an op kind is; an activation where none is named."""

_SHRINKING = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.ALL_GATHER)


@dataclass(frozen=True)
class Kernels:
    """The kernels of a machine.

    Args:
        machine: whose peaks and bandwidth they have a share of.
        products: by precision.
        attention: over prompts and of decode steps.
        passes: share of the bandwidth by kind of pass.
        call: of one pass [s].
        cast: share of the bandwidth that casts to a narrow precision reach; None where the times of
            narrow products have these inside.
        calls: collectives inside one domain; None where the record's own links are all there is.
        origin: machine whose kernels were measured; another one where these were not.
        errors: mean relative error of the fit by kind, and how many kernels were fitted.
        saved: part of the time of attention in forward in 16 bits that faster exponentials save.
        second: bandwidth of the second-level cache [byte/s]; None where it is not on record.
        sixteen: precision of 16 bits that is asked for.
    """

    machine: Machine
    products: Mapping[str, Products]
    attention: AttentionKernels
    passes: Mapping[str, Expr]
    call: Expr
    cast: Expr | None
    calls: Calls | None
    origin: str
    errors: Mapping[str, tuple[Expr, int]]
    second: Expr | None = None
    saved: Expr = Integer(0)
    sixteen: str = "bf16"

    @property
    def wide(self) -> str:
        """The precision of 16 bits that the machine has, that which is asked for first."""
        names = (self.sixteen, "bf16", "fp16", "fp32")
        return next(name for name in names if name in self.machine.matrix)

    def units(self, precision: str) -> str:
        """Return the precision that products run in which are asked for in one."""
        return precision if precision in self.machine.matrix else self.wide

    def rate(self, precision: str) -> Products:
        """Return the shares of products in a precision; of the narrowest if none are on record.

        What a half of the peak takes is a time, so that it grows with the peak: a result that
        reaches half of it in fp8 reaches a third at twice the rate.
        """
        if precision in self.products or self.calls is None:
            return self.products.get(precision, self.products["bf16"])
        near = self.measured(precision)
        own = self.products[near]
        if precision not in _NARROW or near not in self.machine.matrix:
            return own
        faster = self.machine.peak(precision) / self.machine.peak(near)
        return replace(own, area=mul(own.area, faster), length=mul(own.length, faster))

    def measured(self, precision: str) -> str:
        """Return the precision whose products were measured that is nearest."""
        narrow = precision in _NARROW and "fp8" in self.products
        return "fp8" if narrow else "bf16"

    @property
    def note(self) -> str:
        """Where the rates come from."""
        name = self.machine.name
        if self.origin == name and self.calls is not None:
            return f"rates of kernels measured on {name}"
        if self.origin == name:
            return f"no kernels like those of {name} on record: the efficiencies of its record"
        return (
            f"no kernels of {name} on record: shares of its peaks as measured on {self.origin}, "
            "the nearest by its formats and inner link"
        )

    def product(
        self, rows: Iterable[Row], precision: str, value: Expr, weights: Container[str] = ()
    ) -> Expr:
        """Return the time of a product from its rows [s], with the cast of its input in 8 bits.

        Args:
            rows: of the product.
            precision: of its operands; in 16 bits where the machine has no units for it.
            value: bytes of an element of its result.
            weights: tensors that are narrow already; others are read in 16 bits, written in 8.
        """
        listed = tuple(rows)
        own = self.units(precision)
        wide = (r for r in listed if r.quantity is Quantity.READ and r.tensor not in weights)
        apart = own in _NARROW and self.cast is not None
        cast = self.narrowed(mul(_CAST, _sum(wide, Quantity.READ))) if apart else Integer(0)
        return cast + self.rate(own).time(
            _sum(listed, Quantity.FLOP),
            _sum(listed, Quantity.WRITE) / value,
            _sum(listed, Quantity.READ, Quantity.WRITE),
            self.machine.peak(own),
            self.machine.bandwidth.value,
        )

    def attended(self, rows: Iterable[Row], value: Expr, cache: Expr = Integer(0)) -> Expr:
        """Return the time of attention over a prompt from its rows [s].

        A query that sees n keys in the mean is one of a prompt of 2 n tokens, whatever is cached of
        it and however wide a window is.

        Args:
            rows: of the kernel.
            value: bytes of an element of its result.
            cache: bytes of keys and values of earlier tokens and these, where some are cached.
        """
        listed = tuple(rows)
        flop, wide = _sum(_products(listed), Quantity.FLOP), head_width(listed, value)
        result = _sum(results(listed), Quantity.WRITE) / value
        slowness = self.attention.slowness(flop / (2 * result), wide, result / wide)
        traffic = _sum(listed, Quantity.READ, Quantity.WRITE)
        took = (
            self.attention.call
            + flop * slowness / (self.attention.share * self.machine.peak(self.wide))
            + self.attention.moved(traffic, self.machine.bandwidth.value)
        )
        if cache == 0:
            return took
        return Max(took, cache / (self.attention.memory * self.machine.bandwidth.value))

    def stepped(self, rows: Iterable[Row], cache: Expr, again: Expr | None = None) -> Expr:
        """Return the time of attention of a decode step [s].

        Args:
            rows: of the kernel.
            cache: bytes of keys and values that memory supplies.
            again: bytes that the second-level cache supplies, where heads read one by one.
        """
        listed = tuple(rows)
        own = 2 * _sum(listed, Quantity.WRITE)
        busy = _sum(_products(listed), Quantity.FLOP) / (
            self.attention.share * self.machine.peak(self.wide)
        )
        if again is not None and self.second is not None:
            busy = Max(busy, again / (self.attention.memory * self.second))
        return self.attention.decode(cache, own, busy, self.machine.bandwidth.value)

    def moved(self, move: Collective, hops: Hops, routing: Routing = EACH) -> Expr:
        """Return the time of a collective [s].

        The innermost link as measured, outer ones by their record, on what inner ones left; an
        all-to-all sends to all partners at once over all links, and waits for the slowest. Copies
        of a token for one domain cross to it as one where they go as one at all. Machines for
        which XLA compiles have rings on their links.
        """
        if self.calls is None:
            ring = COLLECTIVES["hierarchical ring"].time(move.kind, move.message, hops)
            return mul(move.calls, ring)
        inner, *outer = hops
        link = replace(inner.link, bandwidth=self.machine.links[0].bandwidth.value)
        own = self.calls.time(move.kind, move.message, inner.ranks, link)
        if move.kind is CollectiveKind.ALL_TO_ALL:
            units = [mul(*(hop.ranks for hop in outer[place:])) for place in range(len(outer))]
            sent = [routing.sent(each) if routing is not EACH else Integer(1) for each in units]
            away = (
                _scattered(mul(move.message, part), hop)
                for part, hop in zip(sent, outer, strict=True)
            )
            return mul(move.calls, Max(own, *away) if outer else own)
        left = move.message / inner.ranks if move.kind in _SHRINKING else move.message
        if outer:
            own += COLLECTIVES["hierarchical ring"].time(move.kind, left, tuple(outer))
        return mul(move.calls, own)

    def passed(self, moved: Iterable[tuple[str, Expr]], inside: Iterable[Row] = ()) -> Expr:
        """Return the time of a pass over memory [s].

        Args:
            moved: what it reads and writes [byte], with the kind of op that does.
            inside: rows of products of activations that it computes on its way.
        """
        terms = (size / self.passes[PASSES.get(kind, "activation")] for kind, size in moved)
        took = add(*terms) / self.machine.bandwidth.value
        flop = _sum(tuple(inside), Quantity.FLOP)
        if flop == 0:
            return self.call + took
        busy = flop / (self.rate(self.wide).share * self.machine.peak(self.wide))
        return self.call + Max(took, busy)

    def narrowed(self, size: Expr) -> Expr:
        """Return the time of a cast to a narrow precision that reads and writes some bytes [s].

        Where casts were measured, beside products, each call of them took as long as a product's.
        """
        if self.cast is None:
            return self.call + size / (self.passes["activation"] * self.machine.bandwidth.value)
        return self.products["fp8"].call + size / (self.cast * self.machine.bandwidth.value)

    def carried(self, size: Expr) -> Expr:
        """Return the time in which a pass reads or writes a state [s], beside what else it does.

        Args:
            size: bytes that are read and written.
        """
        return size / (self.passes["activation"] * self.machine.bandwidth.value)


def _scattered(size: Expr, hop: Hop) -> Expr:
    """Return the time in which all-to-all messages cross one kind of link [s]."""
    sent = size * (1 - 1 / hop.ranks)
    return Active(hop.ranks) * (hop.link.latency + sent / hop.link.bandwidth)


def head_width(rows: Iterable[Row], value: Expr) -> Expr:
    """Return the width of a head, from what attention writes: its result, and a sum per row.

    For example 2 b h l d byte of results and 4 b h l byte of sums: (2 b h l d/2)/(4 b h l/4) is d.
    Where no sums are kept, heads are taken for 128 wide.

    Args:
        rows: of the kernel.
        value: bytes of an element of its result.
    """
    written = [row for row in rows if row.quantity is Quantity.WRITE]
    sums = add(*(row.expr for row in written if row.tensor.endswith(".logsumexp")))
    whole = add(*(row.expr for row in results(written)))
    return NORMAL_WIDTH if sums == 0 else (whole / value) / (sums / _STATISTIC)


def results(rows: Iterable[Row]) -> tuple[Row, ...]:
    """Return the rows of what attention writes, without its sums per row."""
    return tuple(
        row
        for row in rows
        if row.quantity is Quantity.WRITE and not row.tensor.endswith(".logsumexp")
    )


_CAST = Rational(3, 2)
"""Bytes that a cast from 16 to 8 bits moves, per byte of what is cast."""

_STATISTIC = 4
"""Bytes of a sum per row, in single precision."""


def _products(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.units is Units.MATRIX)


def _sum(rows: Iterable[Row], *quantities: Quantity) -> Expr:
    return add(*(row.expr for row in rows if row.quantity in quantities))
