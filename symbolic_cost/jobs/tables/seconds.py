"""How long a training step takes, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sympy import Expr

from symbolic_cost.emit.sheet import Cell, Measured, Sheet, headed
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.header import header, scheduled, stack_note
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.timed import Timed, ends_of
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.symbols import named, symbol
from symbolic_cost.systems.chain import derivative_name
from symbolic_cost.systems.overlap import overlaps
from symbolic_cost.systems.results import SHARES, unit_of
from symbolic_cost.systems.spread import Interval
from symbolic_cost.systems.step import RESULTS, STEP_PARTS
from symbolic_cost.units import Unit, human


def step_sheet(timed: Timed) -> Sheet:
    """Tabulate the parts of the step and its figures with definitions, and what these name.

    Where symbols have no number, what depends on them is a formula, down to the numbers that it
    takes.
    """
    if timed.open_symbols:
        return _formula_sheet(timed)
    definitions = timed.step.chain.definitions
    every = {name: definitions[name] for name in (*STEP_PARTS, *RESULTS) if name in definitions}
    # What is but another name of one term says no more than that term's number.
    shown = {name: None if expr.is_Symbol or expr == 0 else expr for name, expr in every.items()}
    named = {symbol.name for expr in shown.values() if expr for symbol in expr.free_symbols}
    terms = dict.fromkeys(name for name in definitions if name in named and name not in shown)
    rows: list[tuple[Cell, ...]] = [
        (name, figure(timed, name), (shown | terms)[name]) for name in (*shown, *terms)
    ]
    own = timed.interval
    if own is not None:
        ends = (("step, low", own.low), ("step, high", own.high))
        place = 1 + next(n for n, row in enumerate(rows) if row[0] == "step")
        rows[place:place] = [(name, Measured(end, Unit.SECOND), None) for name, end in ends]
    columns = headed("part, value>, definition")
    about = (
        "achieved is of one rank, the peak rate of all; model and hardware FLOP are of one "
        "microbatch of all ranks"
    )
    return Sheet(f"{timed.title}: parts", columns, tuple(rows), (about, *_notes(timed)))


def figure(timed: Timed, name: str) -> float | Measured:
    """Return the number of a definition with its unit."""
    return _measured(name, timed.numbers[name])


def _measured(name: str, value: Expr) -> float | Measured:
    unit, number = unit_of(name), float(value)
    if name in SHARES:
        return Measured(number, Unit.RATIO)
    return number if unit in ("1", "1/s") else Measured(number, Unit(unit))


def figure_text(timed: Timed, name: str) -> str:
    """Return the number of a definition with its unit, for people."""
    own = figure(timed, name)
    return human(own.number, own.unit) if isinstance(own, Measured) else f"{own:.6g}"


def _formula_sheet(timed: Timed) -> Sheet:
    """Tabulate definitions: those of the step first, then what their formulas name.

    For example without microbatches: "microbatches = M microbatch", and a microbatch in seconds.
    """
    chain = timed.step.chain
    listed = tuple(reversed(tuple(chain.definitions.items())))
    numbers = chain.settled(timed.setup.counted_values)
    shown = tuple(name for name in (*STEP_PARTS, *RESULTS) if name in chain.definitions)
    wanted = {named(name) for name in shown}
    for name, expr in listed:
        if named(name) in wanted and name not in numbers:
            wanted |= expr.free_symbols
    below = (name for name, _ in listed if named(name) in wanted)
    rows = tuple(
        (name, _measured(name, numbers[name]), None)
        if name in numbers
        else (name, None, timed.setup.value(chain.definitions[name]))
        for name in dict.fromkeys((*shown, *below))
    )
    title = f"{timed.title}: formulas of {', '.join(timed.open_symbols)}"
    return Sheet(title, headed("part, value>, definition"), rows, _notes(timed))


def briefly(sheet: Sheet) -> Sheet:
    """Return what a screen takes: of hundreds of definitions the first, and how to get the rest."""
    if len(sheet.rows) <= _SCREEN:
        return sheet
    left = len(sheet.rows) - _FIRST
    more = f"{left} definitions that these rest on are left out: --format json or markdown has all"
    return replace(sheet, rows=sheet.rows[:_FIRST], notes=(more, *sheet.notes))


_SCREEN = 64
_FIRST = 16
"""Definitions of a step and its figures, and what they name at once."""


def ops_sheet(timed: Timed) -> Sheet:
    """Tabulate the ops of the first stage, for one microbatch and occurrence."""
    seconds = "compute> [s], memory> [s], exposed> [s], total> [s]"
    columns = headed(f"op, pass, {seconds}, bound by")
    title = f"{timed.title}: ops of the first stage, once"
    return Sheet(title, columns, tuple(_op_rows(timed)), _notes(timed))


def derivative_sheet(setup: Setup, by: str) -> Sheet:
    """Give the derivative of the step by a symbol, and the elasticity."""
    timed = Timed(setup, symbol(by).name)
    if by not in timed.numbers:
        raise InputError(f"the step of this job does not depend on {by!r}")
    jumps = ", ".join(map(str, timed.step.chain.jumps("step", by)))
    flat = (f"taken as flat between their jumps: {jumps}",) if jumps else ()
    rate = timed.step.chain.derivative("step", by)
    numbers = rate.evaluate({symbol.name: timed.numbers[symbol.name] for symbol in rate.symbols})
    name = derivative_name("step", by)
    slope, step, here = numbers[name], numbers["step"], timed.numbers[by]
    own = round(float(slope * here / step), 6)
    rows = (
        ("step", Measured(float(step), Unit.SECOND), rate.chain.definitions["step"]),
        (name, Measured(float(slope), Unit.SECOND), None),
        ("elasticity", own, None),
    )
    columns = headed("part, value>, definition")
    about = f"{name}: for one more of {by}; elasticity: per cent of the step per per cent of {by}"
    return Sheet(
        f"{timed.title}: derivative by {by}", columns, rows, (about, *flat, *_notes(timed))
    )


def _notes(timed: Timed) -> tuple[str, ...]:
    plan = timed.step.divided.pipeline.schedule
    assumed = plan.meaning.partition("; ")[2]
    own = None if timed.open_symbols else timed.interval
    hidden = _hidden(timed.setup)
    return (
        scheduled(timed.setup, timed.microbatches),
        *((f"assumed of the bubble: {assumed}",) if assumed else ()),
        *((f"hidden by its passes, unless said otherwise: {hidden}",) if hidden else ()),
        *timed.warnings,
        stack_note(timed.setup),
        *(() if own is None else interval_notes(own)),
        *header(timed.setup, "step", *timed.setup.training.offload),
    )


def _hidden(setup: Setup) -> str:
    """Return what communication of the job its schedule hides."""
    methods, mesh = setup.methods, setup.divided.ranks.mesh
    own = overlaps(setup.trained.pipeline.schedule.hidden) if methods.stack else {}
    return ", ".join(name for name in own if name in mesh and name not in methods.overlaps)


def interval_notes(own: Interval) -> tuple[str, ...]:
    """Say which ends steps lie between, and what leaves most open."""
    return (f"four of five such steps take {ends_of(own)}", f"most uncertain: {own.most}")


def _op_rows(timed: Timed) -> Iterator[tuple[Cell, ...]]:
    times = next(times for times in timed.step.stages if times.stage is Stage.FIRST)
    for op in times.ops:
        parts = (op.compute, op.memory, op.exposed, op.time)
        compute, memory, exposed, total = (float(timed.number(part)) for part in parts)
        bounds = {compute: "compute", memory: "memory", exposed: "communication"}
        phase = op.phase.value.replace("_", " ")
        yield (op.path, phase, compute, memory, exposed, total, bounds[max(bounds)])
    for part in ("forward", "backward"):
        idle = float(timed.numbers.get(f"{Stage.FIRST}.{part}.idle", 0))
        if idle:
            yield ("(whole stage)", part, None, None, None, idle, "host issuing ops")
