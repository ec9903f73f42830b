"""Builders of models of several parts: every section is read by its own family.

Images count by the tokens that they take of a sequence: `Shape(i=576)`. Without any, the tower has
weights and does no work.
"""

from dataclasses import replace

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.errors import InputError
from symbolic_cost.layers.connector import Connector, Trait
from symbolic_cost.layers.patch import Piece
from symbolic_cost.models.build import Fields, Shape, bound
from symbolic_cost.models.functions import FUNCTIONS
from symbolic_cost.models.nested.families import NESTED, Nested
from symbolic_cost.models.nested.joined import Joining, joined
from symbolic_cost.models.nested.joints import Beside, Seeing, images
from symbolic_cost.models.nested.parts import BESIDE, LATER, section, text_of
from symbolic_cost.models.vision import config as vision_config
from symbolic_cost.ops.declare import Model, stored
from symbolic_cost.symbols import exact

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
    return joined(fields.family, text, joining)


def _joining(fields: Fields, family: Nested, shape: Shape, text: Model) -> Joining:
    inner = section(fields, family.sections[0], family.vision)
    read, sizes, numbers, head = vision_config.read(inner, shape)
    side = _side(fields, inner, family)
    unread = _unread(fields, family, numbers["n_layers"])
    key, usual = "vision_feature_select_strategy", family.middle.feature
    whole = fields.text(key, usual, ("default", "full")) == "full"
    stages = _stages(inner, family, text, shape)
    beside = _beside(fields, inner, text, numbers["e"], family=family, merge=side**2)
    _check_tiles(fields, family, shape)
    inner.ignore("hidden_size", "out_hidden_size", BESIDE, "spatial_patch_size", "projection_dim")
    classed = Piece.CLASS in getattr(read.words, "pieces", Piece.NONE)
    fields.require(
        holds=shape.i == 0 or classed or whole or fields.family != "llava",
        problem=f"full is accepted with images: {inner.family} has no class token to leave out",
        name="vision_feature_select_strategy",
    )
    patches = exact(sizes.patches).xreplace({symbols.N_p: Integer(numbers.get("N_p", 1))})
    tokens: Expr = patches / side**2 + int(whole and classed)
    if family.tokens:
        tokens = Integer(fields.size(family.tokens, 256))
    taken = images(Seeing(fields, inner, shape, sizes, tokens, family.tokens, side))
    seen = read.declare("vision", shape, replace(taken.sizes, b=taken.batch), head)
    inner.refuse()
    fields.ignored |= inner.ignored
    return Joining(
        bound(replace(seen, bindings=numbers)),
        _connector(fields, family),
        numbers["e"],
        side**2,
        taken.tokens,
        unread,
        len(stages),
        beside.widths,
        (*(stored(name, w=axes) for name, axes in family.unused.items()), *beside.ops),
        beside.sizes,
    )


def _check_tiles(fields: Fields, family: Nested, shape: Shape) -> None:
    """Refuse images whose tokens nothing but their sides tells."""
    if (family.unused or family.middle.tiled) and shape.i != 0:
        raise InputError(
            f"images of {fields.family} come in tiles, whose tokens only their sides tell: "
            "image_tokens = 0 is accepted, which counts the text"
        )


def _beside(
    fields: Fields, inner: Fields, text: Model, e: int, *, family: Nested, merge: int
) -> Beside:
    """Read the widths of the connector, and check that the language model takes what it gives."""
    width = int(text.sizes["e"])
    assumed = 2048 if fields.family == "paligemma" else None
    widths = {"projection_dim": fields.source.values.get("projection_dim", assumed)}
    widths |= {key: inner.source.values.get(key) for key in ("out_hidden_size", BESIDE)}
    for key, value in widths.items():
        if value is None or (key == "projection_dim" and assumed is None):
            continue
        if value != width:
            fields.note(
                key.removesuffix(LATER), f"{value} features meet a language model of {width}"
            )
    return family.middle.read(fields, inner, text, e, merge)


def _stages(inner: Fields, family: Nested, text: Model, shape: Shape) -> tuple[int | None, ...]:
    """Read after which blocks a further connector stands; None for one that nothing reads."""
    if not family.stages:
        return ()
    listed = inner.items(family.stages, (8, 16, 24))
    blocks = sum(part.repeat for part in text.parts if part.is_block)
    there = range(inner.size("num_hidden_layers"))
    stages = tuple(
        layer if layer in there and layer not in listed[:place] and place < blocks else None
        for place, layer in enumerate(listed)
    )
    inner.require(
        holds=shape.i == 0 or None not in stages,
        problem="blocks of the tower, each once and no more than the language model has, "
        "are accepted with images",
        name=family.stages,
    )
    return stages


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
    layer = fields.source.values.get("vision_feature_layer", family.layer)
    fields.ignore("vision_feature_layer")
    if isinstance(layer, int) and not isinstance(layer, bool) and -blocks - 1 <= layer < 0:
        return -layer - 1
    told = f"a layer counted from the last, as -2, is accepted: there are {blocks}"
    fields.note("vision_feature_layer", told)
    return 0


def _connector(fields: Fields, family: Nested) -> Connector:
    own = family.connector
    if family.function:
        name = fields.text(family.function, "gelu", tuple(FUNCTIONS))
        own = replace(own, function=FUNCTIONS[name])
    if family.biased:
        biased = fields.flag(family.biased, default=Trait.BIAS in own.traits)
        own = replace(own, traits=own.traits | Trait.BIAS if biased else own.traits & ~Trait.BIAS)
    return own
