"""Language models beside towers that are kept and not declared: their texts are counted alone.

The weights of such towers are data (kept_towers.toml); images and sounds are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.errors import InputError
from symbolic_cost.layers.connector import Connector
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.build import Fields, Shape, is_size
from symbolic_cost.models.families import Family
from symbolic_cost.models.nested.families import Nested, Ties
from symbolic_cost.models.nested.parts import text_of
from symbolic_cost.models.nested.tower_sizes import tower_sizes
from symbolic_cost.ops.declare import Axis, Model, Op, Part, Place, Role, einsum, lookup, stored
from symbolic_cost.reading import package_data

_DATA: Mapping[str, Mapping[str, Mapping[str, Any]]] = package_data("models/kept_towers.toml")


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
    _complete_file(fields, family, section)
    text = text_of(fields, _nested(fields, family, section), shape)
    towers = {**family["towers"], **_switched(fields, family)}
    sizes: dict[str, Expr] = {}
    parts, absent = list(text.parts), set()
    own_sizes = _ending(tower_sizes(fields, family.get("sizes", {})), "own")
    left_out = _left_out(fields, family.get("optional", {}))
    for key, kind in towers.items():
        part = _section(fields, key, family.get("towers_may_lack", False))
        if part is None:
            absent.add(key)
        else:
            kept, lengths = _tower(part, kind, key)
            sizes |= lengths
            parts = [*kept, *parts]
    _check_head(fields, text, family.get("headed_by", {}))
    fields.refuse()
    known = {axis: (axis, size) for axis, size in (*text.sizes.items(), *sizes.items())} | own_sizes
    for key, weights in family.get("joins", {}).items():
        held = " + ".join(axes for name, axes in weights.items() if name not in left_out)
        if held and key not in absent and (key in towers or not towers):
            op, more = _stored(held, known)
            sizes |= more
            parts.insert(0, Part(f"{_path(key)}.join", (op,)))
    for name in family.get("embeds", ()):
        parts.insert(0, Part(f"{name}.tokens", _embedded(name), joins=text.parts[0].path))
    return _with(text, fields.family, parts, sizes)


def _check_head(fields: Fields, text: Model, sizes: Mapping[str, tuple[str, int]]) -> None:
    """Refuse an untied head that is as large as the whole says, and not as its language model."""
    tied = fields.source.values.get("tie_word_embeddings") is not False
    for name, (symbol, usual) in sizes.items() if not tied else ():
        own, given = text.bindings.get(symbol), fields.size(name, usual)
        problem = f"{given} of the head are not the {own} of the language model"
        fields.require(holds=given == own, problem=problem, name=name)


def _with(text: Model, name: str, parts: Iterable[Part], sizes: Mapping[str, Expr]) -> Model:
    axes = {axis: Axis(axis, Role.WHOLE) for axis in sizes if axis not in text.sizes}
    return replace(
        text,
        name=name,
        parts=tuple(parts),
        sizes={**sizes, **text.sizes},
        axes={**axes, **text.axes},
    )


def _complete_file(fields: Fields, family: Mapping[str, Any], section: str) -> None:
    """Give the section of the language model what the class of the whole would."""
    if "vit_config" in fields.source.values:
        _trim(fields)
    inner = fields.source.values.get(section)
    if isinstance(inner, Mapping):  # some files say the same beside it
        fields.ignore(*(key for key in inner if fields.source.values.get(key) == inner[key]))
    # give the language model what the class of the whole holds where its section leaves it out
    usual = family.get("text_defaults", {})
    text = fields.source.values.get(section)
    if isinstance(text, Mapping):
        values = {**fields.source.values, section: {**usual, **text}}
        fields.source = replace(fields.source, values=values)
    for key, (name, origin, field) in family.get("copies", {}).items():
        _copy(fields, (key, name), (origin, field))


def _nested(fields: Fields, family: Mapping[str, Any], section: str) -> Nested:
    key, texts = family.get("text_by", ("", {}))
    kind = texts.get(str(fields.source.values.get(key)), family["text"])
    own = {name: family[name] for name in ("tied", "beside") if name in family}
    ties = Ties(family.get("ties", Ties.WHOLE))
    return Nested("", kind, Connector(), ("", section), ties=ties, **own)


_DEPTH, _READ = 25, [24, 18]
"""Layers of Molmo 2's tower, and those that are read, where a file does not say."""


def _trim(fields: Fields) -> None:
    """Take the tower of a published Molmo 2, whose weights end with the last layer that is read."""
    values = dict(fields.source.values)
    tower, adapter = values.pop("vit_config"), values.get("adapter_config", {})
    if isinstance(tower, Mapping) and isinstance(adapter, Mapping):
        read = adapter.get("vit_layers") or adapter.get("vision_feature_layer") or _READ
        depth = tower.get("num_hidden_layers", _DEPTH)
        if isinstance(read, list) and all(isinstance(n, int) for n in read) and is_size(depth):
            tower = {**tower, "num_hidden_layers": max(n % depth for n in read) + 1}
    values = {**values, "vision_config": tower}
    fields.source = replace(fields.source, values=values)


def _copy(fields: Fields, target: tuple[str, str], origin: tuple[str, str]) -> None:
    values = fields.source.values
    inner, other = values.get(target[0]), values.get(origin[0])
    if isinstance(inner, Mapping) and isinstance(other, Mapping):
        rest = {key: value for key, value in inner.items() if key != target[1]}
        own = {target[1]: other[origin[1]]} if origin[1] in other else {}
        fields.source = replace(fields.source, values={**values, target[0]: rest | own})


def _embedded(tower: str) -> tuple[Op, ...]:
    """Declare what every token would be of the table of a tower, which is chosen for few."""
    rows, wide = f"rows[b r e_{tower}]", f"e_{tower}"
    return (
        lookup("table", f"!ids[b r]:index, *w[words_{tower} {wide}] -> {rows}"),
        Norm.RMS_WIDE.op("norm", rows, f"normed[b r {wide}]", row=wide),
        einsum("project", f"normed[b r {wide}], *w[{wide} e] -> wide[b r e]"),
        Norm.RMS_BARE.op("norm_wide", "wide[b r e]", "image[b r e]"),
    )


def _stored(weights: str, sizes: _Sizes) -> tuple[Op, dict[str, Expr]]:
    """Return weights and the sizes of their axes.

    For example "4 e e + e" is one weight of three axes and one of one.

    Args:
        weights: their axes, those known and numbers.
        sizes: of known axes, each with the name that it has in the model.
    """
    held, lengths = {}, {}
    for place, axes in enumerate(weights.split(" + ")):
        named: list[str] = []
        for axis in axes.split():
            name, size = sizes[axis] if axis in sizes else (f"n_{axis}", Integer(axis))
            while name in named:
                name += "_again"
            named.append(name)
            lengths[name] = size
        held[f"w{place}"] = " ".join(named)
    return stored("kept", **held), lengths


_Sizes = Mapping[str, tuple[str, Expr]]


def _ending(sizes: Mapping[str, int], end: str) -> dict[str, tuple[str, Expr]]:
    return {axis: (f"{axis}_{end}", Integer(size)) for axis, size in sizes.items()}


def _left_out(fields: Fields, optional: Mapping[str, list[str]]) -> set[str]:
    return {
        name
        for key, names in optional.items()
        if not fields.flag(key, default=True)
        for name in names
    }


def _switched(fields: Fields, family: Mapping[str, Any]) -> dict[str, str]:
    """Return towers that a flag gives, unless the head is that of a part without them."""
    towers: dict[str, str] = {}
    for key, further in family.get("switched", {}).items():
        alone = fields.head.startswith(family["alone"])
        if fields.flag(key, default=True) and not alone:
            towers |= further
        else:
            for name in {path.partition(".")[0] for path in further} & fields.source.values.keys():
                fields.ignore(name)
                fields.assume(name, f"no part of {fields.head}" if alone else f"{key} is false")
    return towers


def _path(key: str) -> str:
    return key.replace("_config", "").replace(".", "_")


def _section(fields: Fields, key: str, lacking: bool) -> Fields | None:  # noqa: FBT001
    *outer, name = key.split(".")
    holder = fields
    for one in outer:
        holder = holder.part(one) or replace(fields, source=replace(fields.source, values={}))
        fields.ignore(one)
    part = holder.part(name)
    if part is None:
        fields.require(holds=lacking, problem="an object with the fields is accepted", name=key)
        return None
    fields.assume(key, "text alone: it has weights and no work")
    return part


def _tower(part: Fields, kind: str, key: str) -> tuple[tuple[Part, ...], dict[str, Expr]]:
    """Return the weights of a tower as parts, and the sizes of its axes, named after the key."""
    architecture = part.source.values.get("architecture")
    kind = str(architecture) if architecture in _DATA["towers"] else kind
    name, table = _path(key), _tower_table(kind)
    stated = part.source.values.get("model_type") or kind  # Kimi's files leave it empty
    names = table.get("named", [kind])
    if stated not in (*names, part.family):
        part.note("model_type", f"only {' or '.join(names)} is declared")
    part.record = Family(
        "",
        (),
        aliases={field: tuple(others) for field, others in table.get("aliases", {}).items()},
        costless=tuple(table["costless"]),
        fixed=table.get("fixed", {}),
        defaults=table.get("defaults", {}),
    )
    _take_out(part, table.get("inside", {}))
    depth = tower_sizes(part, {"blocks": table["depth"]})["blocks"] if "depth" in table else 1
    own = tower_sizes(part, table["sizes"])
    if "e" in own and not table.get("uneven", False):
        _check_heads(part, own["e"], table["sizes"]["e"])
    sizes = _ending(own, name)
    switched = table.get("switched", {})
    on = [weights for flag, weights in switched.items() if part.flag(flag, default=True)]
    part.problems += part.not_understood().values()
    lengths = dict(sizes.values())
    parts = []
    once = " + ".join([*filter(None, (table.get("once"),)), *on])
    for path, weights, repeat in (
        (f"{name}.block", table.get("block"), depth),
        (name, once, 1),
    ):
        if weights:
            op, more = _stored(weights, sizes)
            lengths |= more
            parts.append(Part(path, (op,), Integer(repeat), place=Place.END))
    return tuple(parts), lengths


def _check_heads(part: Fields, width: int, entry: object) -> None:
    """Refuse heads that do not divide the width of a tower, unless they have one of their own."""
    field = f" of {entry[0]}" if isinstance(entry, list) else ""
    for name in ("num_attention_heads", "num_heads", "encoder_attention_heads"):
        heads = part.source.values.get(name)
        fine = not is_size(heads) or width % heads == 0 or part.has("head_dim")
        problem = f"{heads} heads do not divide a width of {width}{field}"
        part.require(holds=fine, problem=problem, name=name)


def _take_out(part: Fields, inside: Mapping[str, tuple[str, str]]) -> None:
    """Take fields out of the objects of a section that hold them, where none else holds others."""
    taken: dict[str, set[str]] = {}
    for field, (outer, inner) in inside.items():
        taken.setdefault(outer, set()).add(inner)
        held = part.part(outer)
        if held is not None and inner in held.source.values and not part.has(field):
            values = {**part.source.values, field: held.source.values[inner]}
            part.source = replace(part.source, values=values)
    for outer, known in taken.items():
        held = part.source.values.get(outer)
        strange = sorted(held.keys() - known) if isinstance(held, Mapping) else []
        problem = f"only {', '.join(sorted(known))} are understood, not {', '.join(strange)}"
        part.require(holds=not strange, problem=problem, name=outer)


def _tower_table(kind: str) -> dict[str, Any]:
    """Return what is said of a tower, with what it has of one that is like it."""
    own = _DATA["towers"].get(kind)
    return {**_tower_table(own.get("like", "")), **own} if own else {}
