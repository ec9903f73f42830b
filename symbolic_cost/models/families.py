"""The registry of families: which builder reads which model_type.

A builder is a function of (Fields, Shape) named as "module:function" inside this package, so that
only the module of the family that is asked for is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Family:
    """One family.

    Args:
        builder: "module:function".
        heads: accepted names of `architectures[0]`, the usual one first.
        aliases: other names of fields that only this family uses.
    """

    builder: str
    heads: tuple[str, ...]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _decoder(prefix: str, **aliases: tuple[str, ...]) -> Family:
    return Family("decoder_config:build", (f"{prefix}ForCausalLM", f"{prefix}Model"), aliases)


FAMILIES: dict[str, Family] = {
    "llama": _decoder("Llama"),
}
"""Every family by model_type."""
