"""One published size of a family, as data."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublishedSize:
    """One published size.

    Args:
        name: of the preset.
        family: whose declaration it uses.
        sizes: as "symbol=number", separated by blanks; l is the usual length.
        source: key of a reference.
        note: where the preset departs from the print, and why.
    """

    name: str
    family: str
    sizes: str
    source: str
    note: str = ""

    def bindings(self) -> dict[str, int]:
        """Return the number of every symbol; one sequence or image."""
        pairs = (item.split("=") for item in self.sizes.split())
        return {"b": 1, **{symbol: int(number) for symbol, number in pairs}}
