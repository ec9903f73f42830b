"""Whether a job fits into the memory of its machine, on every stage, and what takes most of it."""

from symbolic_cost.jobs.peaks import Fit, Peak
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import CostTable
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.memory import Memory, moments, shares


def fit(setup: Setup, memory: Memory | None = None) -> Fit:
    """Compare the peak of every stage with the memory of the machine.

    The memory of its stages is that with degrees as symbols unless given.
    """
    held = memory or setup.stages_memory
    room = None if setup.machine is None else setup.machine.room
    peaks = {stage: _peak(setup, held.table(stage)) for stage in setup.structure.stages}
    known = {stage: peak for stage, peak in peaks.items() if peak is not None}
    return Fit(None if room is None else int(room), known if len(known) == len(peaks) else {})


def _peak(setup: Setup, table: CostTable) -> Peak | None:
    held = {name: setup.value(total) for name, total in moments(table).items()}
    if any(size.free_symbols for size in held.values()):
        return None
    moment = max(held, key=lambda name: held[name])
    known = {name: setup.value(size) for name, size in shares(table, moment).items()}
    return Peak(int(value(held[moment])), moment, max(known, key=lambda name: known[name]))
