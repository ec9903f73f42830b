"""Pictures, drawn with matplotlib (extra `plots`) and written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, TypeGuard

from symbolic_cost.emit import PICTURES
from symbolic_cost.emit.files import write_whole
from symbolic_cost.emit.page import page
from symbolic_cost.errors import InputError, quote

_RESOLUTION = 150
_USUAL = 6.5  # inches
_POINTS = 72.27  # in an inch
_NARROW = 4.5  # inches below which letters are smaller

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
"""Okabe and Ito's, which stay apart for colour-blind readers."""

HATCHES = ("", "///", "\\\\\\", "xxx", "---", "|||", "+++", "//--")
"""What stays apart in grey: lines alone, for dots make files of vectors long."""

MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")


def is_picture(path: str | None) -> TypeGuard[str]:
    """Tell by its ending whether a file is a picture."""
    return path is not None and Path(path).suffix.lower() in PICTURES


def write_picture(path: str, draw: Callable[[Any], None], width: str = "") -> None:
    """Write a picture.

    Args:
        path: of the file; its ending says the format.
        draw: draws on a figure of matplotlib.
        width: of the column that it is for: article, ieee, acm, neurips, or as 3.25in.

    Raises:
        InputError: matplotlib is not installed, another ending, an unknown width, or the file
            cannot be written.
    """
    if not is_picture(path):
        raise InputError(f"picture {quote(path)}: an ending of {', '.join(PICTURES)} is accepted")
    wide = page(width).column / _POINTS if width else _USUAL
    write_whole(path, picture(draw, Path(path).suffix.lower().removeprefix("."), wide))


def picture(draw: Callable[[Any], None], form: str, wide: float = _USUAL) -> bytes:
    """Return a picture of a width [inch], the same bytes every day."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("pictures need matplotlib: pip install 'symbolic_cost[plots]'") from error
    with rc_context(style(wide)):
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)  # labels are measured before they are drawn
        draw(figure)
        buffer = BytesIO()
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
        figure.savefig(buffer, format=form, dpi=_RESOLUTION, metadata=dates.get(form))
    return buffer.getvalue()


def style(wide: float) -> Any:  # noqa: ANN401 - matplotlib names every key in its type
    """Return settings of matplotlib for a width [inch]: letters as large as those of a caption."""
    size = 7.5 if wide < _NARROW else 9.0
    return {
        "figure.figsize": (wide, 0.62 * wide),
        "font.size": size,
        "axes.titlesize": size,
        "legend.fontsize": size - 1,
        "hatch.linewidth": 0.5,
        "pdf.fonttype": 42,  # publishers refuse fonts of type 3
        "svg.hashsalt": "symbolic_cost",
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
