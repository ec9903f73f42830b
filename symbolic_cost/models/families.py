"""The registry of families: which builder reads which model_type.

A builder is a function of (Fields, Shape) named as "module:function" inside this package, so that
only the module of the family that is asked for is loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from symbolic_cost.reading import package_data


@dataclass(frozen=True)
class Family:
    """One family; families.toml explains the fields."""

    builder: str
    heads: tuple[str, ...]
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defaults: Mapping[str, int] = field(default_factory=dict)
    section: str = ""
    ignored: tuple[str, ...] = ()


def _family(record: Mapping[str, Any]) -> Family:
    aliases = {name: tuple(others) for name, others in record.get("aliases", {}).items()}
    lists = {name: tuple(record.get(name, ())) for name in ("heads", "ignored")}
    return Family(**{**record, **lists, "aliases": aliases})


FAMILIES: dict[str, Family] = {
    name: _family(record) for name, record in package_data("models/families.toml").items()
}
"""Every family by model_type."""
