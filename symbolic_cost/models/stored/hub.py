"""Models on the Hub by name: the configuration and headers of weights, never weights or code."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError, brief, quote
from symbolic_cost.models.configfile import HUB, LARGEST_FILE, Document, read_document
from symbolic_cost.models.stored.header import Header, Tensor

_NAME = re.compile(r"(?P<id>[\w.-]{1,96}(/[\w.-]{1,96})?)(@(?P<revision>[\w./-]{1,100}))?")
_CONFIG = "config.json"


class Hub:
    """A model on the Hub: "hub:org/name", or "hub:org/name@revision".

    Raises:
        InputError: no such name, or the extra "hub" is missing.
    """

    def __init__(self, source: str) -> None:
        match = _NAME.fullmatch(source.removeprefix(HUB))
        if match is None or ".." in source:
            raise InputError(f"{quote(source)}: hub:org/name or hub:org/name@revision is accepted")
        self._source, self._id, self._revision = source, match["id"], match["revision"]
        try:
            import huggingface_hub  # noqa: PLC0415 - the extra "hub"
        except ImportError:
            raise InputError(
                f"{source}: names on the Hub need huggingface_hub: pip install 'symbolic_cost[hub]'"
            ) from None
        self._hub: Any = huggingface_hub

    def document(self) -> Document:
        """Fetch the configuration; where there is no network, one that was fetched before."""
        known = self._cached()
        try:
            return self._fetched()
        except InputError:
            if known is None:
                raise
            return read_document(known, f"{self._source}/{_CONFIG}")

    def _cached(self) -> Path | None:
        path = self._hub.try_to_load_from_cache(self._id, _CONFIG, revision=self._revision)
        return Path(path) if isinstance(path, str) else None

    def _fetched(self) -> Document:
        url = self._answer(self._hub.hf_hub_url, self._id, _CONFIG, revision=self._revision)
        size = self._answer(self._hub.get_hf_file_metadata, url).size
        if size is not None and size > LARGEST_FILE:
            raise InputError(
                f"{self._source}: {_CONFIG} has {size} bytes; at most {LARGEST_FILE} are read"
            )
        fetch = self._hub.hf_hub_download
        path = self._answer(fetch, self._id, _CONFIG, revision=self._revision)
        return read_document(Path(path), f"{self._source}/{_CONFIG}")

    def header(self) -> Header | None:
        """Fetch the headers of safetensors files; None if there are none, or no network."""
        fetch = self._hub.get_safetensors_metadata
        try:
            metadata = fetch(self._id, revision=self._revision)
        except self._hub.errors.NotASafetensorsRepoError:
            return None
        except Exception as error:  # noqa: BLE001 - whatever a network raises
            if self._cached() is not None:
                return None
            raise self._refusal(error) from None
        tensors = [
            Tensor(
                name, tuple(one.shape), str(one.dtype), one.data_offsets[1] - one.data_offsets[0]
            )
            for file in metadata.files_metadata.values()
            for name, one in file.tensors.items()
        ]
        return Header(self._source, tuple(tensors))

    def _answer(self, function: Callable[..., Any], *args: object, **more: object) -> Any:  # noqa: ANN401 - whatever the Hub answers
        try:
            return function(*args, **more)
        except Exception as error:  # noqa: BLE001 - whatever a network raises
            raise self._refusal(error) from None

    def _refusal(self, error: Exception) -> InputError:
        said = str(error).strip().partition("\n")[0]
        return InputError(
            f"{self._source}: cannot be fetched ({type(error).__name__}: {brief(said, 200)}); is "
            "there a network, and is the name right? A folder with its config.json is read offline"
        )
