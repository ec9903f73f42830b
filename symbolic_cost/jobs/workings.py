"""The workings of a job: every number that it rests on as an input, every named step as a formula.

A workbook and a calculator are written from one program, in which sizes, degrees and the figures
of the machine are open. What of them is structure stays as it is: the class of each degree, the
schedule, what is computed again; `Input.least` and `Input.most` bound a degree to its class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from sympy import Expr, Symbol

from symbolic_cost.algebra import add, sums
from symbolic_cost.conditions import Condition
from symbolic_cost.errors import InputError, refuse
from symbolic_cost.extrema import Max
from symbolic_cost.grouping import grouped
from symbolic_cost.jobs.fit import surroundings
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.inputs import (
    Check,
    Input,
    condition_nodes,
    degree_classes,
    inputs_of,
    lacking,
    opened_machine,
)
from symbolic_cost.jobs.model_terms import NamedTerms, Shared, open_graph
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.ledger import Origin, Phase, Place, Quantity, Row
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.update import TRAFFIC
from symbolic_cost.parallel.communication import communication_rows
from symbolic_cost.parallel.memory import Memory
from symbolic_cost.parallel.moments import moments
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import StageCosts
from symbolic_cost.program.lowering import Lowering
from symbolic_cost.program.program import Program, of_graph
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import M, named
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.passes import StageTimes
from symbolic_cost.systems.results import unit_of
from symbolic_cost.systems.step import defined_step
from symbolic_cost.systems.times import OpTime
from symbolic_cost.units import Unit

TIME, MEMORY, SENT = "time", "memory", "communication"
"""What a step of the workings is about."""

_OF_NUMBERS = ("model ", "every rank of", "degrees without")
"""Beginnings of lines on a job that other numbers would change, or that are of one stage."""


@dataclass(frozen=True, slots=True)
class Step:
    """A named step.

    Args:
        about: `TIME`, `MEMORY` or `SENT`.
        unit: of its number, "1" where it has none.
    """

    name: str
    about: str
    unit: str


@dataclass(frozen=True, slots=True)
class Op:
    """An op in one pass of a stage.

    Args:
        times: once [s].
        count: how often it runs per microbatch.
        flop: once [FLOP].
        traffic: once [byte].
    """

    stage: Stage
    times: OpTime
    count: Expr
    flop: Expr
    traffic: Expr


@dataclass(frozen=True, slots=True)
class _Derivation:
    steps: Mapping[str, Expr]
    conditions: tuple[Condition, ...]
    memory: Memory
    stages: tuple[StageTimes, ...]
    costs: Mapping[Stage, StageCosts]


@dataclass(frozen=True)
class Workings:
    """What a job rests on, and how its numbers follow.

    Args:
        space: where several structures are derived, so that they share what is alike in them.

    Raises:
        InputError: no machine, or one without numbers.
    """

    job: Setup
    space: Shared | None = None

    @cached_property
    def machine(self) -> Machine:
        """The machine of the job."""
        machine = self.job.machine
        if machine is None:
            raise InputError("a machine is needed: --system h100, or system='h100' in Python")
        if self.space is None and machine.bandwidth.value.free_symbols:
            raise InputError(f"machine {machine.name} has no numbers: name one of `systems`")
        return machine

    @cached_property
    def open_job(self) -> Setup:
        """The job with symbols for microbatches and chunks."""
        job = self.job
        numbers = {name: n for name, n in job.numbers.items() if name != "v" or n == 1}
        training = replace(job.training, microbatches=M, layout=job.trained.layout)
        return replace(job, precise=True, training=training, numbers=numbers, global_batch=None)

    @cached_property
    def definitions(self) -> Mapping[str, Expr]:
        """The expression of every step, in symbols and in `named` earlier ones."""
        return dict((*self._derived.steps.items(), *self._memory(), *self._sent()))

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Every step in order."""
        listed = []
        for name in self.definitions:
            about = {"memory": MEMORY, "sent": SENT}.get(name.partition(".")[0], TIME)
            unit = Unit.BYTE.value if about != TIME else unit_of(name)
            listed.append(Step(name, about, unit))
        return tuple(listed)

    @cached_property
    def program(self) -> Program:
        """Every step, and after them every check, as one program."""
        return self._lowered[0]

    @property
    def checks(self) -> tuple[Check, ...]:
        """What inputs must meet."""
        return self._lowered[1]

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """What the program needs: sizes, degrees, the machine; the job's numbers."""
        own = self.job, self.open_job.placed, self.machine
        listed = tuple(inputs_of(*own, self.program.symbols))
        refuse(lacking(one) for one in listed if one.value is None)
        return listed

    # ------------------------------------------------------------------ definitions

    @cached_property
    def opened(self) -> tuple[Machine, Mapping[str, Symbol]]:
        """The machine with symbols for its figures, and these by name."""
        return opened_machine(self.machine)

    @cached_property
    def _timed(self) -> Timed:
        return Timed(self.open_job, by="m1")  # degrees as symbols

    @cached_property
    def _derived(self) -> _Derivation:
        to = Definitions() if self.space is None else NamedTerms(self.space)
        setting = replace(self._timed.setting, machine=self.opened[0])
        setting = replace(setting, model=self._modelled(setting.model))
        stages, costs = defined_step(setting, to)
        held = self._timed.memory_of(setting.divided)
        tables = [one.table for one in costs.values()]
        tables += [held.table(stage) for stage in costs]
        conditions = dict.fromkeys(c for table in tables for c in table.conditions)
        conditions |= dict.fromkeys(Structure(self.open_job.placed).assumptions)
        return _Derivation(to.definitions, tuple(conditions), held, stages, costs)

    def _modelled(self, model: Model) -> Model:
        return model if self.space is None else self.space.model(model)

    def _step(self, name: str, expr: Expr) -> Expr:
        """Return what stands for a step in later ones."""
        if self.space is None:
            return named(name)
        return self.space.called(name, expr)

    def _memory(self) -> Iterator[tuple[str, Expr]]:
        """Yield what a rank of every stage holds by quantity, at every moment, and at most."""
        peaks = []
        for stage in self.open_job.structure.stages:
            table = self._derived.memory.table(stage)
            held = sums((_memory_text(row), row.total) for row in table)
            at = {f"memory.{stage}.at {moment}": e for moment, e in moments(table).items()}
            sizes = {f"memory.{stage}.{what}": size for what, size in held.items()} | at
            yield from sizes.items()
            peak = Max(*(self._step(name, sizes[name]) for name in at))
            yield f"memory.{stage}.peak", peak
            peaks.append(self._step(f"memory.{stage}.peak", peak))
        yield "memory.peak", Max(*peaks)
        usable = self.opened[0].usable.value
        if usable.is_finite is not False:
            beside = surroundings(replace(self.open_job, machine=self.opened[0]))
            yield "memory.beside", beside
            yield "memory.usable", usable
            taken = self._step("memory.peak", Max(*peaks)), self._step("memory.beside", beside)
            yield "memory.left", usable - add(*taken)

    def _sent(self) -> Iterator[tuple[str, Expr]]:
        """Yield what a rank of every stage sends by pass, collective and group; the cluster's."""
        job = self.open_job
        divided = replace(job.divided, model=self._modelled(job.divided.model))
        for stage in job.structure.stages:
            table = divided.table(stage, job.training.recompute)
            moved = communication_rows(table, job.training.microbatches)
            by_kind = sums(((one.phase, one.kind, one.group), one.sent) for one in moved)
            sent = {
                f"sent.{stage}.{phase.value.replace('_', ' ')}.{kind}.{group}": size
                for (phase, kind, group), size in by_kind.items()
            }
            yield from sent.items()
            yield f"sent.{stage}", add(*(self._step(name, expr) for name, expr in sent.items()))
        if self.space is None:
            for mesh, all_sent in job.sent_by_cluster.items():
                yield f"sent.by all ranks.{mesh}", all_sent

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """Every op and pass of every stage: what it computes, moves and takes."""
        listed = []
        for times in self._derived.stages:
            work = {
                (path, phase): rows
                for part in self._derived.costs[times.stage].parts
                for (path, phase), rows in _by_op(part.once).items()
            }
            for op in times.ops:
                rows = work.get((op.path, op.phase), [])
                flop = add(*(row.expr for row in rows if row.quantity is Quantity.FLOP))
                moved = add(*(row.expr for row in rows if row.quantity in TRAFFIC))
                count = times.counts[op.path]
                listed.append(Op(times.stage, op, count, flop, moved))
        return tuple(listed)

    @cached_property
    def _lowered(self) -> tuple[Program, tuple[Check, ...], Mapping[str, int]]:
        figures_of = self.opened[1]
        low = self._lowering
        graph, nodes = low.graph, {}
        low.known |= {one: graph.symbol(name) for name, one in figures_of.items()}
        for name, expr in self.definitions.items():
            nodes[name] = self._node(expr)
            if self.space is None:
                low.known[named(name)] = nodes[name]
        checks: list[Check] = []
        for said, node in condition_nodes(self._node, graph, self._derived.conditions):
            checks.append(Check(f"check {len(checks) + 1}", said))
            nodes[checks[-1].name] = node
        if low.refused:
            raise InputError([f"{text} is not compiled" for text in low.refused])
        return of_graph(graph, nodes), tuple(checks), nodes

    @cached_property
    def _lowering(self) -> Lowering:
        return (
            Lowering(open_graph(self.opened[1]), {}) if self.space is None else self.space.lowering
        )

    def _node(self, expr: Expr) -> int:
        return self._lowering.node(expr) if self.space is None else self.space.node(expr)

    @property
    def notes(self) -> tuple[str, ...]:
        """What holds for every number: the run, its conventions, and what stays as it is."""
        job = self.open_job
        bounds = degree_classes(job.placed, self.job.counted_values)
        degrees = ", ".join(
            f"{name} {'is' if least == most else 'from'} {least}"
            for name, (least, most) in bounds.items()
        )
        lines = [
            f"model {job.model.name}, strategy {str(job.strategy) or 'none'}, every stage",
            *(
                line
                for line in header(job)
                if not line.startswith(_OF_NUMBERS) and " = " not in line
            ),
            _run(job),
            _FIXED,
        ]
        if degrees:
            lines.append(f"Other degrees would have other steps; these hold for {degrees}.")
        return tuple(lines)


_FIXED = (
    "What stays as it is: the parts of the strategy, the schedule, what is computed again, the "
    "algorithms of collectives; another choice is another file."
)


def _run(job: Setup) -> str:
    training = job.training
    named = f"precision {training.precision}, optimizer {training.optimizer}"
    return f"{named}, schedule {training.schedule}, layout {job.trained.layout}"


def _memory_text(row: Row) -> str:
    return row.quantity.value.replace("_", " ") + " on the host" * (row.place is Place.HOST)


def _by_op(rows: Iterable[Row]) -> dict[tuple[str, Phase], list[Row]]:
    return grouped(
        ((row.path, row.phase), row)
        for row in rows
        if row.collective is None and not row.per_step and row.origin is Origin.OP
    )
