"""Builder of Mimi: a codec with a transformer on either side of its codes.

A recording of l tokens is one of l frames of codes; the transformers see two positions for each.
Axes: of the convolutions, as the trail makes them; r, l, t positions of the transformers, e their
width, the others as in attention.

Source: defossez-2024, section 3.3.
"""

from __future__ import annotations

from math import ceil, prod

from sympy import Integer

from symbolic_cost.axes import glossary
from symbolic_cost.layers import attention, mlp, rotary
from symbolic_cost.layers.attention import Attention, Bias, Projection, Rotated
from symbolic_cost.layers.attention_core import GROUPED, AttentionCore, Step
from symbolic_cost.layers.conv import Chain, Maps, under
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.residual import Branch, Outcome
from symbolic_cost.layers.rotary import angles
from symbolic_cost.layers.video import Unlearned
from symbolic_cost.layers.waves import Books, Filled, Split, heard
from symbolic_cost.models.audio.codecs import plain, samples, stages, steps_of
from symbolic_cost.models.encoders.config import head_sizes
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.functions import CORES, FUNCTIONS
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part, Place
from symbolic_cost.ops.unread import unread
from symbolic_cost.ops.view import view
from symbolic_cost.symbols import exact

AXES = glossary(attention.AXES, mlp.AXES, rotary.AXES)

_SOURCE = "defossez-2024"
_STRIDE = 2
"""Positions of the transformers for a frame of codes."""


def mimi(fields: Fields, shape: Shape) -> Model:
    """Declare a Mimi."""
    steps = steps_of(fields, "upsampling_ratios", (8, 6, 5, 4))
    channels, e = fields.size("audio_channels", 1), fields.size("hidden_size", 512)
    short = fields.flag("use_conv_shortcut", default=False)
    last = fields.size("last_kernel_size", 3)
    down, up = stages(fields, steps, channels, last, conv=plain, short=short)
    block, numbers = _block(fields), head_sizes(fields, e, grouped=True)
    codes, layers = _codes(fields), fields.size("num_hidden_layers", 8)
    width, inner = numbers.get("q", e // numbers["h"]), fields.size("intermediate_size", 2048)
    fields.require(holds=width > 1, problem="1 is no width of a head", name="head_dim")
    _check(fields, prod(steps), e)
    fields.refuse()
    trail = samples(shape, channels, (*steps, _STRIDE))
    parts = [Part("rotation", (angles(Rotated.WHOLE.value),))]

    def transformed(side: str, before: str, ops: tuple[Op, ...]) -> None:
        """Add what the trail holds, and a transformer behind it."""
        hand = view("hand", f"{trail.at} -> y[b r e]")
        parts.append(Part(before, (*trail.ops, hand)))
        parts.append(Part(f"{side}.block", ops, Integer(layers), place=Place.BLOCK))
        axes = ("b", trail.copy(trail.at.axes[1]), trail.copy(trail.at.axes[2]))
        at = Maps("x", ("b", "r", "e"), constant=side == "encoder")
        trail.ops = []
        trail.at = under("taken", at, axes, trail)

    Unlearned(Chain(down)).declare("", trail)
    places = trail.sizes[trail.at.axes[2]]
    transformed("encoder", "encoder.waves", unread(block))
    thin = Unlearned(heard(e, 2 * _STRIDE, _STRIDE, bias=False))
    Chain({"thin": thin, "codes": codes, "fill": Filled(2 * _STRIDE, _STRIDE)}).declare("", trail)
    transformed("decoder", "codes", block)
    Chain(up).declare("", trail)
    parts.append(Part("decoder.waves", tuple(trail.ops)))
    heads, keys = numbers["h"], numbers["k"]
    sizes = {"e": e, "f": inner, "h": heads, "k": keys, "g": heads // keys, "d": width, "c": 3}
    every = {axis: exact(size) for axis, size in (sizes | dict.fromkeys("rlt", places)).items()}
    known = {**trail.glossary, **AXES}
    return Model(fields.family, tuple(parts), {**trail.sizes, **every}, source=_SOURCE, axes=known)


def _block(fields: Fields) -> tuple[Op, ...]:
    """Read a block of the transformers, whose window masks the square of all pairs."""
    function = FUNCTIONS[fields.text("hidden_act", "gelu", tuple(FUNCTIONS))]
    kernel = CORES[fields.text("attn_implementation", "eager", tuple(CORES))]
    steps = Step.CAST | Step.COPY | Step.MASK
    steps |= Step.DROP if fields.drops("attention_dropout", default=False) else Step.NONE
    biased = fields.flag("attention_bias", default=False)
    core = AttentionCore(kernel, steps)
    return Encoder(
        attention=Attention(
            GROUPED,
            Projection.SEPARATE,
            Bias.BOTH if biased else Bias.NONE,
            rotated=Rotated.WHOLE,
            core=core,
        ),
        perceptron=MLP(function, Bias.NONE),
        branch=Branch(outcome=Outcome.SCALE),
    ).block()


def _codes(fields: Fields) -> Split:
    """Read the books, the first of which code what is said."""
    size, width = fields.size("codebook_size", 2048), fields.size("codebook_dim", 256)
    inner = fields.size("vector_quantization_hidden_dimension", 256)
    problem = f"codes are as wide as vector_quantization_hidden_dimension, {inner}"
    fields.require(holds=width == inner, problem=problem, name="codebook_dim")
    books, said = fields.size("num_quantizers", 32), fields.size("num_semantic_quantizers", 1)
    problem = f"fewer than the {books} of num_quantizers are accepted"
    fields.require(holds=said < books, problem=problem, name="num_semantic_quantizers")
    first, second = (Books(size, width, number) for number in (said, books - said))
    return Split(first, second)


def _check(fields: Fields, hop: int, e: int) -> None:
    """Note rates that are not two positions for a frame of codes, and grouped channels."""
    for side in ("encoder_config", "decoder_config"):
        problem = "null drops one side, and only both are declared: leave it out"
        fields.require(holds=side not in fields.source.values, problem=problem, name=side)
    groups = fields.size("upsample_groups", 512)
    problem = f"one for each of the {e} channels of hidden_size is declared"
    fields.require(holds=groups == e, problem=problem, name="upsample_groups")
    rate = fields.size("sampling_rate", 24000)
    frames = fields.number("frame_rate", rate / (hop * _STRIDE))
    problem = f"sampling_rate and upsampling_ratios give {_STRIDE} positions for a frame of codes"
    fields.require(
        holds=int(ceil(rate / hop) / frames) == _STRIDE, problem=problem, name="frame_rate"
    )
