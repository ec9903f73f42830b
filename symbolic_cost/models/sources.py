"""Configurations by any name: a mapping, a file, a folder, weights, a name on the Hub."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, quote
from symbolic_cost.models.configfile import Document, checked, is_elsewhere, read_document
from symbolic_cost.models.published_size import configured


def document(source: str | Path | Mapping[str, Any] | Document) -> Document:
    """Read a configuration.

    Args:
        source: a mapping, a file, a folder that holds a config.json; a GGUF file, whose metadata
            are one; safetensors, beside which one stands; a name on the Hub, "hub:org/name"; or
            that of a published one, "qwen3-next-80b-a3b".

    Raises:
        InputError: no such file, too large, not JSON, not an object, or a key given twice.
    """
    config = _read(source)
    if "model_type" in config.values or "architecture" not in config.values:
        return config
    from symbolic_cost.models.stored.timm import is_timm, timm_config  # noqa: PLC0415 - few are

    return replace(config, values=timm_config(config)) if is_timm(config) else config


def _read(source: object) -> Document:
    if isinstance(source, Document):
        return source
    if isinstance(source, Mapping):
        return checked("config", source)
    if not isinstance(source, str | Path) or source == "":
        raise InputError(f"{quote(source)} is not a configuration: a path or a mapping is accepted")
    if is_elsewhere(source):
        from symbolic_cost.models.stored.places import elsewhere  # noqa: PLC0415 - few ask for it

        return elsewhere(str(source))
    if isinstance(source, str) and not source.endswith(".json") and source in configured():
        return checked(source, configured()[source].config)
    return read_document(Path(source), Path(source).name or str(source))
