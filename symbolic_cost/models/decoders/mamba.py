"""Mamba and Mamba-2: nothing but state-space layers, each with a norm before and a residual."""

from dataclasses import replace

from sympy import Integer

from symbolic_cost import symbols
from symbolic_cost.layers import tokens
from symbolic_cost.layers.duality import Duality
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch
from symbolic_cost.layers.tokens import Logits, Tokens
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.decoders.mixers_linear import Dual, StateSpace, biases
from symbolic_cost.ops.declare import Model, Part, Place, glossary, scope

_LETTERS = {symbols.h_s: symbols.h, symbols.q_s: symbols.q, symbols.g_s: symbols.g}
"""Symbols of heads, which no others need to be told from here."""


def declared(mixer: StateSpace | Dual, shape: Shape, *, tied: bool) -> Model:
    """Declare a model of such layers.

    Args:
        mixer: the layer.
        shape: what it runs on.
        tied: whether the output head is the token table.
    """
    own = mixer.on(shape)
    head = (
        *scope("norm", (Norm.RMS.op("norm", "x[b r e]", "y[b r e]"),), x="x", y="normed"),
        *scope("output", Logits("@token" if tied else "w").ops(), x="normed"),
    )
    block = Branch(Norm.RMS).around("mixer", own.layer.ops())
    sizes = {axis: size.xreplace(_LETTERS) for axis, size in own.lengths(shape).items()}
    sizes |= {"b": shape.b, "r": shape.l, "l": shape.l, "e": symbols.e, "v": symbols.V}
    name, source = ("mamba2", "dao-2024") if isinstance(mixer, Dual) else ("mamba", "gu-2023")
    return Model(
        name,
        (
            Part("embedding", Tokens().ops()),
            Part("block", block, symbols.n_layers, place=Place.BLOCK),
            Part("head", head),
        ),
        {**sizes, "one": Integer(1)},
        source=source,
        axes=glossary(own.glossary, tokens.AXES),
    )


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration and declare the model."""
    mixer, numbers = StateSpace(inner="intermediate_size").read(fields)
    fields.ignore("fused_add_norm", "pad_vocab_size_multiple")
    return _built(fields, shape, mixer, numbers, tied=True)


def build_2(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a Mamba-2 and declare the model."""
    width, heads = fields.size("hidden_size"), fields.size("num_heads", 128)
    head_width, groups = fields.size("head_dim", 64), fields.size("n_groups", 8)
    inner = fields.size("intermediate_size", width * fields.size("expand", 2))
    if heads * head_width != inner:
        fields.note(
            "num_heads", f"{heads} heads of width {head_width} do not make the inner width {inner}"
        )
    if heads % groups != 0:
        fields.note("n_groups", f"{groups} groups do not divide {heads} heads")
    numbers = {
        "h": heads,
        "q": head_width,
        "g": groups,
        "N": fields.size("state_size", 128),
        "K": fields.size("conv_kernel", 4),
        "C": fields.size("chunk_size", 256),
    }
    fields.ignore("time_step_rank", "norm_before_gate")
    return _built(fields, shape, Dual(Duality(bias=biases(fields))), numbers, tied=False)


def _built(
    fields: Fields, shape: Shape, mixer: StateSpace | Dual, numbers: dict[str, int], *, tied: bool
) -> Model:
    """Read what all of them have, and declare the model; `tied` unless the file says it."""
    sizes = {"e": "hidden_size", "V": "vocab_size", "n_layers": "num_hidden_layers"}
    numbers |= {symbol: fields.size(key) for symbol, key in sizes.items()}
    tied = fields.flag("tie_word_embeddings", default=tied)
    if not fields.flag("rms_norm", default=True):
        fields.note("rms_norm", "only root-mean-square norms are declared")
    fields.refuse()
    return replace(declared(mixer, shape, tied=tied), bindings=numbers)
