"""Where the time of a step goes: every op and collective by its share, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter

from sympy import Expr, Integer, Symbol

from symbolic_cost.algebra import sums
from symbolic_cost.axes import At, Role
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.jobs.header import header, microbatches, stack_note
from symbolic_cost.jobs.tables.seconds import interval_notes
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.ledger import Quantity, Units
from symbolic_cost.parallel.states import precision
from symbolic_cost.program.lowering import lowered
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import named
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.machines import Figure, Machine
from symbolic_cost.systems.passes import StageTimes
from symbolic_cost.systems.step import STEP_PARTS, defined_step
from symbolic_cost.systems.times import OpTime

_BETTER = 1.1
"""What a rate is multiplied with, to see what would help."""


@dataclass(frozen=True, slots=True)
class TimeShare:
    """Time of a step that one thing takes.

    Args:
        phase: in which it runs; empty for a part of the step.
        times: how often in a step; zero where that has no meaning.
        once: time of one occurrence [s].
        total: in a step [s].
        peak: share of the matrix peak that its products reach while the device works on it.
        bound: what it waits for.
    """

    name: str
    phase: str
    times: Expr
    once: float
    total: float
    peak: float | None
    bound: str


def explained_sheet(timed: Timed) -> Sheet:
    """Tabulate what takes the time of a step, the largest first; notes say what would help most.

    The stage that sets the pace is told, all its microbatches; bubble, sums of gradients, optimizer
    and gathers of weights stand beside its ops, so that the shares add up to one.
    """
    stage = _slowest(timed)
    told = (f"{name} {gain:.2%}" for name, gain in gains(timed))
    machine = timed.setup.machine
    notes = (
        f"ops of the {stage.stage} stage, which sets the pace; {microbatches(timed.microbatches)}",
        stack_note(timed.setup),
        *_experts(timed),
        *(() if timed.interval is None else interval_notes(timed.interval)),
        *((f"a tenth better shortens the step by: {', '.join(told)}",) if machine else ()),
        *timed.warnings,
        *header(timed.setup, "step", *timed.setup.training.offload),
    )
    return replace(spent_sheet(timed, time_shares(timed)), notes=notes)


def _experts(timed: Timed) -> Iterator[str]:
    """Say what is assumed of a mixture of experts, and how its tokens go to them."""
    runs = timed.setup.methods.stack
    if not timed.setup.model.placed(At(Role.EXPERT, ("",))):
        return
    yield "assumed of experts: each gets equally many tokens"
    if runs is not None:
        alone = "every copy of a token goes alone, and is put in order before and behind"
        sent = (
            "a token goes once to all its experts on a rank" if runs.dispatch == "once" else alone
        )
        each = "a kernel for each" if runs.experts == "apart" else "one kernel for all"
        yield f"experts of stack {runs.name}: {sent}; of products {each}"


def spent_sheet(timed: Timed, rows: Iterable[TimeShare]) -> Sheet:
    """Tabulate what takes time, without notes."""
    step = float(timed.numbers["step"])
    columns = headed("op, pass, times>, once> [s], step> [s], share> [%], of peak> [%], bound by")
    cells = tuple(_cells(row, step) for row in rows)
    return Sheet(f"{timed.title}: where the time goes", columns, cells)


def time_shares(timed: Timed) -> list[TimeShare]:
    """Return what takes the time of a step, the largest first; together they are the step."""
    rows = sorted((*_ops(timed), *_parts(timed)), key=attrgetter("total"), reverse=True)
    return [row for row in rows if row.total > 0]


def _cells(row: TimeShare, step: float) -> tuple[Cell, ...]:
    share = round(100 * row.total / step, 2)
    peak = None if row.peak is None else round(100 * row.peak, 1)
    return (row.name, row.phase, row.times or None, row.once, row.total, share, peak, row.bound)


def _slowest(timed: Timed) -> StageTimes:
    return max(timed.step.stages, key=lambda one: float(timed.numbers[f"{one.stage}.microbatch"]))


def _ops(timed: Timed) -> Iterator[TimeShare]:
    """Yield the ops of the slowest stage, and what it waits or idles for besides."""
    stage, count = _slowest(timed), timed.microbatches
    flop = sums(
        ((row.path, row.phase), timed.number(timed.setup.value(row.expr)))
        for row in timed.step.table[stage.stage]
        if row.quantity is Quantity.FLOP and row.units is Units.MATRIX
    )
    time_shares = Integer(0)
    for op in stage.ops:
        times = timed.setup.value(stage.counts[op.path]) * count
        once = timed.number(op.time)
        time_shares += times * once
        busy, work = timed.number(op.busy), flop.get((op.path, op.phase), Integer(0))
        peak = _peak(timed, op) if work != 0 and busy != 0 else None
        reached = None if peak is None else float(work / (busy * peak))
        phase = op.phase.value.replace("_", " ")
        yield TimeShare(
            op.path, phase, times, float(once), float(times * once), reached, _bound(timed, op)
        )
    rest = timed.numbers["microbatches"] - time_shares
    yield TimeShare("(sends, gathers, idle)", "", Integer(0), float(rest), float(rest), None, _REST)


def _peak(timed: Timed, op: OpTime) -> Expr | None:
    """Return the peak of the units that an op's products run on [FLOP/s]."""
    machine, rates = timed.setup.machine, timed.setting.timing.rates
    plain = precision(timed.setup.training.precision).units
    units = plain if rates is None else rates.units(op.path, op.kind, op.phase)
    return None if machine is None else timed.number(machine.peak(units))


_REST = "neighbours, weights of blocks or the host"


def _bound(timed: Timed, op: OpTime) -> str:
    compute, memory, waits = (
        float(timed.number(part)) for part in (op.compute, op.memory, op.exposed)
    )
    if waits > max(compute, memory):
        return ", ".join(f"{move.kind} over {move.group}" for move in op.moves)
    return "compute" if compute >= memory else "memory"


_MEANINGS = {
    "bubble": "stages that wait for each other",
    "gradients": "sums of gradients",
    "clipping": "the norm of the gradients",
    "optimizer": "memory, states of the optimizer",
    "weights": "gathers of weights",
}


def _parts(timed: Timed) -> Iterator[TimeShare]:
    for part in STEP_PARTS:
        if part != "microbatches":
            took = float(timed.numbers[part])
            yield TimeShare(f"({part})", "", Integer(0), took, took, None, _MEANINGS[part])


def gains(timed: Timed) -> list[tuple[str, float]]:
    """Return by which share the step is shorter where one rate is a tenth better, most first.

    The step is derived once, with a factor at every rate: a factor of 11/10 at a time.
    """
    machine = timed.setup.machine
    if machine is None:
        return []
    better, factors = _improved(machine)
    to = Definitions()
    defined_step(Timed(replace(timed.setup, machine=better)).setting, to)
    program = lowered(to.definitions, ["step"], free=[factor.name for factor in factors.values()])
    known = {name: float(timed.numbers[name]) for name in program.inputs if name in timed.numbers}
    known |= {factor.name: 1.0 for factor in factors.values()}
    before = program.floats(known)["step"]
    gained = [
        (name, 1 - program.floats({**known, factor.name: _BETTER})["step"] / before)
        for name, factor in factors.items()
    ]
    gained.sort(key=lambda one: (one[1], one[0]), reverse=True)
    return [one for one in gained if one[1] > _LEAST]


_LEAST = 5e-5


def _improved(machine: Machine) -> tuple[Machine, dict[str, Symbol]]:
    """Return the machine with a factor at each rate, or below each time; and the factors."""
    factors: dict[str, Symbol] = {}

    def times(name: str, figure: Figure, power: int = 1) -> Figure:
        factor = factors.setdefault(name, named(f"better {name}"))
        return replace(figure, value=figure.value * factor**power)

    def shorter(name: str, figure: Figure) -> Figure:
        return figure if figure.value == 0 else times(name, figure, -1)

    def better(place: str, figure: Figure) -> Figure:
        of, _, name = place.rpartition(".")
        link = of.removeprefix("links.")
        if of == "matrix":
            return times("matrix rate", figure)
        if place == "memory.bandwidth":
            return times("memory bandwidth", figure)
        if link != of and name == "bandwidth":
            return times(f"bandwidth of {link}", figure)
        if link != of and name == "latency":
            return shorter(f"latency of {link}", figure)
        return shorter(_TIMES[place], figure) if place in _TIMES else figure

    return replace(machine.mapped(better), record=machine), factors


_TIMES = {
    "efficiencies.launch": "time of a launch",
    "efficiencies.host": "time of the host",
}
