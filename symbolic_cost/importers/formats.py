"""The formats that are understood, as formats.toml has them: which key means what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from symbolic_cost.reading import package_data


@dataclass(frozen=True)
class Format:
    """One format.

    Args:
        marks: keys of which a file of the format has at least one.
        keys: what a key sets: "config.", "degrees." or "run." and a name, or "switches.".
        implied: settings of a model that the format does not spell out.
    """

    name: str
    marks: tuple[str, ...]
    keys: Mapping[str, str]
    implied: Mapping[str, Any] = field(default_factory=dict)


def _format(record: Mapping[str, Any]) -> Format:
    return Format(**{"keys": {}, **record, "marks": tuple(record["marks"])})


_FORMATS = {name: _format(one) for name, one in package_data("importers/formats.toml").items()}
MEGATRON = _FORMATS["MEGATRON"]
PUBLISHED = _FORMATS["PUBLISHED"]
"""A published model: taken as it is."""

TREES = tuple(one for one in _FORMATS.values() if one not in (MEGATRON, PUBLISHED))
"""Formats of JSON and YAML files."""
