"""Settings of JSON and YAML files, flattened to dotted keys, each with its line."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from symbolic_cost.errors import InputError
from symbolic_cost.models.importers.recipe import Entry

_DEEPEST = 30


def entries(text: str, file: str) -> tuple[Entry, ...]:
    """Return every setting of a JSON or YAML file; JSON is read as the YAML that it is.

    Raises:
        InputError: not YAML, nested too deeply, or the YAML reader is not installed.
    """
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise InputError(
            f"{file}: reading it needs PyYAML: install symbolic_cost[config]"
        ) from None
    try:
        root = yaml.compose(text.replace("\t", " "), Loader=yaml.SafeLoader)
        loader = yaml.SafeLoader("")
        return tuple(_flattened(root, "", file, loader.construct_object, 0))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"{file}: {line}neither JSON nor YAML") from None
    except RecursionError:
        raise InputError(f"{file}: nested too deeply for a configuration") from None


def _flattened(node: Any, prefix: str, file: str, construct: Any, depth: int) -> Iterator[Entry]:  # noqa: ANN401
    """Yield the settings below a node of the syntax tree, which knows its line."""
    if depth > _DEEPEST:
        raise InputError(f"{file}: nested too deeply for a configuration")
    if node is None or node.id != "mapping":
        return
    for key, value in node.value:
        name = f"{prefix}{key.value}" if key.id == "scalar" else prefix
        if value.id == "mapping":
            yield from _flattened(value, f"{name}.", file, construct, depth + 1)
        elif value.id == "scalar":
            yield Entry(name, construct(value), key.start_mark.line + 1, file)
