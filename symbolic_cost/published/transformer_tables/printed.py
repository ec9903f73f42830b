"""The tables and totals as they were printed."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from math import ulp
from typing import Any

from symbolic_cost.published.contract import Comparison, compared
from symbolic_cost.published.printed import printed_data

_DATA = files("symbolic_cost.published") / "data"
_TABLES = {"mlp": "transformer_mlp.csv", "sa": "transformer_attention.csv"}
_TOTALS = "transformer_totals"
_BLANK = "NaN"
_DIGITS_OF_A_DOUBLE = 16


def configuration() -> dict[str, Any]:
    """Return the inputs for which the tables were printed."""
    record = printed_data(_TOTALS)
    return {**record["config"], "system": record["system"], "variant": "A"}


def comparisons(values: Mapping[str, Any]) -> Iterator[Comparison]:
    """Compare every printed cell and total with the values of `evaluate`."""
    for block, name in _TABLES.items():
        for printed, computed in zip(_rows(name), values[block], strict=True):
            for column, text in printed.items():
                yield _cell(f"{block}.{printed['layer']}.{column}", text, computed[column])
    for block, totals in printed_data(_TOTALS)["depth_summed_totals"].items():
        for column, text in totals.items():
            yield _cell(f"totals.{block}.{column}", text, values["totals"][block][column])


def _rows(name: str) -> Sequence[dict[str, str]]:
    with (_DATA / name).open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return [{key: cell for key, cell in row.items() if key != "Unnamed: 0"} for row in rows]


def _cell(key: str, printed: str, computed: float | str | None) -> Comparison:
    if printed == _BLANK or computed is None or isinstance(computed, str):
        found = "" if computed is None else str(computed)
        published = "" if printed == _BLANK else printed
        return Comparison(key, published, found, found == published)
    if len(printed.lstrip("0.")) >= _DIGITS_OF_A_DOUBLE:
        return _double(key, printed, computed)
    return compared(key, printed, computed)


def _double(key: str, printed: str, computed: float) -> Comparison:
    """Compare with a double printed in full, whose last bit depends on the order of a sum."""
    match = abs(float(printed) - computed) <= ulp(computed)
    note = "printed with every digit of a double; compared to the last bit"
    return Comparison(key, printed, repr(computed), match, note)
