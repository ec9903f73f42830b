"""What a value is, as a text that is the same in every process: the key of what is kept on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from sympy import Basic


def described(value: object) -> str | None:
    """Return a text that tells a value from others; none where a user's own function decides.

    A function of the library is known by its name, and changes with the library.

    >>> described({"b": (1, None), "a": frozenset({"y", "x"})})
    "{'a':{'x','y'},'b':('1',None)}"
    """
    try:
        return _text(value)
    except _OwnFunctionError:
        return None


class _OwnFunctionError(Exception):
    """A function whose text nobody knows."""


def _text(value: object) -> str:
    if value is None or isinstance(value, str | Basic | Enum | int | float):
        return repr(None if value is None else str(value))
    if isinstance(value, Mapping):
        items = sorted((_text(key), _text(one)) for key, one in value.items())
        return "{" + ",".join(f"{key}:{one}" for key, one in items) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ",".join(sorted(map(_text, value))) + "}"
    if isinstance(value, tuple | list):
        return "(" + ",".join(map(_text, value)) + ")"
    if is_dataclass(value) and not isinstance(value, type):
        inner = (f"{f.name}={_text(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({','.join(inner)})"
    return _of_function(value)


def _of_function(value: Any) -> str:  # noqa: ANN401 - whatever is left
    module = getattr(value, "__module__", None) or type(value).__module__
    if not module.startswith("symbolic_cost."):
        raise _OwnFunctionError
    name = getattr(value, "__qualname__", None)
    if name is not None:
        return f"{module}.{name}"
    held = {key: one for key, one in vars(value).items() if not key.startswith("_")}
    return f"{module}.{type(value).__name__}{_text(held)}"
