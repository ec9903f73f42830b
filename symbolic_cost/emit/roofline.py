"""Ops below the roofs of a machine, as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from textwrap import wrap
from typing import TYPE_CHECKING

from symbolic_cost.emit.labels import place_labels
from symbolic_cost.emit.plots import COLOURS, MARKERS
from symbolic_cost.emit.sheet import Sheet, headed
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Phase
from symbolic_cost.systems.rooflines import Device, Point, roofs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TWO_COLUMNS = 4.5  # inches
_TOGETHER = 3
"""Points share a label within a third of a decade."""


def points_sheet(
    points: Sequence[Point], device: Device, title: str, notes: tuple[str, ...] = ()
) -> Sheet:
    """Tabulate points, and the ridge points in the notes."""
    rows = tuple(
        (
            point.path,
            point.phase.value.replace("_", " "),
            point.units,
            point.flop,
            point.traffic,
            round(point.intensity, 4),
            point.rate,
        )
        for point in points
    )
    columns = headed(
        "op, pass, units, computes> [FLOP], moves> [byte], intensity> [FLOP/byte], rate> [FLOP/s]"
    )
    ridges = tuple(
        f"ridge point of the {name} units: {float(ridge):.4g} FLOP/byte"
        for name, (_, ridge) in roofs(device).items()
    )
    return Sheet(title, columns, rows, ridges + notes)


def draw(figure: Figure, points: Sequence[Point], device: Device, title: str) -> None:
    """Draw points below the roofs of a device: every pass has its mark, backward ones are open.

    Raises:
        InputError: there is no point.
    """
    if not points:
        raise InputError("no op both computes and touches memory: there is nothing to draw")
    figure.set_figheight(0.72 * figure.get_figwidth() + 0.3)
    axes = figure.add_subplot()
    ridges = {name: (float(peak), float(ridge)) for name, (peak, ridge) in roofs(device).items()}
    near = [point.intensity for point in points] + [ridge for _, ridge in ridges.values()]
    ends = (min(near) / 2, max(near) * 2)
    for style, (name, (peak, ridge)) in zip(("-", "--"), ridges.items(), strict=True):
        corners = [ends[0], ridge, ends[1]]
        rates = [min(peak, corner * float(device.memory)) for corner in corners]
        label = f"{name} units, ridge at {ridge:.4g} FLOP/byte"
        axes.plot(corners, rates, style, color="black", linewidth=1, label=label)
    _draw_points(axes, points)
    axes.set(xscale="log", yscale="log")
    axes.set(xlabel="arithmetic intensity [FLOP/byte]", ylabel="rate [FLOP/s]")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.margins(y=0.18)
    figure.suptitle(title.replace("$", r"\$"), x=0.01, ha="left", fontsize="medium")
    wide = figure.get_figwidth() > _TWO_COLUMNS
    figure.legend(loc="outside lower center", ncols=3 if wide else 2, frameon=False)
    named = _labels(points)
    room = 30 if wide else 22
    texts = ["\n".join(wrap(", ".join(n), room)).replace("$", r"\$") for n in named.values()]
    marks = [(point.intensity, point.rate) for point in points]
    shown = place_labels(axes, list(named), texts, 7 if wide else 6, marks)
    if len(shown) < len(texts):
        said = f"{len(texts) - len(shown)} groups without room for a name"
        # Below the roofs nothing is drawn.
        axes.text(0.99, 0.02, said, transform=axes.transAxes, ha="right", fontsize=6)


def _draw_points(axes: Axes, points: Sequence[Point]) -> None:
    passes = [phase for phase in Phase if phase in {point.phase for point in points}]
    for place, phase in enumerate(passes):
        drawn = sorted({(one.intensity, one.rate) for one in points if one.phase is phase})
        filled = phase is Phase.FORWARD
        axes.scatter(
            [intensity for intensity, _ in drawn],
            [rate for _, rate in drawn],
            s=12 if filled else 26 + 16 * place,
            marker=MARKERS[place],
            facecolor=COLOURS[0] if filled else "none",
            edgecolor=COLOURS[place],
            linewidth=0.8,
            label=phase.value.replace("_", " "),
            zorder=4 if filled else 3,
        )


def _labels(points: Sequence[Point]) -> dict[tuple[float, float], list[str]]:
    """Return the names of forward ops that lie together, at the first one's place."""
    places: dict[tuple[int, int], tuple[float, float]] = {}
    names: dict[tuple[float, float], list[str]] = {}
    for point in points:
        if point.phase is Phase.FORWARD:
            where = (point.intensity, point.rate)
            near = tuple(round(_TOGETHER * log10(number)) for number in where)
            label = point.path.rpartition(".")[2]
            at = names.setdefault(places.setdefault((near[0], near[1]), where), [])
            if label not in at:
                at.append(label)
    return names
