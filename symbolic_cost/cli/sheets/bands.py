"""A fitted law as a picture: what is best over compute, with standard errors as bands."""

from __future__ import annotations

from math import exp

from symbolic_cost.emit.charts import Curve, Curves
from symbolic_cost.errors import InputError
from symbolic_cost.scaling.fits import Fit

_POINTS = 17
_BEYOND = 10
"""The curves go on to ten times the compute of the largest run."""


def band_curves(fit: Fit) -> Curves:
    """Return the best of each variable over compute, with one standard error on both sides.

    Raises:
        InputError: the law is not about compute.
    """
    if fit.law.compute is None:
        raise InputError(f"law {fit.law.name} has no compute: there is nothing to draw")
    runs = [float(flop) for flop in fit.law.compute.array(fit.runs.columns)]
    least, most = min(runs), _BEYOND * max(runs)
    across = [least * (most / least) ** (n / (_POINTS - 1)) for n in range(_POINTS)]
    bands = [fit.band(flop) for flop in across]
    curves = []
    for name in [key for key in bands[0] if key.startswith("ln ")]:
        plain = name.removeprefix("ln ")
        values = [band[name] for band in bands]
        middle = [exp(value) for value, _ in values]
        power = bands[-1][f"exponent of {plain}"]
        spread = "" if power[1] is None else f" \N{PLUS-MINUS SIGN} {power[1]:.2g}"
        label = f"best {plain}: {fit.law.variables[plain]}; exponent {power[0]:.3g}{spread}"
        known = all(error is not None for _, error in values)
        sides = tuple(
            [exp(value + sign * (error or 0.0)) for value, error in values] for sign in (-1, 1)
        )
        curves.append(Curve(label, across, middle, (sides[0], sides[1]) if known else ()))
    title = f"{fit.law.name}, fitted to {len(runs)} runs"
    return Curves(
        title, "compute C [FLOP]", f"least {fit.law.gives}: {' and '.join(fit.law.chosen)}", curves
    )
