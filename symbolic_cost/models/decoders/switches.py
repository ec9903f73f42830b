"""What truth values of configurations change, and what several decoder families share."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

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


def _all(bias: bool) -> Bias:  # noqa: FBT001 - what a configuration says
    return Bias.BOTH if bias else Bias.NONE


def attention_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001 - as it says
    """Change the bias of all four projections."""
    return decoder.attended(bias=_all(on))


def input_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the bias of query, key and value."""
    own = decoder.attention.bias  # type: ignore[union-attr]
    return decoder.attended(bias=own | Bias.INNER if on else own & ~Bias.INNER)


def output_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the bias of the output projection."""
    own = decoder.attention.bias  # type: ignore[union-attr]
    return decoder.attended(bias=own | Bias.OUTPUT if on else own & ~Bias.OUTPUT)


def mlp_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the bias of the perceptron."""
    own = decoder.perceptron
    if isinstance(own, ChannelMix):
        return decoder
    return replace(decoder, perceptron=replace(own, bias=_all(on)))


def every_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change every bias of attention and perceptron."""
    return mlp_bias(attention_bias(decoder, on), on)


def head_bias(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the bias of the output head."""
    head = decoder.head if isinstance(decoder.head, Logits) else Logits()
    steps = head.steps | Exit.BIAS if on else head.steps & ~Exit.BIAS
    return replace(decoder, head=replace(head, steps=steps))


def normalised(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change whether the shares of the chosen experts are divided by their sum."""
    shares = Shares.NORMALISED if on else Shares.PLAIN
    return replace(decoder, experts=replace(decoder.experts, shares=shares))


def cast_shares(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the same; the shares are cast back from single precision."""
    shares = Shares.CAST if on else Shares.PLAIN
    return replace(decoder, experts=replace(decoder.experts, shares=shares))


def head_norm(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change whether queries and keys are normalised over each head."""
    return decoder.attended(head_norm=HeadNorm.HEAD if on else HeadNorm.NONE)


def heads_gate(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change whether a value of every head opens what attention gives."""
    return decoder.attended(gate=Gate.HEADS if on else Gate.NONE)


def after_norm(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change whether what a branch gives is normalised as well."""
    placing = Placing.SANDWICH if on else Placing.PRE
    return replace(decoder, branch=replace(decoder.branch, placing=placing))


def result_norm(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change whether what a branch gives is normalised in place of what it takes."""
    placing = Placing.RESULT if on else Placing.PRE
    return replace(decoder, branch=replace(decoder.branch, placing=placing))


def separate_norms(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change whether queries and keys are normalised by a scale of every head."""
    return decoder.attended(head_norm=HeadNorm.HEADS if on else HeadNorm.NONE)


def unmasked(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change whether a query sees keys after its own."""
    return decoder.stepping(Step.MASK, on=not on)


def centred(decoder: Decoder, on: bool) -> Decoder:  # noqa: FBT001
    """Change the same; half a window lies on either side then."""
    own = decoder.habits
    habits = own | Habit.HALVE if on else own & ~Habit.HALVE
    return replace(unmasked(decoder, on), habits=habits)


BIAS: Mapping[str, Switch] = MappingProxyType({"attention_bias": attention_bias})
INPUT_BIAS: Mapping[str, Switch] = MappingProxyType({"attention_bias": input_bias})
BIASES: Mapping[str, Switch] = MappingProxyType({**BIAS, "mlp_bias": mlp_bias})
SHARES: Mapping[str, Switch] = MappingProxyType({**BIAS, "norm_topk_prob": cast_shares})
NORMALISED: Mapping[str, Switch] = MappingProxyType({"norm_topk_prob": normalised})
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
