"""Fronts: configurations that no other beats in two figures, drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from textwrap import wrap
from typing import TYPE_CHECKING

from symbolic_cost.emit.labels import place_labels
from symbolic_cost.emit.sheet import Sheet
from symbolic_cost.records import dataclass
from symbolic_cost.units import Unit, human

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LABELS = 8
_BESIDE = 8.0  # inches from which fronts stand beside each other
_LETTERS = 125  # of 1 pt in an inch
_ROUNDED = 1e-9
"""Share by which figures differ that are more than rounded apart."""

_FEW_POWERS = 4
_BETWEEN = (1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875)
"""Ticks between powers of two where figures span too few of these to be read."""

_LABELS = {"cost": "cost: device time of one token or sample", "step": "step time"}


@dataclass(frozen=True)
class Front:
    """Points that none beats.

    Args:
        across: the first figure of every point, rising.
        labels: what tells the points apart.
        alike: what they have in common.
    """

    x: str
    y: str
    unit_x: str
    unit_y: str
    across: Sequence[float]
    up: Sequence[float]
    labels: Sequence[str]
    alike: str
    title: str
    sheet: Sheet


def draw(figure: Figure, fronts: Sequence[Front]) -> None:
    """Draw fronts one below another; one of a single point has nothing to show beside others.

    For example the cost of a step on one number of devices is least where the step is. Points that
    differ by no more than floats are rounded are one.
    """
    drawn = [front for front in fronts if _spreads(front)] or [_first(fronts[0])]
    wide = figure.get_figwidth()
    beside = wide > _BESIDE and len(drawn) > 1
    rows = 1 if beside else len(drawn)
    each = wide / len(drawn) if beside else wide
    figure.set_figheight((0.8 * each + 0.35) * rows + 0.3)
    size = float(figure.text(0, 0, "").get_fontsize())
    figure.suptitle(_folded(drawn[0].title, wide, size), x=0.01, ha="left", fontsize="medium")
    planes = [
        figure.add_subplot(rows, len(drawn) if beside else 1, place)
        for place in range(1, len(drawn) + 1)
    ]
    for axes, front in zip(planes, drawn, strict=True):
        _draw(axes, front, each, size)
    for axes, front in zip(planes, drawn, strict=True):  # where the layout is settled
        points = list(zip(front.across, front.up, strict=True))
        named = _labelled(len(points))
        ends = [named[0], named[-1], *named[1:-1]] if len(named) > 1 else named
        chosen = [points[place] for place in ends]
        texts = [front.labels[place].replace("$", r"\$") for place in ends]
        place_labels(axes, chosen, texts, max(size - 2, 5.5), points)


def _folded(text: str, wide: float, size: float) -> str:
    """Break a text into lines of a width [inch]; dollars are no mathematics."""
    return "\n".join(wrap(text, int(wide * _LETTERS / size))).replace("$", r"\$")


def _spreads(front: Front) -> bool:
    return min(front.across) < (1 - _ROUNDED) * max(front.across)


def _first(front: Front) -> Front:
    return replace(front, across=front.across[:1], up=front.up[:1], labels=front.labels[:1])


def _draw(axes: Axes, front: Front, wide: float, size: float) -> None:
    from matplotlib.ticker import LogLocator

    rising = front.up[-1] > front.up[0]  # the second figure is made large
    corners = [*_corners(front, rising=rising)]
    x, y = zip(*corners, strict=True)
    axes.plot(x, y, color="#0072B2", linewidth=1, alpha=0.6)
    axes.scatter(front.across, front.up, s=18, color="#0072B2", zorder=3)
    axes.margins(0.12, 0.14)
    axes.set_xscale("log", base=_base(front.unit_x))
    axes.set_yscale("log", base=_base(front.unit_y))
    for axis, name, unit, figures in (
        (axes.xaxis, front.x, front.unit_x, front.across),
        (axes.yaxis, front.y, front.unit_y, front.up),
    ):
        axis.set_label_text(_LABELS.get(name, name.replace("_", " ")))
        known = {str(one): one for one in (Unit.BYTE, Unit.SECOND)}.get(unit)
        if known is not None:
            axis.set_major_formatter(_printer(known, 3))
            axis.set_minor_formatter(_printer(known, 3))
            if known is Unit.SECOND:  # 80 ms and 90 ms would run into each other
                axis.set_minor_locator(LogLocator(10, subs=(2, 3, 5)))
            elif max(figures) < _FEW_POWERS * min(figures):
                axis.set_minor_locator(LogLocator(2, subs=_BETWEEN))
        axis.set_tick_params(which="both", labelsize=size - 1.5)
    axes.grid(visible=True, which="major", alpha=0.3)
    title = f"{front.y.replace('_', ' ')} against {front.x.replace('_', ' ')}   {front.alike}"
    axes.set_title(_folded(title, wide - 1, size), loc="left", fontsize=size)


def _corners(front: Front, *, rising: bool) -> Iterator[tuple[float, float]]:
    """Give the corners of the stairs between points, so that labels keep off them."""
    points = list(zip(front.across, front.up, strict=True))
    for before, after in pairwise(points):
        yield before
        yield (before[0], after[1]) if rising else (after[0], before[1])
    yield points[-1]


def _base(unit: str) -> int:
    """Return the base of a logarithmic axis, whose ticks are whole powers of it."""
    return 2 if unit == "byte" else 10


def _printer(unit: Unit, digits: int) -> Callable[[float, object], str]:
    return lambda value, _place: human(value, unit, digits)


def _labelled(size: int) -> list[int]:
    """Return the points that are named: all, or some with the ends among them."""
    if size <= _MOST_LABELS:
        return list(range(size))
    step = (size - 1) / (_MOST_LABELS - 1)
    return sorted({round(place * step) for place in range(_MOST_LABELS)})
