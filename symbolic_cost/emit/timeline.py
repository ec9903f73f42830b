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

# Colours that stay apart in print and for colour-blind readers (Okabe and Ito).
_COLOURS = {
    Pass.FORWARD: "#56B4E9",
    Pass.BACKWARD: "#CC79A7",
    Pass.BACKWARD_INPUT: "#009E73",
    Pass.BACKWARD_WEIGHT: "#F0E442",
}
_LABELS = {
    Pass.FORWARD: "forward",
    Pass.BACKWARD: "backward",
    Pass.BACKWARD_INPUT: "backward, inputs",
    Pass.BACKWARD_WEIGHT: "backward, weights",
}
_HEIGHT = 0.9


MOST_DRAWN = 4000
"""Tasks of a drawing; with more of them nothing can be told apart."""


def draw(figure: Figure, events: Sequence[Event], title: str) -> None:
    """Draw the events of a schedule on a figure; overlapped tasks share the height of a line."""
    from matplotlib.patches import Patch

    if len(events) > MOST_DRAWN:
        raise InputError(f"{len(events)} tasks are too many to draw: up to {MOST_DRAWN} are")
    stages = 1 + max(event.stage for event in events)
    length = float(max(event.end for event in events))
    figure.set_size_inches(min(16, 2 + 0.3 * length), 1.3 + 0.35 * stages)
    axes = figure.add_subplot()
    together = Counter((event.stage, event.start) for event in events)
    placed: Counter[tuple[int, Fraction]] = Counter()
    for event in events:
        slot = (event.stage, event.start)
        height = _HEIGHT / together[slot]
        middle = event.stage - _HEIGHT / 2 + height * (placed[slot] + 0.5)
        placed[slot] += 1
        _draw_event(axes, event, middle, height)
    axes.set_yticks(range(stages), [f"stage {number + 1}" for number in range(stages)])
    axes.invert_yaxis()
    axes.set_xlim(0, length)
    axes.set_xlabel("time, in passes of one microbatch and stage")
    axes.set_title(title, loc="left")
    axes.spines[["top", "right", "left"]].set_visible(False)
    shown = {event.task.work for event in events}
    legend = [Patch(color=_COLOURS[work], label=_LABELS[work]) for work in Pass if work in shown]
    figure.legend(handles=legend, loc="outside lower center", ncols=4, frameon=False)


def _draw_event(axes: Axes, event: Event, middle: float, height: float) -> None:
    start, end = float(event.start), float(event.end)
    axes.barh(
        middle,
        end - start,
        left=start,
        height=height,
        color=_COLOURS[event.task.work],
        alpha=0.6 if event.task.chunk else 1.0,
        edgecolor="white",
        linewidth=0.5,
    )
    label = str(event.task.microbatch + 1)
    axes.text((start + end) / 2, middle, label, ha="center", va="center", fontsize=7)
