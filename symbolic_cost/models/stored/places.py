"""Configurations and headers by where they are: files of weights, pipelines, names on the Hub."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.configfile import (
    HUB,
    LARGEST_FILE,
    PIPELINE,
    WEIGHTS,
    Document,
    read_document,
)
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.stored.gguf import gguf, gguf_config
from symbolic_cost.models.stored.header import Header
from symbolic_cost.models.stored.hub import Hub
from symbolic_cost.models.stored.safetensors import safetensors
from symbolic_cost.reading import json_value, read_text

_BESIDE = ("model.safetensors.index.json", "model.safetensors")


def elsewhere(source: str) -> Document:
    """Return the configuration of a source that is no config.json."""
    if source.startswith(HUB):
        return Hub(source).document()
    path = Path(source)
    if path.name.endswith(".gguf"):
        return Document(path.name, gguf_config(path))
    if path.name.endswith(WEIGHTS):
        beside = path.parent / "config.json"
        if not beside.exists():
            raise InputError(
                f"{path.name}: beside it there is no config.json, which says the model"
            )
        return read_document(beside, "config.json")
    raise InputError(_pipeline(path))


def stored(source: str | Path | Mapping[str, Any]) -> Header | None:
    """Return the header of the weights of a source; None where there are none.

    Raises:
        InputError: weights whose header is damaged.
    """
    if not isinstance(source, str | Path):
        return None
    if str(source).startswith(HUB):
        return Hub(str(source)).header()
    path = Path(source)
    if path.name.endswith(".gguf"):
        return gguf(path)
    if path.name.endswith(WEIGHTS):
        return safetensors(path)
    if not path.is_dir():
        return None
    files = [path / name for name in _BESIDE if (path / name).is_file()]
    return safetensors(files[0]) if files else None


def components(folder: Path) -> dict[str, Document | str]:
    """Return the parts of a pipeline: configurations of the families that exist, or refusals.

    Raises:
        InputError: the list of parts is damaged.
    """
    text = read_text(folder / PIPELINE, LARGEST_FILE, PIPELINE)
    listed = json_value(text, PIPELINE)
    if not isinstance(listed, dict):
        raise InputError(f"{PIPELINE}: only a JSON object is accepted")
    parts: dict[str, Document | str] = {}
    for name, said in listed.items():
        if name.startswith("_") or not isinstance(said, list) or None in said:
            continue
        library, kind, *_ = (*map(str, said), "", "")
        if (library == "transformers" and not kind.endswith(_NO_MODELS)) or (
            library == "diffusers" and kind in FAMILIES
        ):
            parts[name] = _component(folder, name, kind)
        elif library == "diffusers" and not kind.endswith("Scheduler"):
            parts[name] = f"{PIPELINE}: {quote(name)} is of class {quote(kind)}, no known family"
    return parts


_NO_MODELS = ("Tokenizer", "TokenizerFast", "Processor", "FeatureExtractor")


def _component(folder: Path, name: str, kind: str) -> Document | str:
    if Path(name).name != name or name in (".", ".."):
        return f"{PIPELINE}: {quote(name)} is no name of a folder"
    try:
        config = read_document(folder / name / "config.json", "config.json")
    except InputError as error:
        return f"{PIPELINE}: {quote(name)} ({quote(kind)}): {error.problems[0]}"
    return Document(f"{name}/{config.name}", config.values, config.text)


def _pipeline(folder: Path) -> list[str]:
    """Say why a pipeline is no model, and which parts of it are."""
    parts = components(folder)
    refused = [part for part in parts.values() if isinstance(part, str)]
    known = [name for name, part in parts.items() if not isinstance(part, str)]
    said = f"{folder.name}: a pipeline of {len(parts)} parts is no one model"
    if known:
        said += f"; of its parts these are read alone: {', '.join(str(folder / n) for n in known)}"
    return [said, *refused]
