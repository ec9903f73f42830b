"""Formats of launch files: what the keys of each set, and how a file is told to be of one."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from symbolic_cost.errors import InputError
from symbolic_cost.importers.recipe import Entry
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Format:
    """One format.

    Args:
        marks: keys of which a file of the format has at least one.
        keys: what a key sets: "config.", "degrees." or "run." and a name, or "switches.".
        implied: settings of a model that the format does not spell out.
        words: by key, what its values mean; "auto" is left open.
        refused: keys that change costs in a way that is not known here, with what they do. What
            switches them off is accepted.
        free: beginnings of keys that change no cost of a step.
    """

    name: str
    marks: tuple[str, ...]
    keys: Mapping[str, str]
    implied: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    free: tuple[str, ...] = ()


def _format(record: Mapping[str, Any]) -> Format:
    listed = {name: tuple(record.get(name, ())) for name in ("marks", "free")}
    return Format(**{"keys": {}, **record, **listed})


_FORMATS = {name: _format(one) for name, one in package_data("importers/formats.toml").items()}
MEGATRON = _FORMATS["MEGATRON"]
DEEPSPEED, TORCHTITAN, VLLM = _FORMATS["DEEPSPEED"], _FORMATS["TORCHTITAN"], _FORMATS["VLLM"]
PUBLISHED = _FORMATS["PUBLISHED"]
"""A published model: taken as it is."""

TREES = tuple(one for one in _FORMATS.values() if one not in (MEGATRON, PUBLISHED))
"""Formats of JSON and YAML files."""


def recognised(
    name: str, entries: tuple[Entry, ...], formats: tuple[Format, ...]
) -> tuple[Format, tuple[Entry, ...]]:
    """Return the format of a file, one of several, with its entries."""
    keys = {entry.key for entry in entries}
    for known in formats:
        if keys & set(known.marks):
            return known, entries
    marks = "; ".join(f"{known.name}: {', '.join(known.marks)}" for known in formats)
    raise InputError(f"{name}: of no known format. Keys that are looked for: {marks}")
