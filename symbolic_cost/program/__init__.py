"""Programs: costs as one graph of shared operations, evaluated exactly, in floats and in arrays.

`program.lowered(...)` makes one of expressions, `program.Evaluator(...)` is a function of arrays
and grids, `program.kept(...)` keeps the tape of one in the cache. All are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "arrays": ("evaluated",),
    "evaluator": ("Evaluator",),
    "fast": ("NativeFlat", "NativeTop"),
    "graph": ("Graph",),
    "grids": ("Histogram", "Pareto", "Top", "reduced"),
    "intervals": ("Certified", "Intervals", "certified"),
    "lowering": ("lowered",),
    "native": ("LANES", "Kernel", "Plan"),
    "nest": ("gridded",),
    "program": ("Program", "included", "of_graph"),
    "scalars": ("function",),
    "layered": ("kept",),
    "stored": ("read", "written"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME]  # noqa: PLE0604 - the table above is the one list of names


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)
