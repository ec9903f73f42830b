"""The most that the stages of a pipeline hold, and whether it fits into their machine's memory."""

from __future__ import annotations

from collections.abc import Mapping

from symbolic_cost.jobs.setup import Setup
from symbolic_cost.numeric.binding import check_values, value
from symbolic_cost.parallel.memory import Memory
from symbolic_cost.parallel.moments import DeviceBytes, at_moments, shares
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
        peaks: by stage; empty where symbols have no number.
    """

    capacity: int | None
    peaks: Mapping[Stage, Peak]

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
        if self.capacity is None:
            return True
        return bool(self.peaks) and self.peaks[self.fullest].size <= self.capacity

    def __str__(self) -> str:
        if not self.peaks:
            return "not known: symbols have no number"
        peak = self.peaks[self.fullest]
        size = human(peak.size, Unit.BYTE)
        room = "no bound" if self.capacity is None else human(self.capacity, Unit.BYTE)
        return (
            f"{size} at {peak.moment} on stage {self.fullest}, {room} usable; "
            f"most of it {peak.binds.replace('_', ' ')}"
        )


def peak_of(held: Mapping[str, float], shares: Mapping[str, float]) -> Peak:
    """Return the peak of a stage.

    Args:
        held: by moment [byte].
        shares: by quantity [byte].
    """
    moment = max(held, key=lambda name: held[name])
    return Peak(int(held[moment]), moment, max(shares, key=lambda name: shares[name]))


def fit(setup: Setup, memory: Memory | None = None) -> Fit:
    """Compare the peak of every stage with the memory of the machine.

    The memory of its stages is that with degrees as symbols unless given.
    """
    held = memory or setup.stages_memory
    room = None if setup.machine is None else setup.machine.room
    peaks = {stage: _peak(setup, held.device_bytes(stage)) for stage in setup.structure.stages}
    known = {stage: peak for stage, peak in peaks.items() if peak is not None}
    return Fit(None if room is None else int(room), known if len(known) == len(peaks) else {})


def _peak(setup: Setup, sums: DeviceBytes) -> Peak | None:
    numbers = check_values(setup.values)
    known = {key: [one.xreplace(numbers) for one in terms] for key, terms in sums.items()}
    held = at_moments(known)
    if any(size.free_symbols for size in held.values()):
        return None
    moment = max(held, key=lambda name: held[name])
    own = shares(known, moment)
    return Peak(int(value(held[moment])), moment, max(own, key=lambda name: own[name]))
