"""A map of which part of a cost is the greatest, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from symbolic_cost.analysis.dominance import Map
from symbolic_cost.emit.charts import put_title
from symbolic_cost.emit.plots import HATCHES
from symbolic_cost.symbols import GLOSSARY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = ("#c9e2f5", "#f2b705", "#3f8f6b", "#d98cb3", "#7db7e8", "#e8743b", "#fff3b0", "#9a9a9a")
"""Colours that are light or dark enough for their hatch and, side by side, for grey."""


def draw(figure: Figure, map_: Map, title: str) -> None:
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
