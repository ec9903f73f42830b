"""What a device shows of a job's memory: tensors of the step, then what surrounds them, by name.

Three numbers are read in practice: what the allocator handed out (torch.cuda.max_memory_allocated),
what it keeps (max_memory_reserved), and what nvidia-smi shows. Each is the one before plus terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

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
from symbolic_cost.records import dataclass
from symbolic_cost.systems.kernel_records import kind_of
from symbolic_cost.systems.surroundings import Surroundings


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
        own = self._around
        yield self._term("blocks of 512 bytes", "block", self._rounding(own.fact("block")))
        for name, fact in _HANDED.items():
            chosen = own.of_device(fact)
            yield self._term(name, chosen, own.fact(chosen))

    def _reserved(self, allocated: int, beside: int) -> Iterator[Term]:
        """Yield what the allocator keeps; it gives its cache back before memory runs out."""
        own = self._around
        steps = self._rounding(own.fact("segment"), own.fact("segment"))
        cache = int(Fraction(own.fact("fragmentation")) * allocated)
        capacity = own.machine.capacity.value
        room = max(int(capacity) - beside - allocated - steps, 0) if capacity.is_finite else cache
        yield self._term("segments of 2 MiB", "segment", steps)
        yield self._term("cache and fragmentation", "fragmentation", min(cache, room))

    def _beside(self) -> Iterator[Term]:
        """Yield what the allocator does not see."""
        own, setup = self._around, self.setup
        mesh = arranged(setup.strategy.mesh, setup.methods.order)
        buffers = int(value(setup.value(own.buffers(mesh))))
        yield self._term("buffers of NCCL", "connection", buffers, View.SMI)
        yield self._term("CUDA context", "context", own.fact("context"), View.SMI)

    def _term(self, name: str, fact: str, size: int, view: View | None = None) -> Term:
        """Return a term with the source of the fact that it rests on."""
        cached = fact in ("segment", "fragmentation")
        kind = View.RESERVED if cached else View.ALLOCATED
        return Term(name, view or kind, size, self._around.source(fact))

    @cached_property
    def _around(self) -> Surroundings:
        machine = needed_machine(self.setup, "the memory of a device")
        return Surroundings(machine, self.setup.methods.stack)

    def _rounding(self, block: int, least: int = 0) -> int:
        """Return by how much tensors of at least a size are rounded up to blocks [byte]."""
        own = self.setup
        lost = 0
        for row in own.stages_memory.table(self.stage):
            if row.place is Place.DEVICE and row.quantity in (*STATES, Quantity.SAVED):
                size = int(value(own.value(row.expr)))
                lost += int(value(own.value(row.count))) * (-size % block) if size > least else 0
        return lost

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


_HANDED = {
    "workspaces of cuBLAS": "cublas",
    "workspace of TransformerEngine": "engine",
    "buckets of gradients": "buckets",
}
_NAMES = {
    View.ALLOCATED: "allocated",
    View.RESERVED: "reserved",
    View.SMI: "as nvidia-smi shows it",
}
