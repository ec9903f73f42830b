"""Whether a job fits into the memory of its machine, on every stage, and what takes most of it."""

from symbolic_cost.jobs.peaks import Fit, Peak
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.numeric.binding import check_values, value
from symbolic_cost.parallel.memory import Memory
from symbolic_cost.parallel.moments import DeviceBytes, at_moments, shares


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
