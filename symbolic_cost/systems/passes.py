"""Passes of one pipeline stage and microbatch, as definitions of a chain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.extrema import Max
from symbolic_cost.ledger import CollectiveKind, Phase, Quantity, Row
from symbolic_cost.ops.derive import PartCosts
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.update import TRAFFIC
from symbolic_cost.parallel.stages import Stage
from symbolic_cost.parallel.table import StageCosts
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.offload import Offload
from symbolic_cost.systems.overlap import in_turn
from symbolic_cost.systems.pricing import HOST, PASSING, SLOWNESS
from symbolic_cost.systems.setting import Setting
from symbolic_cost.systems.times import (
    OpTime,
    Timing,
    bundles,
    collective_time,
    op_times,
    sent_time,
)
from symbolic_cost.systems.together import Around, shapes

PASSES: Mapping[str, tuple[Phase, ...]] = {
    "forward": (Phase.FORWARD,),
    "backward": (Phase.RECOMPUTE, Phase.BACKWARD_INPUT),
    "weight gradients": (Phase.BACKWARD_WEIGHT,),
}
"""What the three passes of a schedule run; recomputation comes before backward."""


_Group = tuple[tuple[str, ...], CollectiveKind, Expr]
"""Mesh axes of a collective, its kind and how many ranks it has."""


@dataclass(frozen=True)
class StageTimes:
    """What one pipeline stage takes.

    Args:
        ops: times of its ops, once.
        counts: how often each op runs per microbatch, by path.
    """

    stage: Stage
    ops: tuple[OpTime, ...]
    counts: Mapping[str, Expr]


@dataclass(frozen=True)
class PartTimes:
    """What a part takes once.

    Args:
        ops: times of its ops.
        busy: computing by pass [s].
        exposed: waiting for collectives by pass [s].
        bundled: collectives of weights by pass, one message of each kind [s].
        issued: what the host issues, by pass.
        waits: for the host behind a synchronisation, by pass [s].
    """

    ops: tuple[OpTime, ...]
    busy: Mapping[str, Expr]
    exposed: Mapping[str, Expr]
    bundled: Mapping[str, Mapping[str, Expr]]
    issued: Mapping[str, Expr]
    waits: Mapping[str, Expr]


class StagePasses:
    """Writes the passes of stages."""

    def __init__(self, setting: Setting, to: Definitions) -> None:
        self.setting, self.to, self.offload = setting, to, Offload(setting, to)

    def of(self, stage: Stage, costs: StageCosts) -> StageTimes:
        """Define the passes of one stage and microbatch."""
        parts = [(one.part, self._part(one)) for one in costs.parts]
        for name, phases in PASSES.items():
            busy = add(*(part.runs * times.busy[name] for part, times in parts))
            exposed = [part.runs * times.exposed[name] for part, times in parts]
            exposed += [self._bundles(part, times, name) for part, times in parts]
            working = self.to.keep(f"{stage}.{name}.busy", busy)
            # Stages and the host are behind links of their own: what they send may go on while the
            # device waits for others as well, and hides in no second twice.
            waits = add(*exposed)
            beside = working + waits + add(*(p.repeat * times.waits[name] for p, times in parts))
            sending = self._sent(stage, name, costs.sent, phases, beside)
            hosting = self.offload.passing(stage, name, costs, beside + sending)
            self.to.keep(f"{stage}.{name}.exposed", add(waits, sending, hosting))
        self._passes(stage, parts)
        waits = add(*(self.to[f"{stage}.{name}.exposed"] for name in PASSES))
        self.to.keep(f"{stage}.exposed", waits)
        self.to.keep(f"{stage}.microbatch", add(*(self.to[f"{stage}.{name}"] for name in PASSES)))
        ops = tuple(op for _, times in parts for op in times.ops)
        counts = {op.path: part.runs for part, times in parts for op in times.ops}
        return StageTimes(stage, ops, counts)

    def _part(self, costs: PartCosts) -> PartTimes:
        """Define what a part takes once; it is the same on every stage."""
        setting = self.setting
        every, reduced = setting.training.recompute.every, setting.reduced(Phase.BACKWARD_WEIGHT)
        timing, own = setting.timing, setting.divided.split_model
        about = ("times", every, reduced, setting.made)

        def made() -> PartTimes:
            works = self.to.once(("works",), own, _Works)
            what = (*about, *self._split, *works.of(costs.once, timing))
            return self.to.once(what, own, lambda: self._timed(costs))

        return self.to.once((*about, timing.key(timing.mesh)), costs.once, made)

    def _timed(self, costs: PartCosts) -> PartTimes:
        path, timing = costs.part.path, self.setting.timing
        known = self._shapes(costs.part)
        ops = op_times(costs.once, timing, self.to, known)
        busy, exposed, issued, synced = {}, {}, {}, {}
        moved = {name: self._moved(name, costs) for name in PASSES}
        for name, phases in PASSES.items():
            mine = [op for op in ops if op.phase in phases]
            terms = (*(op.busy for op in mine), self._copied(f"{path}.{name}", moved[name]))
            busy[name] = self.to.add(f"{path}.{name}.busy", add(*terms))
            waits = add(*(op.exposed for op in mine))
            synced[name] = self._synced(f"{path}.{name}", mine, known)
            if timing.rates is not None:
                hidden = add(*(op.communication for op in mine)) - waits
                waits += Max(0, hidden - busy[name] - synced[name])
            exposed[name] = self.to.add(f"{path}.{name}.exposed", waits)
            issued[name] = add(*(op.issued for op in mine))
        bundled = {name: self._bundled(f"{path}.{name}", own) for name, own in moved.items()}
        return PartTimes(tuple(ops), busy, exposed, bundled, issued, synced)

    def _shapes(self, part: Part) -> Around:
        """Return what a part's declaration says, alike whatever runs again or is in shards."""
        own, placement = self.setting.divided.split_model, self.setting.divided.placement
        runs = self.setting.methods.stack
        batches = self.setting.methods.softmax if runs is None else runs.softmax
        what = ("shapes", part.path, batches, *self._split)
        return self.to.once(what, own, lambda: shapes(part, own, placement, batches))

    @cached_property
    def _split(self) -> tuple[object, ...]:
        """Which axes are split, and how; many strategies leave the model as it is."""
        placement = self.setting.divided.placement
        return (*placement.degrees.items(), *placement.axes.items())

    def _synced(self, name: str, ops: Iterable[OpTime], known: Around) -> Expr:
        """Define what a device waits for the host before and among the kernels of experts [s].

        Where every expert has kernels of its own, the host must know how many tokens went to each:
        it waits for the routing, so that nothing is queued and the kernels run as it issues them.
        Backward knows these numbers. For example 2 products of 16 experts, 60 us each, that take
        1.1 ms: 0.8 ms.

        Source: deepseek-gb200, sections 2.3 and 3.1.
        """
        rates, host = self.setting.timing.rates, self.setting.timing.device.host
        if rates is None or rates.stack.experts != "apart" or host == 0:
            return Integer(0)
        scopes = {path.rpartition(".")[0] for path in known.groups}
        again = (Phase.FORWARD, Phase.RECOMPUTE)
        mine = [op for op in ops if op.phase in again and op.path.rpartition(".")[0] in scopes]
        if not mine:
            return Integer(0)
        took = mul(add(*(op.issued for op in mine)), host, self._slowness)
        return self.to.add(f"{name}.synced", Max(0, took - add(*(op.busy for op in mine))))

    def _moved(self, name: str, costs: PartCosts) -> dict[_Group, list[Expr]]:
        """Return the messages of a part's weights in a pass, by group and kind [byte].

        Of four blocks that run again in a row, three are gathered once more.
        """
        every = self.setting.training.recompute.every
        sizes: dict[_Group, list[Expr]] = {}
        for row in costs.once:
            move, timing = row.collective, self.setting.timing
            if row.phase in PASSES[name] and move and not row.per_step and bundles(timing, move):
                share = 1 - 1 / every if row.phase is Phase.RECOMPUTE else Integer(1)
                size = mul(share, move.calls, move.message, self.setting.reduced(row.phase))
                sizes.setdefault((move.meshes, move.kind, move.ranks), []).append(size)
        return sizes

    def _copied(self, label: str, moved: Mapping[_Group, Sequence[Expr]]) -> Expr:
        """Define the time in which units are copied from and to their messages [s]."""
        rates = self.setting.timing.rates
        if rates is None:
            return Integer(0)
        made = self.setting.made
        size = add(
            *(
                mul(rates.stack.copied(kind, made), Active(ranks), add(*sizes))
                for (_, kind, ranks), sizes in moved.items()
            )
        )
        if size == 0:
            return size
        return self.to.add(
            f"{label}.copied", mul(self.to[f"{SLOWNESS}.{PASSING}"], rates.copied(size))
        )

    def _bundled(self, label: str, moved: Mapping[_Group, Sequence[Expr]]) -> Mapping[str, Expr]:
        """Define the collectives of a part's weights, by mesh axis: one of each kind."""
        took: dict[str, Expr] = {}
        for (meshes, kind, _), messages in moved.items():
            group = "+".join(meshes)
            size = self.to.add(f"{label}.{kind}.{group}.message", add(*messages))
            time = sent_time(kind, meshes, size, self.setting.timing, self.to)
            once = self.to.add(f"{label}.{kind}.{group}", time)
            took[meshes[-1]] = took.get(meshes[-1], Integer(0)) + once
        return took

    def _bundles(self, part: Part, times: PartTimes, name: str) -> Expr:
        """Return what a stage waits in a pass for the weights of its blocks.

        The gather of a block runs beside the block before; what it hides slows the computing.
        """
        timing, own = self.setting.timing, times.bundled[name]
        busy = times.busy[name] + times.exposed[name] + times.waits[name]
        sent = [(timing.overlap((mesh,), PASSES[name][0]), took) for mesh, took in own.items()]
        if not sent:
            return Integer(0)
        waits = in_turn(sent, busy, part.runs)
        return waits + mul(timing.steal, part.runs * add(*own.values()) - waits)

    def _passes(self, stage: Stage, parts: Iterable[tuple[Part, PartTimes]]) -> None:
        """Define the passes; the device idles where the host issues ops more slowly than it works.

        It idles all of the host's time where that waits for every kernel before it issues the next.
        Gradients of inputs and weights are issued together, op by op, unless the schedule parts
        them. What it waits for the host behind a synchronisation is the least of that.
        """
        forward, *backward = tuple(PASSES)
        apart = self.setting.divided.pipeline.schedule.parts_backward
        groups = [[one] for one in backward] if apart else [backward]
        for group in ([forward], *groups):
            works = {
                name: self.to[f"{stage}.{name}.busy"] + self.to[f"{stage}.{name}.exposed"]
                for name in group
            }
            issued = add(*(part.runs * times.issued[n] for part, times in parts for n in group))
            host = mul(issued, self.setting.timing.device.host, self._slowness)
            waits = add(*(part.repeat * times.waits[n] for part, times in parts for n in group))
            late = host if self._blocks else Max(waits, host - add(*works.values()))
            idle = late if host != 0 else host
            works[group[0]] += self.to.add(f"{stage}.{group[0]}.idle", idle)
            for name, work in works.items():
                self.to.keep(f"{stage}.{name}", work)

    @property
    def _blocks(self) -> bool:
        """Whether the host waits for every kernel."""
        rates = self.setting.timing.rates
        return rates is not None and rates.stack.launches == "waited for"

    @property
    def _slowness(self) -> Expr:
        """How much slower than predicted the host is."""
        rated = self.setting.timing.rates is not None
        return self.to[f"{SLOWNESS}.{HOST}"] if rated else Integer(1)

    def _sent(
        self, stage: Stage, name: str, sent: Iterable[Row], phases: tuple[Phase, ...], busy: Expr
    ) -> Expr:
        """Define what a stage waits for its neighbours in one pass."""
        label, times, policies = f"{stage}.{name}.sent", [], []
        for row in sent:
            move = row.collective
            if move is not None and row.phase in phases and not row.per_step:
                timing = self.setting.timing
                if move.meshes == ("pp",):
                    message, pair = move.message, "neighbours"
                    took = sent_time(move.kind, move.meshes, message, timing, self.to, pair=pair)
                else:
                    took = collective_time(move, timing, self.to)
                times.append(row.count * took)
                policies.append(timing.overlap(move.meshes, row.phase, move.kind))
        if not times:
            return Integer(0)
        return policies[0].exposed(self.to.add(label, add(*times)), busy)


class _Works:
    """The work of rows as numbers: equal work has one, and many derivations have the same row."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._rows: dict[int, tuple[Row, int]] = {}

    def of(self, rows: Iterable[Row], timing: Timing) -> Iterator[int]:
        """Yield what tells the work of a part; other shards of its states change none of it."""
        meshes: dict[str, None] = {}
        for row in rows:
            if row.quantity in _WORK and not row.per_step:
                known = self._rows.get(id(row))
                if known is None:  # the row lives as long, and nobody else has its id
                    known = self._rows[id(row)] = row, self._number(row)
                yield known[1]
                if row.collective is not None:
                    meshes |= dict.fromkeys(row.collective.meshes)
        yield timing.key(meshes)

    def _number(self, row: Row) -> int:
        place = row.path, row.phase, row.kind, row.tensor, row.origin
        work = (*place, row.quantity, row.units, row.expr, row.collective)
        return self._numbers.setdefault(work, len(self._numbers))


_WORK = {Quantity.FLOP, *TRAFFIC, Quantity.COMMUNICATION}
