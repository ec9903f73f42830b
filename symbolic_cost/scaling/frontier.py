"""Power laws of the best size and tokens straight from runs: Chinchilla's approaches 1 and 2.

Approach 1 takes the best run of each interval of compute; approach 2 the minimum of a parabola in
the logarithm of the size per budget. Both see exponents alone, and approach 2 is biased where sizes
are not centred: `fits.fit` is approach 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.records import dataclass
from symbolic_cost.scaling.law import FLOP, Law
from symbolic_cost.scaling.runs import Runs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

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
