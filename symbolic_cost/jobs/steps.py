"""Step times of many jobs: one derivation for all of a structure, then numbers.

Runs of one source differ in sizes, degrees and microbatches, which stay symbols, far more than in
what there is to derive. How much slower each kind of work is than predicted stays open as well, so
that it can be fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost import symbols
from symbolic_cost.checking import checked
from symbolic_cost.conditions import check
from symbolic_cost.errors import InputError
from symbolic_cost.grouping import grouped
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.numeric.binding import check_values
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.program.evaluator import Evaluator
from symbolic_cost.program.program import Program
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.systems.pricing import KINDS, OF_CLUSTER, SLOWNESS
from symbolic_cost.systems.spread import Doubt, Interval, doubts, opened, within
from symbolic_cost.systems.step import StepTime, step_time

Floats = NDArray[np.float64]
Cluster = Mapping[str, float]
"""Times as long as predicted that "computing", "moving" and "issuing" take; one unless said."""


@dataclass(frozen=True)
class Derived:
    """The step of a structure.

    Args:
        run: gives its time, of numbers and of slownesses.
        doubts: what every kind of work leaves open.
        software: stack and precision.
    """

    step: StepTime
    run: Program
    doubts: tuple[Doubt, ...]
    software: str


@dataclass(frozen=True)
class Numbered:
    """The step of one job."""

    derived: Derived
    values: Mapping[str, float]

    def seconds(self, cluster: Cluster | None = None) -> float:
        """Return the time of a step [s]."""
        return self.derived.run.floats({**self.values, **_slowness(cluster)})["step"]

    def interval(self, cluster: Cluster | None = None, known: tuple[Doubt, ...] = ()) -> Interval:
        """Return the ends that four of five steps lie between [s].

        Args:
            cluster: times as long as predicted.
            known: what is open, where not what the kernels and the stack leave.
        """
        slow = {n: v for n, v in _slowness(cluster).items() if n in self.derived.run.inputs}
        return within(self.derived.run, self.values, slow, known or self.derived.doubts)


def _slowness(cluster: Cluster | None) -> dict[str, float]:
    """Return the slowness of every kind of work on a cluster."""
    own = {} if cluster is None else cluster
    fitted = {
        f"{SLOWNESS}.{kind}": own.get(figure, 1.0)
        for figure, kinds in OF_CLUSTER.items()
        for kind in kinds
    }
    return {f"{SLOWNESS}.{kind}": 1.0 for kind in KINDS} | fitted


@checked
@dataclass
class Steps:
    """Steps of jobs, structures derived once."""

    derived: dict[str, list[tuple[Model, Derived]]] = field(default_factory=dict, init=False)

    def of(self, setup: Setup) -> Numbered:
        """Return the step of a job."""
        derived = self._derived(setup)
        values: dict[str, Any] = dict(setup.counted_values)
        missing = [name for name in derived.run.inputs if name not in values]
        missing = [name for name in missing if not name.startswith(SLOWNESS)]
        if missing:
            raise InputError(f"no time without numbers for {', '.join(missing)}")
        check(derived.step.chain.conditions, check_values(values))
        return Numbered(derived, {name: float(values[name]) for name in values})

    def _derived(self, setup: Setup) -> Derived:
        setting = Timed(setup).setting
        strategy = Structure(setting.strategy).symbolic
        chunks = symbols.v if setting.training.schedule == "interleaved" else exact(1)
        training = replace(setting.training, microbatches=symbols.M, chunks=chunks)
        model = replace(setup.running.model, bindings={}, name="")
        key = str((strategy, training, setting.machine, repr(setting.methods), model.family))
        for other, derived in self.derived.setdefault(key, []):
            if other == model:
                return derived
        whole = on_every_rank(setup.running.model, strategy)
        step = step_time(whole, strategy, setting.machine, training, setting.methods)
        rates = replace(setting, model=whole, strategy=strategy, training=training).timing.rates
        if rates is None:
            raise InputError("a cluster is fitted under a software stack: give stack")
        derived = Derived(step, opened(step.chain)[0], doubts(rates), rates.software)
        self.derived[key].append((model, derived))
        return derived


def all_seconds(steps: Sequence[Numbered], *clusters: Cluster) -> Floats:
    """Return the time of every step on every cluster [s], clusters by rows.

    Steps of one structure are one evaluation.
    """
    every = clusters or ({},)
    seconds = np.zeros((len(every), len(steps)))
    groups = grouped((id(step.derived), place) for place, step in enumerate(steps))
    slow = [_slowness(cluster) for cluster in every]
    for places in groups.values():
        run, own = steps[places[0]].derived.run, [steps[place].values for place in places]
        points: dict[str, Floats] = {
            name: np.repeat([one[name] for one in slow], len(own))
            if name in slow[0]
            else np.tile([values[name] for values in own], len(every))
            for name in run.inputs
        }
        times = np.broadcast_to(np.asarray(Evaluator(run)(points)["step"]), len(every) * len(own))
        seconds[:, places] = times.reshape(len(every), len(own))
    return seconds
