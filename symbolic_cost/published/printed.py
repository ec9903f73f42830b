"""Data of the publications: printed tables, texts and layouts in files of the package."""

from __future__ import annotations

import csv
import json
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from symbolic_cost.published.contract import Comparison


@cache
def printed_data(name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read data/NAME, a JSON file unless the name has another suffix.

    Returns:
        What a .json or .toml file holds, the rows of a .csv file by column, else the text.
    """
    path, _, suffix = name.partition(".")
    text = files(__package__).joinpath("data", f"{path}.{suffix or 'json'}").read_text("utf-8")
    if suffix == "csv":
        return list(csv.DictReader(text.splitlines()))
    return {"": json.loads, "toml": tomllib.loads}.get(suffix, str)(text)


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
