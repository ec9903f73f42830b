"""A pipeline schedule as a picture: one line per stage, one colour per pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from symbolic_cost.errors import InputError
from symbolic_cost.parallel.orders import Pass
from symbolic_cost.parallel.timeline import Event

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = {
    Pass.FORWARD: "#8CCBF2",
    Pass.BACKWARD: "#A8508C",
    Pass.BACKWARD_INPUT: "#007A5C",
    Pass.BACKWARD_WEIGHT: "#FFF7B8",
}
"""Colours that stay apart for colour-blind readers and, being light and dark, in grey."""

_ON_DARK = (Pass.BACKWARD, Pass.BACKWARD_INPUT)
_CHUNK = "////"
"""Hatch of the chunks behind the first."""

_LABELS = {
    Pass.FORWARD: "forward",
    Pass.BACKWARD: "backward",
    Pass.BACKWARD_INPUT: "backward, inputs",
    Pass.BACKWARD_WEIGHT: "backward, weights",
}
_HEIGHT = 0.9
_ROW = 0.32  # inches of a stage
_LARGEST, _SMALLEST = 7.0, 3.5
"""Letters of numbers inside of passes [pt]; smaller ones are left out."""


MOST_DRAWN = 4000
"""Tasks of a drawing; with more of them nothing can be told apart."""


def draw(figure: Figure, events: Sequence[Event], title: str) -> None:
    """Draw the events of a schedule on a figure; overlapped tasks share the height of a line."""
    from matplotlib.patches import Patch

    if len(events) > MOST_DRAWN:
        raise InputError(f"{len(events)} tasks are too many to draw: up to {MOST_DRAWN} are")
    stages = 1 + max(event.stage for event in events)
    length = float(max(event.end for event in events))
    figure.set_figheight(1.1 + _ROW * stages)
    axes = figure.add_subplot()
    together = Counter((event.stage, event.start) for event in events)
    size = _letters(events, figure.get_figwidth() / length, max(together.values()))
    placed: Counter[tuple[int, Fraction]] = Counter()
    for event in events:
        slot = (event.stage, event.start)
        height = _HEIGHT / together[slot]
        middle = event.stage - _HEIGHT / 2 + height * (placed[slot] + 0.5)
        placed[slot] += 1
        _draw_event(axes, event, middle, height, size)
    axes.set_yticks(range(stages), [f"stage {number + 1}" for number in range(stages)])
    axes.invert_yaxis()
    axes.set_xlim(0, length)
    axes.set_xlabel("time, in passes of one microbatch and stage")
    figure.suptitle(title.replace("$", r"\$"), x=0.01, ha="left", fontsize="medium")
    axes.yaxis.set_tick_params(length=0)
    axes.spines["left"].set_visible(False)
    shown = {event.task.work for event in events}
    legend = [
        Patch(facecolor=_COLOURS[work], label=_LABELS[work]) for work in Pass if work in shown
    ]
    if any(event.task.chunk for event in events):
        further = Patch(facecolor="white", edgecolor="black", label="further chunks of a stage")
        further.set_hatch(_CHUNK)
        legend.append(further)
    figure.legend(handles=legend, loc="outside lower center", ncols=2, frameon=False)


def _letters(events: Sequence[Event], scale: float, lines: int) -> float:
    """Return the size of letters with which every number fits its pass [pt]."""
    digits = len(str(1 + max(event.task.microbatch for event in events)))
    shortest = min(float(event.end - event.start) for event in events)
    wide = 72 * shortest * scale * 0.8 / (0.66 * digits + 0.2)
    return min(_LARGEST, 50 * _ROW * _HEIGHT / lines, wide)


def _draw_event(axes: Axes, event: Event, middle: float, height: float, size: float) -> None:
    """Draw a pass, with the number of its microbatch in letters of a size unless that is small."""
    start, end = float(event.start), float(event.end)
    axes.barh(
        middle,
        end - start,
        left=start,
        height=height,
        color=_COLOURS[event.task.work],
        hatch=_CHUNK if event.task.chunk else "",
        edgecolor="white",
        linewidth=0.5,
    )
    label = str(event.task.microbatch + 1)
    if size >= _SMALLEST:
        colour = "#fefefe" if event.task.work in _ON_DARK else "#111111"
        box = {"facecolor": _COLOURS[event.task.work], "edgecolor": "none", "pad": 0.3}
        axes.annotate(
            label,
            ((start + end) / 2, middle),
            ha="center",
            va="center",
            fontsize=size,
            color=colour,
            bbox=box if event.task.chunk else None,
        )
