"""Whether a job fits into the memory of its machine, on every stage, and what takes most of it."""

from sympy import Expr, Integer

from symbolic_cost.jobs.model_terms import ModelTerms
from symbolic_cost.jobs.peaks import Fit, Peak
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.parallel.groups import arranged
from symbolic_cost.parallel.memory import Memory
from symbolic_cost.parallel.moments import DeviceBytes, at_moments, shares
from symbolic_cost.program.graph import Graph
from symbolic_cost.records import replace
from symbolic_cost.symbols import GLOSSARY, exact
from symbolic_cost.systems.surroundings import Surroundings


def fit(setup: Setup, memory: Memory | None = None) -> Fit:
    """Compare the peak of every stage, and what surrounds it, with the memory of the machine.

    The memory of its stages is that with degrees as symbols unless given. It is derived with
    numbers from the start: of formulas with hundreds of sums in a maximum one is wanted.
    """
    held = memory or setup.stages_memory
    room = None if setup.machine is None else setup.machine.room
    numbers = ModelTerms(Graph({n: one.integer for n, one in GLOSSARY.items()}), setup.values)
    divided = replace(held.divided, model=numbers.model(held.divided.model))
    held = replace(held, divided=divided)
    peaks = {s: _peak(numbers, held.device_bytes(s)) for s in setup.structure.stages}
    known = {stage: peak for stage, peak in peaks.items() if peak is not None}
    beside = None if room is None else _number(numbers, surroundings(setup))
    complete = len(known) == len(peaks) and (room is None or beside is not None)
    return Fit(None if room is None else int(room), known if complete else {}, int(beside or 0))


def surroundings(setup: Setup) -> Expr:
    """Return what a device holds beside the tensors of a job's step [byte]."""
    if setup.machine is None:
        return Integer(0)
    mesh = arranged(setup.strategy.mesh, setup.methods.order)
    return Surroundings(setup.machine, setup.methods.stack).size(mesh)


def _peak(numbers: ModelTerms, sums: DeviceBytes) -> Peak | None:
    known = {key: [_number(numbers, one) for one in terms] for key, terms in sums.items()}
    if any(one is None for terms in known.values() for one in terms):
        return None
    held = at_moments(known)
    moment = max(held, key=lambda name: held[name])
    own = shares(known, moment)
    return Peak(int(held[moment]), moment, max(own, key=lambda name: own[name]))


def _number(numbers: ModelTerms, size: Expr) -> Expr | None:
    number = numbers.number(numbers.node(size))
    return None if number is None else exact(number)
