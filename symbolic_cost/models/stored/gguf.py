"""Headers of GGUF files: metadata by key, then names, shapes and types of tensors.

    "GGUF", version, tensors, pairs; pairs of key, type, value; tensors of name, shape, type, place

Source: github.com/ggml-org/ggml, docs/gguf.md.
"""

import re
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, quote, refuse
from symbolic_cost.models.stored.header import Header, Tensor
from symbolic_cost.reading import mapped, package_data

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_PACKS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_MOST_PAIRS, _MOST_TENSORS, _MOST_ITEMS, _LONGEST = 10_000, 200_000, 4_000_000, 65_536
_MOST_DIMENSIONS = 4
_KEPT = 4_096
"""Elements of the longest array that is kept: numbers of layers."""


class _Reader:
    """Reads values one after the other."""

    def __init__(self, path: Path) -> None:
        self._place, self._data, self._at = path.name, mapped(path, path.name), 0

    def refusal(self, said: str) -> InputError:
        return InputError(f"{self._place}: is no GGUF file that is read: {said}")

    def taken(self, size: int) -> memoryview:
        if not 0 <= size <= len(self._data) - self._at:
            raise self.refusal(f"it is cut off at byte {self._at}")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, pack: str) -> Any:  # noqa: ANN401 - a number of any type
        return struct.unpack(f"<{pack}", self.taken(struct.calcsize(f"<{pack}")))[0]

    def bounded(self, pack: str, most: int, what: str) -> int:
        value = int(self.number(pack))
        if value > most:
            raise self.refusal(f"{value} {what}: at most {most} are read")
        return value

    def text(self) -> str:
        length = self.number("Q")
        data = self.taken(length)
        return bytes(data[:_LONGEST]).decode(errors="replace")

    def value(self, kind: int) -> Any:  # noqa: ANN401 - a value of any type
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            if kind not in _PACKS:
                raise self.refusal(f"a value of type {kind}")
            return self.number(_PACKS[kind])
        inner = self.number("I")
        count = self.bounded("Q", _MOST_ITEMS, "elements of an array")
        if inner == _TEXT:
            for _ in range(count):
                self.taken(self.number("Q"))
            return count
        if inner not in _PACKS:
            raise self.refusal(f"an array of type {inner}")
        data = self.taken(count * struct.calcsize(f"<{_PACKS[inner]}"))
        return list(struct.unpack(f"<{count}{_PACKS[inner]}", data)) if count <= _KEPT else count

    def header(self) -> tuple[dict[str, Any], Header]:
        if bytes(self.taken(4)) != _MAGIC:
            raise self.refusal("it does not begin with GGUF")
        version = self.number("I")
        if version not in _VERSIONS:
            raise self.refusal(f"version {version}: {' and '.join(map(str, _VERSIONS))} are read")
        tensors = self.bounded("Q", _MOST_TENSORS, "tensors")
        pairs = self.bounded("Q", _MOST_PAIRS, "pairs of metadata")
        metadata: dict[str, Any] = {}
        for _ in range(pairs):
            key = self.text()
            if key in metadata:
                raise self.refusal(f"key {quote(key)} is given more than once")
            metadata[key] = self.value(self.number("I"))
        stored = tuple(self._tensor() for _ in range(tensors))
        room = len(self._data) - self._at
        names = {tensor.name for tensor in stored}
        if len(names) < len(stored) or any(tensor.size > room for tensor in stored):
            raise self.refusal("tensors stand twice, or are larger than the file")
        return metadata, Header(self._place, stored)

    def _tensor(self) -> Tensor:
        name = self.text()
        dims = self.bounded("I", _MOST_DIMENSIONS, "dimensions")
        shape = tuple(self.number("Q") for _ in range(dims))
        kind = str(self.number("I"))
        self.number("Q")
        types = _data()["types"]
        if kind not in types:
            raise self.refusal(f"tensor {quote(name)} is of type {kind}")
        dtype, block, size = types[kind]
        row = shape[0] if shape else 1
        if row % block:
            raise self.refusal(f"tensor {quote(name)}: rows of {row} in blocks of {block}")
        return Tensor(name, shape, dtype, prod(shape) // block * size)


def _data() -> dict[str, Any]:
    data: dict[str, Any] = package_data("models/stored/gguf.toml")
    return data


def gguf(path: Path) -> Header:
    """Read the tensors of a file.

    Raises:
        InputError: damaged, too large, or of another version.
    """
    return _Reader(path).header()[1]


def gguf_config(path: Path) -> dict[str, Any]:
    """Return the configuration that a file's metadata and tensors say.

    Raises:
        InputError: every key that is not understood, or an architecture that is none of the known.
    """
    metadata, header = _Reader(path).header()
    name = metadata.get("general.architecture")
    known = _data()["architectures"]
    if name == "llama" and metadata.get("llama.expert_count"):
        name, prefix = "mixtral", "llama."
    else:
        prefix = f"{name}."
    if name not in known:
        raise InputError(
            f"{path.name}: architecture {quote(name)}: {', '.join(sorted(known))} are read"
        )
    family = known[name]
    own = {k.removeprefix(prefix): v for k, v in metadata.items() if k.startswith(prefix)}
    config = _translated(own, family, path.name)
    tensors = {tensor.name: tensor for tensor in header.tensors}
    table = tensors.get("token_embd.weight")
    if table is None or len(table.shape) != 2:  # noqa: PLR2004
        raise InputError(f"{path.name}: token_embd.weight, the table of the vocabulary, is missing")
    config |= {"vocab_size": table.shape[1], "tie_word_embeddings": "output.weight" not in tensors}
    if "bias" in family:
        config[family["bias"]] = "blk.0.attn_q.bias" in tensors
    return {"model_type": family["model_type"], **config}


def _translated(own: Mapping[str, Any], family: Mapping[str, Any], place: str) -> dict[str, Any]:
    keys, costless = _data()["keys"], re.compile("|".join(_data()["costless"]["keys"]))
    renamed = family.get("config", {})
    config: dict[str, Any] = {}
    problems = []
    for key, value in own.items():
        if key not in keys:
            if not costless.fullmatch(key):
                problems.append(f"{place}: key {quote(key)} = {quote(value)} is not understood")
            continue
        one = value[0] if isinstance(value, list) and len(set(value)) == 1 else value
        if type(one) is not int:
            problems.append(f"{place}: key {quote(key)} = {quote(value)}: one whole number is read")
        elif one or not key.startswith("expert"):
            config[renamed.get(keys[key], keys[key])] = one
    refuse(problems)
    return config
