"""Three numbers of a cluster from a handful of its steps, with priors; kernels come first.

Rates of kernels are fitted to kernels alone. What a cluster's steps add is how much longer than
predicted kernels, collectives and the host's part of an op take there: each a factor that is one
unless steps say otherwise, more so the better the kind of work is known. A step that no factor
explains weighs less and is named.

What the steps leave open is the posterior of the three numbers and of the noise. For example ten
steps whose size of residuals is 4 % in the mean: a spread of 5 %, with what was taken for granted
before; another step of that software lies within 1.37 of these and of what the numbers leave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.steps import Cluster, Floats, Numbered, all_seconds
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.systems.calibration import Errors, errors_of
from symbolic_cost.systems.machines import CLUSTER, Figure, Machine
from symbolic_cost.systems.spread import MEAN, QUANTILE, Doubt, of_cluster

PRIOR: Mapping[str, float] = {"computing": 0.12, "moving": 0.35, "issuing": 0.3}
"""Standard deviations of the logarithms before any step is seen: what the kernels' fit, the links
and the stacks' records leave open."""

NOISE = 0.05
"""The same of a step that is fully explained: two runs of one configuration differ so much. Steps
further off weigh less, as their distance grows."""

KNOWN = 4
"""How many steps that noise counts for before any is seen."""

FAR = 3.0
"""Steps further off than so many times the noise are named."""

_ROUNDS = 12
_STEP = 1e-3


@dataclass(frozen=True)
class ClusterFit:
    """What steps say of a cluster.

    Args:
        factors: times as long as predicted that a kind of work takes.
        covariance: of the logarithms of the factors, in the order of `CLUSTER`.
        noise: standard deviation of the logarithm of a step that the factors leave.
        software: stacks and precisions of the steps.
        outliers: places of the steps that no factor explains.
    """

    factors: Cluster
    covariance: NDArray[np.float64]
    noise: float
    software: tuple[str, ...]
    before: Errors
    after: Errors
    outliers: tuple[int, ...]

    @property
    def spreads(self) -> Mapping[str, float]:
        """Standard deviation of the logarithm of every factor that the steps leave."""
        sizes = np.sqrt(np.diag(self.covariance))
        return {name: float(size) for name, size in zip(CLUSTER, sizes, strict=True)}

    @property
    def record(self) -> Mapping[str, Any]:
        """What the steps leave open, as a machine's record has it."""
        parts = np.linalg.cholesky(self.covariance)
        return {
            "runs": self.after.runs,
            "step": round(self.noise, 4),
            "software": list(self.software),
            "open": {
                name: [round(float(each), 5) for each in own]
                for name, own in zip(CLUSTER, parts, strict=True)
            },
        }

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """What the steps leave open of another one."""
        return of_cluster(self.record)


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
    now, slopes = np.log(before) - truth, np.zeros((len(steps), len(CLUSTER)))
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
    covariance, noise = _posterior(slopes, now, votes, prior)
    far = tuple(int(n) for n in np.flatnonzero(np.abs(now) > FAR * NOISE))
    return ClusterFit(
        _cluster(at),
        covariance,
        noise,
        tuple(sorted({step.derived.software for step in steps})),
        errors_of(before, seconds),
        errors_of(after, seconds),
        far,
    )


def _posterior(
    slopes: Floats, errors: Floats, votes: Floats, prior: Floats
) -> tuple[Floats, float]:
    """Return what steps leave open: of the factors, and of a step beside these.

    The noise is that of the errors, with what was known of it, over the steps that fit no factor;
    as few steps leave it open too, it is wider, by what Student's quantile is to a normal one.
    """
    information = slopes.T @ ((votes * _influence(errors))[:, None] * slopes)
    fitted = (
        np.trace(np.linalg.solve(information / NOISE**2 + np.diag(prior**-2), information))
        / NOISE**2
    )
    size = MEAN * np.average(np.abs(errors), weights=votes)
    freedom = KNOWN + votes.sum() - fitted
    noise = np.sqrt((KNOWN * NOISE**2 + votes.sum() * size**2) / freedom)
    noise *= 1 + (QUANTILE**2 + 1) / (4 * freedom)
    return np.linalg.inv(information / noise**2 + np.diag(prior**-2)), float(noise)


def on_cluster(machine: Machine, fit: ClusterFit, runs: int) -> Machine:
    """Return the machine with the factors of a cluster, which a stack's times take up."""
    note = f"fitted to {runs} measured step{'s' * (runs != 1)}, times as long as kernels say"
    figures: dict[str, Any] = {
        name: Figure(exact(round(fit.factors[name], 4)), "cluster", note) for name in CLUSTER
    }
    sources = {**machine.sources, "cluster": f"{note}, by `calibrate`"}
    return replace(
        machine,
        sources=sources,
        efficiencies=replace(machine.efficiencies, **figures),
        cluster=fit.record,
    )


def _cluster(logs: NDArray[np.float64]) -> Cluster:
    return {name: float(np.exp(log)) for name, log in zip(CLUSTER, logs, strict=True)}


def _influence(errors: Floats) -> Floats:
    """Return how much a step counts: fully where it is near, ever less where it is far."""
    return np.minimum(1.0, NOISE / np.maximum(np.abs(errors), 1e-9))
