"""What truth values of configurations change, and what several decoder families share."""

from collections.abc import Mapping
from dataclasses import replace
from enum import Flag

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias, Gate, HeadNorm, Rotated
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.moe import Shares
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Placing
from symbolic_cost.layers.rwkv import ChannelMix
from symbolic_cost.layers.tokens import Exit, Logits
from symbolic_cost.models.decoders.decoder import ATTENTION, CORE, Decoder, Habit, Switch
from symbolic_cost.models.decoders.sizes import Sizes


def _switch(part: str, field: str, off: object, on: object) -> Switch:
    """Return what gives a field of a part one of two values."""

    def switch(decoder: Decoder, turned: bool) -> Decoder:  # noqa: FBT001 - as a file says it
        return replace(
            decoder, **{part: replace(getattr(decoder, part), **{field: on if turned else off})}
        )

    return switch


def _with(part: str, field: str, piece: Flag) -> Switch:
    """Return what puts a piece into a field of a part, or takes it out."""

    def switch(decoder: Decoder, turned: bool) -> Decoder:  # noqa: FBT001
        own = getattr(getattr(decoder, part), field)
        pieces = own | piece if turned else own & ~piece
        return _switch(part, field, pieces, pieces)(decoder, turned)

    return switch


attention_bias = _switch("attention", "bias", Bias.NONE, Bias.BOTH)
input_bias = _with("attention", "bias", Bias.INNER)
"""The bias of query, key and value."""
output_bias = _with("attention", "bias", Bias.OUTPUT)
head_norm = _switch("attention", "head_norm", HeadNorm.NONE, HeadNorm.HEAD)
"""Whether queries and keys are normalised over each head."""
separate_norms = _switch("attention", "head_norm", HeadNorm.NONE, HeadNorm.HEADS)
"""The same, by a scale of every head."""
heads_gate = _switch("attention", "gate", Gate.NONE, Gate.HEADS)
"""Whether a value of every head opens what attention gives."""
normalised = _switch("experts", "shares", Shares.PLAIN, Shares.NORMALISED)
"""Whether the shares of the chosen experts are divided by their sum."""
cast_shares = _switch("experts", "shares", Shares.PLAIN, Shares.CAST)
"""The same; the shares are cast back from single precision."""
after_norm = _switch("branch", "placing", Placing.PRE, Placing.SANDWICH)
"""Whether what a branch gives is normalised as well."""
result_norm = _switch("branch", "placing", Placing.PRE, Placing.RESULT)
"""Whether what a branch gives is normalised in place of what it takes."""


def mlp_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the bias of the perceptron, where it has one."""
    if isinstance(decoder.perceptron, ChannelMix):
        return decoder
    return _switch("perceptron", "bias", Bias.NONE, Bias.BOTH)(decoder, on)


def every_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change every bias of attention and perceptron."""
    return mlp_bias(attention_bias(decoder, on), on)


def memory_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change every bias beside xLSTM's memory, those of norms included, but for the last norm."""
    branch = Branch(Norm.RMS_AFFINE) if on else decoder.branch
    branches = dict.fromkeys(decoder.mixers, (branch, branch))
    return replace(mlp_bias(decoder, on), branches=branches)


def head_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the bias of the output head."""
    head = decoder.head if isinstance(decoder.head, Logits) else Logits()
    return _with("head", "steps", Exit.BIAS)(replace(decoder, head=head), on)


def unmasked(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change whether a query sees keys after its own."""
    return decoder.stepping(Step.MASK, on=not on)


def centred(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the same; half a window lies on either side then."""
    own = decoder.habits
    habits = own | Habit.HALVE if on else own & ~Habit.HALVE
    return replace(unmasked(decoder, on), habits=habits)


BIAS: Mapping[str, Switch] = {"attention_bias": attention_bias}
INPUT_BIAS: Mapping[str, Switch] = {"attention_bias": input_bias}
BIASES: Mapping[str, Switch] = {**BIAS, "mlp_bias": mlp_bias}
SHARES: Mapping[str, Switch] = {**BIAS, "norm_topk_prob": cast_shares}
NORMALISED: Mapping[str, Switch] = {"norm_topk_prob": normalised}
PART = "partial_rotary_factor"

TIED = Logits()
LAYER = Branch(Norm.LAYER)
ONE_EACH = Sizes(k=symbols.h)
"""Every query head has keys and values of its own."""

STILL = replace(ATTENTION, rotated=Rotated.NOTHING, bias=Bias.BOTH)
BIASED = replace(ATTENTION, bias=Bias.BOTH)
ARRANGED = replace(CORE, steps=CORE.steps | Step.ARRANGE)
PARTLY = replace(ATTENTION, rotated=Rotated.PART, core=ARRANGED)
NORMED = replace(ATTENTION, head_norm=HeadNorm.HEAD)
