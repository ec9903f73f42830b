"""What can be reproduced."""

from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.published.contract import MODULES, meaning


def publications_sheet() -> Sheet:
    """List every publication, with the first line of its module."""
    rows = tuple((name, meaning(name)) for name in MODULES)
    notes = ("symbolic-cost reproduce NAME prints published and computed numbers side by side",)
    return Sheet("Publications", (Column("publication"), Column("content")), rows, notes)
