"""Published sizes of named models, read from the data files beside."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from symbolic_cost.reading import package_data


@dataclass(frozen=True, slots=True)
class PublishedSize:
    """One published size of a family.

    Args:
        family: whose declaration it uses.
        sizes: number by symbol; l is the usual length.
        note: where the preset departs from the print, and why.
    """

    name: str
    family: str
    sizes: Mapping[str, int]
    source: str
    note: str = ""

    def bindings(self) -> dict[str, int]:
        """Return the number of every symbol; one sequence or image."""
        return {"b": 1, **self.sizes}


@cache
def published(group: str) -> tuple[PublishedSize, ...]:
    """Return the sizes of a data file: "gpt", "decoders" or "others"."""
    entries = package_data(f"models/sizes/{group}.toml").items()
    return tuple(PublishedSize(name, **entry) for name, entry in entries)
