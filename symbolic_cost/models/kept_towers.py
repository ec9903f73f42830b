"""Language models beside towers that are kept and not declared: their texts are counted alone.

The weights of such towers are data (kept_towers.toml); images and sounds are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.axes import Axis, Role
from symbolic_cost.errors import InputError
from symbolic_cost.layers.connector import Connector
from symbolic_cost.models.families import Family
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.nested_config import text_of
from symbolic_cost.models.nested_families import Nested
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model, Part, Place
from symbolic_cost.ops.unread import stored
from symbolic_cost.reading import package_data

_TOWERS: Mapping[str, Mapping[str, Any]] = package_data("models/kept_towers.toml")


@dataclass(frozen=True)
class Beside:
    """A language model and the weights that stand beside it.

    Args:
        text: model_type of the language model unless its section names it.
        towers: model_type of a tower by the key of its section, which may be missing.
        joins: weights between a tower and the language model, by the same key; axes of the tower
            end in an underscore.
        tied: whether the output head is the token table unless the whole says.
        section: key of the language model.
    """

    text: str
    towers: Mapping[str, str]
    joins: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    tied: bool = False
    section: str = "text_config"

    @property
    def nested(self) -> Nested:
        """The same as its language model is read."""
        return Nested("", self.text, Connector(), ("", self.section), tied=self.tied)


BESIDE: Mapping[str, Beside] = MappingProxyType(
    {
        "gemma4": Beside(
            "gemma4_text",
            {"vision_config": "gemma4_vision", "audio_config": "gemma4_audio"},
            {"vision_config": {"project": "e_ e"}, "audio_config": {"project": "o_ e"}},
            tied=True,
        ),
    }
)
"""Families by model_type."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the language model, and the weights of its towers.

    Raises:
        InputError: every problem; or images, whose work is not declared.
    """
    family = BESIDE[fields.family]
    if shape.i != 0:
        raise InputError(
            f"what {fields.family} does with images is not declared: image_tokens = 0 is "
            "accepted, which counts the text"
        )
    text = text_of(fields, family.nested, shape)
    parts, sizes = list(text.parts), dict(text.sizes)
    for key, kind in family.towers.items():
        part = _section(fields, key)
        if part is not None:
            kept, own = _tower(part, kind, key, family.joins.get(key, {}))
            parts, sizes = [*kept, *parts], {**sizes, **own}
    fields.refuse()
    known = {axis: Axis(axis, Role.WHOLE) for axis in sizes.keys() - text.sizes.keys()}
    return replace(
        text, name=fields.family, parts=tuple(parts), sizes=sizes, axes={**text.axes, **known}
    )


def _section(fields: Fields, key: str) -> Fields | None:
    """Return the fields of a tower; None without it."""
    if fields.source.values.get(key) is None:
        return None
    fields.assume(key, "text alone: it has weights and no work")
    part = fields.part(key)
    fields.require(holds=part is not None, problem="an object is accepted", name=key)
    return part


def _tower(
    part: Fields, kind: str, key: str, joins: Mapping[str, str]
) -> tuple[tuple[Part, ...], dict[str, Expr]]:
    """Return the weights of a tower as parts, and the sizes of its axes, named after the key."""
    table, name = _TOWERS[kind], key.removesuffix("_config")
    own = part.source.values.get("model_type", kind)
    part.require(holds=own == kind, problem=f"only {kind} is declared", name="model_type")
    part.record = Family("", (), costless=tuple(table.get("costless", ())))
    sizes = _sizes(part, table["sizes"])
    depth = part.size(*table["depth"])
    part.problems += part.not_understood().values()

    def own_axes(weights: Mapping[str, str]) -> dict[str, str]:
        return {one: " ".join(f"{a}_{name}" for a in axes.split()) for one, axes in weights.items()}

    joined = {
        one: " ".join(f"{a}{name}" if a.endswith("_") else a for a in axes.split())
        for one, axes in joins.items()
    }
    once = {**own_axes(table["once"]), **joined}
    parts = (
        Part(
            f"{name}.block",
            (stored("kept", **own_axes(table["block"])),),
            Integer(depth),
            place=Place.END,
        ),
        Part(name, (stored("kept", **once),)),
    )
    return parts, {f"{axis}_{name}": Integer(size) for axis, size in sizes.items()}


def _sizes(part: Fields, table: Mapping[str, Any]) -> dict[str, int]:
    """Read the sizes of axes."""
    sizes: dict[str, int] = {}
    for axis, entry in table.items():
        if isinstance(entry, int):
            sizes[axis] = entry
        elif isinstance(entry, Mapping):
            whole = sizes[entry["of"]] * entry.get("times", 1)
            sizes[axis] = max(whole // sizes.get(entry.get("by", ""), 1), 1)
        else:
            name, _, place = entry[0].partition(".")
            sizes[axis] = _item(part, name, int(place), entry[1]) if place else part.size(*entry)
    return sizes


def _item(part: Fields, name: str, place: int, usual: int) -> int:
    """Read a size that a list holds."""
    items = part.items(name)
    fits = not items or (len(items) > place and all(map(is_size, items)))
    part.require(holds=fits, problem="a list of positive integers is accepted", name=name)
    return int(items[place]) if items and fits else usual
