"""Headers of safetensors files: 8 bytes of a length, then as many of JSON.

Source: github.com/huggingface/safetensors, README.md, "Format".
"""

from collections.abc import Mapping
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, Problems, quote, refuse
from symbolic_cost.models.stored.header import Header, Tensor
from symbolic_cost.reading import json_value, mapped, read_text

_LONGEST = 100_000_000
"""Bytes of the longest header that is read, as those who wrote the format bound it."""

_LONGEST_INDEX = 20_000_000
_LENGTH = 8
_MOST_DIMENSIONS = 32
_BITS = {
    **dict.fromkeys(("F64", "I64", "U64", "C64"), 64),
    **dict.fromkeys(("F32", "I32", "U32"), 32),
    **dict.fromkeys(("F16", "BF16", "I16", "U16"), 16),
    **dict.fromkeys(("F8_E4M3", "F8_E5M2", "F8_E8M0", "I8", "U8", "BOOL"), 8),
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F4": 4,
}
"""Bits of an element, by the name of a data type."""


def safetensors(path: Path) -> Header:
    """Read the header of a file, or of all shards that an index names.

    Raises:
        InputError: every file that is missing, damaged or contradicts itself.
    """
    if path.name.endswith(".json"):
        return _shards(path)
    return Header(path.name, _tensors(path))


def _shards(index: Path) -> Header:
    text = read_text(index, _LONGEST_INDEX, index.name)
    values = json_value(text, index.name)
    map_ = values.get("weight_map") if isinstance(values, dict) else None
    if not isinstance(map_, dict) or not all(isinstance(one, str) for one in map_.values()):
        raise InputError(f"{index.name}: weight_map, from tensors to files, is expected")
    files = sorted(set(map_.values()))
    strange = [name for name in files if Path(name).name != name or name in (".", "..")]
    if strange:
        raise InputError(
            f"{index.name}: {quote(name)} is not the name of a file beside it" for name in strange
        )
    problems = Problems()
    tensors = [
        tensor for name in files for tensor in problems.attempt(_tensors, index.parent / name) or ()
    ]
    problems.refuse()
    missing = sorted(set(map_) - {tensor.name for tensor in tensors})
    if missing or len(tensors) != len(map_):
        said = ", ".join(map(quote, missing[:5])) or "names stand twice, or are left out"
        raise InputError(
            f"{index.name}: {len(map_)} tensors are named, {len(tensors)} stored: {said}"
        )
    return Header(index.name, tuple(tensors))


def _tensors(path: Path) -> tuple[Tensor, ...]:
    data = mapped(path, path.name)
    length = int.from_bytes(data[:_LENGTH], "little")
    if len(data) < _LENGTH or length > min(_LONGEST, len(data) - _LENGTH):
        raise InputError(
            f"{path.name}: is no safetensors file: a header of {length} bytes in {len(data)}"
        )
    try:
        text = bytes(data[_LENGTH : _LENGTH + length]).decode()
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: is no safetensors file: its header is not UTF-8") from None
    entries = json_value(text, path.name)
    if not isinstance(entries, dict):
        raise InputError(f"{path.name}: is no safetensors file: its header is no object")
    return _read(entries, path.name, len(data) - _LENGTH - length)


def _read(entries: Mapping[str, Any], place: str, room: int) -> tuple[Tensor, ...]:
    """Return the tensors of a header."""
    tensors, problems = [], []
    ends: list[tuple[int, int]] = []
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        known = entry if isinstance(entry, dict) else {}
        shape, span = _counts(known.get("shape")), _counts(known.get("data_offsets"))
        dtype = known.get("dtype")
        bits = _BITS.get(dtype, 0) if isinstance(dtype, str) else 0
        if not bits or shape is None or span is None or len(span) != 2:  # noqa: PLR2004
            problems.append(f"{place}: tensor {quote(name)} is {quote(entry)}")
            continue
        size = prod(shape) * bits
        if size != (span[1] - span[0]) * 8 or span[1] > room:
            problems.append(
                f"{place}: tensor {quote(name)}: {dtype} {shape} does not fill bytes {span[0]} to "
                f"{span[1]} of {room}"
            )
        ends.append((span[0], span[1]))
        tensors.append(Tensor(name, tuple(shape), str(dtype), size // 8))
    ends.sort()
    if any(one[1] > other[0] for one, other in pairwise(ends)):
        problems.append(f"{place}: tensors overlap")
    refuse(problems)
    return tuple(tensors)


def _counts(value: object) -> list[int] | None:
    if not isinstance(value, list) or len(value) > _MOST_DIMENSIONS:
        return None
    return value if all(type(one) is int and one >= 0 for one in value) else None
