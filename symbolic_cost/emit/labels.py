"""Labels of points that neither cover each other nor leave the axes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import cos, pi, sin
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RINGS = (6, 12, 20, 30, 42, 56, 72, 90, 110)
"""Distances from the point [pt]."""

_AROUND = 16
_LINE = 15  # points above which a line leads to the label
_DOT = 3.0  # half the size of a point's mark [pt]


def place_labels(
    axes: Axes,
    points: Sequence[tuple[float, float]],
    texts: Sequence[str],
    size: float,
    marks: Sequence[tuple[float, float]] = (),
) -> list[Any]:
    """Label points, nearest first, where there is room; one without room is left out.

    Labels cover no line of the axes, none of the marks and no other label.

    The layout of the figure is settled before and stays as it is.

    Args:
        axes: of the points.
        points: in data.
        texts: one per point; empty for none.
        size: of the letters [pt].
        marks: further points that stay visible.

    Returns:
        The labels, in the order in which they found their place.
    """
    figure: Any = axes.figure
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    scale = figure.dpi / 72
    taken = [
        _around(tuple(axes.transData.transform(point)), _DOT * scale) for point in (*points, *marks)
    ]
    taken += [box for line in axes.lines for box in _along(axes, line, scale)]
    labels = []
    for point, text in zip(points, texts, strict=True):
        placed = _placed(axes, point, text, size, taken) if text else None
        if placed is not None:
            labels.append(placed)
    return labels


def _placed(
    axes: Axes, point: tuple[float, float], text: str, size: float, taken: list[Any]
) -> Any:  # noqa: ANN401 - matplotlib's
    """Return a label at the nearest place with room, which is taken then; None without one."""
    from matplotlib.text import Text

    figure: Any = axes.figure
    renderer = figure.canvas.get_renderer()
    for offset, side in _offsets():
        label = axes.annotate(
            text,
            point,
            xytext=offset,
            textcoords="offset points",
            fontsize=size,
            ha=side,
            va="center",
            arrowprops=_leader(offset),
        )
        label.update_positions(renderer)
        box = Text.get_window_extent(label, renderer)  # without the line that leads to it
        if _is_inside(axes, box) and not any(_meet(box, other) for other in taken):
            taken.append((box.x0 - 1, box.y0 - 1, box.x1 + 1, box.y1 + 1))
            return label
        label.remove()
    return None


def _offsets() -> Iterator[tuple[tuple[float, float], str]]:
    for ring in _RINGS:
        for turn in range(_AROUND):
            angle = 2 * pi * turn / _AROUND
            x, y = ring * cos(angle), ring * sin(angle)
            side = "left" if x > 1 else "right" if x < -1 else "center"
            yield (x, y), side


def _along(
    axes: Axes,
    line: Any,  # noqa: ANN401 - matplotlib's
    scale: float,
) -> Iterator[tuple[float, float, float, float]]:
    """Give boxes along a line, near enough to each other that no label lies between them."""
    corners = axes.transData.transform(line.get_xydata())
    for (x0, y0), (x1, y1) in pairwise(corners):
        steps = 1 + int(max(abs(x1 - x0), abs(y1 - y0)) / (4 * scale))
        for step in range(steps + 1):
            part = step / steps
            yield _around((x0 + part * (x1 - x0), y0 + part * (y1 - y0)), scale)


def _leader(offset: tuple[float, float]) -> dict[str, Any] | None:
    far = offset[0] ** 2 + offset[1] ** 2 > _LINE**2
    style = {"arrowstyle": "-", "linewidth": 0.4, "color": "#888888", "shrinkA": 1, "shrinkB": 2}
    return style if far else None


def _around(centre: Sequence[float], half: float) -> tuple[float, float, float, float]:
    return (centre[0] - half, centre[1] - half, centre[0] + half, centre[1] + half)


def _is_inside(axes: Axes, box: Any) -> bool:  # noqa: ANN401 - matplotlib's
    room = axes.bbox
    return bool(room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1)


def _meet(box: Any, other: tuple[float, float, float, float]) -> bool:  # noqa: ANN401
    return bool(box.x0 < other[2] and other[0] < box.x1 and box.y0 < other[3] and other[1] < box.y1)
