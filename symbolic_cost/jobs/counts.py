"""Counts of models and of launch files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.importers.files import is_launch_file

if TYPE_CHECKING:
    from symbolic_cost.importers.recipe import Recipe

_COUNTED = 1024


def counted_length(source: object) -> int:
    """Return the tokens of a sequence of a launch file; those that are counted without one."""
    recipe = _launched(source)
    own = None if recipe is None else recipe.run.get("sequence")
    return _COUNTED if own is None else int(own)


def count(
    source: str | Path | Mapping[str, Any],
    batch: int = 1,
    seq: int | None = None,
    conventions: str | Conventions = "torch-flop-counter",
    image_tokens: int = 0,
    *,
    train: str = "all",
) -> dict[str, int | str | None]:
    """Count a model; see `symbolic_cost.models.count.count`.

    Args:
        source: a config.json, the mapping that it holds, a launch file, or the name of a model.
        batch: sequences.
        seq: tokens of each sequence; those of a launch file or 1024 unless given.
        conventions: of counting, or the name of a preset.
        image_tokens: of each sequence, those that stand for images.
        train: which weights are trained.

    Raises:
        InputError: every problem of the configuration, or a batch or length that is no count.
    """
    from symbolic_cost.models import count as counts

    recipe = _launched(source)
    config = source if recipe is None else recipe.config
    seq = counted_length(source) if seq is None else seq
    return counts.count(config, batch, seq, conventions, image_tokens, train=train)


def _launched(source: object) -> Recipe | None:
    """Return what a launch file says; None of any other model."""
    if not isinstance(source, str | Path) or not Path(source).suffix or not is_launch_file(source):
        return None
    from symbolic_cost.importers.launch import recipe

    return recipe(source)
