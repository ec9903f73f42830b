"""ControlNets of transformers, by `_class_name`: Flux, Stable Diffusion 3, Wan.

Blocks of the network that they steer, each of which hands a product of its image on. Axes: as in
`diffusion`; e_q width of what is handed on, n_p tokens of the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers.conditioning import conditioned
from symbolic_cost.layers.joint_attention import IMAGE, TEXT, Joint
from symbolic_cost.layers.patch import Patches, Piece, Places
from symbolic_cost.models.diffusion.blocks import (
    double_block,
    image_alone,
    joined_streams,
    prompt_unread,
)
from symbolic_cost.models.diffusion.flux import BEFORE, Streams, Usual, packed, time_of
from symbolic_cost.models.diffusion.tabled import TUBES, Steered, wan
from symbolic_cost.models.diffusion.transformers import (
    EMBEDDED,
    EMBEDDING,
    POOLED,
    PROMPT,
    TIME,
    declared,
    heads_of,
    rms_of,
    sample,
    sizes_of,
)
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part, Place, retitled, scope
from symbolic_cost.ops.view import view


def handing(block: tuple[Op, ...], rows: str = "r") -> tuple[Op, ...]:
    """Return a block that hands on a product of its image besides."""
    image = image_alone() if rows != "r" else ()
    ends = "image" if image else "made"
    return (
        *_made(block),
        *scope("hint", image, x="made", y="image"),
        einsum("hand", f"{ends}[b r e], *w[e e_q] + *bias[e_q] -> hint[b r e_q]"),
        view("on", f"made[b {rows} e] -> y[b {rows} e]"),
    )


def _made(block: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return a block whose result is not yet what it hands on."""
    made = {"y": "made"}
    return tuple(op.mapped(lambda o: o.renamed(made.get(o.tensor, o.tensor))) for op in block)


def shown_beside(image: tuple[Op, ...], shown: tuple[Op, ...]) -> tuple[Op, ...]:
    """Declare the embedding of an image and of what steers it, and their sum."""
    return (
        *scope("own", image, x="own"),
        *scope("shown", shown, x="shown"),
        pointwise("add", "own[b r e], shown[b r e] -> x[b r e]", "add"),
    )


def flux(fields: Fields, shape: Shape) -> Model:
    """Declare a ControlNet of Flux.

    Raises:
        InputError: every problem of the fields.
    """
    few = fields.source.values.get("num_single_layers", 38) == 0
    if few:
        fields.source = replace(
            fields.source, values={**fields.source.values, "num_single_layers": 1}
        )
    image, numbers, singles, own = packed(fields, shape, Usual())
    guided = fields.flag("guidance_embeds", default=False)
    own |= {"e_pool": fields.size("pooled_projection_dim", 768), "e_q": numbers["e"]}
    kinds = fields.optional_size("num_mode")
    fields.refuse()
    double, single = Streams().blocks()
    double = handing(double)
    time, first = {"cond": "time"}, {"x": "embedding", "prompt": "prompt"}
    text = image.text
    rotation, prompt, _ = BEFORE
    if kinds:
        prompt, own = replace(prompt, ops=_TOLD), own | {"n_l": kinds, "n_p": text}
        image = replace(image, text=text + 1)
    parts = [time_of(guided, POOLED), rotation, prompt]
    parts.append(Part("embedding", shown_beside((EMBEDDED,), (EMBEDDED,))))
    last, deep = (prompt_unread(double) if few else double), numbers["n_layers"] > 1
    at = {**first, **time}
    if deep or not few:
        count = symbols.n_layers - 1 if few else symbols.n_layers
        parts.append(Part("block", double, count, at, Place.LEADING))
        at = {"x": "block", "prompt": "block", **time}
    if few:
        parts.append(Part("last.block", last, takes=at, place=Place.BLOCK))
    else:
        own_ops = handing(single, "r_j")
        parts.append(Part("joined", joined_streams(), takes={"x": "block", "prompt": "block"}))
        takes = {"x": "joined", **time}
        parts.append(Part("single.block", own_ops, Integer(singles), takes, Place.BLOCK))
    return declared(fields, tuple(parts), sizes_of(image, shape, **own), numbers)


_TOLD = (
    einsum("context", "!states[b n_p e_x], *w[e_x e] + *bias[e] -> plain[b n_p e]"),
    lookup("mode", "!mode_of[b]:index, *table[n_l e] -> mode[b e]"),
    pointwise("learned", "plain[b n_p e], mode[b e] -> prompt[b r_x e]", "copy", laid="n_p"),
)
"""A prompt behind a token that says what kind of image steers."""


def vace(fields: Fields, shape: Shape) -> Model:
    """Declare a Wan whose blocks take hints of further ones, which see what steers them."""
    depth = fields.size("num_layers", 40)
    stated = fields.items("vace_layers", tuple(range(0, 40, 5)))
    fine = stated[:1] == (0,) and all(isinstance(at, int) and 0 <= at < depth for at in stated)
    fine = fine and list(stated) == sorted(set(stated))
    problem = f"ascending numbers of blocks, the first 0 and the last below {depth}, are accepted"
    fields.require(holds=fine, problem=problem, name="vace_layers")
    channels = fields.size("vace_in_channels", 96)
    hints = Integer(len(stated))

    def steered(ops: tuple[Op, ...], takes: Mapping[str, str]) -> tuple[Part, ...]:
        """Declare blocks that see what steers, those that take their hints, and the others."""
        added = (
            view("own", "hint[b r e_q] -> own[b r e]"),
            pointwise("add", "made[b r e], own[b r e] -> y[b r e]", "add"),
        )
        hinted = (*_made(ops), *scope("hint", added, made="made", hint="hint", y="y"))
        own = {**takes, "hint": "control.block"}
        parts = [
            Part("control", _CONTROL, takes={"x": "embedding"}),
            Part("control.block", handing(ops), hints, {**takes, "x": "control"}, Place.LEADING),
            Part("hinted.block", hinted, hints, own, Place.BLOCK),
        ]
        if hints < depth:
            own = {**takes, "x": "hinted.block"}
            parts.append(Part("block", ops, symbols.n_layers - hints, own, Place.BLOCK))
        return tuple(parts)

    return wan(fields, shape, Steered(channels, steered))


_CONTROL = (
    *scope("", retitled(TUBES, {"ch": "n_x", "e": "e_q"}), x="control"),
    einsum("proj_in", "control[b r e_q], *w[e_q e] + *bias[e] -> projected[b r e]"),
    pointwise("add", "x[b r e], projected[b r e] -> y[b r e]", "add"),
)


def sd3(fields: Fields, shape: Shape) -> Model:
    """Declare a ControlNet of Stable Diffusion 3.

    Raises:
        InputError: every problem of the fields.
    """
    channels, patch = fields.size("in_channels", 16), fields.size("patch_size", 2)
    image = sample(fields, shape, 128, patch, channels)
    numbers = heads_of(fields, 18, 64)
    layers, most = fields.size("num_layers", 18), fields.optional_size("pos_embed_max_size", 96)
    if most is not None and max(image.sides) // patch > most:
        fields.note("pos_embed_max_size", f"positions end at {most} patches a side")
    own = {"e_x": fields.size("joint_attention_dim", 4096), "e_q": numbers["e"], "pixels": 1}
    own |= {"e_pool": fields.size("pooled_projection_dim", 2048)}
    own["n_x"] = channels + (fields.optional_size("extra_conditioning_channels") or 0)
    width = fields.size("caption_projection_dim", 1152)
    problem = f"{width} is not the width {numbers['e']} of the heads together"
    fields.require(holds=width == numbers["e"], problem=problem, name="caption_projection_dim")
    norm = rms_of(fields)
    seconds = {at for at in fields.items("dual_attention_layers") if at in range(layers)}
    fields.ignore("out_channels")
    fields.refuse()
    both = Joint((IMAGE, TEXT), (IMAGE, TEXT), norm)
    alone = replace(both, streams=(IMAGE,), results=(IMAGE,))
    shown = retitled(Patches(Piece.BIAS, Places.NONE).ops(), {"ch": "n_x"})
    parts = [
        Part("time", conditioned((TIME, POOLED))),
        Part("prompt", (PROMPT,)),
        Part("embedding", shown_beside(EMBEDDING.ops(), shown)),
    ]
    at = {"x": "embedding", "prompt": "prompt"}
    kinds = [(at in seconds, at == layers - 1) for at in range(layers)]
    for i, ((second, ends), run) in enumerate(groupby(kinds)):
        path = f"blocks{i}.block"
        ops = handing(double_block(both, second=alone if second else None))
        ops = prompt_unread(ops) if ends else ops
        place = Place.BLOCK if ends else Place.LEADING
        parts.append(Part(path, ops, Integer(len(list(run))), {**at, "cond": "time"}, place))
        at = {"x": path, "prompt": path}
    return declared(fields, tuple(parts), sizes_of(image, shape, **own), numbers)
