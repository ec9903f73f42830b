"""Configurations of timm, which name an architecture: what it says is spelt out.

A record of `timm.toml` gives `names`, in which {size} stands for one of its `sizes` and any other
word in braces for a number that is the field of that name; `fields` that all sizes share and, by
`columns`, those of each; the `head` that tells classes apart, and the `bare` model without
one; how tokens are pooled (`pool`, the mean unless it says); whether each position has its own
weights (`placed`), so that images have one size; and whether the first convolution rounds halves
otherwise than that of Hugging Face (`halved`). A record of `timm_written.toml` writes its `layers`
out in words (vision/written.py), with columns in braces and `words` of its own, of which `top`
stands before classes alone.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any

from symbolic_cost.errors import InputError, quote, unknown
from symbolic_cost.models.configfile import Document
from symbolic_cost.reading import package_data

_READ = ("architecture", "num_classes", "num_features", "global_pool", "pretrained_cfg",
         "model_args", "head_hidden_size", "model_name")  # fmt: skip
_SPATIAL = 3


def is_timm(config: Document) -> bool:
    """Tell whether a configuration is one of timm."""
    return isinstance(config.values["architecture"], str) and "num_classes" in config.values


def timm_config(source: Document) -> dict[str, Any]:
    """Return the configuration that one of timm means.

    Raises:
        InputError: an architecture that is none of the known, or keys that are not understood.
    """
    values = source.values
    name = values["architecture"].partition(".")[0]
    problems = [f"{source.where(k)} is not understood" for k in values if k not in _READ]
    if values.get("model_args"):
        problems.append(f"{source.where('model_args')}: {quote(values['model_args'])} is not read")
    found = _record_of(name, bare=values["num_classes"] == 0)
    if found is None:
        refused = unknown("architecture of timm", name, _names())
        problems.append(f"{source.where('architecture')}: {refused}")
        raise InputError(problems)
    record, named = found
    problems += _contradictions(source, record, named)
    if problems:
        raise InputError(problems)
    classes = values["num_classes"]
    head = record["bare"] if classes == 0 and "bare" in record else record["head"]
    return {**named, **_pictures(values), "num_labels": classes, "architectures": [head]}


def spelt(name: str) -> dict[str, Any] | None:
    """Return the fields that an architecture means; None of one that is not known."""
    found = _record_of(name)
    return found and found[1]


def _record_of(name: str, *, bare: bool = False) -> tuple[Mapping[str, Any], dict[str, Any]] | None:
    for pattern, record in _patterns():
        match = pattern.fullmatch(name)
        if match is not None:
            numbers = match.groupdict()
            own = dict(zip(record["columns"], record["sizes"][numbers.pop("size")], strict=True))
            sides = {key: int(number) for key, number in numbers.items()}
            fields = {**record.get("fields", {}), **own, **sides}
            if "layers" in record:
                layers = _written(record, own | numbers, bare=bare)
                fields = {**record.get("fields", {}), "layers": layers}
                side = {**own, **sides}.get("image_size")
                fields |= {"image_size": side} if side else {}
            return record, {"model_type": record["model_type"], **fields}
    return None


def _written(record: Mapping[str, Any], named: Mapping[str, Any], *, bare: bool) -> str:
    """Return the layers of a record that writes them out, as its columns and numbers say."""
    text = record["layers"].format_map(named)
    words = {**record.get("words", {}), **({"top": ""} if bare else {})}
    for _ in range(2):  # columns may hold words as well
        for word, meaning in words.items():
            text = re.sub(rf"(?<!\S){word}\(([^()]*)\)", partial(_replaced, meaning), text)
    return " ".join(text.split())


def _replaced(meaning: str, call: re.Match[str]) -> str:
    """Return the text of a word, its sizes put in."""
    given = call[1].split(",")
    return re.sub(r"\$(\d)", lambda place: given[int(place[1]) - 1], meaning)


@cache
def _records() -> tuple[Mapping[str, Any], ...]:
    files = ("timm.toml", "timm_written.toml")
    return tuple(
        family for file in files for family in package_data(f"models/stored/{file}")["family"]
    )


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Mapping[str, Any]], ...]:
    def each() -> Iterator[tuple[re.Pattern[str], Mapping[str, Any]]]:
        for record in _records():
            for name in record["names"]:
                sizes = name.replace("{size}", f"(?P<size>{'|'.join(record['sizes'])})")
                yield re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>\\d{1,4})", sizes)), record

    return tuple(each())


def _names() -> Iterator[str]:
    for record in _records():
        for name in record["names"]:
            for size in record["sizes"]:
                yield re.sub(r"\{\w+\}", "N", name.replace("{size}", size))


def _pictures(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the channels and sides of the images that a configuration was trained on, if it says.

    What is no side is refused where fields are read.
    """
    pretrained = values.get("pretrained_cfg")
    size = pretrained.get("input_size") if isinstance(pretrained, dict) else None
    if not isinstance(size, list) or len(size) != _SPATIAL:
        return {}
    channels, *sides = size
    return {"num_channels": channels, "image_size": sides if sides[0] != sides[1] else sides[0]}


def _contradictions(
    source: Document, record: Mapping[str, Any], named: Mapping[str, Any]
) -> Iterator[str]:
    values, side = source.values, named.get("image_size")
    image = _pictures(values).get("image_size", side)
    if record.get("placed") and image != side:
        yield f"{source.where('pretrained_cfg')}: input_size of {quote(image)}: {side} by name"
    if record.get("halved") and isinstance(image, int) and image % 2:
        yield f"{source.where('pretrained_cfg')}: input_size of {image}: an even side is read"
    if named.get("model_type") == "focalnet" and isinstance(image, int) and image % 32:
        told = "a multiple of 32 is read, which its stages halve whole"
        yield f"{source.where('pretrained_cfg')}: input_size of {image}: {told}"
    width = _width(named)
    features = values.get("num_features", width)
    if width and features != width:
        yield f"{source.where('num_features')} = {quote(features)}: {width} by name"
    pool, usual = values.get("global_pool", ""), record.get("pool", "avg")
    if pool not in (usual, ""):
        yield f"{source.where('global_pool')} = {quote(pool)}: {usual} is read"
    classes = values["num_classes"]
    if classes and not record["head"]:
        yield f"{source.where('num_classes')} = {quote(classes)}: 0 is read, without a classifier"


def _width(named: Mapping[str, Any]) -> int | None:
    """Return the features that are told apart, where the fields hold their number."""
    if "embed_dim" in named:
        return int(named["embed_dim"] * 8)
    one = [named.get("hidden_size", named.get("hidden_dim"))]
    return named.get("neck_hidden_sizes", named.get("hidden_sizes", one))[-1]
