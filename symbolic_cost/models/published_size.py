"""Published sizes of named models, read from the data files beside."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class PublishedSize:
    """One published size of a family.

    Args:
        family: whose declaration it uses.
        sizes: number by symbol; l is the usual length.
        note: where the preset departs from the print, and why.
        routed: groups of experts, and how many of them the experts of a token lie in.
    """

    name: str
    family: str
    sizes: Mapping[str, int]
    source: str
    note: str = ""
    routed: tuple[int, int] = (1, 1)

    def bindings(self) -> dict[str, int]:
        """Return the number of every symbol; one sequence or image."""
        return {"b": 1, **self.sizes}


@dataclass(frozen=True, slots=True)
class PublishedConfig:
    """One published model by its configuration.

    Args:
        config: fields of its config.json.
        note: where it departs from the print.
    """

    name: str
    config: Mapping[str, Any]
    source: str
    note: str = ""


@cache
def configured() -> Mapping[str, PublishedConfig]:
    """Return the published models that are told by their configuration, by name."""
    entries = package_data("models/sizes/configured.toml").items()
    return {name: PublishedConfig(name, **entry) for name, entry in entries}


@cache
def published(group: str) -> tuple[PublishedSize, ...]:
    """Return the sizes of a data file: "gpt", "decoders" or "others"."""
    entries = package_data(f"models/sizes/{group}.toml").items()
    return tuple(PublishedSize(name, **entry) for name, entry in entries)
