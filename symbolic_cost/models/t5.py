"""T5: encoder and decoder with relative positions; T5 1.1 and flan gate their perceptrons.

Axes: r, l, t positions of the source, o, m, u of the target (residual, queries, keys); else as in
the layers.
"""

from dataclasses import dataclass, replace

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.axes import axes, glossary
from symbolic_cost.layers import core, gated, relative
from symbolic_cost.layers.attention import Attention, Bias, Kept, Projection
from symbolic_cost.layers.core import AttentionCore, Positions, Step
from symbolic_cost.layers.gated import gated_products
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.relative import CrossAttention, distances
from symbolic_cost.layers.residual import Branch
from symbolic_cost.models.fields import Fields, shortened
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import cross_entropy, dropout, pointwise
from symbolic_cost.ops.graph import OUTSIDE, Model, Part, Place
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view
from symbolic_cost.symbols import exact

AXES = glossary(
    core.AXES,
    gated.AXES,
    relative.AXES,
    axes("t key-token, o token residual, m token query, u key-token, v vocabulary"),
)

SOURCE = Positions("r", "l", "t", "t")
TARGET = Positions("o", "m", "u", "u")
ENCODED = Positions("", "t", "t", "t")
"""A source whose keys and values are in the cache."""

_ENCODER = {"x": "encoder.embedding"}
_DECODER = {
    "x": "decoder.embedding",
    "memory": "encoder.norm",
    # of the cache, once the source is encoded
    "cross.k": OUTSIDE,
    "cross.v": OUTSIDE,
}
_POSITION = {"position": "position"}


@dataclass(frozen=True)
class T5:
    """Sizes and variants of a T5; every size is a symbol unless given.

    Args:
        b: microbatch [sequences].
        l: source length [tokens].
        l_t: target length [tokens].
        e: embedding width.
        f: MLP width.
        h: attention heads.
        q: head width.
        V: vocabulary.
        n_rel: buckets of relative positions.
        function: the activation function.
        gated: whether the perceptrons are.
        tied: whether the output head is the token table.
        dropout: whether anything is dropped out.
        cached: target tokens in the cache; None if the source is not encoded yet.
    """

    b: Expr | int = symbols.b
    l: Expr | int = symbols.l
    l_t: Expr | int = symbols.l_t
    e: Expr | int = symbols.e
    f: Expr | int = symbols.f
    h: Expr | int = symbols.h
    q: Expr | int = symbols.q
    V: Expr | int = symbols.V
    n_layers: Expr | int = symbols.n_layers
    n_dec: Expr | int = symbols.n_dec
    n_rel: Expr | int = symbols.n_rel
    function: str = "relu"
    gated: bool = False
    tied: bool = True
    dropout: bool = True
    cached: Expr | int | None = None
    name: str = "t5"

    def model(self) -> Model:
        """Declare the model."""
        encoder = (
            Part("encoder.embedding", self._embedding(SOURCE)),
            Part("encoder.position", (distances(SOURCE),)),
            Part("encoder.block", self._encoder(), exact(self.n_layers), _ENCODER, Place.BLOCK),
            Part("encoder.norm", self._last(SOURCE)),
        )
        return Model(
            self.name,
            (
                *(encoder if self.cached is None else ()),
                Part("decoder.embedding", self._embedding(TARGET)),
                Part("decoder.position", (distances(TARGET),)),
                Part("decoder.block", self._decoder(), exact(self.n_dec), _DECODER, Place.BLOCK),
                Part("decoder.norm", self._last(TARGET)),
                Part("head", self._head()),
            ),
            self.sizes(),
            source="raffel-2019",
            axes=AXES,
        )

    def sizes(self) -> dict[str, Expr]:
        """Return the size of every axis."""
        return {
            "b": exact(self.b),
            **dict.fromkeys(("r", "l", "t"), exact(self.l)),
            **dict.fromkeys(("o", "m"), exact(self.l_t)),
            "u": exact(self.l_t) + exact(self.cached or 0),
            "e": exact(self.e),
            "f": exact(self.f),
            "h": exact(self.h),
            "d": exact(self.q),
            "v": exact(self.V),
            "n_rel": exact(self.n_rel),
        }

    def _embedding(self, at: Positions) -> tuple[Op, ...]:
        place, query = at.residual, at.query
        found, result = f"found[b {query} e]", "tokens" if self.dropout else "x"
        return (
            lookup("token", f"!ids[b {query}]:index, *@token[v e] -> {found}"),
            view("scatter", f"{found} -> {result}[b {place} e]"),
            *self._drop(f"tokens[b {place} e]", f"x[b {place} e]"),
        )

    def _encoder(self) -> tuple[Op, ...]:
        around = self._branch(SOURCE).around
        return (
            *around("attention", self._attention(SOURCE).ops(), "x", "middle", **_POSITION),
            *around("mlp", self._perceptron(SOURCE), "middle", "y"),
        )

    def _decoder(self) -> tuple[Op, ...]:
        around = self._branch(TARGET).around
        source = SOURCE if self.cached is None else ENCODED
        cross = CrossAttention(TARGET, source, AttentionCore(steps=self._steps())).ops()
        own = self._attention(TARGET).ops()
        return (
            *around("attention", own, "x", "attended", **_POSITION),
            *around("cross", cross, "attended", "middle", memory="memory"),
            *around("mlp", self._perceptron(TARGET), "middle", "y"),
        )

    def _attention(self, at: Positions) -> Attention:
        causal = at is TARGET
        steps = self._steps() | Step.MASK if causal else self._steps()
        return Attention(
            projection=Projection.SEPARATE,
            bias=Bias.NONE,
            at=at,
            kept=Kept.HEADS if causal else Kept.NOTHING,
            core=AttentionCore(steps=steps, position="position"),
        )

    def _steps(self) -> Step:
        return Step.DROP if self.dropout else Step.NONE

    def _branch(self, at: Positions) -> Branch:
        """Return what stands around a layer: y = x + dropout(layer(norm(x)))."""
        return Branch(Norm.RMS, dropped=self.dropout, axes=f"b {at.residual} e")

    def _perceptron(self, at: Positions) -> tuple[Op, ...]:
        query = at.query
        full, summed = f"full[b {query} e]", f"summed[b {query} e]"
        if self.gated:
            products = gated_products(full, summed, "", "f", self.function, bias=Bias.NONE)
        else:
            products = (
                einsum("fc1", f"{full}, *w[e f] -> u[b {query} f]"),
                pointwise("act", f"u[b {query} f] -> a[b {query} f]", self.function),
                einsum("fc2", f"a[b {query} f], *w[f e] -> {summed}"),
            )
        return (
            view("gather", f"x[b {at.residual} e] -> {full}"),
            *products,
            view("scatter", f"{summed} -> y[b {at.residual} e]"),
        )

    def _last(self, at: Positions) -> tuple[Op, ...]:
        axes = f"[b {at.residual} e]"
        result = "normed" if self.dropout else "y"
        return (
            Norm.RMS.op("norm", f"x{axes}", f"{result}{axes}"),
            *self._drop(f"normed{axes}", f"y{axes}"),
        )

    def _head(self) -> tuple[Op, ...]:
        weight = "*@token[v e]" if self.tied else "*w[v e]"
        return (
            view("gather", "x[b o e] -> full[b m e]"),
            einsum("logits", f"full[b m e], {weight} -> logits[b m v]"),
            cross_entropy("loss", "logits[b m v], !targets[b m]:index -> loss[b m]", row="v"),
        )

    def _drop(self, tensor: str, result: str) -> tuple[Op, ...]:
        return (dropout("dropout", f"{tensor} -> {result}"),) if self.dropout else ()


def _check_function(fields: Fields, projection: str) -> None:
    """Note where two keys contradict the one that names gate and function together."""
    gated = projection.startswith("gated-")
    function = projection.removeprefix("gated-")
    # A gated GELU is always the approximation by a tanh.
    names = ("gelu", "gelu_new") if function == "gelu" else (function,)
    given = {"is_gated_act": (gated,), "dense_act_fn": names}
    for key, accepted in given.items():
        value = fields.source.values.get(key)
        fields.ignore(key)
        fields.require(
            holds=value is None or value in accepted,
            problem=f"{shortened(value)} contradicts feed_forward_proj = {projection!r}",
            name=key,
        )


def build(fields: Fields, shape: Shape) -> Model:
    """Read the fields of a configuration and declare the model.

    The target is half as long as the source; a decode step has half as many in its cache.

    Raises:
        InputError: every problem of the fields.
    """
    projection = fields.text(
        "feed_forward_proj", "relu", ("relu", "gated-gelu", "gated-silu", "gelu", "silu")
    )
    layers = fields.size("num_hidden_layers")
    decodes = shape.c != 0
    numbers = {
        "e": fields.size("hidden_size"),
        "f": fields.size("intermediate_size"),
        "h": fields.size("num_attention_heads"),
        "q": fields.size("d_kv"),
        "V": fields.size("vocab_size"),
        "n_layers": layers,
        "n_dec": fields.size("num_decoder_layers", layers),
        "n_rel": fields.size("relative_attention_num_buckets", 32),
    }
    made = T5(
        b=shape.b,
        l=shape.c if decodes else shape.l,
        l_t=shape.l if decodes else shape.l // 2,
        cached=shape.c // 2 if decodes else None,
        function=projection.removeprefix("gated-"),
        gated=projection.startswith("gated-"),
        tied=fields.flag("tie_word_embeddings", default=True),
        dropout=fields.drops("dropout_rate", default=True),
    )
    _check_function(fields, projection)
    fields.ignore("relative_attention_max_distance")
    fields.refuse()
    return replace(made.model(), bindings=numbers)
