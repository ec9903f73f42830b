"""What commands about schedules and machines print."""

from collections.abc import Sequence

from sympy import Expr, Integer

from symbolic_cost.emit.sheet import Cell, Column, Sheet, headed
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.jobs.inputs import figure_unit
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.parallel.timeline import Event
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import T_B, T_F, T_W, M, pp, stage, v
from symbolic_cost.systems.calibration import Errors, Measured, calibrate, errors_of, read_rows
from symbolic_cost.systems.machines import SYMBOLIC, Machine
from symbolic_cost.systems.records import find_machine, machine, machine_names
from symbolic_cost.systems.runs import rates, step_seconds

_UNIT_TIMES = "values for T_F = T_B = T_W = 1, in that unit; in flight on the first stage"


def stages_of(text: str) -> int:
    """Return the pipeline stages of a strategy.

    Raises:
        InputError: the strategy is refused, or does not give pp a number.
    """
    degree = parse_strategy(text).degree("pp")
    if not degree.is_Integer:
        raise InputError(f"strategy {text!r}: pp needs a number here, such as pp=4")
    return int(degree)


def schedule_sheet(
    name: str, stages: int, microbatches: int, chunks: int, events: Sequence[Event]
) -> Sheet:
    """Tabulate the formulas of a schedule, with their values, and its length as it runs."""
    plan = schedule(name, chunks)
    sizes = {pp: stages, M: microbatches, v: chunks, stage: 1, T_F: 1, T_B: 1, T_W: 1}
    numbers = {symbol: Integer(size) for symbol, size in sizes.items()}
    formulas = {
        "bubble": plan.bubble,
        "step time": plan.step_time,
        "bubble fraction": plan.bubble_fraction,
        "microbatches in flight": plan.in_flight,
        "waiting for weight gradients": plan.residue,
        "messages between stages": plan.messages,
        "copies of the weights": plan.copies,
    }
    rows: list[tuple[Cell, ...]] = [
        (label, formula, value(formula.xreplace(numbers))) for label, formula in formulas.items()
    ]
    rows.append(("step time as it runs", None, max(event.end for event in events)))
    notes = (_UNIT_TIMES, f"source {plan.source}")
    apart = f", v = {chunks} chunks" if plan.chunks == v else ""
    title = f"{plan.name} ({plan.meaning}), {stages} stages{apart}, {microbatches} microbatches"
    return Sheet(title, headed("quantity, formula, value>"), tuple(rows), notes)


def machines_sheet() -> Sheet:
    """Tabulate the main rates of every machine."""
    rows = []
    for name in machine_names():
        record = machine(name)
        half = next((p for p in ("bf16", "fp16", "fp32") if p in record.matrix), None)
        rows.append(
            (
                name,
                record.meaning,
                half,
                None if half is None else _number(record.peak(half) / 10**12),
                _number(record.bandwidth.value / 10**9),
                _number(record.capacity.value / 2**30),
                ", ".join(link.name for link in record.links),
            )
        )
    columns = headed(
        "machine, meaning, precision, peak> [TFLOP/s], memory> [GB/s], capacity> [GiB], links"
    )
    notes = ("peaks are dense; symbolic-cost systems NAME lists every number with its source",)
    return Sheet("Machines", columns, tuple(rows), notes)


def machine_sheet(name: str) -> Sheet:
    """Tabulate every number of a machine with its source and what it includes."""
    return machine_sheet_of(find_machine(name))


def machine_sheet_of(record: Machine) -> Sheet:
    """Tabulate the same of a machine."""
    rows = tuple(
        (
            place,
            _number(figure.value),
            figure_unit(f"machine.{place}").strip("[]"),
            record.sources.get(figure.source, figure.source),
            figure.includes,
        )
        for place, figure in record.figures()
    )
    headings = ("unit", "source", "includes")
    columns = (Column("number"), Column("value", "right"), *map(Column, headings))
    return Sheet(f"{record.name}: {record.meaning}", columns, rows)


def _number(expr: Expr) -> Cell:
    return expr if expr.free_symbols else value(expr) if expr.is_Rational else str(expr)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibrated machine, and the errors that remain by file."""

    machine: Machine
    errors: dict[str, Errors]


def fitted(system: str, files: Sequence[str]) -> Fitted:
    """Calibrate a machine on measured rows."""
    problems = Problems()
    start = problems.attempt(find_machine, system)
    sets = [problems.attempt(read_rows, file) for file in files]
    if start is SYMBOLIC:
        problems.texts.append("machine 'symbolic' has no numbers to start from: name another one")
    problems.refuse()
    machine = calibrate(sets, start)
    errors = {file: _errors(machine, rows) for file, rows in zip(files, sets, strict=True)}
    return Fitted(machine, errors)


def fitted_sheet(fit: Fitted) -> Sheet:
    """Tabulate the errors that remain, the fitted numbers in the notes."""
    rows = tuple(
        (
            file,
            errors.runs,
            *(
                round(100 * share, 2)
                for share in (errors.mean, errors.median, errors.bias, errors.largest)
            ),
        )
        for file, errors in fit.errors.items()
    )
    columns = headed("rows, runs>, mean> [%], median> [%], bias> [%], largest> [%]")
    notes = tuple(
        f"{place} = {float(figure.value):.4g} ({figure.includes})"
        for place, figure in fit.machine.figures()
        if place.startswith("efficiencies.") or place.endswith((".efficiency", ".latency"))
    )
    return Sheet(f"{fit.machine.name}, calibrated: errors on these rows", columns, rows, notes)


def _errors(machine: Machine, rows: Sequence[Measured]) -> Errors:
    predicted = step_seconds([row.run for row in rows], rates(machine))
    return errors_of(predicted, [row.seconds for row in rows])
