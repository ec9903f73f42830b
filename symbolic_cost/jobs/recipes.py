"""Published recipes: what a run's table leaves to them, by framework, model and machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from symbolic_cost.reading import package_data

SETTINGS = ("recompute", "overlap", "stack", "predicted", "layout")
"""What recipes say."""

_RELEASE = re.compile(r"\b(\d\d)\.(\d\d)\b")


def settings(cells: Mapping[str, str]) -> dict[str, str]:
    """Return what the recipes of a row say, by the names of columns.

    >>> row = {"framework": "Megatron-Bridge", "model": "deepseek-v3", "system": "h100"}
    >>> settings(row)
    {'recompute': 'mla_up_proj+mlp', 'predicted': '1'}
    """
    own: dict[str, str] = {}
    for recipe in package_data("jobs/recipes.toml")["recipe"]:
        if _fits(recipe, cells):
            own |= {name: str(recipe[name]) for name in SETTINGS if name in recipe}
    return own


def _fits(recipe: Mapping[str, Any], cells: Mapping[str, str]) -> bool:
    release = _release(cells.get("date", ""))
    return (
        recipe["framework"] in cells.get("framework", "").lower()
        and all(
            cells.get(name) in recipe[name]
            for name in ("model", "system", "precision")
            if name in recipe
        )
        and all(
            cells.get(name) == str(recipe[name])
            for name in ("pp", "ep", "micro_batch")
            if name in recipe
        )
        and ("since" not in recipe or release >= _release(recipe["since"]))
        and ("until" not in recipe or release <= _release(recipe["until"]))
    )


def _release(text: str) -> tuple[int, ...]:
    """Return the year and month of a release, the first of all where none is named."""
    said = _RELEASE.search(text)
    return tuple(map(int, said.groups())) if said else ()
