"""Rows of a sweep as bytes: Parquet (extra `parquet`), CSV and JSON lines."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from io import BytesIO, StringIO
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from symbolic_cost.errors import InputError, quote
from symbolic_cost.explore.results import Rows

ENDINGS = (".parquet", ".csv", ".jsonl")

About = Mapping[str, Any]
"""What a sweep is: job, question, units by column, library."""

KEY = b"symbolic_cost"


def ending(path: str) -> str:
    """Return the ending of a file, which says its format.

    Raises:
        InputError: another ending, or Parquet without pyarrow.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in ENDINGS:
        raise InputError(f"output {quote(path)}: the ending of {', '.join(ENDINGS)} is accepted")
    if suffix == ".parquet":
        _arrow()
    return suffix


def _arrow() -> Any:  # noqa: ANN401 - pyarrow carries no types
    try:
        import pyarrow.parquet
    except ImportError as error:
        text = "Parquet needs pyarrow: pip install 'symbolic_cost[parquet]', or write .csv"
        raise InputError(text) from error
    return pyarrow


def typed(rows: Rows) -> Rows:
    """Return columns whose numbers are all whole as integers."""
    return {name: _typed(column) for name, column in rows.items()}


def _typed(column: Any) -> Any:  # noqa: ANN401 - an array
    if column.dtype.kind == "f" and len(column):
        whole = np.isfinite(column) & (np.abs(column) < _EXACT)
        if whole.all() and (column == np.floor(column)).all():
            return column.astype(np.int64)
    return column


_EXACT = 2.0**53


def encoded(rows: Rows, form: str, about: About) -> bytes:
    """Return rows as a part of a file; a part of Parquet is a file of its own."""
    if form == ".parquet":
        return _parquet(rows, about)
    return (_csv if form == ".csv" else _lines)(_whole_numbers(rows, about)).encode()


def _whole_numbers(rows: Rows, about: About) -> Rows:
    """Return counts as integers, so that every part of a column is written alike."""
    counts = about["counts"]
    return {n: c.astype(np.int64) if n in counts else c for n, c in rows.items()}


def _parquet(rows: Rows, about: About) -> bytes:
    arrow = _arrow()
    file = BytesIO()
    held = _whole_numbers(rows, about)
    fields = [
        arrow.field(
            name,
            arrow.int64()
            if name in about["counts"]
            else arrow.string()
            if about["units"][name] == "word"
            else arrow.float64(),
            metadata={"unit": about["units"][name]},
        )
        for name in held
    ]
    schema = arrow.schema(fields, metadata={KEY: json.dumps(about, sort_keys=True).encode()})
    columns = [
        arrow.array(column.tolist() if f.type == arrow.string() else column, type=f.type)
        for column, f in zip(held.values(), fields, strict=True)
    ]
    arrow.parquet.write_table(arrow.table(columns, schema=schema), file, compression="zstd")
    return file.getvalue()


def _csv(rows: Rows) -> str:
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerows(zip(*(column.tolist() for column in rows.values()), strict=True))
    return file.getvalue()


def _lines(rows: Rows) -> str:
    names = list(rows)
    columns = [
        [x if isfinite(x) else None for x in column.tolist()]
        if column.dtype.kind == "f"
        else column.tolist()
        for column in rows.values()
    ]
    objects = (json.dumps(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))
    return "".join(f"{line}\n" for line in objects)


def put_together(parts: Iterable[Path], form: str, about: About, file: BinaryIO) -> None:
    """Write the parts one after the other as one file."""
    if form == ".parquet":
        arrow = _arrow()
        writer = None
        for part in parts:
            table = arrow.parquet.read_table(part)
            if writer is None:
                text = json.dumps(about, sort_keys=True).encode()
                schema = table.schema.with_metadata({KEY: text})
                writer = arrow.parquet.ParquetWriter(file, schema, compression="zstd")
            writer.write_table(table.replace_schema_metadata(writer.schema.metadata))
        if writer is not None:
            writer.close()
        return
    if form == ".csv":
        file.write((",".join(about["units"]) + "\n").encode())
    for part in parts:
        with part.open("rb") as source:
            while piece := source.read(1 << 20):
                file.write(piece)


def about_file(path: Path, form: str) -> About | None:
    """Return what the sweep of a file is; none if the file does not say it."""
    try:
        if form == ".parquet":
            held = _arrow().parquet.read_schema(path).metadata or {}
            about: About = json.loads(held[KEY])
        else:
            about = json.loads(beside(path).read_text("utf-8"))
    except (OSError, ValueError, KeyError):
        return None
    return about


def beside(path: Path) -> Path:
    """Return the file that says what the sweep of CSV or JSON lines is."""
    return path.with_name(path.name + ".about.json")
