"""Profiles of named models and of configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from symbolic_cost import symbols
from symbolic_cost.errors import InputError, shown, unknown
from symbolic_cost.models.catalog import model as named_model
from symbolic_cost.models.fields import is_size
from symbolic_cost.ops.graph import Model
from symbolic_cost.published.inputs import read_inputs
from symbolic_cost.published.module_profile.counted import VERSION_2021, VERSION_2023
from symbolic_cost.published.module_profile.modules import BERT, Module, tree
from symbolic_cost.published.module_profile.profile import Profile, profile

VERSIONS = {"2023": VERSION_2023, "2021": VERSION_2021}
"""Versions of the profiler by name."""


def named_profile(
    name: str,
    batch: int = 1,
    seq: int | None = None,
    latencies: Mapping[str, Any] | str | None = None,
    version: str = "2023",
) -> Profile:
    """Profile a named model, or that of a config.json.

    Args:
        name: of the model, or path of the configuration.
        batch: sequences or images.
        seq: tokens of each sequence; those of the preset unless given.
        latencies: as `Latencies` reads them, or the path of a JSON file that holds them.
        version: of the profiler.

    Raises:
        InputError: every problem of the inputs.
    """
    problems = [
        f"{what} = {number!r} is not accepted: a positive integer is"
        for what, number in (("batch", batch), ("seq", seq))
        if number is not None and not is_size(number)
    ]
    if version not in VERSIONS:
        problems.append(unknown("version of the profiler", version, VERSIONS))
    if problems:
        raise InputError(problems)
    model = named_model(name)
    if seq is not None and not any(size.has(symbols.l) for size in model.sizes.values()):
        raise InputError(f"seq = {seq} is not read: model {shown(name)} has no sequence")
    values = {"b": batch, **({} if seq is None else {"l": seq})}
    given = read_inputs(latencies) if isinstance(latencies, str) else latencies
    return profile(
        model, values, modules=_modules(model), version=VERSIONS[version], latencies=given
    )


def _modules(model: Model) -> Module | None:
    """Return the tree of a model whose modules are known by the names of Hugging Face."""
    paths = tuple(part.path for part in model.parts)
    if paths == ("embedding", "block", "pooler") and model.source == "devlin-2018":
        return tree(BERT, model.parts[1].repeat)
    return None
