"""Blocks of diffusion transformers: streams that a condition modulates, alone or together."""

from collections.abc import Callable
from dataclasses import replace

from symbolic_cost.layers import conditioning
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.conditioning import (
    ATTENTION,
    LAST,
    PERCEPTRON,
    SECOND,
    SIX,
    entered,
    modulation,
)
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.joint_attention import IMAGE, JOINED, TEXT, Joint, Stream
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Layer
from symbolic_cost.ops.declare import Op, joined, pointwise, scope, unread, view
from symbolic_cost.ops.einsum import Einsum, einsum
from symbolic_cost.ops.part import retitled

Pieces = tuple[str, str, str]
"""Shift, scale and gate."""

TANH = MLP("gelu_tanh")

Made = Callable[[Stream, tuple[str, ...]], tuple[Op, ...]]
"""Declares the pieces of a stream's modulation."""


def pieces_of(stream: Stream, pieces: tuple[str, ...]) -> tuple[Op, ...]:
    """Declare the pieces of a stream's modulation, named after it."""
    own = stream.name
    names = {piece: f"{own}.{piece}" for piece in pieces}
    return scope(f"{own}.modulation", modulation(pieces), cond="cond", **names)


def _piece_names(stream: Stream, pieces: Pieces) -> Pieces:
    shift, scale, gate = (f"{stream.name}.{piece}" for piece in pieces)
    return shift, scale, gate


def behind_first(first: tuple[Op, ...], later: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return ops with others behind the first of them, which takes what the part takes first."""
    return (*first[:1], *later, *first[1:])


def modulated_entry(
    stream: Stream, pieces: Pieces, x: str, y: str, norm: Norm | None = Norm.LAYER_BARE
) -> tuple[Op, ...]:
    """Declare a norm of a stream and its modulation."""
    shift, scale, _ = _piece_names(stream, pieces)
    ops = entered(shift, scale, f"b {stream.residual}", norm)
    path = f"{stream.name}.{pieces[1]}"
    return scope(path, ops, x=x, y=y, **{shift: shift, scale: scale})


def modulated_exit(stream: Stream, pieces: Pieces, outcome: str, x: str, y: str) -> tuple[Op, ...]:
    """Declare y = x + gate outcome of a stream."""
    gate = _piece_names(stream, pieces)[2]
    ops = conditioning.gated(gate, f"b {stream.residual}")
    path = f"{stream.name}.{pieces[2]}"
    return scope(path, ops, x=x, y=y, outcome=outcome, **{gate: gate})


def modulated_perceptron(
    stream: Stream, layer: tuple[Op, ...], x: str, y: str, norm: Norm = Norm.LAYER_BARE
) -> tuple[Op, ...]:
    """Declare the perceptron of a stream, modulated."""
    own, names = f"{stream.name}.mlp", {"r": stream.residual, "l": stream.query}
    return (
        *modulated_entry(stream, PERCEPTRON, x, f"{own}.x", norm),
        *scope(own, retitled(layer, names), x=f"{own}.x", y=f"{own}.y"),
        *modulated_exit(stream, PERCEPTRON, f"{own}.y", x, y),
    )


def block(
    attention: Layer,
    perceptron: Layer,
    pieces: tuple[Op, ...],
    norms: tuple[Norm, Norm],
    beside: tuple[Op, ...] = (),
) -> tuple[Op, ...]:
    """Declare a block of one stream, from x to y.

    Args:
        attention: of the image alone.
        perceptron: behind it.
        pieces: what makes the pieces of the modulation.
        norms: before either.
        beside: what stands between them, from x to y.
    """
    first, second = norms
    middle = "attended" if beside else "middle"
    return (
        *behind_first(modulated_entry(IMAGE, ATTENTION, "x", "x_image", first), pieces),
        *scope("attention", attention.ops(), x_image="x_image", y_image="y_image"),
        *modulated_exit(IMAGE, ATTENTION, "y_image", "x", middle),
        *scope("beside", beside, x=middle, y="middle", prompt="prompt", shown="shown"),
        *modulated_perceptron(IMAGE, perceptron.ops(), "middle", "y", second),
    )


def double_block(
    attention: Joint,
    second: Joint | None = None,
    made: Made = pieces_of,
    perceptron: MLP | GatedMLP = TANH,
) -> tuple[Op, ...]:
    """Declare a block of two streams, from x and prompt to one result each, or to that of x.

    Args:
        attention: of both.
        second: of the image alone besides, on the same norm.
        made: what makes the pieces of a modulation.
        perceptron: of either.
    """
    both, pieces = TEXT in attention.results, SIX if second is None else (*SIX, *SECOND)
    first, later = (modulated_entry(s, ATTENTION, x, f"x_{s.name}") for s, x in _STREAMS)
    outside = dict.fromkeys(("x_image", "x_text", "y_image", "y_text"))
    ops: list[Op] = [
        *behind_first(first, made(IMAGE, pieces)),
        *behind_first(later, made(TEXT, SIX) if both else _pieces_of_last()),
        *scope("attention", attention.ops(), **{name: name for name in outside}),
        *modulated_exit(IMAGE, ATTENTION, "y_image", "x", "image.middle"),
    ]
    middle = "image.middle"
    if second is not None:
        middle = "image.further"
        ops += modulated_entry(IMAGE, SECOND, f"image.{ATTENTION[1]}.normed", "x_second", None)
        ops += scope("second", second.ops(), x_image="x_second", y_image="y_second")
        ops += modulated_exit(IMAGE, SECOND, "y_second", "image.middle", middle)
    ops += modulated_perceptron(IMAGE, perceptron.ops(), middle, "y")
    if both:
        ops += modulated_exit(TEXT, ATTENTION, "y_text", "prompt", "text.middle")
        ops += modulated_perceptron(TEXT, perceptron.ops(), "text.middle", "z")
    return tuple(ops)


_STREAMS = ((IMAGE, "x"), (TEXT, "prompt"))


def _pieces_of_last() -> tuple[Op, ...]:
    names = {"shift": "text.shift_a", "scale": "text.scale_a"}
    return scope("text.modulation", modulation(LAST), cond="cond", **names)


def single_block(
    attention: Joint, made: Made = pieces_of, perceptron: MLP | GatedMLP = TANH
) -> tuple[Op, ...]:
    """Declare a block on both streams as one, with attention beside the perceptron."""
    # What both give is summed by one product, which has one bias.
    inner = Bias.INNER if Bias.INNER in perceptron.bias else Bias.NONE
    wide = retitled(replace(perceptron, bias=inner).ops(), {"r": "r_j", "l": "j"})
    layer: tuple[Op, ...] = (
        *scope("", wide, x="x_joined", y="wide"),
        einsum("proj", "context[b j h d], *w[h d e] + *bias[e] -> attended[b j e]"),
        view("scatter_attended", "attended[b j e] -> heads[b r_j e]"),
        pointwise("join", "heads[b r_j e], wide[b r_j e] -> y_joined[b r_j e]", "add"),
    )
    return (
        *behind_first(modulated_entry(JOINED, ATTENTION, "x", "x_joined"), made(JOINED, ATTENTION)),
        *scope("attention", attention.ops(), x_joined="x_joined", context="context"),
        *layer,
        *modulated_exit(JOINED, ATTENTION, "y_joined", "x", "y"),
    )


def ending(pieces: tuple[Op, ...], **names: str) -> tuple[Op, ...]:
    """Declare the last norm, modulated, and the product with the pixels of every patch."""
    own = {"shift": "shift", "scale": "scale"}
    norm = scope("norm", entered("shift", "scale"), x="x", y="fine", **own)
    out = einsum("proj_out", "fine[b r e], *w[e pixels] + *bias[pixels] -> out[b r pixels]")
    return (*behind_first(norm, scope("modulation", pieces, cond="cond", **own, **names)), out)


def unbiased(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return ops whose products have no bias."""
    return tuple(
        replace(op, pattern=replace(op.pattern, biases=())) if isinstance(op, Einsum) else op
        for op in ops
    )


def joined_streams() -> tuple[Op, ...]:
    """Declare both streams as one."""
    return (
        view("gather", "x[b r e] -> image[b l e]"),
        view("gather_prompt", "prompt[b r_x e] -> text[b l_x e]"),
        joined("join", "text[b l_x e], image[b l e] -> both[b j e]"),
        view("scatter", "both[b j e] -> y[b r_j e]"),
    )


def image_alone() -> tuple[Op, ...]:
    """Declare the image of both."""
    return (
        view("gather", "x[b r_j e] -> both[b j e]"),
        joined("part", "both[b j e] -> image[b l e]"),
        view("scatter", "image[b l e] -> y[b r e]"),
    )


def prompt_unread(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """Return a block of which nothing reads the prompt, which runs all the same."""
    first = next(i for i, op in enumerate(ops) if op.path == "attention.part")
    own = ("text.", "attention.text.")
    later = ((unread((op,))[0] if op.path.startswith(own) else op) for op in ops[first:])
    return (*ops[:first], *later)
