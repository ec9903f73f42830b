"""Fits of a law to runs, with what they are worth: extra `fit` (SciPy).

Huber's loss on the logarithm of what the law gives (Chinchilla's approach 3), or least squares with
the factors projected out; see `problem`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from symbolic_cost.errors import InputError
from symbolic_cost.records import dataclass
from symbolic_cost.scaling.law import Constants, Law
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
        InputError: SciPy is not installed, or nothing converges.
    """
    import numpy as np

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
