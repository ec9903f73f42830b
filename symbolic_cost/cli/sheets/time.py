"""What `time` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sympy import Expr, Integer, Symbol

from symbolic_cost.cli.options import Choices
from symbolic_cost.cli.session import session
from symbolic_cost.cli.sheets.systems import found_machine
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import InputError, Problems, unknown
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.symbols import M, exact, named, symbol, v
from symbolic_cost.systems.chain import derivative_name
from symbolic_cost.systems.overlap import Overlap
from symbolic_cost.systems.overlap import overlap as named_overlap
from symbolic_cost.systems.rooflines import roofline as named_roofline
from symbolic_cost.systems.step import RESULTS, STEP_PARTS, Methods, StepTime, step_time
from symbolic_cost.units import Unit, human

_DEGREES = {s.name for entry in STRATEGIES.values() for s in entry.meshes.values()}
"""Names of the symbols of degrees."""

_DEFAULT = "standard"
"""Conventions whose choice says nothing of the model FLOP."""


@dataclass(frozen=True, slots=True)
class Run:
    """How a step is run and timed, as typed."""

    system: str
    global_batch: int | None
    precision: str
    optimizer: str
    schedule: str
    roofline: str
    overlap: str
    scattered: bool


@dataclass(frozen=True)
class Timed:
    """A step with the number of every definition.

    Args:
        made: the step.
        known: number by name of the definition.
        title: of its sheets.
        notes: below its sheets.
    """

    made: StepTime
    known: Mapping[str, Expr]
    title: str
    notes: tuple[str, ...]

    def ops(self) -> Sheet:
        """Tabulate the ops of the first stage, for one microbatch and occurrence."""
        seconds = ("compute", "memory", "exposed", "total")
        columns = (
            Column("op"),
            Column("pass"),
            *(Column(name, "right", Unit.SECOND) for name in seconds),
            Column("bound by"),
        )
        title = f"{self.title}: ops of the first stage, once"
        return Sheet(title, columns, tuple(self._op_rows()), self.notes)

    def step(self) -> Sheet:
        """Tabulate the parts of the step and its figures, each with its definition."""
        rows = []
        for name in (*STEP_PARTS, *RESULTS):
            number = float(self.known[name])
            is_time = name in STEP_PARTS or name in {"step", "exposed"}
            shown = human(number, Unit.SECOND) if is_time else f"{number:.6g}"
            rows.append((name, shown, self.made.chain.definitions[name]))
        columns = (Column("part"), Column("value", "right"), Column("definition"))
        return Sheet(f"{self.title}: parts", columns, tuple(rows), (*self._doubts(), *self.notes))

    def _doubts(self) -> tuple[str, ...]:
        """Explain an MFU that no kernel reaches."""
        if float(self.known["mfu"]) <= 1:
            return ()
        return ("mfu above 1: its conventions count FLOP that the kernels do not execute",)

    def derivative(self, by: str) -> Sheet:
        """Give the derivative of the step by a symbol, and the elasticity.

        Raises:
            InputError: no such symbol, or one that the step does not depend on.
        """
        if by not in self.known:
            raise InputError(f"the step of this job does not depend on {by!r}")
        chain = self.made.chain.derivative("step", by)
        values = {symbol.name: self.known[symbol.name] for symbol in chain.symbols}
        numbers = chain.evaluate(values)
        name = derivative_name("step", by)
        slope, step, here = numbers[name], numbers["step"], self.known[by]
        rows = (
            ("step", f"{float(step):.6g}", chain.definitions["step"]),
            (name, f"{float(slope):.6g}", chain.definitions[name]),
            ("elasticity", f"{float(slope * here / step):.6g}", None),
        )
        columns = (Column("part"), Column("value", "right"), Column("definition"))
        held = ", ".join(map(str, self.made.chain.jumps("step", by)))
        flat = (f"taken as flat between their jumps: {held}",) if held else ()
        return Sheet(f"{self.title}: derivative by {by}", columns, rows, (*flat, *self.notes))

    def _op_rows(self) -> Iterator[tuple[Cell, ...]]:
        numbers = {named(name): number for name, number in self.known.items()}
        times = next(times for times in self.made.stages if times.stage is Stage.FIRST)
        for op in times.ops:
            parts = (op.compute, op.memory, op.exposed, op.time)
            compute, memory, exposed, total = (float(part.xreplace(numbers)) for part in parts)
            bounds = {compute: "compute", memory: "memory", exposed: "communication"}
            bound = bounds[max(compute, memory, exposed)]
            phase = op.phase.value.replace("_", " ")
            yield (op.path, phase, compute, memory, exposed, total, bound)
        for part in ("forward", "backward"):
            idle = float(self.known.get(f"{Stage.FIRST}.{part}.idle", 0))
            if idle:
                yield ("(whole stage)", part, None, None, None, idle, "host issuing ops")


def timed(name: str, choices: Choices, run: Run, by: str | None = None) -> Timed:
    """Time a step of a named model.

    Args:
        name: of the model.
        choices: as typed.
        run: how it is run, as typed.
        by: a symbol that stays one for a derivative, be it a degree or the microbatches.

    Raises:
        InputError: every problem of every option, or symbols without a number.
    """
    problems = Problems()
    work = problems.attempt(session, name, choices)
    machine = problems.attempt(found_machine, run.system)
    roofline = problems.attempt(named_roofline, run.roofline)
    if by is not None:
        problems.attempt(symbol, by)
    overlaps = problems.attempt(_overlaps, run.overlap)
    problems.refuse()
    work.bound  # noqa: B018 - refuses numbers that do not fit
    ranks = numbered(work.strategy, work.values)
    microbatches = _microbatches(run.global_batch, ranks, work.values)
    strategy = Structure(ranks).symbolic if by in _DEGREES else ranks
    training = Training(
        run.precision,
        run.optimizer,
        work.recompute,
        run.schedule,
        M if by == M.name else microbatches,
        chunks=exact(work.values.get("v", v)),
        layout=choices.layout,
    )
    methods = Methods(
        roofline=roofline,
        overlaps=overlaps,
        scattered=run.scattered,
        counted=MODEL_FLOP if choices.conventions == _DEFAULT else work.table.conventions,
    )
    model = on_every_rank(work.declared, strategy)
    made = step_time(model, strategy, machine, training, methods)
    numbers = {**ranks.bindings(), **work.values}
    numbers |= {M.name: int(microbatches)} if microbatches.is_Integer else {}
    values = _values(made.chain.symbols, numbers)
    said = f"{machine.name}, precision {run.precision}, schedule {run.schedule}"
    return Timed(
        made,
        {**made.chain.evaluate(values), **{key: exact(size) for key, size in values.items()}},
        f"One step of {name} on {machine.name}",
        (f"machine {said}, {microbatches} microbatches", *work.notes),
    )


def numbered(strategy: Strategy, values: Mapping[str, int]) -> Strategy:
    """Return a strategy with a number for every degree that has one."""
    degrees = {
        name: tuple(exact(values.get(s.name, s)) for s in STRATEGIES[name].meshes.values())
        for name in strategy.degrees
    }
    return Strategy(degrees, strategy.zero, strategy.panels)


def _overlaps(text: str) -> dict[str, Overlap]:
    meshes = {mesh for entry in STRATEGIES.values() for mesh in entry.meshes}
    problems, found = Problems(), {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        mesh, equals, answer = part.partition("=")
        if not equals:
            problems.found.append(f"overlap {part!r}: MESH=ANSWER is accepted, as in dp=full")
        elif mesh not in meshes:
            problems.found.append(unknown("mesh axis of overlap", mesh, meshes))
        else:
            found[mesh] = problems.attempt(named_overlap, answer)
    problems.refuse()
    return found


def _microbatches(global_batch: int | None, strategy: Strategy, values: Mapping[str, int]) -> Expr:
    """Return the microbatches of a global batch, or M.

    Raises:
        InputError: the microbatches of all ranks do not divide the global batch.
    """
    if global_batch is None:
        return exact(values.get("M", M))
    ranks = strategy.degree("dp") * strategy.degree("ep") * strategy.degree("replicas")
    together = ranks * values.get("b", 1)
    if global_batch < 1 or not (Integer(global_batch) / together).is_Integer:
        raise InputError(
            f"global batch {global_batch}: a multiple of the {together} sequences of one "
            "microbatch of all data-parallel ranks is accepted"
        )
    return Integer(global_batch) / together


def _values(symbols: tuple[Symbol, ...], numbers: Mapping[str, int]) -> dict[str, int]:
    missing = [symbol.name for symbol in symbols if symbol.name not in numbers]
    if missing:
        raise InputError(f"no time without values for {', '.join(missing)}: give them with --set")
    return {symbol.name: numbers[symbol.name] for symbol in symbols}
