"""Charts: stacked bars, curves with formulas and bands, and maps of the greatest part of a cost."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from sympy import Expr

from symbolic_cost.analysis.dominance import Map
from symbolic_cost.emit.formulas import latex, plain
from symbolic_cost.emit.measure import width
from symbolic_cost.emit.plots import COLOURS, HATCHES
from symbolic_cost.errors import InputError
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY
from symbolic_cost.units import Unit, human

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 0.42  # inches of one bar
_STYLES = ("-", "--", ":", "-.")
_NARROW = 4.5  # inches
_LETTERS = 125  # of 1 pt in an inch
_LEGEND = 0.17  # inches of a line of the legend


@dataclass(frozen=True)
class Bars:
    """Bars, each the sum of parts.

    Args:
        parts: one number per bar, by name of the part.
        limit: that a line shows, and what it is; zero for none.
    """

    title: str
    labels: Sequence[str]
    parts: Mapping[str, Sequence[float]]
    unit: Unit
    limit: float = 0
    limited: str = ""


@dataclass(frozen=True)
class Curve:
    """A line through points.

    Args:
        band: least and greatest beside each point; empty for none.
    """

    label: Expr | str
    across: Sequence[float]
    up: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | tuple[()] = ()


@dataclass(frozen=True)
class Curves:
    """Curves over one quantity, on logarithmic axes."""

    title: str
    across: str
    up: str
    curves: Sequence[Curve]


def draw_bars(figure: Figure, bars: Bars) -> None:
    """Draw bars from left to right, the first on top, each part in its colour and hatch.

    Raises:
        InputError: nothing to draw.
    """
    shown = {name: values for name, values in bars.parts.items() if any(values)}
    if not bars.labels or not shown:
        raise InputError("there is nothing to draw")
    names = [_wrapped(label, 22) for label in bars.labels]
    tallest = max(name.count("\n") + 1 for name in names)
    figure.set_figheight(
        1.15 + max(_ROW, 0.16 * tallest) * len(names) + _LEGEND * (1 + len(shown) // 3)
    )
    axes = figure.add_subplot()
    totals = _stacked(axes, shown, len(names))
    for place, total in enumerate(totals):
        axes.annotate(
            human(total, bars.unit, 3),
            (total, place),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6},
        )
    if bars.limit:
        said = f"{bars.limited}: {human(bars.limit, bars.unit, 3)}"
        axes.axvline(bars.limit, color="black", linestyle="--", linewidth=1, label=said, zorder=1.5)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.22 * max(*totals, bars.limit))
    axes.tick_params(axis="y", length=0)
    _ticks(axes, bars.unit)
    put_title(figure, bars.title)
    figure.legend(
        loc="outside lower center", ncols=3 if figure.get_figwidth() > _NARROW else 2, frameon=False
    )


def _stacked(axes: Axes, parts: Mapping[str, Sequence[float]], count: int) -> list[float]:
    """Draw so many bars, part beside part; return how long they are."""
    totals = [0.0] * count
    for place, (name, values) in enumerate(parts.items()):
        axes.barh(
            range(count),
            values,
            left=totals,
            height=0.62,
            color=COLOURS[place % len(COLOURS)],
            hatch=HATCHES[place % len(HATCHES)],
            edgecolor="black",
            linewidth=0.4,
            label=name,
        )
        totals = [total + value for total, value in zip(totals, values, strict=True)]
    return totals


def draw_curves(figure: Figure, chart: Curves) -> None:
    """Draw curves in styles of their own; the legend below gives their formulas.

    Raises:
        InputError: nothing to draw.
    """
    if not chart.curves:
        raise InputError("there is nothing to draw")
    labels = [_label(curve.label, figure) for curve in chart.curves]
    lines = sum(label.count("\n") + 1 for label in labels)
    figure.set_figheight(0.62 * figure.get_figwidth() + _LEGEND * lines)
    axes = figure.add_subplot()
    for place, (curve, label) in enumerate(zip(chart.curves, labels, strict=True)):
        colour = COLOURS[place % len(COLOURS)]
        line = _STYLES[place % len(_STYLES)]
        axes.plot(curve.across, curve.up, line, color=colour, linewidth=1.4, label=label)
        if curve.band:
            axes.fill_between(curve.across, *curve.band, color=colour, alpha=0.25, linewidth=0)
    axes.set(xscale="log", yscale="log", xlabel=chart.across, ylabel=chart.up)
    axes.grid(visible=True, which="major", alpha=0.3)
    put_title(figure, chart.title)
    figure.legend(loc="outside lower left", ncols=1, frameon=False)


def _label(label: Expr | str, figure: Figure) -> str:
    if isinstance(label, str):
        return _wrapped(label, _room(figure, 3))
    return formula_lines(label, 72 * (figure.get_figwidth() - 0.9))


def put_title(figure: Figure, title: str) -> None:
    """Put a title above a figure, over as many lines as it takes."""
    shown = _wrapped(title, _room(figure, 1))
    figure.suptitle(shown, x=0.01, ha="left", fontsize="medium")


def _room(figure: Figure, inches: float) -> int:
    """Return how many letters stand side by side in the width of a figure, less some inches."""
    from matplotlib import rcParams

    return int((figure.get_figwidth() - inches / 4) * _LETTERS / float(rcParams["font.size"]))


def _wrapped(text: str, room: int) -> str:
    """Break a text into lines, at commas if it has no blanks; dollars are no mathematics."""
    apart = text if " " in text else text.replace(",", ", ")
    lines = wrap(apart, room)
    joined = lines if " " in text else [line.replace(", ", ",") for line in lines]
    return "\n".join(joined).replace("$", r"\$")


def formula_lines(expr: Expr, room: float) -> str:
    """Return a formula as mathematics of a picture, over as many lines as it takes.

    Args:
        expr: the formula.
        room: width of a line, in letters of 8 pt [pt].
    """
    tex = latex(expr, breakable=True)
    if r"\text" in tex:  # which pictures cannot typeset
        return _wrapped(plain(expr), int(room / 4))
    lines = [""]
    for piece in re.split(r"\\allowbreak |(?<= [+-]) ", tex):
        if lines[-1] and width(f"${lines[-1]}{piece}$") > room:
            lines.append("")
        lines[-1] += f"{piece} "
    return "\n".join(f"${line.strip()}$" for line in lines)


def _ticks(axes: Axes, unit: Unit) -> None:
    """Set ticks that are whole numbers with a prefix: powers of two of bytes."""
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    most = axes.get_xlim()[1]
    whole = 2 ** max(0, math.ceil(math.log2(most / 5))) if unit is Unit.BYTE and most > 1 else 0
    locator: Any = MultipleLocator(whole) if whole else MaxNLocator(nbins=5, steps=[1, 2, 5, 10])
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(lambda value, _place: human(value, unit, 3))


_COLOURS = ("#c9e2f5", "#f2b705", "#3f8f6b", "#d98cb3", "#7db7e8", "#e8743b", "#fff3b0", "#9a9a9a")
"""Colours that are light or dark enough for their hatch and, side by side, for grey."""


def draw_regions(figure: Figure, map_: Map, title: str) -> None:
    """Draw the regions over two symbols in logarithms; colour and hatch say which part is which."""
    from matplotlib.colors import BoundaryNorm, ListedColormap
    from matplotlib.patches import Patch

    shown = [place for place in range(len(map_.parts)) if (map_.winner == place).any()]
    columns = 3 if figure.get_figwidth() > 4.5 else 2  # noqa: PLR2004 - inches
    figure.set_figheight(0.68 * figure.get_figwidth() + 0.2 * -(-len(shown) // columns))
    axes = figure.add_subplot()
    (across, x), (up, y) = map_.across, map_.up
    count = len(map_.parts)
    looks = [(_COLOURS[n % len(_COLOURS)], HATCHES[n % len(HATCHES)]) for n in range(count)]
    norm = BoundaryNorm([place - 0.5 for place in range(count + 1)], count)
    axes.pcolormesh(
        x,
        y,
        map_.winner,
        cmap=ListedColormap([colour for colour, _ in looks]),
        norm=norm,
        shading="nearest",
        rasterized=True,
    )
    for place in shown:
        if looks[place][1]:
            hatched = axes.contourf(
                x, y, map_.winner == place, [0.5, 1.5], colors="none", hatches=[looks[place][1]]
            )
            hatched.set_edgecolor("#00000099")
    axes.set(xscale="log", yscale="log", xlabel=_axis(across), ylabel=_axis(up))
    put_title(figure, title)
    patches = []
    for place in shown:
        colour, hatch = looks[place]
        patches.append(Patch(facecolor=colour, edgecolor="black", label=map_.parts[place]))
        patches[-1].set_hatch(hatch)
    figure.legend(handles=patches, loc="outside lower center", ncols=columns, frameon=False)


def _axis(name: str) -> str:
    return f"{name}: {GLOSSARY[name].meaning}" if name in GLOSSARY else name
