"""The most that the stages of a pipeline hold, beside the memory of their machine.

A search from kept programs needs these records, so that nothing here imports SymPy.
"""

from __future__ import annotations

from collections.abc import Mapping

from symbolic_cost.parallel.orders import Stage
from symbolic_cost.records import dataclass
from symbolic_cost.units import Unit, human


@dataclass(frozen=True)
class Peak:
    """The most that one rank of a stage holds.

    Args:
        size: of the peak [byte].
        binds: the quantity that takes most of it.
    """

    size: int
    moment: str
    binds: str


@dataclass(frozen=True)
class Fit:
    """An answer that is true where every stage fits.

    Args:
        capacity: of the device that may be used [byte]; None where it is not bounded.
        peaks: of tensors, by stage; empty where symbols have no number.
        beside: what the device holds beside tensors [byte].
    """

    capacity: int | None
    peaks: Mapping[Stage, Peak]
    beside: int = 0

    @property
    def room(self) -> int | None:
        """What tensors may take [byte]; None where it is not bounded."""
        return None if self.capacity is None else self.capacity - self.beside

    @property
    def has_numbers(self) -> bool:
        """Whether there are numbers to compare."""
        return bool(self.peaks) and self.capacity is not None

    @property
    def fullest(self) -> Stage:
        """The stage that holds most."""
        return max(self.peaks, key=lambda stage: self.peaks[stage].size)

    @property
    def summary(self) -> tuple[str, ...]:
        """The line that says whether every stage fits; none where that is not known."""
        return (f"{'fits' if self else 'DOES NOT FIT'}: {self}",) if self.has_numbers else ()

    def __bool__(self) -> bool:
        """Tell whether every stage fits; an unbounded memory holds anything."""
        if self.room is None:
            return True
        return bool(self.peaks) and self.peaks[self.fullest].size <= self.room

    def __repr__(self) -> str:
        return "".join(self.summary) or str(self)

    def __str__(self) -> str:
        if not self.peaks:
            return "not known: symbols have no number"
        peak = self.peaks[self.fullest]
        size = human(peak.size, Unit.BYTE)
        room = "no bound" if self.capacity is None else human(self.capacity, Unit.BYTE)
        return (
            f"{size} at {peak.moment} on stage {self.fullest}{self.around}, {room} usable; "
            f"most of it {peak.binds.replace('_', ' ')}"
        )

    @property
    def around(self) -> str:
        """Say what surrounds tensors, where it is known."""
        return f" and {human(self.beside, Unit.BYTE)} {_AROUND}" if self.beside else ""


_AROUND = "of context, workspaces and buffers of collectives"


def peak_of(held: Mapping[str, float], shares: Mapping[str, float]) -> Peak:
    """Return the peak of a stage.

    Args:
        held: by moment [byte].
        shares: by quantity [byte].
    """
    moment = max(held, key=lambda name: held[name])
    return Peak(int(held[moment]), moment, max(shares, key=lambda name: shares[name]))
