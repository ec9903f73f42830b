"""What a fit minimises: residuals of a law over runs, where it begins, and how it ends.

Where a law is a sum in which some parameters are factors, these follow from the others by
non-negative least squares (variable projection), so that only exponents are searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from sympy import Add

from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.records import dataclass
from symbolic_cost.scaling.law import Law, variable
from symbolic_cost.scaling.runs import Runs
from symbolic_cost.typed import Formula

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

HUBER, PROJECTION = "huber", "projection"
METHODS = {
    HUBER: "Huber's loss on logarithms, all parameters at once",
    PROJECTION: "least squares of relative errors, factors projected out",
}
"""Meaning of every method by name."""

_STARTS, _POINTS, _FINE, _EVALUATIONS = 2, 700, 8, 3000
_TOLERANCE, _INSIDE, _UNREACHED = 1e-15, 1e-12, 1e3


@dataclass(frozen=True, eq=False)
class Problem:
    """A law, runs and a method; parameters are a vector in the order of the law.

    Args:
        delta: residual of a logarithm above which Huber's loss grows linearly.
        method: one of METHODS.
    """

    law: Law
    runs: Runs
    delta: float
    method: str = HUBER

    def __post_init__(self) -> None:
        """Refuse what cannot be fitted.

        Raises:
            InputError: no such method, no parameters, or no factors to project out.
        """
        looked_up("method", self.method, METHODS)
        if not self.law.parameters:
            raise InputError(f"law {self.law.name} has no parameters to fit")
        if self.method == PROJECTION and not _factors(self.law):
            raise InputError(
                f"law {self.law.name} is no sum of factors times powers: projection does not "
                f"apply, {HUBER} does"
            )

    @cached_property
    def _steps(self) -> Mapping[str, Formula]:
        return {**self.law.where, self.law.gives: self.law.value}

    def predicted(self, values: Floats) -> Floats:
        """Return what the law gives for every run."""
        import numpy as np

        known: dict[str, Any] = {**self.law.fixed, **self.runs.columns}
        known |= dict(zip(self.law.parameters, values, strict=True))
        with np.errstate(all="ignore"):  # what is not finite is refused as a residual
            for name, formula in self._steps.items():
                known[name] = formula.array(known)
        return np.broadcast_to(known[self.law.gives], self.runs.measured.shape)

    def residuals(self, values: Floats) -> Floats:
        """Return ln(given/measured) for every run, large where the law gives nothing."""
        import numpy as np

        with np.errstate(all="ignore"):
            residuals = np.log(self.predicted(values)) - np.log(self.runs.measured)
        return np.where(np.isfinite(residuals), residuals, _UNREACHED)

    def loss(self, values: Floats) -> float:
        """Return the mean of Huber's loss."""
        import numpy as np

        size = np.abs(self.residuals(values))
        inside = size <= self.delta
        return float(np.mean(np.where(inside, size**2 / 2, self.delta * (size - self.delta / 2))))

    @property
    def _others(self) -> list[str]:
        factors = _factors(self.law)
        return [name for name in self.law.parameters if name not in factors]

    def starts(self) -> list[Floats]:
        """Return where a fit begins: the best of a grid over what is no factor."""
        import numpy as np

        factors, others = _factors(self.law), self._others
        points = max(2, min(_FINE, int(_POINTS ** (1 / max(1, len(others))))))
        grids = [self._grid(name, points) for name in others]
        ranked = []
        for point in product(*grids):
            known = dict(zip(others, point, strict=True))
            values = self._projected(known, factors) if factors else known
            if values is not None:
                vector = np.array([values[name] for name in self.law.parameters])
                ranked.append((float(np.sum(self.residuals(vector) ** 2)), vector))
        if not ranked:
            raise InputError(f"law {self.law.name}: no parameters within its bounds give a number")
        ranked.sort(key=lambda pair: pair[0])
        return [vector for _, vector in ranked[:_STARTS]]

    def _grid(self, name: str, points: int) -> list[float]:
        """Return values of a parameter inside its bounds, by logarithm where they are positive."""
        import numpy as np

        low, high = map(float, self.law.parameters[name])
        spaced = np.geomspace if low > 0 else np.linspace
        return [float(one) for one in spaced(low, high, points + 2)[1:-1]]

    def _projected(
        self, known: Mapping[str, float], factors: tuple[str, ...]
    ) -> dict[str, float] | None:
        """Return the factors that fit best beside the other parameters; None if nothing fits."""
        import numpy as np

        columns = []
        for name in factors:
            one = {**known, **{other: float(other == name) for other in factors}}
            columns.append(self.predicted(np.array([one[each] for each in self.law.parameters])))
        matrix = np.stack(columns, axis=1) / self.runs.measured[:, None]
        size = np.linalg.norm(matrix, axis=0)
        if not np.all(np.isfinite(matrix)) or np.any(size == 0):
            return None
        try:
            weights, _ = scipy_optimize().nnls(matrix / size, np.ones(len(self.runs)))
        except RuntimeError:
            return None
        sizes = weights / size
        return {**known, **{name: float(one) for name, one in zip(factors, sizes, strict=True)}}

    def solved(self, starts: list[Floats]) -> Floats:
        """Return the parameters of the least loss.

        Raises:
            InputError: no start converges.
        """
        step = self._huber if self.method == HUBER else self._least_squares
        ended = [values for values in map(step, starts) if values is not None]
        if not ended:
            raise InputError(
                f"the fit of law {self.law.name} did not converge: no constants are given; "
                "more runs that differ in every variable may help"
            )
        return min(ended, key=self.loss if self.method == HUBER else self._squares)

    def _huber(self, start: Floats) -> Floats | None:
        """Minimise Huber's loss on logarithms from a start; nothing if it does not converge."""
        import numpy as np

        bounds = np.array(list(self.law.parameters.values()), dtype=float).T
        inside = np.clip(start, bounds[0] + _INSIDE, bounds[1] - _INSIDE)
        scale = np.where(inside == 0, 1.0, np.abs(inside))
        solved = scipy_optimize().least_squares(
            lambda x: self.residuals(x * scale),
            inside / scale,
            bounds=(bounds[0] / scale, bounds[1] / scale),
            loss="huber",
            f_scale=self.delta,
            x_scale="jac",
            jac="3-point",
            max_nfev=_EVALUATIONS,
            **dict.fromkeys(("xtol", "ftol", "gtol"), _TOLERANCE),
        )
        values: Floats = solved.x * scale
        return values if solved.success else None

    def _least_squares(self, start: Floats) -> Floats | None:
        """Minimise relative errors over what is no factor; nothing if it does not converge."""
        import numpy as np

        places = [list(self.law.parameters).index(name) for name in self._others]

        def squares(point: Floats) -> float:
            values = self._vector(point)
            return _UNREACHED if values is None else self._squares(values)

        solved = scipy_optimize().minimize(
            squares,
            start[places],
            method="Nelder-Mead",
            bounds=[self.law.parameters[name] for name in self._others],
            options={"xatol": 1e-12, "fatol": _TOLERANCE**2, "maxiter": _EVALUATIONS},
        )
        return self._vector(np.asarray(solved.x)) if solved.success else None

    def _vector(self, point: Floats) -> Floats | None:
        """Return all parameters at some of what is no factor."""
        import numpy as np

        known = {name: float(one) for name, one in zip(self._others, point, strict=True)}
        values = self._projected(known, _factors(self.law))
        return None if values is None else np.array([values[one] for one in self.law.parameters])

    def _squares(self, values: Floats) -> float:
        """Return the sum of squares of relative errors."""
        import numpy as np

        return float(np.sum((self.predicted(values) / self.runs.measured - 1) ** 2))

    def spread(self, values: Floats) -> tuple[Floats | None, float]:
        """Return covariance and condition number at a fit."""
        import numpy as np

        columns = []
        for place, value in enumerate(values):
            step = 1e-6 * abs(value) or 1e-9
            up, down = values.copy(), values.copy()
            up[place] += step
            down[place] -= step
            columns.append((self.residuals(up) - self.residuals(down)) / (2 * step))
        jacobian = np.stack(columns, axis=1)
        size = np.linalg.norm(jacobian, axis=0)
        if np.any(size == 0):
            return None, float("inf")
        condition = float(np.linalg.cond(jacobian / size))
        free = len(self.runs) - len(values)
        variance = float(np.sum(self.residuals(values) ** 2)) / free
        scaled = np.linalg.pinv((jacobian / size).T @ (jacobian / size))
        return variance * scaled / np.outer(size, size), condition


@lru_cache(32)
def _factors(law: Law) -> tuple[str, ...]:
    """Return the parameters that a value is a sum of multiples of; none unless of all its terms."""
    value = law.expr(symbolic=True).expand()
    terms = Add.make_args(value)
    factors = []
    for name in law.parameters:
        holding = [term for term in terms if name in {one.name for one in term.free_symbols}]
        if len(holding) == 1 and holding[0].as_powers_dict().get(variable(name)) == 1:
            factors.append(name)
    covered = [
        term
        for term in terms
        if sum(name in {one.name for one in term.free_symbols} for name in factors) == 1
    ]
    return tuple(factors) if len(covered) == len(terms) else ()


def scipy_optimize() -> Any:  # noqa: ANN401 - a module without types
    """Return scipy.optimize.

    Raises:
        InputError: it is not installed.
    """
    try:
        from scipy import optimize
    except ImportError:
        raise InputError("fits need SciPy: pip install 'symbolic_cost[fit]'") from None
    return optimize
