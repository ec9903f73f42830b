"""What a device shows of a job's memory: tensors of the step, then what surrounds them, by name.

Three numbers are read in practice: what the allocator handed out (torch.cuda.max_memory_allocated),
what it keeps (max_memory_reserved), and what nvidia-smi shows. Each is the one before plus terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any

from symbolic_cost.emit.sheet import Sheet, headed
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.fit import fit
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.peaks import Fit
from symbolic_cost.jobs.setup import Setup, needed_machine
from symbolic_cost.ledger import Place, Quantity
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.groups import arranged
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.part_memory import STATES
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.systems.kernel_records import kind_of
from symbolic_cost.systems.stacks import UNKNOWN


class View(StrEnum):
    """Who says how much memory is taken."""

    ALLOCATED = "allocated"
    RESERVED = "reserved"
    SMI = "smi"


@dataclass(frozen=True, slots=True)
class Term:
    """One reason why memory is taken.

    Args:
        view: the first that counts it.
        size: of it [byte].
        source: where it stands; empty for what is derived.
    """

    name: str
    view: View
    size: int
    source: str = ""


_CAPABLE = ("h100", "h200", "h800", "b200", "b300", "gb200", "gb300")
"""Beginnings of the names of devices of compute capability 9 and above."""


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of the fullest device of a job.

    Raises:
        InputError: no machine, one that is no GPU, or symbols without a number.
    """

    setup: Setup

    def __post_init__(self) -> None:
        """Refuse a job that says no device."""
        machine = needed_machine(self.setup, "the memory of a device")
        if kind_of(machine) != "gpu":
            raise InputError(f"{machine.name} is no GPU: its allocator is not on record")
        if not self.fit.peaks:
            raise InputError("the memory of a device needs a number for every symbol")

    @cached_property
    def fit(self) -> Fit:
        """The peaks of the stages."""
        return fit(self.setup)

    @property
    def stage(self) -> Stage:
        """The stage that holds most."""
        return self.fit.fullest

    def total(self, view: View | str = View.SMI) -> int:
        """Return what is taken [byte], as one of "allocated", "reserved" and "smi" says it."""
        asked = list(View).index(View(view))
        return sum(term.size for term in self.terms if list(View).index(term.view) <= asked)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Every reason that takes something, in the order of the views."""
        peak = self.fit.peaks[self.stage]
        held = [Term(f"tensors at {peak.moment}", View.ALLOCATED, peak.size), *self._allocated()]
        beside = list(self._beside())
        held += self._reserved(sum(one.size for one in held), sum(one.size for one in beside))
        return tuple(term for term in (*held, *beside) if term.size > 0)

    def _allocated(self) -> Iterator[Term]:
        """Yield what the allocator hands out beside the tensors of the step."""
        yield self._term("blocks of 512 bytes", "block", self._rounding(self._fact("block")))
        yield self._term("workspaces of cuBLAS", *self._by_device("cublas"))
        yield self._term("workspace of TransformerEngine", *self._by_device("engine"))
        yield self._term("buckets of gradients", "buckets", self._fact("buckets"))

    def _reserved(self, allocated: int, beside: int) -> Iterator[Term]:
        """Yield what the allocator keeps; it gives its cache back before memory runs out."""
        steps = self._rounding(self._fact("segment"), self._fact("segment"))
        cache = int(Fraction(self._fact("fragmentation")) * allocated)
        machine = self.setup.machine
        capacity = exact(0) if machine is None else machine.capacity.value
        room = max(int(capacity) - beside - allocated - steps, 0) if capacity.is_finite else cache
        yield self._term("segments of 2 MiB", "segment", steps)
        yield self._term("cache and fragmentation", "fragmentation", min(cache, room))

    def _beside(self) -> Iterator[Term]:
        """Yield what the allocator does not see."""
        yield self._term("buffers of NCCL", "connection", self._nccl(), View.SMI)
        yield self._term("CUDA context", "context", self._fact("context"), View.SMI)

    def _term(self, name: str, fact: str, size: int, view: View | None = None) -> Term:
        """Return a term with the source of the fact that it rests on."""
        record = self._facts.get(fact)
        cached = fact in ("segment", "fragmentation")
        source = "" if record is None else self._sources[record["source"]]
        return Term(name, view or (View.RESERVED if cached else View.ALLOCATED), size, source)

    @cached_property
    def _facts(self) -> Mapping[str, Any]:
        """The numbers of the stack that runs."""
        runs, data = self.setup.methods.stack, package_data("systems/device_memory.toml")
        facts = dict(data["every"])
        for name in reversed((UNKNOWN,) if runs is None else runs.family):
            facts |= data.get(name, {})
        return facts

    @property
    def _sources(self) -> Mapping[str, str]:
        texts: Mapping[str, str] = package_data("systems/device_memory.toml")["sources"]
        return texts

    def _fact(self, name: str) -> Any:  # noqa: ANN401 - an integer, or a share
        """Return a number of the stack, none where it has no such term."""
        number = self._facts.get(name, {"value": 0})["value"]
        return number if isinstance(number, int) else str(number)

    def _by_device(self, name: str) -> tuple[str, int]:
        """Return the number for the generation of the device, and its name."""
        machine = self.setup.machine
        capable = machine is not None and machine.name.startswith(_CAPABLE)
        chosen = f"{name}9" if capable and f"{name}9" in self._facts else name
        return chosen, self._fact(chosen)

    def _rounding(self, block: int, least: int = 0) -> int:
        """Return by how much tensors of at least a size are rounded up to blocks [byte]."""
        own = self.setup
        lost = 0
        for row in own.stages_memory.table(self.stage):
            if row.place is Place.DEVICE and row.quantity in (*STATES, Quantity.SAVED):
                size = int(value(own.value(row.expr)))
                lost += int(value(own.value(row.count))) * (-size % block) if size > least else 0
        return lost

    def _nccl(self) -> int:
        """Return the buffers of the communicators: one per mesh axis, and one of all ranks."""
        own, machine = self.setup, self.setup.machine
        mesh = {
            name: int(value(own.value(ranks)))
            for name, ranks in arranged(own.strategy.mesh, own.methods.order).items()
        }
        domain = machine.links[0].ranks if machine is not None else None
        room = int(domain.value) if domain is not None else max(mesh.values(), default=1)
        near, connections = 1, 0
        for ranks in mesh.values():
            near *= ranks
            connections += self._connections(ranks, near <= room)
        connections += self._connections(near, near <= room)
        return int(self._fact("connection")) * connections

    def _connections(self, ranks: int, within: bool) -> int:  # noqa: FBT001 - one caller
        """Return the connections of a communicator, none of one rank."""
        return int(self._fact("inside" if within else "outside")) if ranks > 1 else 0

    def sheet(self, view: View | str = View.SMI) -> Sheet:
        """Tabulate the terms up to a view, and their sum."""
        asked = View(view)
        most = list(View).index(asked)
        rows = []
        for one in list(View)[: most + 1]:
            rows += [(t.name, t.size, t.source) for t in self.terms if t.view is one]
            rows.append((_NAMES[one], self.total(one), ""))
        title = f"Memory of the fullest device of {self.setup.model.name}, stage {self.stage}"
        return Sheet(title, headed("memory, size> [byte], source"), tuple(rows), header(self.setup))


_NAMES = {
    View.ALLOCATED: "allocated",
    View.RESERVED: "reserved",
    View.SMI: "as nvidia-smi shows it",
}
