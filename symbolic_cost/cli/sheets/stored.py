"""What the import of weights and of pipelines prints."""

from __future__ import annotations

from pathlib import Path

from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import InputError
from symbolic_cost.models.configfile import PIPELINE, Document
from symbolic_cost.models.count import count
from symbolic_cost.models.stored.header import Header
from symbolic_cost.models.stored.places import components, stored


def stored_sheet(source: str) -> Sheet:
    """Tabulate the data types of a checkpoint, or the parts of a pipeline.

    Raises:
        InputError: what is there is damaged, or no part of a pipeline is read.
    """
    if Path(source, PIPELINE).is_file():
        return _parts(source)
    header = stored(source)
    if header is None:
        raise InputError(f"{source}: there are no safetensors files")
    return _types(source, header)


def _types(source: str, header: Header) -> Sheet:
    rows: list[tuple[Cell, ...]] = [
        (dtype, str(count), str(size)) for dtype, (count, size) in header.dtypes.items()
    ]
    rows.append(("all", str(sum(one.count for one in header.tensors)), str(header.size)))
    columns = (Column("data type"), Column("elements", "right"), Column("bytes", "right"))
    buffers = len(header.tensors) - len(header.parameters)
    notes = (
        f"{len(header.tensors)} tensors, {header.count} elements of parameters",
        *((f"{buffers} buffers are no parameters",) if buffers else ()),
    )
    return Sheet(f"Weights of {Path(source).name}", columns, tuple(rows), notes)


def _parts(source: str) -> Sheet:
    rows = tuple((name, *_part(one)) for name, one in components(Path(source)).items())
    columns = (Column("part"), Column("parameters", "right"), Column("is"))
    return Sheet(f"Pipeline {Path(source).name}", columns, rows)


def _part(one: Document | str) -> tuple[Cell, Cell]:
    if isinstance(one, str):
        return None, f"refused: {one}"
    try:
        totals = count(one.values, seq=1)
    except InputError as error:
        return None, f"refused: {error.problems[0]}"
    return str(totals["params"]), str(totals["architecture"])
