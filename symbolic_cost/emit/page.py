"""The widths of pages on which tables and pictures are to fit."""

from __future__ import annotations

import re

from symbolic_cost.errors import InputError, quote
from symbolic_cost.records import dataclass

_POINTS = {"pt": 1.0, "in": 72.27, "mm": 2.84528, "cm": 28.4528}
_NARROWEST, _WIDEST = 180, 2000


@dataclass(frozen=True)
class Page:
    """A page of a class of documents.

    Args:
        column: width of a column [pt].
        text: width of all columns together [pt]; that of the column where there is one.
        height: of the text [pt].
    """

    name: str
    column: float
    text: float
    height: float

    @property
    def is_divided(self) -> bool:
        """Tell whether there are two columns."""
        return self.text > self.column


PAGES = {
    page.name: page
    for page in (
        Page("article", 345, 345, 550),
        Page("ieee", 252, 516, 696),
        Page("acm", 241, 506, 615),
        Page("neurips", 397, 397, 650),
    )
}
"""Widths of LaTeX's article at 10 pt, IEEEtran, acmart (sigconf) and NeurIPS, rounded down."""

TWO_COLUMNS = Page("article", 200, 410, 550)
"""LaTeX's article with the option twocolumn."""


def page(name: str = "article", *, columns: int = 1) -> Page:
    """Return a page by the name of its class, or of a width such as 3.25in or 240pt.

    Args:
        name: of a class, or a width of a column.
        columns: 2 for the class article or a width with two columns.

    Raises:
        InputError: neither, or a width that no table fits.

    >>> page("ieee").column, page("3.25in").column
    (252, 234.9)
    """
    if name == "article" and columns > 1:
        return TWO_COLUMNS
    if name in PAGES:
        return PAGES[name]
    read = re.fullmatch(r"([0-9]{1,4}(?:\.[0-9]{1,4})?)(pt|in|mm|cm)", name)
    wide = round(float(read[1]) * _POINTS[read[2]], 1) if read else 0.0
    if not _NARROWEST <= wide <= _WIDEST:
        raise InputError(
            f"width {quote(name)}: {', '.join(PAGES)} or a width from {_NARROWEST}pt to "
            f"{_WIDEST}pt is accepted, as 3.25in"
        )
    return Page(name, wide, wide if columns == 1 else 2 * wide + 12, 600)
