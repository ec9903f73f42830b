"""Rates by kind of kernel: how long a product, an attention kernel or a pass over memory takes.

A roofline has one share of the peak for all products and one of the memory for all the rest.
Measured kernels differ by kind and shape, each in the same way on every device:

* a product of area A and length k computes at share/((1 + area/A)(1 + length/k)) of the peak: a
  small result leaves units idle, a short sum does not hide its beginning and end;
* attention over a prompt of l tokens, heads d wide, computes at share/(1 + length/l) of it where d
  is 128, elsewhere in (1 + width/d)/(1 + width/128) of that time;
* attention of a decode step reads its cache at a share of the memory's bandwidth;
* norms, activations, rotations, additions and lookups each have a share of the bandwidth;
* a collective runs under the faster of two protocols: one for small messages, which reaches a part
  of the share, and one for large messages, which begins later.

The parameters are fitted to kernels alone (`kernel_fit`), never to steps; kernels.toml says to how
many and how well. For example 4096 x 4096 x 4096 in bf16 on h100: 1.37e11 FLOP at
0.771/((1 + 2.5e5/1.7e7)(1 + 91/4096)) = 0.74 of 989 TFLOP/s and 3 us for the call make 0.19 ms.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import fields, replace
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar

from sympy import Expr, Integer, Rational

from symbolic_cost.algebra import add, mul
from symbolic_cost.errors import InputError, unknown
from symbolic_cost.extrema import Max, Min
from symbolic_cost.lazy import Recent
from symbolic_cost.ledger import Collective, CollectiveKind, Quantity, Row, Units
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active, exact
from symbolic_cost.systems.collectives import ALGORITHMS, COLLECTIVES
from symbolic_cost.systems.machines import Figure, Machine
from symbolic_cost.systems.network import Hop, Hops
from symbolic_cost.systems.records import machine as named_machine
from symbolic_cost.systems.routing import EACH, Routing

_NARROW = ("fp8", "fp4")
RecordT = TypeVar("RecordT", "Products", "AttentionKernels", "Calls")

NORMAL_WIDTH = Integer(128)
"""Width of the heads whose share of the peak is on record."""

PASSES: Mapping[str, str] = {
    **dict.fromkeys(
        ("layer_norm", "layer_norm_bare", "layer_norm_written", "rms_norm", "rms_norm_shifted"),
        "norm",
    ),
    **dict.fromkeys(("add", "sum", "scale", "dropout"), "addition"),
    **dict.fromkeys(("rotary", "copy"), "rotation"),
    "embedding": "lookup",
}
"""What kind of pass over memory an op kind is; an activation where none is named."""


@dataclass(frozen=True, slots=True)
class Products:
    """Matrix products in one precision.

    Args:
        share: of the matrix peak that large products reach.
        area: of a result that reaches half of it [element].
        length: of a sum that reaches half of it [element].
        memory: share of the memory's bandwidth that products reach which wait for it.
        call: of one kernel [s].
    """

    share: Expr
    area: Expr
    length: Expr
    memory: Expr
    call: Expr

    def time(self, flop: Expr, area: Expr, traffic: Expr, peak: Expr, bandwidth: Expr) -> Expr:
        """Return the time of a product [s].

        Args:
            flop: that it takes; twice its area times its length.
            area: of its result [element].
            traffic: that it reads and writes [byte].
            peak: of the matrix units [FLOP/s].
            bandwidth: of the memory [byte/s].
        """
        slow = traffic / (self.memory * bandwidth)
        return self.call + Max(self.charged(flop, area) / (self.share * peak), slow)

    def charged(self, flop: Expr, area: Expr, whole: Expr | None = None) -> Expr:
        """Return the FLOP of a product of unlimited size that takes as long [FLOP].

        Args:
            flop: that it takes.
            area: of its result [element].
            whole: area of the results of the kernel that it is part of; its own unless given.
        """
        return (flop + 2 * self.length * area) * (
            1 + self.area / (area if whole is None else whole)
        )


@dataclass(frozen=True, slots=True)
class AttentionKernels:
    """Attention over a prompt and of a decode step, in 16 bits.

    Args:
        share: of the matrix peak that long prompts reach with heads of 128.
        length: of a prompt that reaches half of it [token].
        width: of a head that takes twice as long per FLOP as a wide one.
        call: of one kernel over a prompt [s].
        memory: share of the memory's bandwidth at which a decode step reads its cache.
        queries: how many bytes of cache one byte of queries and results costs as much as.
        step: of one kernel of a decode step [s].
    """

    share: Expr
    length: Expr
    width: Expr
    call: Expr
    memory: Expr
    queries: Expr
    step: Expr

    def prefill(self, flop: Expr, tokens: Expr, wide: Expr, peak: Expr) -> Expr:
        """Return the time of attention over a prompt [s].

        Args:
            flop: of both products, without what the mask leaves out.
            tokens: of one prompt.
            wide: width of a head.
            peak: of the matrix units [FLOP/s].
        """
        return self.call + flop * self.slowness(tokens, wide) / (self.share * peak)

    def slowness(self, tokens: Expr, wide: Expr) -> Expr:
        """Return the time of a FLOP, that of a long prompt with heads of 128 being one."""
        own = (1 + self.width / wide) / (1 + self.width / NORMAL_WIDTH)
        return (1 + self.length / tokens) * own

    def decode(self, cache: Expr, queries: Expr, busy: Expr, bandwidth: Expr) -> Expr:
        """Return the time of the attention of a decode step [s].

        Args:
            cache: bytes of keys and values that are read.
            queries: bytes of queries and of results.
            busy: what its products take [s]; many heads that share one latent wait for these.
            bandwidth: of the memory [byte/s].
        """
        slow = (cache + self.queries * queries) / (self.memory * bandwidth)
        return self.step + Max(slow, busy)


@dataclass(frozen=True, slots=True)
class Calls:
    """Collectives inside one domain: a call, hops around a ring, and bytes.

    Args:
        gathering: share of the link's bandwidth that all-gathers and all-to-alls reach.
        reducing: that of all-reduces and reduce-scatters.
        small: part of both that the protocol for small messages reaches.
        call: of one collective [s].
        hop: from one rank to the next [s].
        large: by which the protocol for large messages begins later [s].
    """

    gathering: Expr
    reducing: Expr
    small: Expr
    call: Expr
    hop: Expr
    large: Expr

    def time(self, kind: CollectiveKind, size: Expr, ranks: Expr, bandwidth: Expr) -> Expr:
        """Return the time of a collective [s]; none for one rank.

        Args:
            kind: of the collective.
            size: of the full message, of the local buffer for an all-to-all [byte].
            ranks: that take part.
            bandwidth: of the link, one direction [byte/s].
        """
        steps = ALGORITHMS["ring"].steps(kind, size, ranks)
        took = self.call + self.hop * steps.count + self.sending(kind, steps.sent / bandwidth)
        return Active(ranks) * took

    def sending(self, kind: CollectiveKind, nominal: Expr) -> Expr:
        """Return what the bytes take under the faster protocol [s].

        Args:
            kind: of the collective.
            nominal: what they take at the link's bandwidth [s].
        """
        share = self.reducing if kind in REDUCING else self.gathering
        return Min(nominal / (self.small * share), self.large + nominal / share)


_SHRINKING = (
    CollectiveKind.ALL_REDUCE,
    CollectiveKind.REDUCE_SCATTER,
    CollectiveKind.ALL_GATHER,
)
REDUCING = (CollectiveKind.ALL_REDUCE, CollectiveKind.REDUCE_SCATTER, CollectiveKind.REDUCE)


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
        saved: part of the time of attention in forward that faster exponentials save.
        second: bandwidth of the second-level cache [byte/s]; None where it is not on record.
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

    @property
    def wide(self) -> str:
        """The precision of 16 bits that the machine has."""
        return next(name for name in ("bf16", "fp16", "fp32") if name in self.machine.matrix)

    def rate(self, precision: str) -> Products:
        """Return the shares of products in a precision; of the narrowest if none are on record.

        What a half of the peak takes is a time, so that it grows with the peak: a result that
        reaches half of it in fp8 reaches a third at twice the rate.
        """
        if precision in self.products or self.calls is None:
            return self.products.get(precision, self.products["bf16"])
        near = "fp8" if precision in _NARROW and "fp8" in self.products else "bf16"
        own = self.products[near]
        if precision not in _NARROW or near not in self.machine.matrix:
            return own
        faster = self.machine.peak(precision) / self.machine.peak(near)
        return replace(own, area=mul(own.area, faster), length=mul(own.length, faster))

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
            "the nearest by peak, memory and link"
        )

    def product(
        self, rows: Iterable[Row], precision: str, value: Expr, weights: Container[str] = ()
    ) -> Expr:
        """Return the time of a product from its rows [s], with the cast of its input in 8 bits.

        Args:
            rows: of the product.
            precision: of its operands; in 16 bits where the machine has no rate for it.
            value: bytes of an element of its result.
            weights: tensors that are narrow already; others are read in 16 bits, written in 8.
        """
        listed = tuple(rows)
        known = precision in self.products and precision in self.machine.matrix
        own = precision if known else "bf16"
        wide = (r for r in listed if r.quantity is Quantity.READ and r.tensor not in weights)
        apart = own in _NARROW and self.cast is not None
        cast = self.narrowed(mul(_CAST, _sum(wide, Quantity.READ))) if apart else Integer(0)
        return cast + self.products[own].time(
            _sum(listed, Quantity.FLOP),
            _sum(listed, Quantity.WRITE) / value,
            _sum(listed, Quantity.READ, Quantity.WRITE),
            self.machine.peak(own),
            self.machine.bandwidth.value,
        )

    def attended(
        self, rows: Iterable[Row], tokens: Expr, value: Expr, cache: Expr = Integer(0)
    ) -> Expr:
        """Return the time of attention over a prompt from its rows [s].

        Args:
            rows: of the kernel.
            tokens: of one prompt.
            value: bytes of an element of its result.
            cache: bytes of keys and values of earlier tokens and these, where some are cached.
        """
        listed = tuple(rows)
        flop, wide = _sum(_products(listed), Quantity.FLOP), head_width(listed, value)
        took = self.attention.prefill(flop, tokens, wide, self.machine.peak("bf16"))
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
            self.attention.share * self.machine.peak("bf16")
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
        bandwidth = self.machine.links[0].bandwidth.value
        own = self.calls.time(move.kind, move.message, inner.ranks, bandwidth)
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
        return self.call + Max(took, flop / (self.rate("bf16").share * self.machine.peak("bf16")))

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


def kernels(machine: Machine) -> Kernels:
    """Return the kernels of a machine; those of the nearest that was measured, by its own peaks.

    Machines for which XLA alone compiles are like none of these: they have the efficiencies of
    their record.

    Raises:
        InputError: the machine has symbols for its rates.
    """
    of = machine.record or machine
    own = _KERNELS.of(id(of), lambda: (of, _kernels(of)))[1]
    return own if of is machine else replace(own, machine=machine)


_KERNELS: Recent[tuple[Machine, Kernels]] = Recent(8)


def _kernels(machine: Machine) -> Kernels:
    origin = _like().get(machine.name, machine.name)
    if origin not in _data()["measured"] and any(f.value.free_symbols for f in _rates(machine)):
        accepted = (*_data()["measured"], *_like())
        raise InputError(unknown("machine with kernels on record", machine.name, accepted))
    if kind_of(machine) == "tpu":
        return _recorded(machine)
    origin = origin if origin in _data()["measured"] else nearest(machine)
    record = {**_data()["measured"][origin], **machine.kernels}
    for part in ("products", "errors"):
        record[part] = {**_data()["measured"][origin][part], **record[part]}
    faster = exact(1) if machine.kernels else _powered(machine, origin)
    origin = machine.name if machine.kernels else origin
    attention, second = _of(AttentionKernels, record["attention"]), _data()["second"]
    cast = record["products"].get("fp8", {}).get("cast")
    return Kernels(
        machine,
        {
            name: replace(one, share=mul(one.share, faster))
            for name, each in record["products"].items()
            for one in (_of(Products, each),)
        },
        replace(attention, share=mul(attention.share, faster)),
        {name: exact(value) for name, value in record["passes"].items() if name != "call"},
        exact(record["passes"]["call"]),
        exact(cast) if cast is not None else None,
        _of(Calls, record["collectives"]),
        origin,
        {kind: (exact(mean), count) for kind, (mean, count) in record["errors"].items()},
        exact(second[machine.name]["value"]) if machine.name in second else None,
        exact(_data()["exponentials"].get(machine.name, {}).get("value", 0)),
    )


KINDS = ("gpu", "tpu")
"""Kinds of machines, as stacks tell them apart."""

_TPUS = ("tpu", "trillium")


def kind_of(machine: Machine) -> str:
    """Return the kind of a machine, "tpu" where XLA alone compiles for it, else "gpu"."""
    return "tpu" if machine.name.startswith(_TPUS) else "gpu"


def nearest(machine: Machine) -> str:
    """Return the measured machine whose peak, memory and inner link are nearest, as ratios."""
    return min(_data()["measured"], key=lambda name: _distance(machine, named_machine(name)))


def _distance(one: Machine, other: Machine) -> float:
    """Return the sum of the squared logarithms of the ratios of two machines' rates."""
    pairs = zip(_rates(one), _rates(other), strict=True)
    return sum(math.log(float(a.value / b.value)) ** 2 for a, b in pairs)


def _rates(machine: Machine) -> tuple[Figure, ...]:
    """Return the peak in 16 bits, the memory's bandwidth and the inner link's."""
    names = (name for name in ("bf16", "fp16", "fp32", *machine.matrix) if name in machine.matrix)
    return machine.matrix[next(names)], machine.bandwidth, machine.links[0].bandwidth


def _recorded(machine: Machine) -> Kernels:
    """Return kernels at the efficiencies of a machine's record, with the nearest's lengths."""
    own, origin = machine.efficiencies, _data()["measured"][nearest(machine)]
    wide = _of(Products, origin["products"]["bf16"])
    product = replace(wide, share=own.matrix.value, memory=own.memory.value, call=exact(0))
    attention = _of(AttentionKernels, origin["attention"])
    share = attention.share / wide.share * own.matrix.value
    return Kernels(
        machine,
        {"bf16": product},
        replace(attention, share=share, call=exact(0)),
        {name: own.memory.value for name in origin["passes"] if name != "call"},
        exact(0),
        None,
        None,
        machine.name,
        {},
    )


def _data() -> Any:  # noqa: ANN401 - whatever the file holds
    return package_data("systems/kernels.toml")


@cache
def _like() -> Mapping[str, str]:
    """Return, by machine without kernels on record, the one whose shares it takes."""
    return {
        other: name
        for group in ("alike", "chips")
        for name, others in _data()[group].items()
        for other in others
    }


def _powered(machine: Machine, origin: str) -> Expr:
    """Return how much faster than its peak says a machine is, of that of the same chip.

    Large products run at the clock that the limit of power leaves, whose power grows with about its
    square (assumed): 1400 W in place of 1200 W for one peak are 8 % more.
    """
    own, near = watts(machine.name), watts(origin)
    if machine.name not in _data()["chips"].get(origin, ()) or not own or not near:
        return exact(1)
    peaks = named_machine(origin).matrix["bf16"].value / machine.matrix["bf16"].value
    return clock(own / near * float(peaks))


def watts(name: str) -> float | None:
    """Return the limit of power of a machine's datasheet [W]; None where none is on record."""
    record = package_data("systems/prices.toml")["machines"].get(name, {}).get("power")
    return None if record is None else float(record["value"])


def clock(power: float) -> Expr:
    """Return the clock that lasts under a part of the power, as a part; three digits of it."""
    return exact(Decimal(f"{math.sqrt(power):.3f}"))


def _of(record: type[RecordT], data: Mapping[str, object]) -> RecordT:
    return record(**{each.name: exact(data[each.name]) for each in fields(record)})


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
    results = add(*(row.expr for row in written if not row.tensor.endswith(".logsumexp")))
    return NORMAL_WIDTH if sums == 0 else (results / value) / (sums / _STATISTIC)


_CAST = Rational(3, 2)
"""Bytes that a cast from 16 to 8 bits moves, per byte of what is cast."""

_STATISTIC = 4
"""Bytes of a sum per row, in single precision."""


def _products(rows: Iterable[Row]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row.units is Units.MATRIX)


def _sum(rows: Iterable[Row], *quantities: Quantity) -> Expr:
    return add(*(row.expr for row in rows if row.quantity in quantities))
