"""The archive that `torch.export.save` writes: a zip with the graph as JSON.

    NAME/models/model.json                          the graph, its signature, bounds of symbols
    NAME/data/weights/model_weights_config.json     which weights are one (tied)

Weights, samples and whatever holds a pickle are never opened. Source: torch/export/pt2_archive
(constants.py names the entries), archive version 0, schema major 8.
"""

import json
import os
import stat
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from symbolic_cost.errors import InputError, quote
from symbolic_cost.records import dataclass, field

MOST_JSON = 150_000_000
"""Bytes of the longest graph that is read; one of 32 layers has 6 million."""

MOST_ENTRIES = 200_000
_MOST_RATIO = 400
"""Compression of the densest graph; JSON of a graph is packed 20 to 60 times, bombs 1000 times."""
_SMALL = 1_000_000
_GRAPH, _WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"
_SCHEMA = 8


@dataclass(frozen=True)
class Archive:
    """What is read of an archive.

    Args:
        place: how errors name it.
        program: the JSON of the exported program.
        stored: the file of every weight, by the name in the state dict; equal for tied ones.
    """

    place: str
    program: Mapping[str, Any]
    stored: Mapping[str, str] = field(default_factory=dict)


def read_archive(source: str | Path | bytes, name: str = "") -> Archive:
    """Read an archive from a file, or from its bytes.

    Args:
        source: path, or what the file holds.
        name: how errors name bytes.

    Raises:
        InputError: no zip, no graph in it, too large, damaged, or of another schema.
    """
    place = name or (quote(str(source)) if not isinstance(source, bytes) else "the archive")
    try:
        if isinstance(source, bytes):
            return _read(BytesIO(source), place)
        with os.fdopen(os.open(source, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InputError(f"{place}: is not a regular file")
            return _read(file, place)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or "its name is no name of a file"
        raise InputError(f"{place}: cannot be read: {said}") from None


def _read(file: BinaryIO, place: str) -> Archive:
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_ENTRIES:
                raise InputError(f"{place}: has {len(entries)} entries; at most {MOST_ENTRIES}")
            graphs = [one for one in entries if _is(one.filename, _GRAPH)]
            if len(graphs) != 1:
                raise InputError(_no_graph(place, graphs, entries))
            program = _json(archive, graphs[0], place)
            weights = [one for one in entries if _is(one.filename, _WEIGHTS)]
            config = _json(archive, weights[0], place).get("config") if weights else {}
    except (zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, zlib.error) as error:
        raise InputError(
            f"{place}: is no archive of torch.export.save (a zip, .pt2): {quote(str(error))}"
        ) from None
    version = program.get("schema_version")
    major = version.get("major") if isinstance(version, dict) else None
    if major != _SCHEMA:
        raise InputError(
            f"{place}: {graphs[0].filename}: schema {quote(major)}: {_SCHEMA} is read "
            "(torch 2.7 and later)"
        )
    return Archive(place, program, _files(config))


def _is(entry: str, wanted: str) -> bool:
    """Tell whether an entry is the wanted one, in the root or in the one folder of the archive."""
    return entry == wanted or (
        entry.endswith(f"/{wanted}") and entry.count("/") == wanted.count("/") + 1
    )


def _no_graph(place: str, graphs: list[zipfile.ZipInfo], entries: list[zipfile.ZipInfo]) -> str:
    names = ", ".join(quote(one.filename) for one in (graphs or entries)[:5])
    return (
        f"{place}: one entry NAME/{_GRAPH} is read, as torch.export.save writes it; "
        f"here {'are' if graphs else 'stand'} {names or 'no entries'}"
    )


def _json(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: str) -> dict[str, Any]:
    """Return what an entry holds; bounded by its declared size, which reading never exceeds."""
    size, packed = entry.file_size, entry.compress_size
    where = f"{place}: {quote(entry.filename)}"
    if size > MOST_JSON or (size > _SMALL and size > _MOST_RATIO * max(packed, 1)):
        raise InputError(
            f"{where}: {size} bytes, packed to {packed}: at most {MOST_JSON} bytes are read, "
            f"packed at most {_MOST_RATIO} times"
        )
    with archive.open(entry) as file:
        data = file.read(size + 1)
    try:
        value = json.loads(data, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InputError(f"{where}: is not JSON: {quote(said)}") from None
    if not isinstance(value, dict):
        raise InputError(f"{where}: a JSON object is accepted")
    return value


def _no_number(text: str) -> None:
    """Take what no JSON number is for nothing: infinities bound masks, and no size is one."""


def _files(config: object) -> dict[str, str]:
    """Return the stored file of every weight; nothing where the archive says nothing."""
    if not isinstance(config, dict):
        return {}
    return {
        name: str(entry["path_name"])
        for name, entry in config.items()
        if isinstance(entry, dict) and entry.get("path_name")
    }
