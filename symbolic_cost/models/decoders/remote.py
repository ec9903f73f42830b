"""Builders of decoders whose code is with their checkpoints."""

from dataclasses import replace

from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch
from symbolic_cost.models.decoders.config import declared, decoder_of
from symbolic_cost.models.fields import Fields
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model


def ai2(fields: Fields, shape: Shape) -> Model:
    """Declare an OLMo before Transformers had it, or a LLaDA, in which tokens see all others.

    `mlp_hidden_size` of swiglu is that of gate and product together, unless they are two weights.

    Source: allenai/OLMo, olmo/model.py, OLMoSequentialBlock and OLMoLlamaBlock.
    """
    values = dict(fields.source.values)
    if values.get("embedding_size") is not None:  # rows of the table, those of the padding as well
        values["vocab_size"] = values.pop("embedding_size")
    fields.source = replace(fields.source, values=values)
    two = fields.text("block_type", "sequential", tuple(_FUNCTIONS)) == "llama"
    only = _FUNCTIONS["llama" if two else "sequential"]
    fields.text("activation_type", "swiglu", (only,))
    wide = fields.size("mlp_hidden_size", fields.size("mlp_ratio", 4) * fields.size("hidden_size"))
    values["intermediate_size"] = wide if two else wide // 2
    fields.source = replace(fields.source, values=values)
    affine = fields.flag("layer_norm_with_affine", default=True)
    kind = fields.text("layer_norm_type", "default", ("default", "low_precision", "rms"))
    norms = (Norm.RMS_BARE, Norm.RMS) if kind == "rms" else (Norm.LAYER_BARE, Norm.LAYER_SCALE)
    decoder = decoder_of(fields).stepping(Step.MASK, on=fields.family == "hf_olmo")
    decoder = replace(decoder, branch=Branch(norms[affine]))
    single = fields.flag("multi_query_attention", default=False)
    heads = 1 if single and not fields.has("num_key_value_heads") else None
    return declared(fields, shape, decoder, heads)


def chatglm(fields: Fields, shape: Shape) -> Model:
    """Declare a ChatGLM; the first, with `inner_hidden_size`, has plain blocks with all biases.

    Source: THUDM/chatglm-6b, modeling_chatglm.py, GLMBlock.
    """
    first = fields.has("inner_hidden_size")
    if first:
        values = dict(fields.source.values)
        values["intermediate_size"] = values.pop("inner_hidden_size")
        values.setdefault("tie_word_embeddings", True)
        fields.source = replace(fields.source, values=values)
        fields.family = "chatglm1"
    return declared(fields, shape, decoder_of(fields))


def phi3small(fields: Fields, shape: Shape) -> Model:
    """Declare a Phi-3-small, whose perceptron has the one function that its code knows.

    Source: microsoft/Phi-3-small-8k-instruct, modeling_phi3_small.py, Phi3SmallMLP.
    """
    fields.text("hidden_act", "gegelu", ("gegelu",))
    values = {key: value for key, value in fields.source.values.items() if key != "hidden_act"}
    fields.source = replace(fields.source, values=values)
    return declared(fields, shape, decoder_of(fields))


_FUNCTIONS = {"sequential": "swiglu", "llama": "silu"}
"""Activation functions by blocks."""
