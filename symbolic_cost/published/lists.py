"""What can be reproduced."""

from __future__ import annotations

from importlib import import_module

from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.published.contract import MODULES


def publications_sheet() -> Sheet:
    """List every publication, with the first line of its module."""
    rows = tuple(
        (name, (import_module(f"symbolic_cost.published.{module}").__doc__ or "").split("\n")[0])
        for name, module in MODULES.items()
    )
    notes = ("symbolic-cost reproduce NAME prints published and computed numbers side by side",)
    return Sheet("Publications", (Column("publication"), Column("content")), rows, notes)
