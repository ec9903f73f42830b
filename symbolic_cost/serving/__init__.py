"""Serving: prefill, decode, continuous batching in steady state, and plans that meet targets.

`serving.serve_plan(...)` finds engines and sequences; `serving.decode(engine)` derives a pass of
one, `serving.Batching` and `serving.Chunked` are its steady state. All are loaded when first used.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "choice": ("Plan",),
    "doubt": ("span", "spreads"),
    "engine": ("Engine",),
    "load": ("Load", "Targets", "accepted"),
    "passes": ("Pass", "chunk", "decode", "mixed", "prefill"),
    "precisions": ("Decoding", "Reading"),
    "plan": ("Plans", "serve_plan"),
    "pools": ("Pools", "Prefilling"),
    "sized": ("Clock", "Sized"),
    "steady": ("Batching", "Chunked"),
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
