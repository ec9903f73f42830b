"""Pictures, drawn with matplotlib (extra `plots`) and written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, TypeGuard

from symbolic_cost.emit import PICTURES
from symbolic_cost.emit.files import write_whole
from symbolic_cost.errors import InputError, shown

_RESOLUTION = 150


def is_picture(path: str | None) -> TypeGuard[str]:
    """Tell by its ending whether a file is a picture."""
    return path is not None and Path(path).suffix.lower() in PICTURES


def drawn(path: str, draw: Callable[[Any], None]) -> None:
    """Write a picture.

    Raises:
        InputError: matplotlib is not installed, another ending, or the file cannot be written.
    """
    if not is_picture(path):
        raise InputError(f"picture {shown(path)}: an ending of {', '.join(PICTURES)} is accepted")
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("pictures need matplotlib: pip install 'symbolic_cost[plots]'") from error
    with rc_context({"svg.hashsalt": "symbolic_cost", "font.size": 9}):
        figure = Figure(layout="constrained")
        draw(figure)
        buffer = BytesIO()
        form = Path(path).suffix.lower().removeprefix(".")
        dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same bytes every day
        metadata = dates.get(form)
        figure.savefig(buffer, format=form, dpi=_RESOLUTION, metadata=metadata)
    write_whole(path, buffer.getvalue())
