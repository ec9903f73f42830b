"""The attention of the prefill step as logged earlier, its result not made contiguous.

Source: pycomm-prefill.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symbolic_cost.published import ulysses_prefill
from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.ulysses_prefill import evaluate

__all__ = ["PUBLISHED_INPUTS", "evaluate", "reproduce"]

_LOG = "5e270bf"

PUBLISHED_INPUTS: Mapping[str, Any] = {**ulysses_prefill.PUBLISHED_INPUTS, "log": _LOG}
"""Inputs of this log."""


def reproduce() -> list[Comparison]:
    """Compare every value of this log with its computed value."""
    return ulysses_prefill.reproduce_log(_LOG)
