"""Language models beside towers that are kept and not declared: their texts are counted alone.

The weights of such towers are data (kept_towers.toml); images and sounds are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.axes import Axis, Role
from symbolic_cost.errors import InputError
from symbolic_cost.layers.connector import Connector
from symbolic_cost.models.families import Family
from symbolic_cost.models.fields import Fields, is_size
from symbolic_cost.models.nested.config import text_of
from symbolic_cost.models.nested.families import Nested
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model, Part, Place
from symbolic_cost.ops.unread import stored
from symbolic_cost.reading import package_data

_DATA: Mapping[str, Mapping[str, Mapping[str, Any]]] = package_data("models/kept_towers.toml")

Weights = Mapping[str, str]
"""Axes by the name of a weight."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare the language model, and the weights of its towers.

    Raises:
        InputError: every problem; or images, whose work is not declared.
    """
    own = _DATA["families"][fields.family]
    family = {**_DATA["families"].get(own.get("like", ""), {}), **own}
    if shape.i != 0:
        raise InputError(
            f"what {fields.family} does with images is not declared: image_tokens = 0 is "
            "accepted, which counts the text"
        )
    section = family.get("section", "text_config")
    _complete(fields, section, family.get("text_defaults", {}))
    for key, (name, origin, field) in family.get("copies", {}).items():
        _copy(fields, (key, name), (origin, field))
    _tie(fields, section, family)
    nested = Nested("", family["text"], Connector(), ("", section), tied=family.get("tied", False))
    text = text_of(fields, nested, shape)
    own = _sizes(fields, family.get("sizes", {}))
    left_out = _left_out(fields, family.get("optional", {}))
    parts, sizes = list(text.parts), {f"{axis}_own": Integer(size) for axis, size in own.items()}
    for key, kind in family["towers"].items():
        part = _section(fields, key, family.get("towers_may_lack", False))
        if part is not None:
            joins = family.get("joins", {}).get(key, {})
            held = {name: axes for name, axes in joins.items() if name not in left_out}
            kept, lengths = _tower(part, kind, key)
            join = Part(
                f"{key.removesuffix('_config')}.join", (stored("kept", **_named(held, own)),)
            )
            parts = [*kept, *((join,) if held else ()), *parts]
            sizes |= lengths
    fields.refuse()
    known = {axis: Axis(axis, Role.WHOLE) for axis in sizes}
    return replace(
        text,
        name=fields.family,
        parts=tuple(parts),
        sizes={**text.sizes, **sizes},
        axes={**text.axes, **known},
    )


def _complete(fields: Fields, section: str, usual: Mapping[str, Any]) -> None:
    """Give the language model what the class of the whole holds where its section leaves it out."""
    text = fields.source.values.get(section)
    if isinstance(text, Mapping):
        values = {**fields.source.values, section: {**usual, **text}}
        fields.source = replace(fields.source, values=values)


def _copy(fields: Fields, target: tuple[str, str], origin: tuple[str, str]) -> None:
    """Take a field of a section from another section, or leave it out where that does."""
    values = fields.source.values
    inner, other = values.get(target[0]), values.get(origin[0])
    if isinstance(inner, Mapping) and isinstance(other, Mapping):
        rest = {key: value for key, value in inner.items() if key != target[1]}
        own = {target[1]: other[origin[1]]} if origin[1] in other else {}
        fields.source = replace(fields.source, values={**values, target[0]: rest | own})


def _tie(fields: Fields, section: str, family: Mapping[str, Any]) -> None:
    """Say of the whole and of the text whether the head is the token table, as the class has it.

    Most classes ask the whole alone; some the text alone; some tie if either says so, some never.
    """
    text, ties = fields.source.values.get(section), family.get("ties", "whole")
    if ties == "whole" or not isinstance(text, Mapping):
        return
    name, usual = "tie_word_embeddings", family.get("tied", False)
    whole = fields.source.values.get(name, usual)
    own = text.get(
        name, usual or text.get("model_type", family["text"]) in family.get("tied_texts", ())
    )
    tied = {"either": whole is True or own is True, "own": own}.get(ties, False)
    values = {**fields.source.values, name: tied, section: {**text, name: tied}}
    fields.source = replace(fields.source, values=values)


def _named(weights: Weights, own: Mapping[str, int], end: str = "own") -> dict[str, str]:
    """Return weights whose own axes end in a name."""
    return {
        name: " ".join(f"{axis}_{end}" if axis in own else axis for axis in axes.split())
        for name, axes in weights.items()
    }


def _left_out(fields: Fields, optional: Mapping[str, list[str]]) -> set[str]:
    """Return the weights that truth values switch off."""
    return {
        name
        for key, names in optional.items()
        if not fields.flag(key, default=True)
        for name in names
    }


def _section(fields: Fields, key: str, lacking: bool) -> Fields | None:  # noqa: FBT001
    """Return the fields of a tower; None without it, where that may be."""
    if fields.source.values.get(key) is None:
        fields.require(holds=lacking, problem="an object with the fields is accepted", name=key)
        return None
    fields.assume(key, "text alone: it has weights and no work")
    return fields.part(key)


def _tower(part: Fields, kind: str, key: str) -> tuple[tuple[Part, ...], dict[str, Expr]]:
    """Return the weights of a tower as parts, and the sizes of its axes, named after the key."""
    own, name = _DATA["towers"][kind], key.removesuffix("_config")
    table = {**_DATA["towers"].get(own.get("like", ""), {}), **own}
    stated = part.source.values.get("model_type", kind)
    part.require(
        holds=stated in (kind, part.family),
        problem=f"only {kind} is declared",
        name="model_type",
    )
    part.record = Family(
        "",
        (),
        aliases={field: tuple(others) for field, others in table.get("aliases", {}).items()},
        costless=tuple(table["costless"]),
        fixed=table.get("fixed", {}),
        defaults=table.get("defaults", {}),
    )
    sizes, depth = _sizes(part, table["sizes"]), part.size(*table["depth"])
    part.problems += part.not_understood().values()
    block, once = (stored("kept", **_named(table[one], sizes, name)) for one in ("block", "once"))
    parts = (
        Part(f"{name}.block", (block,), Integer(depth), place=Place.END),
        Part(name, (once,)),
    )
    return parts, {f"{axis}_{name}": Integer(size) for axis, size in sizes.items()}


def _sizes(part: Fields, table: Mapping[str, Any]) -> dict[str, int]:
    """Read the sizes of axes."""
    sizes: dict[str, int] = {}
    for axis, entry in table.items():
        if isinstance(entry, int):
            sizes[axis] = entry
        elif "count" in entry:
            sizes[axis] = len(part.items(entry["count"], ("",) * entry["usual"])) or 1
        elif isinstance(entry, Mapping):
            whole, by = sizes[entry["of"]], sizes.get(entry.get("by", ""), 1)
            for factor in (entry.get("times", 1), entry.get("again", 1)):
                whole *= sizes[factor] if isinstance(factor, str) else factor
            sizes[axis] = -(-whole // by) if entry.get("up") else max(whole // by, 1)
            if "by" in entry and whole < by:
                told = f"{by} is more than the {whole} that it divides"
                part.require(holds=False, problem=told, name=table[entry["by"]][0])
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
