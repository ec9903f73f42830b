"""Builders of models of several parts: every section is read by its own family.

Images count by the tokens that they take of a sequence: `Shape(i=576)`. Without any, the tower has
weights and does no work.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from math import isqrt
from typing import Any

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.axes import Axis, Role
from symbolic_cost.errors import InputError
from symbolic_cost.layers import connector as connectors
from symbolic_cost.layers.connector import Connector, Trait, Wide
from symbolic_cost.layers.patch import Piece
from symbolic_cost.models.bound import bound
from symbolic_cost.models.config import imported
from symbolic_cost.models.count import TOWER_PORT
from symbolic_cost.models.families import FAMILIES
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.nested.families import (
    FREE,
    JOINT,
    NESTED,
    TEXTS,
    TIED_BY_EITHER,
    Nested,
)
from symbolic_cost.models.nested.sections import GLM_TOWERS, MERGER, glm, large, resampler
from symbolic_cost.models.nested.towers import tower
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.titles import retitled
from symbolic_cost.models.vision import config as vision_config
from symbolic_cost.ops.graph import Model, Part
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.unread import Unread, stored, unread
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact

_TABLES: Mapping[str, Mapping[str, Any]] = package_data("models/nested.toml")
_DEFAULTS = {name: _TABLES.get(own.get("like", ""), own) for name, own in _TABLES.items()}

_IMAGE = "vision"

_TOWERS = "vision.config:build"

_TEXT_ALONE = "ForCausalLM"
"""Head of the language model without the tower, as files of text-only copies name it."""


def build(fields: Fields, shape: Shape) -> Model:
    """Declare a language model that sees images."""
    family = NESTED[fields.family]
    text = text_of(fields, family, shape)
    if fields.head.endswith(_TEXT_ALONE) and fields.head not in fields.record.headed:
        fields.ignore(family.sections[0], *filter(None, (family.merge, family.tokens)))
        fields.refuse()
        return text
    joining = _joining(fields, family, shape, text)
    fields.refuse()
    return _joined(fields.family, text, joining)


def section(fields: Fields, key: str, kind: str) -> Fields:
    """Return the fields of a section, read by its own family.

    Args:
        fields: of the whole.
        key: of the section.
        kind: model_type unless the section names it.

    Raises:
        InputError: the section is no object, or of no family that is known.
    """
    values = fields.source.values.get(key)
    fields.ignore(key)
    if not isinstance(values, Mapping):
        raise InputError(f"{fields.source.where(key)}: an object with the fields is accepted")
    name = _section_type(fields, key, values) or kind
    name = kind if name == fields.family else name  # a section that is named like the whole
    if name not in FAMILIES:
        raise InputError(
            f"{fields.source.where(key)}: {name!r} is no family of towers that is declared"
        )
    record = FAMILIES[name]
    values = {**_DEFAULTS.get(name, {}), **values}
    towers = record.builder == _TOWERS
    if (
        "embed_dim" in values and towers
    ):  # beside it, hidden_size is the width of the language model
        values[_BESIDE] = values.get("hidden_size")
        values["hidden_size"] = values.pop("embed_dim")
    if name in GLM_TOWERS:
        values = glm(values)
    if fields.family == "phi3_v":
        values = large(fields, values)
    own = replace(fields.source, values=values)
    return Fields(own, name, record, record.heads[0])


def _section_type(fields: Fields, key: str, values: Mapping[str, Any]) -> str:
    """Return the model_type of a section; empty where it says none.

    Raises:
        InputError: no text.
    """
    name = values.get("model_type") or ""
    if not isinstance(name, str):
        raise InputError(f"{fields.source.where(key)}: model_type: a family's name is accepted")
    return name


def text_of(fields: Fields, family: Nested, shape: Shape) -> Model:
    """Return the language model: that of its section, or of the whole where there is none."""
    key = family.sections[1]
    values = fields.source.values.get(key)
    fields.ignore(key, "hidden_size")
    if values is None and "num_hidden_layers" in fields.source.values:
        values = _flat(fields, family)
    if not isinstance(values, Mapping):
        told = (
            "an object with the fields is accepted, or num_hidden_layers and the others beside it"
        )
        raise InputError(f"{fields.source.where(key)}: {told}")
    own_type = _section_type(fields, key, values) or family.text
    name = TEXTS.get(own_type, own_type)
    if name not in FAMILIES:
        raise InputError(f"{fields.source.where(key)}: {own_type!r} is no declared language model")
    heads = FAMILIES[name].heads
    bare = fields.head.endswith("Model") and fields.head not in fields.record.headed
    head = next((h for h in heads if h.endswith("Model") == bare), heads[0])
    tied = _tied(fields, family, values)
    width = values.get("head_dim")
    if not (width is None or (isinstance(width, int) and width > 0 and width % 2 == 0)):
        fields.note("head_dim", "a head_dim that is rotated in pairs is accepted")
    own = {**_DEFAULTS.get(name, {}), **_DEFAULTS.get(own_type, {}), **values, **tied}
    own |= {"model_type": name, "architectures": [head]}
    for name in ("num_image_tokens", "is_composition", "use_bidirectional_attention"):
        if own.get(name) != "all":
            own.pop(name, None)
    read = imported(replace(fields.source, values=own), replace(shape, i=Integer(0)))
    for origin, value in read.origins.items():
        fields.origins.setdefault(f"{key}.{origin}", value)
    return bound(read.model)


def _flat(fields: Fields, family: Nested) -> dict[str, Any]:
    """Return the fields of a language model that stand beside the section of the tower."""
    own = {
        key: value
        for key, value in fields.source.values.items()
        if not key.endswith("_token_id") and not isinstance(value, Mapping) and key != "model_type"
    }
    own = {key: value for key, value in own.items() if not re.fullmatch(family.beside, key)}
    fields.ignore(*own)
    fields.ignore("rope_scaling", "rope_parameters")
    return own | {"model_type": family.text}


def _tied(fields: Fields, family: Nested, values: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether the head is the token table: the whole says it, else its class.

    A section that contradicts the class is not understood, nor one that contradicts a LLaVA.
    """
    own = values.get("tie_word_embeddings")
    whole = fields.source.values.get("tie_word_embeddings")
    tied = fields.flag("tie_word_embeddings", default=family.tied)
    tied = tied or (own is True and fields.family in TIED_BY_EITHER)
    # The language models of these are tied by their own section.
    rules = whole is not None and fields.family not in {"llava", "llama4"}
    own = False if own is None and fields.family == "llama4" else own
    if not rules and own is not None and own != tied:
        fields.note(
            "tie_word_embeddings", f"{own} in the section, {tied} for the whole: give both alike"
        )
    return {"tie_word_embeddings": tied}


def _check_widths(fields: Fields, inner: Fields, text: Model) -> None:
    """Note what a tower or a connector makes that the language model does not take."""
    width = int(text.sizes["e"])
    assumed = 2048 if fields.family == "paligemma" else None
    widths = {"projection_dim": fields.source.values.get("projection_dim", assumed)}
    widths |= {key: inner.source.values.get(key) for key in ("out_hidden_size", _BESIDE)}
    for key, value in widths.items():
        if value is None or (key == "projection_dim" and assumed is None):
            continue
        if value != width:
            fields.note(
                key.removesuffix(_LATER), f"{value} features meet a language model of {width}"
            )


_LATER = " of the language model"
_BESIDE = f"hidden_size{_LATER}"
"""Width that a tower's section gives beside its own, as `embed_dim`."""


@dataclass(frozen=True)
class _Joining:
    """How a tower and a language model are joined, in numbers.

    Args:
        model: the tower on the images of a batch.
        width: of the tower.
        merge: patches that a token joins.
        tokens: of an image.
        unread: last blocks of the tower that nothing reads.
        stages: further connectors.
    """

    model: Model
    connector: Connector
    width: int
    merge: int
    tokens: Expr
    unread: int
    stages: int
    widths: tuple[int, ...] = ()
    kept: tuple[Op, ...] = ()
    further: Mapping[str, Expr] = field(default_factory=dict)


def _joining(fields: Fields, family: Nested, shape: Shape, text: Model) -> _Joining:
    """Read the tower and how it is joined to the language model."""
    inner = section(fields, family.sections[0], family.vision)
    read, sizes, numbers, head = vision_config.read(inner, shape)
    free = inner.family in FREE
    merge, extra = _side(fields, inner, family) ** 2, 0
    unread = _unread(fields, family, numbers["n_layers"])
    usual = "full" if family.inner else "default"
    if fields.text("vision_feature_select_strategy", usual, ("default", "full")) == "full":
        extra = 1
    stages = _stages(inner, family, text) if family.stages else ()
    inner.require(
        holds=shape.i == 0 or None not in stages,
        problem="blocks of the tower, each once and no more than the language model has, "
        "are accepted with images",
        name=family.stages,
    )
    _check_widths(fields, inner, text)
    widths, further = _widths(fields, inner, text, numbers["e"], family=family, merge=merge)
    if (family.kept or family.resampled) and shape.i != 0:
        raise InputError(
            f"images of {fields.family} come in tiles, whose tokens only their sides tell: "
            "image_tokens = 0 is accepted, which counts the text"
        )
    inner.ignore("hidden_size", "out_hidden_size", _BESIDE, "spatial_patch_size", "projection_dim")
    patches = exact(sizes.patches).xreplace({symbols.N_p: Integer(numbers.get("N_p", 1))})
    classed = Piece.CLASS in getattr(read.words, "pieces", Piece.NONE)
    tokens: Expr = patches / merge + (extra if classed else 0)
    fields.require(
        holds=shape.i == 0 or classed or extra == 1 or fields.family != "llava",
        problem=f"full is accepted with images: {inner.family} has no class token to leave out",
        name="vision_feature_select_strategy",
    )
    if family.tokens:
        tokens = Integer(fields.size(family.tokens, 256))
    if free:
        tokens = shape.i if shape.i != 0 else Integer(1)
        batch = shape.b if shape.i != 0 else Integer(0)
        if inner.family in JOINT and shape.i != 0:
            tokens, batch = tokens * batch, Integer(1)
        elif shape.i != 0:
            fields.assume("image_tokens", "of one image; several attend each to its own patches")
        sizes = vision_config.freed(sizes, tokens * merge)
    else:
        _check_grid(fields, inner, family, shape)
        images = shape.i / tokens
        if images.is_integer is False:
            raise InputError(f"{shape.i} image tokens are no multiple of the {tokens} of an image")
        batch = shape.b * images
    inner.require(
        holds=shape.i == 0 or tokens * merge % sizes.window == 0,
        problem=f"windows of {sizes.window} patches do not divide the {tokens * merge} of an image",
        name="window_size",
    )
    seen = read.declare("vision", shape, replace(sizes, b=batch), head)
    inner.refuse()
    fields.ignored |= inner.ignored
    return _Joining(
        bound(replace(seen, bindings=numbers)),
        _connector(fields, family),
        numbers["e"],
        merge,
        tokens,
        unread,
        len(stages),
        widths,
        (*(stored(name, w=axes) for name, axes in family.kept.items()), *further[0]),
        further[1],
    )


def _check_grid(fields: Fields, inner: Fields, family: Nested, shape: Shape) -> None:
    """Note a grid of patches that is no grid of tokens, where there are images."""
    image = vision_config.side_lengths(inner, "image_size", 224)
    patch = vision_config.side_lengths(inner, "patch_size", 16)
    grid = [whole // part for whole, part in zip(image, patch, strict=True)]
    joined = [_side(fields, inner, family)] * len(grid)
    fits = not any(side % each for side, each in zip(grid, joined, strict=True))
    if family.tokens:
        root = isqrt(fields.size(family.tokens, 256))
        joined = [max(side // max(root, 1), 1) for side in grid]
        rows = [side // each for side, each in zip(grid, joined, strict=True)]
        fits = rows == [root, root] and root**2 == fields.size(family.tokens, 256)
    problem = f"{' x '.join(map(str, grid))} patches of an image are no grid of whole tokens"
    inner.require(holds=shape.i == 0 or fits, problem=problem, name="image_size")


def _stages(inner: Fields, family: Nested, text: Model) -> tuple[int | None, ...]:
    """Read after which blocks a further connector stands; None for one that nothing reads."""
    listed = inner.items(family.stages, (8, 16, 24))
    blocks = sum(part.repeat for part in text.parts if part.is_block)
    there = range(inner.size("num_hidden_layers"))
    return tuple(
        layer if layer in there and layer not in listed[:place] and place < blocks else None
        for place, layer in enumerate(listed)
    )


def _widths(
    fields: Fields, inner: Fields, text: Model, e: int, *, family: Nested, merge: int
) -> tuple[tuple[int, ...], tuple[tuple[Op, ...], Mapping[str, Expr]]]:
    """Read what a connector is wide, and what a resampler declares beside it."""
    widths = _adapter(inner, family, e * merge)
    further: tuple[tuple[Op, ...], Mapping[str, Expr]] = ((), {})
    if family.resampled:
        widths = int(text.sizes["f"]), e
        further = resampler(fields, family.resampled)
    if Trait.DEEP in family.connector.traits:
        widths = inner.size(MERGER), int(text.sizes["e"])
    if family.inner:
        halved = fields.size(family.inner, int(text.sizes["e"]))
        fields.require(holds=halved % 2 == 0, problem="an even width is halved", name=family.inner)
        widths = halved // 2, e
    return widths, further


def _adapter(inner: Fields, family: Nested, joined: int) -> tuple[int, ...]:
    """Read the widths of an adapter, which takes what is as wide as the tower's perceptron."""
    if not family.adapter:
        return ()
    widths = [inner.size(name) for name in family.adapter]
    inner.require(
        holds=len(set(widths)) == 1 and inner.size("intermediate_size") == joined,
        problem=f"widths {widths} are to be one, and intermediate_size the {joined} features of "
        "joined patches",
        name=family.adapter[-1],
    )
    return widths[0], widths[0]


def _side(fields: Fields, inner: Fields, family: Nested) -> int:
    """Read how many patches along a side a token joins; some say the inverse."""
    if not family.merge:
        return 1
    here = fields if family.merge in fields.source.values else inner
    if family.merge.endswith("_ratio"):
        ratio = here.share(family.merge, 1 / 2)
        fields.require(holds=ratio > 0, problem="not zero is accepted", name=family.merge)
        return int(1 / ratio) if ratio else 1
    return here.size(family.merge, 2)


def _unread(fields: Fields, family: Nested, blocks: int) -> int:
    """Read how many of the tower's last blocks give what no connector takes."""
    layer = fields.source.values.get("vision_feature_layer", family.layer)
    fields.ignore("vision_feature_layer")
    if isinstance(layer, int) and not isinstance(layer, bool) and -blocks - 1 <= layer < 0:
        return -layer - 1
    told = f"a layer counted from the last, as -2, is accepted: there are {blocks}"
    fields.note("vision_feature_layer", told)
    return 0


def _connector(fields: Fields, family: Nested) -> Connector:
    """Return the connector as the configuration has it."""
    own = family.connector
    if family.function:
        name = fields.text(family.function, "gelu", tuple(FUNCTIONS))
        own = replace(own, function=FUNCTIONS[name])
    if family.biased:
        biased = fields.flag(family.biased, default=Trait.BIAS in own.traits)
        own = replace(own, traits=own.traits | Trait.BIAS if biased else own.traits & ~Trait.BIAS)
    return own


def _joined(name: str, text: Model, own: _Joining) -> Model:
    """Declare tower, connectors and language model as one."""
    seen = tower(_halved(own.model, own.unread), _IMAGE)
    names = {"b": f"b_{_IMAGE}", "r": f"r_{_IMAGE}", "t_v": f"t_{_IMAGE}", "e_v": f"e_{_IMAGE}"}
    taken = (part.path for part in reversed(seen.parts) if not _unseen(part))
    source = next(taken)
    late = replace(own.connector, traits=own.connector.traits | Trait.LATE)
    further = [
        Part(
            f"deepstack{i}",
            retitled(late.ops(), names),
            takes={"x": f"{_IMAGE}.block"},
            joins=text.parts[0].path,
        )
        for i in range(own.stages)
    ]
    ops = retitled((*own.kept, *own.connector.ops()), names)
    joining = Part(TOWER_PORT, ops, takes={"x": source}, joins=text.parts[0].path)
    wide = text.sizes["e"] if own.connector.hidden is Wide.TEXT else Integer(own.merge * own.width)
    first, second = own.widths or (wide, own.width)
    sizes = {
        "n_i": own.tokens,
        "m_i": Integer(own.merge),
        "w_i": exact(first),
        "w_j": exact(second),
        **own.further,
    }
    known = {axis: Axis(axis, Role.WHOLE) for axis in own.further} | {
        axis: entry for axis, entry in connectors.AXES.items() if axis in sizes
    }
    return replace(
        text,
        name=name,
        parts=(*seen.parts, joining, *further, *text.parts),
        sizes={**text.sizes, **seen.sizes, **sizes},
        axes={**text.axes, **seen.axes, **known},
    )


def _unseen(part: Part) -> bool:
    """Whether nothing flows back through a part."""
    return any(isinstance(op, Unread) for op in part.ops)


def _halved(model: Model, unread_blocks: int) -> Model:
    """Return a tower whose pooler and last blocks run, and are read by nothing."""
    parts: list[Part] = []
    for part in model.parts:
        if part.path == "pooler":
            parts.append(replace(part, ops=unread(part.ops)))
            continue
        if not part.is_block:
            parts.append(part)
            continue
        parts.append(replace(part, repeat=part.repeat - unread_blocks))
        if not unread_blocks:
            continue
        ops = unread(part.ops)
        parts += [
            replace(part, path=f"unread{i}", ops=ops, repeat=Integer(1))
            for i in range(unread_blocks)
        ]
    return replace(model, parts=tuple(parts))
