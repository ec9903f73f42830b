"""Three numbers of a cluster from a handful of its steps, with priors; kernels come first.

Rates of kernels are fitted to kernels alone. What a cluster's steps add is how much longer than
predicted products, what streams (attention, passes over memory) and collectives take there: each a
factor that is one unless steps say otherwise, more so the better the kind of work is known. A step
that no factor explains weighs less and is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.steps import Cluster, Floats, Numbered, all_seconds
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.systems.calibration import Errors, errors_of
from symbolic_cost.systems.machines import CLUSTER, Figure, Machine

PRIOR: Mapping[str, float] = {"computing": 0.12, "streaming": 0.2, "moving": 0.35}
"""Standard deviations of the logarithms before any step is seen: what the kernels' fit, the links
and the stacks' records leave open."""

NOISE = 0.05
"""The same of a step that is fully explained: two runs of one configuration differ so much."""

FAR = 3.0
"""Steps further off than so many times the noise weigh less, as their distance grows."""

_ROUNDS = 12
_STEP = 1e-3


@dataclass(frozen=True)
class ClusterFit:
    """What steps say of a cluster.

    Args:
        factors: times as long as predicted that a kind of work takes.
        spreads: standard deviation of the logarithm of every factor that the steps leave.
        outliers: places of the steps that no factor explains.
    """

    factors: Cluster
    spreads: Mapping[str, float]
    before: Errors
    after: Errors
    outliers: tuple[int, ...]


def fit_cluster(
    steps: Sequence[Numbered], seconds: Sequence[float], weights: Sequence[float] | None = None
) -> ClusterFit:
    """Fit the factors of a cluster to its steps: the most likely under priors and robust noise.

    Args:
        steps: derived from jobs.
        seconds: measured, in the same order [s].
        weights: votes of the steps; one each unless given.

    Raises:
        InputError: no steps.
    """
    if not steps:
        raise InputError("no measured steps: one at least is needed")
    if len(seconds) != len(steps) or not all(one > 0 for one in seconds):
        raise InputError(f"{len(steps)} steps: as many times, all above 0 s, are accepted")
    votes = np.ones(len(steps)) if weights is None else np.asarray(weights, dtype=float)
    truth, prior = np.log(np.asarray(seconds, dtype=float)), np.array([PRIOR[n] for n in CLUSTER])

    at = np.zeros(len(CLUSTER))
    before, *_ = all_seconds(steps)
    now, normal = np.log(before) - truth, np.diag(prior**-2)
    for _ in range(_ROUNDS):
        near = [_cluster(at + step) for step in (np.zeros(len(at)), *_STEP * np.eye(len(at)))]
        now, *moved = np.log(all_seconds(steps, *near)) - truth
        slopes = (np.stack(moved, 1) - now[:, None]) / _STEP
        sure = votes * _influence(now) / NOISE**2
        normal = slopes.T @ (sure[:, None] * slopes) + np.diag(prior**-2)
        downhill = slopes.T @ (sure * now) + at / prior**2
        move = np.clip(-np.linalg.solve(normal, downhill), -0.5, 0.5)
        at = at + move
        if float(np.abs(move).max()) < _STEP:
            break
    (after,) = all_seconds(steps, _cluster(at))
    now = np.log(after) - truth
    left = np.sqrt(np.diag(np.linalg.inv(normal)))
    far = tuple(int(n) for n in np.flatnonzero(np.abs(now) > FAR * NOISE))
    return ClusterFit(
        _cluster(at),
        {name: float(size) for name, size in zip(CLUSTER, left, strict=True)},
        errors_of(before, seconds),
        errors_of(after, seconds),
        far,
    )


def on_cluster(machine: Machine, fit: ClusterFit, runs: int) -> Machine:
    """Return the machine with the factors of a cluster, which a stack's times take up."""
    note = f"fitted to {runs} measured step{'s' * (runs != 1)}, times as long as kernels say"
    computing, streaming, moving = (
        Figure(exact(round(fit.factors[name], 4)), "cluster", note) for name in CLUSTER
    )
    sources = {**machine.sources, "cluster": f"{note}, by `calibrate`"}
    return replace(
        machine,
        sources=sources,
        efficiencies=replace(
            machine.efficiencies, computing=computing, streaming=streaming, moving=moving
        ),
    )


def _cluster(logs: NDArray[np.float64]) -> Cluster:
    return {name: float(np.exp(log)) for name, log in zip(CLUSTER, logs, strict=True)}


def _influence(errors: Floats) -> Floats:
    """Return how much a step counts: fully where it is near, ever less where it is far."""
    return np.minimum(1.0, FAR * NOISE / np.maximum(np.abs(errors), 1e-9))
