"""A config.json as read: its text, its values, and the line of every key."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.reading import json_value, line_of, read_text
from symbolic_cost.records import dataclass, field

LARGEST_FILE = 2**24
"""Bytes of the largest configuration that is read.

Published ones are a few thousand; with the names of all layers that are quantised, three million.
"""

_STANDARD_NAME = "config.json"
HUB = "hub:"
WEIGHTS = (".gguf", ".safetensors", ".safetensors.index.json")
PIPELINE = "model_index.json"


@dataclass(frozen=True)
class Document:
    """A configuration.

    Args:
        name: of the file, or "config" for a mapping.
        text: of the file, empty for a mapping.
        places: file, line and name by key, where a user wrote the value under another name.
    """

    name: str
    values: Mapping[str, Any]
    text: str = field(default="", repr=False)
    places: Mapping[str, str] = field(default_factory=dict)

    def where(self, key: str) -> str:
        """Return the file, the line and the key, as errors name them."""
        return self.places.get(key) or f"{self.name}: {line_of(self.text, key)}key {quote(key)}"


def read_document(path: Path, name: str) -> Document:
    """Read a configuration from a file.

    Args:
        path: of the file, or of a folder with a config.json.
        name: how errors name it.

    Raises:
        InputError: no such file, too large, not JSON, not an object, or a key given twice.
    """
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        if not is_folder(str(path)):
            raise InputError(f"{name}: is a directory without {_STANDARD_NAME}")
        path = path / _STANDARD_NAME
    text = read_text(path, LARGEST_FILE, name)
    # Steps of state-space layers are bounded by [0, Infinity] in published files.
    return checked(name, json_value(text, name, infinite=True), text)


def is_elsewhere(source: str | Path) -> bool:
    """Tell whether a source is a name on the Hub, a file of weights, or a folder of a pipeline."""
    text = str(source)
    if text.startswith(HUB) or text.endswith(WEIGHTS):
        return True
    return _holds(text, PIPELINE)


def is_folder(source: str) -> bool:
    """Tell whether a source is a folder with a config.json."""
    return _holds(source, _STANDARD_NAME)


def _holds(folder: str, name: str) -> bool:
    here = os.path.join(folder, name)  # noqa: PTH118 - Path raises for long names
    return folder != "" and os.path.isfile(here)  # noqa: PTH113 - the same


def checked(name: str, values: object, text: str = "") -> Document:
    """Return a configuration whose keys are texts.

    Raises:
        InputError: values that are no object, or a key that is no text.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{name}: line 1: only a JSON object is accepted")
    strange = [key for key in values if not isinstance(key, str)]
    if strange:
        raise InputError(f"{name}: key {quote(strange[0])} is not text")
    return Document(name, values, text)
