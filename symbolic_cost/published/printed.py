"""Printed tables of the publications, and numbers in them that are not recomputed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from symbolic_cost.published.contract import Comparison


@cache
def printed_data(name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read data/NAME.json."""
    data = files("symbolic_cost.published").joinpath("data", f"{name}.json")
    return json.loads(data.read_text(encoding="utf-8"))


def printed_rows(name: str) -> Iterator[dict[str, str]]:
    """Return the rows of data/NAME.json by their columns, numbers as text."""
    return records(printed_data(name))


def records(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a printed table by its columns."""
    for row in table["rows"]:
        yield dict(zip(table["columns"], row, strict=True))


def not_recomputed(key: str, published: str, note: str, computed: str = "") -> Comparison:
    """List a printed number that is not compared, with the reason."""
    return Comparison(key, published, computed, None, note)
