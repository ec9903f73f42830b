"""Structures of one model that a page can choose from, in one program with what they share.

The classes of the degrees and what backward computes again change which steps there are; each
combination that the model takes is derived, with symbols for its degrees, sizes and rates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product

from sympy import Integer, Symbol

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.inputs import opened_machine
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.model_terms import Shared
from symbolic_cost.jobs.workings import Op, Workings
from symbolic_cost.models.kernels import Running
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.states import precision
from symbolic_cost.program.program import Program, of_graph
from symbolic_cost.records import dataclass
from symbolic_cost.systems.machines import Efficiencies, Figure, Machine, MachineLink
from symbolic_cost.systems.stacks import ROOFLINE

CLASSES: Mapping[str, Mapping[str, str]] = {
    "tp": {"1": "", "tp": "tp", "sp": "tp,sp"},
    "pp": {"1": "", "2": "pp=2", "3": "pp"},
    "dp": {"1": "", "0": "dp,zero=0", "1z": "dp,zero=1", "3z": "dp,zero=3"},
    "recompute": dict.fromkeys(("none", "selective", "full"), ""),
}
"""What changes the steps: the class of each degree, sequence parallelism, ZeRO, recomputation."""

Choice = tuple[str, ...]
"""One class of each, in the order of `CLASSES`."""


def two_tiers(units: str) -> tuple[Machine, Mapping[str, Symbol]]:
    """Return a machine of symbols with links inside of a domain and between domains, and these.

    Unlike SYMBOLIC it has efficiencies, and a time in which the host issues an op.
    """
    some = Figure(Integer(1), "open")
    links = (
        MachineLink("domain", some, some, some, some),
        MachineLink("between", some, some, None, some),
    )
    reached = Efficiencies(some, some, some, some, some, some)
    whole = Machine(
        name="a machine of two tiers",
        meaning="devices in domains",
        sources={},
        matrix={units: some},
        vector={"fp32": some, units: some},
        bandwidth=some,
        capacity=some,
        usable=some,
        links=links,
        efficiencies=reached,
    )
    return opened_machine(whole)


def rates_of(machine: Machine, units: str) -> dict[str, Figure] | None:
    """Return the figures of a machine under the names of `two_tiers`; None if it is another kind.

    A machine with one kind of link, or more than two, with efficiencies by size of a product, or
    without the units or with symbols for its rates is another kind.
    """
    alike = len(machine.links) == 2 and machine.links[0].ranks is not None  # noqa: PLR2004 - tiers
    if not alike or machine.efficiencies.products or units not in machine.matrix:
        return None
    if machine.bandwidth.value.free_symbols:
        return None
    inside, between = machine.links
    reached = machine.efficiencies
    figures = {
        f"matrix.{units}": machine.matrix[units],
        f"vector.{units}": machine.vector.get(units, machine.vector["fp32"]),
        "memory.bandwidth": machine.bandwidth,
        "memory.usable": machine.usable,
        "links.domain.ranks": inside.ranks,
    }
    for name, link in (("domain", inside), ("between", between)):
        for part in ("bandwidth", "latency", "efficiency"):
            figures[f"links.{name}.{part}"] = getattr(link, part)
    for part in ("matrix", "half", "vector", "memory", "launch", "host"):
        figures[f"efficiencies.{part}"] = getattr(reached, part)
    known = {name: one for name, one in figures.items() if one is not None}
    return {f"machine.{name}": one for name, one in known.items() if one.value.is_Rational}


@dataclass(frozen=True)
class Structures:
    """Every structure of a job's model.

    Args:
        job: model, conventions, precision, optimizer, schedule, kernels; not its strategy.
        classes: of which every combination is taken; those of `CLASSES`, or fewer.
    """

    job: Job
    classes: Mapping[str, Sequence[str]]

    @cached_property
    def units(self) -> str:
        """Precision in which the devices compute."""
        return precision(self.job.training.precision).units

    @cached_property
    def machine(self) -> tuple[Machine, Mapping[str, Symbol]]:
        """A machine of symbols, and the symbols by name."""
        return two_tiers(self.units)

    @cached_property
    def space(self) -> Shared:
        """Where all of them are derived."""
        return Shared(self.machine[1])

    @cached_property
    def every(self) -> Mapping[Choice, _Opened]:
        """The workings of every combination that the model takes."""
        refused: dict[str, None] = {}
        every = dict(self._every(refused))
        if not every:
            raise InputError(refused)
        return every

    def _every(self, refused: dict[str, None]) -> Iterator[tuple[Choice, _Opened]]:
        listed = (self.classes[name] for name in CLASSES)
        for choice in product(*listed):
            words = dict(zip(CLASSES, choice, strict=True))
            parts = (CLASSES[name][words[name]] for name in ("tp", "pp", "dp"))
            strategy = ",".join(part for part in parts if part)
            try:
                own = self._job(strategy, words["recompute"])
                workings = _Opened(own, self.space, self.machine[1], self._running)
                workings.program  # noqa: B018 - refused where the model does not take it
            except InputError as error:
                refused |= dict.fromkeys(error.problems)
                continue
            yield choice, workings

    @cached_property
    def _sized(self) -> Model:
        return replace(self.job.model, bindings={})

    @cached_property
    def _running(self) -> Running:
        return self._job("", "none").running

    def _job(self, strategy: str, recompute: str) -> Job:
        return self.job.replace(
            model=self._sized,
            strategy=strategy,
            recompute=recompute,
            system=self.machine[0],
            stack=ROOFLINE,  # the page has every machine, and each its own efficiencies
            numbers={},
            global_batch=None,
        )

    @cached_property
    def outputs(self) -> Mapping[tuple[Choice, str], int]:
        """The node of every step and check, in the graph of the space."""
        return {
            (choice, name): node
            for choice, workings in self.every.items()
            for name, node in workings.nodes.items()
        }

    @cached_property
    def program(self) -> Program:
        """All of them; an output is named by its place among `outputs` and the nodes of ops."""
        wanted = {
            *self.outputs.values(),
            *(n for ops in self.ops.values() for o in ops for n in o[2:]),
        }
        return of_graph(self.space.graph, {str(node): node for node in sorted(wanted)})

    @cached_property
    def ops(self) -> Mapping[Choice, tuple[tuple[str, str, int, int, int, int], ...]]:
        """Path, pass, and the nodes of FLOP, bytes, busy and exposed seconds of every op, once."""
        return {choice: tuple(self._ops(own.ops)) for choice, own in self.every.items()}

    def _ops(self, ops: Sequence[Op]) -> Iterator[tuple[str, str, int, int, int, int]]:
        met = set()
        for op in ops:
            phase = op.times.phase.value.replace("_", " ")
            if (op.times.path, phase) not in met:
                met.add((op.times.path, phase))
                parts = (op.flop, op.traffic, op.times.busy, op.times.exposed)
                flop, moved, busy, exposed = map(self.space.node, parts)
                yield op.times.path, phase, flop, moved, busy, exposed


class _Opened(Workings):
    """Workings on a machine whose figures are symbols already.

    What runs is one object for all of them, so that its parts are derived once.
    """

    def __init__(
        self, job: Job, space: Shared, figures: Mapping[str, Symbol], running: Running
    ) -> None:
        super().__init__(job, space)
        object.__setattr__(self, "opened", (job.machine, figures))
        vars(self.open_job)["running"] = running

    @property
    def nodes(self) -> Mapping[str, int]:
        """The node of every output in the graph of the space."""
        return self._lowered[2]
