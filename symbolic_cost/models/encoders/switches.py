"""What truth values of configurations change in an encoder."""

from collections.abc import Mapping
from dataclasses import replace

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.heads import Classes, Hidden, Output, Predicted
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.encoders.encoder import MASKED, Encoder, Head, Switch


def _all(on: bool) -> Bias:  # noqa: FBT001 - what a configuration says
    return Bias.BOTH if on else Bias.NONE


def attention_bias(encoder: Encoder, on: bool) -> Encoder:  # noqa: FBT001
    """Return the family with biases of all products of attention, or none."""
    return encoder.attended(bias=_all(on))


def mlp_bias(encoder: Encoder, on: bool) -> Encoder:  # noqa: FBT001
    """Return the family with biases of the perceptron, or without."""
    return replace(encoder, perceptron=replace(encoder.perceptron, bias=_all(on)))


def norm_bias(encoder: Encoder, on: bool) -> Encoder:  # noqa: FBT001
    """Return the family with norms that shift, or do not."""
    norm = Norm.LAYER if on else Norm.LAYER_SCALE
    return replace(
        encoder,
        words=encoder.worded(norm=norm).words,
        branch=replace(encoder.branch, norm=norm),
        last=norm,
        heads={name: _hidden(head, norm=norm) for name, head in encoder.heads.items()},
    )


def entry_norm(encoder: Encoder, on: bool) -> Encoder:  # noqa: FBT001
    """Return the family with a norm of embeddings, or without."""
    return encoder.worded(norm=Norm.LAYER if on else None)


def classifier_bias(encoder: Encoder, on: bool) -> Encoder:  # noqa: FBT001
    """Return the family with biases of the hidden layers of heads, or without."""
    return replace(
        encoder, heads={k: _hidden(head, biased=on) for k, head in encoder.heads.items()}
    )


def decoder_bias(encoder: Encoder, on: bool) -> Encoder:  # noqa: FBT001
    """Return the family with a bias of the vocabulary, or without."""
    own = encoder.heads[MASKED]
    changed = own.having(Output.BIAS, on=on) if isinstance(own, Predicted) else own
    return replace(encoder, heads={**encoder.heads, MASKED: changed})


def mlp_and_decoder_bias(encoder: Encoder, on: bool) -> Encoder:  # noqa: FBT001
    """Return the family with biases of the perceptron and of the vocabulary, or without."""
    return decoder_bias(mlp_bias(encoder, on), on)


def _hidden(head: Head, **changes: object) -> Head:
    own: Hidden | None = head.hidden
    if own is None or (own.norm is None and "norm" in changes):
        return head
    changed = replace(own, **changes)  # type: ignore[arg-type]
    if isinstance(head, Classes | Predicted):
        return replace(head, hidden=changed)
    return head


BIASES: Mapping[str, Switch] = {"attention_bias": attention_bias, "mlp_bias": mlp_bias}
QKV_BIASES: Mapping[str, Switch] = {"qkv_bias": attention_bias, "mlp_bias": mlp_bias}
"""As AIMv2 says it, whose output product has the bias too."""
EURO_BIASES: Mapping[str, Switch] = {
    "attention_bias": attention_bias,
    "mlp_bias": mlp_and_decoder_bias,
}
NORM_BIAS: Mapping[str, Switch] = {
    "norm_bias": norm_bias,
    "classifier_bias": classifier_bias,
    "decoder_bias": decoder_bias,
}
