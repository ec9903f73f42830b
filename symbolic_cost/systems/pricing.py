"""How long ops take by kind of kernel: the rates of a machine under a software stack.

A product, an attention kernel and a pass over memory each have a rate of their own (`kernels`); the
stack says which generation of attention runs, which passes are one kernel, how fast the host issues
ops. Every kind has a slowness, a definition that is one: an interval moves it.

For example 4096 x 4096 x 4096 in bf16 on h100, which keeps 0.86 of its clock: 0.18 ms of the kernel
alone are 0.23 ms in training, where its operands are in no cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from sympy import Expr, Integer, Rational

from symbolic_cost.algebra import add, mul
from symbolic_cost.extrema import Max, Min
from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Quantity, Row, Units
from symbolic_cost.ops.update import TRAFFIC, Work
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import Active
from symbolic_cost.systems.collectives import COLLECTIVES
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.kernels import PASSES, Kernels, head_width, results
from symbolic_cost.systems.links import Measured, outer_links
from symbolic_cost.systems.network import Hops, Network, Tier
from symbolic_cost.systems.rooflines import Device
from symbolic_cost.systems.routing import Routing
from symbolic_cost.systems.stacks import Stack, generation, misalignment, slower_host, sustained
from symbolic_cost.systems.together import Around

SLOWNESS = "slowness"
"""Definitions of how much slower than predicted a kind of work is begin so."""

PRODUCTS, ATTENTION, PASSING, INSIDE, OUTSIDE, HOST = (
    *("products", "attention", "passes"),
    *("inner links", "outer links", "host"),
)
KINDS = (PRODUCTS, ATTENTION, PASSING, INSIDE, OUTSIDE, HOST)
"""Kinds of work, as they are told apart in an interval."""


OF_CLUSTER: Mapping[str, tuple[str, ...]] = {
    "computing": (PRODUCTS, ATTENTION, PASSING),
    "moving": (INSIDE, OUTSIDE),
    "issuing": (HOST,),
}
"""Kinds of work by the efficiency of a cluster that they share."""


@dataclass(frozen=True, slots=True)
class Busy:
    """What an op keeps a device busy with [s].

    Args:
        kind: of work.
        kernels: that the host issues for it.
    """

    compute: Expr
    memory: Expr
    call: Expr
    kind: str
    kernels: Expr = Integer(1)


@dataclass(frozen=True, eq=False)
class Rates:
    """The rates of a machine under a stack.

    Args:
        kernels: of the machine.
        precision: of products inside of blocks.
        value: bytes of an element of an activation.
        gradient: bytes of an element of a weight's gradient.
        blocks: paths of the parts whose products are in that precision; others are in 16 bits.
    """

    kernels: Kernels
    stack: Stack
    precision: str
    value: Expr
    gradient: Expr
    blocks: frozenset[str]

    @cached_property
    def device(self) -> Device:
        """The device at its own rates; the host issues ops as the stack does, and its processor."""
        machine = self.kernels.machine
        host = mul(self.stack.host, slower_host(machine))
        return replace(machine.device(self.precision), launch=Integer(0), host=host)

    @cached_property
    def network(self) -> Network:
        """The links at their own rates."""
        tiers = self.kernels.machine.network().tiers
        if self.kernels.calls is None:
            return self.kernels.machine.network()
        links = self.kernels.machine.links
        return Network(
            tuple(
                Tier(replace(tier.link, bandwidth=link.bandwidth.value), tier.ranks)
                for tier, link in zip(tiers, links, strict=True)
            )
        )

    @property
    def software(self) -> str:
        """The stack and the precision of products: steps of one tell little of another."""
        return f"{self.stack.name} {self.precision}"

    @property
    def clock(self) -> Expr:
        """Part of the peak's clock that lasts; a record's efficiencies are those of training."""
        own = self.kernels.machine.efficiencies.clock.value
        return own if self.kernels.calls is None else own * sustained(self.kernels.origin)

    def units(self, path: str, kind: str, phase: Phase) -> str:
        """Return the precision of the units that an op's products run on.

        Where products of blocks are narrow, attention and others stay wide.
        """
        block = any(path.startswith(f"{one}.") for one in self.blocks)
        wide = kind == "fused" or not block or phase.value == self.stack.wide
        return self.kernels.wide if wide and self.precision in _NARROW else self.precision

    def define(self, to: Definitions) -> None:
        """Define the slowness of every kind: one, or as the cluster's record has it."""
        own = self.kernels.machine.efficiencies
        fitted = {
            kind: getattr(own, figure).value
            for figure, kinds in OF_CLUSTER.items()
            for kind in kinds
        }
        for kind in KINDS:
            to.keep(f"{SLOWNESS}.{kind}", fitted.get(kind, _ONE))

    def op(self, rows: Sequence[Row], forward: Sequence[Row], around: Around) -> Busy | None:
        """Return what an op takes in a phase; none where it does no work.

        Args:
            rows: of the op and phase.
            forward: of the op's forward pass, which tells the shape of attention.
            around: what of its part decides over it.
        """
        work = Work.of(rows)
        if work.flop[Units.MATRIX] != 0:
            if rows[0].kind == "fused":
                return self._attention(rows, forward)
            return self._product(rows, forward, work, around)
        if work.traffic == 0 and work.flop[Units.VECTOR] == 0:
            return None
        return self._pass(rows, work, around)

    def _product(
        self, rows: Sequence[Row], forward: Sequence[Row], work: Work, around: Around
    ) -> Busy:
        own = self.units(rows[0].path, rows[0].kind, rows[0].phase)
        rate, flop = self.kernels.rate(own), work.flop[Units.MATRIX]
        written = add(*(row.expr for row in rows if row.quantity is Quantity.WRITE))
        size = self.gradient if rows[0].phase is Phase.BACKWARD_WEIGHT else self.value
        alike = around.together.get((rows[0].path, rows[0].phase), written)
        several = around.groups.get(rows[0].path, _ONE) if self.stack.experts == "apart" else _ONE
        whole = alike * Min(_STREAMS / several, 1) / size
        charged = flop if written == 0 else rate.charged(flop, written / size, whole)
        peak = self.kernels.machine.peak(own) * self.clock
        bandwidth = rate.memory * self.kernels.machine.bandwidth.value
        slower = self._slower(rows[0].path, own, around)
        call, kernels = mul(rate.call, Max(several / _STREAMS, 1)), several
        traffic = work.traffic
        if rows[0].phase is Phase.BACKWARD_WEIGHT:
            traffic += written if self.stack.accumulation == "returned" else 0
            call += self._accumulated(written / size)
        fetched = rate.fetched(traffic, self.kernels.machine.bandwidth.value)
        compute = mul(charged, slower) / (rate.share * peak) + fetched
        if own in _NARROW:
            cast = self._cast(
                rows, around, self.stack.cast_fp4 if own == "fp4" else self.stack.cast
            )
            call, kernels = add(call, cast), kernels + int(cast != 0)
        kernels = mul(kernels, _part_of_kernel(forward, around))
        return Busy(compute, traffic / bandwidth, call, PRODUCTS, kernels)

    def _slower(self, path: str, own: str, around: Around) -> Expr:
        """Return how many times longer a product computes whose sides are no whole loads.

        Some do not fill the lines of memory. Heads whose width in 16 bits is no multiple of 16
        bytes cannot be loaded as matrix units want them, and multiply in single precision on the
        others: 108 wide ones on a100-80gb at 19.5 TFLOP/s in place of 312. Steps of 2022 show it.

        Source: cutlass; anthony-2024.
        """
        odd, machine = around.odd.get(path, Integer(0)), self.kernels.machine
        loads = around.scalar if own in _LOADED and self.kernels.calls is not None else {}
        scalar = loads.get(path, Integer(0))
        ratio = machine.peak(own) / machine.vector["fp32"].value
        return 1 + mul(misalignment(), odd - scalar) + mul(ratio - 1, scalar)

    def _accumulated(self, elements: Expr) -> Expr:
        """Return the time of a pass that adds a microbatch's gradients of weights to others [s].

        It reads both and writes the sum: in 16 bits beside 32, 10 byte per weight.
        """
        if self.stack.accumulation != "apart":
            return Integer(0)
        moved = elements * (self.value + 2 * self.gradient)
        share = self.kernels.passes["addition"] * self.kernels.machine.bandwidth.value
        return self.kernels.call + moved / share

    def _cast(self, rows: Sequence[Row], around: Around, moves: Expr) -> Expr:
        """Return the time of casts to a narrow precision before a product [s].

        Weights are cast once per step, which microbatches share, or wherever they are used. What
        goes to several experts is cast by one kernel.
        """
        path, none = rows[0].path, frozenset[str]()
        tensors = around.casts.get(path, none)
        if self.stack.weights == "cast each":
            tensors |= around.weights.get(path, none)
        reads = [r.expr for r in rows if r.quantity is Quantity.READ and r.tensor in tensors]
        if not reads or moves == 0 or rows[0].phase is Phase.BACKWARD_WEIGHT:
            return Integer(0)
        moved = mul(moves, add(*reads))
        share = self.stack.fusion.share
        if share is None:
            return self.kernels.narrowed(moved)
        return self.kernels.call + moved / (share * self.kernels.machine.bandwidth.value)

    def _attention(self, rows: Sequence[Row], forward: Sequence[Row]) -> Busy:
        """Price attention; what backward computes again belongs to its kernel."""
        own, phase = self.kernels.attention, rows[0].phase
        flop, work = add(*_flop(rows)), Work.of(rows)
        result = add(*(row.expr for row in results(forward))) / self.value
        tokens, wide = add(*_flop(forward)) / (2 * result), head_width(forward, self.value)
        slowness = own.slowness(tokens, wide, result / wide)
        ratio = generation(self.stack.attention, self.kernels.origin)
        again = phase is not Phase.FORWARD
        share = own.share * (ratio.backward * ratio.forward if again else ratio.forward)
        precision = self.units(rows[0].path, rows[0].kind, phase)
        peak = self.kernels.machine.peak(precision) * self.clock
        bandwidth = self.kernels.machine.bandwidth.value
        memory, moved = work.traffic / bandwidth, own.moved(work.traffic, bandwidth)
        call = own.call if work.traffic != 0 else Integer(0)
        saved = self.kernels.saved * ratio.forward * (_SCORES * ratio.backward if again else 1)
        compute = flop * slowness * (1 - saved) / (share * peak) + moved
        return Busy(compute, memory, call, ATTENTION)

    def _pass(self, rows: Sequence[Row], work: Work, around: Around) -> Busy:
        kernels, fusion = self.kernels, self.stack.fusion
        kind = PASSES.get(rows[0].kind, "activation")
        moved = add(
            *(row.expr for row in rows if row.quantity in TRAFFIC and id(row) not in around.inside)
        )
        share = kernels.passes[kind] if fusion.share is None else fusion.share
        bandwidth = share * kernels.machine.bandwidth.value
        traffic = mul(fusion.times.get(rows[0].kind, Integer(1)), moved) / bandwidth
        follows = (rows[0].path, rows[0].phase) in around.followers
        compute = self.device.compute_time(Units.VECTOR, work.flop[Units.VECTOR])
        return Busy(compute, traffic, Integer(0) if follows else kernels.call, PASSING)

    def moved(
        self, kind: CollectiveKind, size: Expr, hops: Hops, to: Definitions, routing: Routing
    ) -> Expr:
        """Return the time of a collective [s]; arguments as of `Measured.time`."""
        slowness = to[f"{SLOWNESS}.{INSIDE}"], to[f"{SLOWNESS}.{OUTSIDE}"]
        if self.kernels.calls is None:
            return slowness[0] * COLLECTIVES["hierarchical ring"].time(kind, size, hops)
        return Measured(self.kernels.calls, *outer_links()).time(
            kind, size, hops, slowness, routing
        )

    def ordered(self, moves: Iterable[Collective], around: Around) -> Expr:
        """Return the time in which tokens are put in the order of a rank's experts [s].

        An all-to-all brings them by rank and takes them back so: behind dispatch and before return
        they are copied once more, unless one kernel sends and copies.

        Source: deepseek-gb200, section 2.1.1.
        """
        if self.stack.dispatch != "copies" or not around.groups:
            return Integer(0)
        several = Active(next(iter(around.groups.values())))
        moved = (
            mul(2, move.calls, Active(move.ranks), several, move.message)
            for move in moves
            if move.kind is CollectiveKind.ALL_TO_ALL and "ep" in move.meshes
        )
        share = self.kernels.passes[PASSES["copy"]] * self.kernels.machine.bandwidth.value
        return add(*moved) / share

    def copied(self, size: Expr) -> Expr:
        """Return the time of passes that copy, cast or scale [s], from what they move [byte]."""
        share = self.kernels.passes["addition"] * self.kernels.machine.bandwidth.value
        return size / share

    def update(self, work: Work) -> Expr:
        """Return the time of work on all weights together [s]: passes as additions are."""
        share = self.kernels.passes["addition"] * self.kernels.machine.bandwidth.value
        busy = [self.device.compute_time(units, f) for units, f in work.flop.items() if f != 0]
        return Max(add(*busy), work.traffic / share)


_ONE = Integer(1)
_SCORES = Rational(2, 5)
"""Scores of a FLOP in backward, which takes five products in place of two, to those in forward."""

_STREAMS = Integer(4)
"""Products of experts that run at the same time where each is a kernel of its own."""

_LOADED = ("bf16", "fp16")
"""Precisions of which eight elements are loaded at once."""

_NARROW = ("fp8", "fp4", "int8")
"""Precisions of products of blocks alone: embeddings, heads and attention stay in 16 bits."""


def _part_of_kernel(forward: Sequence[Row], around: Around) -> Expr:
    """Return the part of a kernel that a product is: less than one where it is joined with others.

    Of queries, keys and values with 4096, 1024 and 1024 features the queries are 2/3.
    """
    written = add(*(row.expr for row in forward if row.quantity is Quantity.WRITE))
    whole = around.together.get((forward[0].path, Phase.FORWARD)) if forward else None
    return _ONE if whole is None or written == 0 else written / whole


def _flop(rows: Iterable[Row]) -> list[Expr]:
    return [row.expr for row in rows if row.quantity is Quantity.FLOP]
