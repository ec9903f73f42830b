"""What can be reproduced."""

from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.published.contract import MODULES, publication


def publications_sheet() -> Sheet:
    """List every publication, with the first line of its module."""
    rows = tuple((name, (publication(name).__doc__ or "").split("\n")[0]) for name in MODULES)
    notes = ("symbolic-cost reproduce NAME prints published and computed numbers side by side",)
    return Sheet("Publications", (Column("publication"), Column("content")), rows, notes)
