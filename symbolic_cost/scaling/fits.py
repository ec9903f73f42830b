"""Fits of a law to runs, with what they are worth: extra `fit` (SciPy).

`fit` takes Huber's loss on the logarithm of what the law gives (Chinchilla's approach 3), or least
squares with the factors projected out; see `problem`. Approaches 1 and 2 are power laws of the best
size and tokens straight from runs: 1 takes the best run of each interval of compute, 2 the minimum
of a parabola in the logarithm of the size per budget. Both see exponents alone, and 2 is biased
where sizes are not centred.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.records import dataclass
from symbolic_cost.scaling.law import FLOP, Constants, Law
from symbolic_cost.scaling.optimum import optimum
from symbolic_cost.scaling.problem import HUBER, Problem
from symbolic_cost.scaling.runs import Runs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DELTA = 1e-3
"""Residual of a logarithm above which Huber's loss grows linearly: hoffmann-2022, appendix D."""

_NEAR = 1e-9


@dataclass(frozen=True, eq=False)
class Fit:
    """A law fitted to runs.

    Args:
        law: with the fitted constants as its only set.
        objective: mean of Huber's loss over the runs.
        covariance: of the parameters in their order; None where the runs leave one undetermined.
        condition: number of the scaled Jacobian; large where parameters trade off.
        samples: parameters of fits to resampled runs, by row; empty where none were asked for.
        left_out: by group, root-mean-square error of the logarithm in a fit without it.
        warnings: what makes the constants doubtful.
    """

    law: Law
    runs: Runs
    objective: float
    covariance: Floats | None
    condition: float
    samples: Floats
    left_out: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def values(self) -> Mapping[str, float]:
        """The fitted constants."""
        return {name: float(value) for name, value in self.law.constants().values.items()}

    @cached_property
    def errors(self) -> Mapping[str, float | None]:
        """Standard error of every parameter, from the covariance."""
        if self.covariance is None:
            return dict.fromkeys(self.values)
        spread = self.covariance.diagonal() ** 0.5
        return dict(zip(self.values, map(float, spread), strict=True))

    def band(self, flop: float) -> Mapping[str, tuple[float, float | None]]:
        """Return the optimum of a compute with the standard error of each number (delta method).

        Derivatives by each parameter are differences; N and D are compared on logarithms, so that
        0.1 stands for ten per cent.
        """
        import numpy as np

        def told(values: Floats) -> dict[str, float]:
            point = optimum(_with(self.law, values), flop)
            logs = {f"ln {name}": float(np.log(point.values[name])) for name in point.exponents}
            return {**logs, **{f"exponent of {k}": v for k, v in point.exponents.items()}}

        at = np.array(list(self.values.values()))
        here = told(at)
        if self.covariance is None:
            return {name: (value, None) for name, value in here.items()}
        slopes = np.zeros((len(here), len(at)))
        for place, value in enumerate(at):
            step = 1e-4 * abs(value) or 1e-8
            beside = at.copy()
            beside[place] += step
            slopes[:, place] = [(told(beside)[name] - here[name]) / step for name in here]
        spread = np.einsum("ij,jk,ik->i", slopes, self.covariance, slopes) ** 0.5
        return {name: (here[name], float(one)) for name, one in zip(here, spread, strict=True)}


MOST_RESAMPLED = 10_000
"""Fits to resampled runs: about a minute."""


def fit(
    law: Law,
    runs: Runs,
    *,
    delta: float = DELTA,
    method: str = HUBER,
    resampled: int = 0,
    grouped: bool = False,
) -> Fit:
    """Fit a law to runs.

    Raises:
        InputError: SciPy is not installed, nothing converges, or a number that is not accepted.
    """
    import numpy as np

    if not (delta > 0 and 0 <= resampled <= MOST_RESAMPLED):
        accepted = f"above 0, and from 0 to {MOST_RESAMPLED}, are accepted"
        raise InputError(f"delta = {delta:g}, resampled = {resampled}: {accepted}")
    problem = Problem(law, runs, delta, method)
    best = problem.solved(problem.starts())
    covariance, condition = problem.spread(best)
    samples = np.array([one for one in _again(problem, best, resampled) if one is not None])
    values = {name: float(one) for name, one in zip(law.parameters, best, strict=True)}
    fitted = _with(law, best)
    warnings = tuple(
        f"{name} = {value:g} is at its bound {law.parameters[name]}: the runs do not determine it"
        for name, value in values.items()
        if any(
            abs(value - float(end)) <= _NEAR * max(1.0, abs(float(end)))
            for end in law.parameters[name]
        )
    )
    if resampled and len(samples) < resampled:
        warnings += (f"{resampled - len(samples)} of {resampled} resampled fits did not converge",)
    if condition > 1 / np.finfo(float).eps ** 0.5:
        warnings += (
            f"condition number {condition:.1e}: parameters trade off, their values are loose",
        )
    left_out = _left_out(problem, best) if grouped else {}
    return Fit(fitted, runs, problem.loss(best), covariance, condition, samples, left_out, warnings)


def _with(law: Law, values: Floats) -> Law:
    numbers = dict(zip(law.parameters, map(float, values), strict=True))
    return law.with_constants(Constants("fit", numbers, "fitted"))


def _again(problem: Problem, best: Floats, times: int) -> list[Floats | None]:
    """Fit resampled runs, each from where the fit of all of them ended."""
    import numpy as np

    generator = np.random.default_rng(0)  # the same samples each time
    vectors: list[Floats | None] = []
    for _ in range(times):
        places = generator.integers(0, len(problem.runs), len(problem.runs))
        try:
            vectors.append(_of(problem, places).solved([best]))
        except InputError:
            vectors.append(None)
    return vectors


def _left_out(problem: Problem, best: Floats) -> dict[str, float]:
    """Return the error on each group of a fit to the others."""
    import numpy as np

    law, runs = problem.law, problem.runs
    if not runs.groups:
        raise InputError("runs have no column 'group': name which belong together")
    labels = np.array(runs.groups)
    errors = {}
    for label in dict.fromkeys(runs.groups):
        inside, outside = np.flatnonzero(labels == label), np.flatnonzero(labels != label)
        if len(outside) <= len(law.parameters):
            raise InputError(f"without group {label} are {len(outside)} runs left: too few to fit")
        values = _of(problem, outside).solved([best])
        residual = _of(problem, inside).residuals(values)
        errors[label] = float(np.sqrt(np.mean(residual**2)))
    return errors


def _of(problem: Problem, places: NDArray[np.integer[Any]]) -> Problem:
    """Return the same for some of the runs."""
    return replace(problem, runs=problem.runs.subset(places))


_BINS_PER_DECADE, _LEAST, _PARABOLA = 4, 3, 3


@dataclass(frozen=True)
class PowerLaw:
    """A C**p of the compute C [FLOP].

    Args:
        errors: standard errors of ln A and of p; None where two points leave nothing over.
        points: compute and best value that it was fitted to.
    """

    coefficient: float
    exponent: float
    errors: tuple[float, float] | None
    points: tuple[tuple[float, float], ...]

    def at(self, flop: float) -> float:
        """Return its number for a compute."""
        return float(self.coefficient * flop**self.exponent)


def approach(number: int, law: Law, runs: Runs) -> Mapping[str, PowerLaw]:
    """Return the power law of each chosen variable by approach 1 or 2.

    Raises:
        InputError: no such approach, or too few budgets with a best run inside.
    """
    rule = looked_up("approach", str(number), _APPROACHES)
    flop = law.flop().array({**law.fixed, **runs.columns})
    return {name: _line(rule(runs, flop, name), name) for name in law.chosen}


def _envelope(runs: Runs, flop: Floats, name: str) -> list[tuple[float, float]]:
    """Return the run of the least loss per interval of compute, if it is on the frontier."""
    import numpy as np

    bins = np.floor(np.log10(flop) * _BINS_PER_DECADE)
    best: list[tuple[float, float]] = []
    lowest = float("inf")
    for one in np.unique(bins):
        places = np.flatnonzero(bins == one)
        place = places[np.argmin(runs.measured[places])]
        if runs.measured[place] < lowest:
            lowest = float(runs.measured[place])
            best.append((float(flop[place]), float(runs.columns[name][place])))
    return best


def _parabolas(runs: Runs, flop: Floats, name: str) -> list[tuple[float, float]]:
    """Return the minimum of a parabola per budget, where it lies between the runs."""
    import numpy as np

    labels = np.array(runs.groups) if runs.groups else np.round(np.log10(flop), 1)
    best = []
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        if len(places) < _PARABOLA:
            continue
        logs = np.log(runs.columns[name][places])
        middle = float(logs.mean())
        square, linear, _ = np.polyfit(logs - middle, runs.measured[places], 2)
        if square <= 0:
            continue
        lowest = middle - linear / (2 * square)
        if logs.min() <= lowest <= logs.max():
            budget = float(np.exp(np.log(flop[places]).mean()))
            best.append((budget, float(np.exp(lowest))))
    return best


_APPROACHES: Mapping[str, Callable[[Runs, Floats, str], list[tuple[float, float]]]] = {
    "1": _envelope,
    "2": _parabolas,
}


def _line(points: list[tuple[float, float]], name: str) -> PowerLaw:
    """Fit ln value = p ln C + ln A."""
    import numpy as np

    if len(points) < _LEAST:
        raise InputError(
            f"{len(points)} budgets have a best {name} between their runs; {_LEAST} are needed: "
            f"give runs of one compute {FLOP} and several sizes, a column 'group' if it varies"
        )
    compute, values = np.log(np.array(points)).T
    middle = compute.mean()
    (slope, start), covariance = np.polyfit(compute - middle, values, 1, cov="unscaled")
    residual = values - slope * (compute - middle) - start
    spread = float(np.sqrt(np.sum(residual**2) / (len(points) - 2)))
    at_zero = np.sqrt(covariance[1, 1] + covariance[0, 0] * middle**2)
    errors = (spread * float(at_zero), spread * float(np.sqrt(covariance[0, 0])))
    return PowerLaw(float(np.exp(start - slope * middle)), float(slope), errors, tuple(points))
