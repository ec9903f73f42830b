"""Dominance: where one part of a cost is the greatest, as inequalities and as a map."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from sympy import Expr, Integer

from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.laurent import common_factor, content, divided, expression, terms
from symbolic_cost.errors import InputError, refuse
from symbolic_cost.program.arrays import evaluated
from symbolic_cost.program.lowering import lowered
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Region:
    """Where one part is the greatest.

    Args:
        inequalities: by other part, (greater, less): where the first is at least the second, what
            both share taken out.
    """

    part: str
    inequalities: Mapping[str, tuple[Expr, Expr]]


def dominance(parts: Mapping[str, Expr]) -> tuple[Region, ...]:
    """Return for every part the inequalities under which no other is greater.

    Args:
        parts: positive costs of one unit, by name.

    Raises:
        InputError: fewer than two parts, or one that is zero.

    >>> from symbolic_cost.symbols import b, e, l
    >>> regions = dominance({"scores": 4*b*l**2*e, "projections": 8*b*l*e**2})
    >>> regions[0].inequalities["projections"]
    (l, 2*e)
    """
    empty = [name for name, expr in parts.items() if expr == 0]
    if len(parts) < 2 or empty:  # noqa: PLR2004 - one part dominates alone
        said = f"{', '.join(empty)} costs nothing" if empty else "fewer than two parts"
        raise InputError(f"{said}: two or more parts with costs are accepted")
    return tuple(
        Region(one, {other: _sides(parts[one], parts[other]) for other in parts if other != one})
        for one in parts
    )


def _sides(greater: Expr, less: Expr) -> tuple[Expr, Expr]:
    """Return both sides of an inequality without what they share, which is positive.

    For example 4 b e l^2 >= 8 b e^2 l is l >= 2 e.
    """
    left, right = terms(greater), terms(less)
    powers = {one: Integer(1) for one in (*left, *right)}
    _, common = content(powers)
    numbers = common_factor([*left.values(), *right.values()])
    one, other = (
        factored(expression({divided(m, common): c / numbers for m, c in side.items()}))
        for side in (left, right)
    )
    return one, other


@dataclass(frozen=True)
class Map:
    """Which part is the greatest over a grid of two symbols.

    Args:
        across: values of the first symbol.
        up: values of the second.
        winner: index of the part, by [up, across].
    """

    parts: tuple[str, ...]
    across: tuple[str, NDArray[np.float64]]
    up: tuple[str, NDArray[np.float64]]
    winner: NDArray[np.int64]


def dominance_map(
    parts: Mapping[str, Expr],
    values: Mapping[str, int | Fraction],
    across: tuple[str, tuple[int, int]],
    up: tuple[str, tuple[int, int]],
    steps: int = 120,
) -> Map:
    """Return which part is the greatest over a grid, evenly spaced in logarithms.

    Args:
        parts: costs by name.
        values: numbers of the other symbols.
        across: name of a symbol, and its least and greatest value.
        up: another one.
        steps: of the grid along each.

    Raises:
        InputError: symbols without a number, and axes that are none.
    """
    program, spans = lowered(dict(parts)), (across, up)
    problems = [
        f"{name} = {a}:{z}: two that differ are accepted" for name, (a, z) in spans if a >= z
    ]
    problems += [
        f"{name}: no part depends on it" for name, _ in spans if name not in program.inputs
    ]
    refuse(problems)
    axes = [np.geomspace(low, high, steps) for _, (low, high) in spans]
    grid = np.meshgrid(*axes)
    columns = {across[0]: grid[0].ravel(), up[0]: grid[1].ravel()}
    missing = [name for name in program.inputs if name not in {*values, *columns}]
    if missing:
        raise InputError(f"no number for {', '.join(missing)}: --set gives numbers")
    count = steps * steps
    known = {
        name: columns[name] if name in columns else np.full(count, float(values[name]))
        for name in program.inputs
    }
    results = evaluated(program.tape, known, count)
    stacked = np.stack([np.broadcast_to(results[name], (count,)) for name in parts])
    winner = stacked.argmax(axis=0).reshape(steps, steps)
    return Map(tuple(parts), (across[0], axes[0]), (up[0], axes[1]), winner)
