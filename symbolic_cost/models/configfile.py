"""A config.json as read: its text, its values, and the line of every key."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError

LARGEST_FILE = 4 * 2**20
"""Bytes of the largest configuration that is read; published ones are a few thousand."""

_STANDARD_NAME = "config.json"


@dataclass(frozen=True)
class Document:
    """A configuration.

    Args:
        name: of the file, or "config" for a mapping.
        values: by key.
        text: of the file, empty for a mapping.
    """

    name: str
    values: Mapping[str, Any]
    text: str = field(default="", repr=False)

    def where(self, key: str) -> str:
        """Return the file, the line and the key, as errors name them."""
        match = re.search(rf'"{re.escape(key)}"\s*:', self.text)
        line = f"line {self.text.count(chr(10), 0, match.start()) + 1}, " if match else ""
        return f"{self.name}: {line}key {key!r}"


def document(source: str | Path | Mapping[str, Any]) -> Document:
    """Read a configuration from a mapping, a file, or a folder that holds a config.json.

    Raises:
        InputError: no such file, too large, not JSON, not an object, or a key given twice.
    """
    if isinstance(source, Mapping):
        return _checked("config", source)
    if not isinstance(source, str | Path):
        raise InputError(f"{source!r} is not a configuration: a path or a mapping is accepted")
    path = Path(source)
    name = path.name
    try:
        if path.is_dir():
            path = path / _STANDARD_NAME
        size = path.stat().st_size
        if size > LARGEST_FILE:
            raise InputError(
                f"{name}: {size} bytes are not a model's configuration: "
                f"at most {LARGEST_FILE} are read"
            )
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"{name}: not a text file in UTF-8") from None
    return _checked(name, _parsed(name, text), text)


def _parsed(name: str, text: str) -> object:
    repeated: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        repeated.extend(key for key, times in Counter(k for k, _ in found).items() if times > 1)
        return dict(found)

    try:
        values: object = json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        raise InputError(f"{name}: line {error.lineno}: not JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{name}: nested too deeply for a configuration") from None
    except ValueError:
        raise InputError(f"{name}: not JSON: a number of too many digits") from None
    if repeated:
        made = Document(name, {}, text)
        raise InputError([f"{made.where(key)}: given more than once" for key in repeated])
    return values


def _checked(name: str, values: object, text: str = "") -> Document:
    if not isinstance(values, Mapping):
        raise InputError(f"{name}: line 1: only a JSON object is accepted")
    strange = [key for key in values if not isinstance(key, str)]
    if strange:
        raise InputError(f"{name}: key {strange[0]!r} is not text")
    return Document(name, values, text)
