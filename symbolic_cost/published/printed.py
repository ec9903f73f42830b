"""Data of the publications: printed tables, texts and layouts in files of the package."""

from collections.abc import Iterator, Mapping
from typing import Any

from symbolic_cost.published.contract import Comparison
from symbolic_cost.reading import package_data


def printed_data(name: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Read published/data/NAME, a JSON file unless the name has another suffix."""
    return package_data(f"published/data/{name}" if "." in name else f"published/data/{name}.json")


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
