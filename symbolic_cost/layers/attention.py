"""Attention: one declaration, of whose parts a family chooses.

Axes: b sequences, r residual positions, l query positions, t key/value positions, m positions kept
in the cache, e embedding, c the three of query, key and value, h heads, d head width; where heads
are grouped k key/value heads and g query heads of one; d_r rotated part of a head and d_n the rest.
Positions have three names because sequence parallelism splits r, context parallelism l, and neither
splits t. Sliding layers have `near` and `m_near` in place of t and m.
"""

from enum import Flag, StrEnum, auto

from symbolic_cost.layers.attention_core import FULL, PLAIN, AttentionCore, Heads, Positions
from symbolic_cost.layers.chain import Step as Link
from symbolic_cost.layers.chain import chain
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.rotary import partial_rotation, rotation
from symbolic_cost.ops.declare import Op, axes, cache, pointwise, split, view
from symbolic_cost.ops.einsum import Call, einsum
from symbolic_cost.records import dataclass, field, replace

AXES = axes(
    "b batch, r token residual, l token query, t key-token, near key-token sliding, "
    "m key-token kept, m_near key-token kept, e hidden, c whole, h head, k head, g group, "
    "d width, d_x latent"
)


class Projection(StrEnum):
    """How query, key and value are projected."""

    FUSED = "one product"
    SEPARATE = "three products"


class Bias(Flag):
    """Which products of a layer have a bias."""

    NONE = 0
    QUERY = auto()
    KEY = auto()
    VALUE = auto()
    OUTPUT = auto()
    """That of its result."""
    INNER = QUERY | KEY | VALUE
    """Those of its input: query, key and value, or the first of a perceptron."""
    BOTH = INNER | OUTPUT


_BIAS_OF = {"q": Bias.QUERY, "k": Bias.KEY, "v": Bias.VALUE}
"""Bias of a projection by its name."""


class HeadNorm(StrEnum):
    """Norms of queries and keys."""

    NONE = "none"
    HEAD = "over each head, one scale for all"
    HEADS = "over each head, a scale for each"
    WIDTH = "over all heads together"


class Gate(StrEnum):
    """What opens the result of the core, before the output projection, by a sigmoid."""

    NONE = "nothing"
    ELEMENTS = "a product for every element of every head"
    QUERY = "the same, which has a bias where queries have one"
    BIASED = "the same, and a bias of every head"
    HEADS = "one value for every head"


class Rotated(StrEnum):
    """How much of queries and keys is rotated; the value is the axis of the rotated width."""

    NOTHING = ""
    WHOLE = "d"
    PART = "d_r"


class Sources(StrEnum):
    """Where keys and values come from."""

    BOTH = "a product each"
    ONE = "one product, which is normalised apart for values"
    OTHERS = "another layer"


class CacheKind(StrEnum):
    """What generation keeps of keys and values."""

    NOTHING = "nothing"
    HEADS = "their own heads"
    COPIES = "a copy for every query head"


@dataclass(frozen=True)
class Attention:
    """Self-attention from x[b r e] to y[b r e].

    Args:
        heads: axes of heads; one product makes query, key and value of plain ones alone.
        projection: of query, key and value.
        bias: which projections have one.
        rotated: how much of queries and keys is.
        at: axes of positions.
        cache: of keys and values in the cache.
        call: how products and biases are called.
        gate: of the result of the core.
        result_norm: of the core's result over each head, before the gate.
        inner_norm: of the result over all heads, before the output projection.
        value_norm: of values, over each head.
        sources: of keys and values.
        value: axis of the width of values.
        indexed: axis of the width of narrow heads, one for every key/value head, that choose which
            keys it attends to; empty if it attends to every one.
        clamped: whether queries, keys and values are, before they are rotated.
    """

    heads: Heads = PLAIN
    projection: Projection = Projection.FUSED
    bias: Bias = Bias.BOTH
    head_norm: HeadNorm = HeadNorm.NONE
    norm: Norm = Norm.RMS
    rotated: Rotated = Rotated.NOTHING
    at: Positions = FULL
    cache: CacheKind = CacheKind.NOTHING
    core: AttentionCore = field(default_factory=AttentionCore)
    call: Call = Call.SEPARATE
    gate: Gate = Gate.NONE
    result_norm: Norm | None = None
    inner_norm: Norm | None = None
    value_norm: Norm | None = None
    sources: Sources = Sources.BOTH
    value: str = "d"
    indexed: str = ""
    clamped: bool = False

    def ops(self) -> tuple[Op, ...]:
        at, heads = self.at, self.heads
        at_hand = Heads(heads.query, heads.query) if self.cache is CacheKind.COPIES else heads
        taken = self.sources is Sources.OTHERS
        return (
            view("gather", f"x[b {at.residual} e] -> full[b {at.query} e]"),
            *self._projections(),
            *(() if taken else (*self._joined("k", "keys"), *self._joined("v", "values"))),
            *(self.index() if self.indexed else ()),
            *self._scoring.ops(at_hand, at, value=self.value),
            *self._result_normed(),
            *self._opened(),
            *self._normed(),
            *output(
                at,
                heads.query,
                bias=self.bias,
                call=self.call,
                width=self.value,
                context=self.result,
            ),
        )

    @property
    def result(self) -> str:
        """Tensor that the output projection takes."""
        gated = self._ungated if self.gate is Gate.NONE else "gated"
        return "normed" if self.inner_norm is not None else gated

    @property
    def _ungated(self) -> str:
        """Tensor that the gate opens."""
        return "context" if self.result_norm is None else "even"

    @property
    def choosing(self) -> AttentionCore:
        """The core on the keys that are chosen."""
        return replace(self.core, chosen="chosen", apart=self.heads.key)

    @property
    def _scoring(self) -> AttentionCore:
        """The core, with what its scores take besides queries and keys."""
        return self.choosing if self.indexed else self.core

    def index(self) -> tuple[Op, ...]:
        """Declare which keys every key/value head attends to; nothing is learned through it.

        Its products are those of all pairs; they are no attention core of their own.
        """
        at, key, d = self.at, self.heads.key, self.indexed
        rows, pairs = f"b {at.query}", f"[b {key} {at.query} {at.key}]"
        ops: list[Op] = []
        for name, own in (("q", f"{key} {d}"), ("k", d)):
            plain, tensor = f"index_{name}_plain[{rows} {own}]", f"index_{name}[{rows} {own}]"
            product = f"!full[{rows} e], *w[e {own}] -> {plain}"
            ops += (
                einsum(f"index_{name}", product, frozen=True),
                self.norm.op(f"index_norm_{name}", f"!{plain}", tensor, row=d),
            )
        scored = f"!index_q[{rows} {key} {d}], !index_keys[b {at.key} {d}] -> index_scores{pairs}"
        cached = f"index_k[{rows} {d}] -> index_keys[b {at.key} {d}]"
        return (
            *ops,
            cache("index_keys", cached, kept=f"b {at.kept} {d}"),
            einsum("index_scores", scored, frozen=True),
            pointwise(
                "index_choice", f"!index_scores{pairs} -> chosen{pairs}:index", "choice", row=at.key
            ),
        )

    def _result_normed(self) -> tuple[Op, ...]:
        """Declare the norm of what the core gives of each head."""
        if self.result_norm is None:
            return ()
        axes = f"[b {self.at.query} {self.heads.query} {self.value}]"
        norm = self.result_norm
        return (norm.op("norm_result", f"context{axes}", f"even{axes}", row=self.value),)

    def _opened(self) -> tuple[Op, ...]:
        if self.gate is Gate.NONE:
            return ()
        rows, heads = f"b {self.at.query}", self.heads.query
        axes = heads if self.gate is Gate.HEADS else f"{heads} {self.value}"
        bias = self._bias(Bias.QUERY, axes) if self.gate is Gate.QUERY else ""
        bias = f" + *bias[{heads}]" if self.gate is Gate.BIASED else bias
        context = f"[{rows} {heads} {self.value}]"
        return (
            einsum("gate", f"full[{rows} e], *w[e {axes}]{bias} -> gate[{rows} {axes}]"),
            pointwise("open", f"gate[{rows} {axes}] -> opened[{rows} {axes}]", "sigmoid"),
            pointwise(
                "mul", f"{self._ungated}{context}, opened[{rows} {axes}] -> gated{context}", "mul"
            ),
        )

    def _normed(self) -> tuple[Op, ...]:
        if self.inner_norm is None:
            return ()
        heads = self.heads.query
        row = f"{heads} {self.value}"
        axes, source = f"[b {self.at.query} {row}]", replace(self, inner_norm=None).result
        return (self.inner_norm.op("inner_norm", f"{source}{axes}", f"normed{axes}", row=row),)

    def _projections(self) -> tuple[Op, ...]:
        query = self.heads.query
        if self.projection is Projection.SEPARATE:
            queries = self._projection("q", query)
            if self.sources is Sources.OTHERS:
                return queries
            return (*queries, *self.keys_and_values())
        axes, bias = f"{query} d", self._bias(Bias.INNER, f"c {query} d")
        rows = f"b {self.at.query}"
        parts = ", ".join(f"{name}[{rows} {axes}]" for name in "qkv")
        return (
            einsum(
                "qkv",
                f"full[{rows} e], *w[c e {axes}]{bias} -> qkv[c {rows} {axes}]",
                call=self.call,
            ),
            split("split", f"qkv[c {rows} {axes}] -> {parts}"),
        )

    def _bias(self, which: Bias, axes: str) -> str:
        return f" + *bias[{axes}]" if which in self.bias else ""

    def _projection(self, name: str, heads: str, *, plain: bool = False) -> tuple[Op, ...]:
        """Declare q, k or v: projected, and unless `plain` normalised and rotated."""
        rows, d = f"b {self.at.query}", self.value if plain else "d"
        axes, bias = f"[{rows} {heads} {d}]", self._bias(_BIAS_OF[name], f"{heads} {d}")
        links: list[Link] = [
            lambda x, y: einsum(
                name, f"{x}[{rows} e], *w[e {heads} {d}]{bias} -> {y}{axes}", call=self.call
            )
        ]
        if self.head_norm is not HeadNorm.NONE and not plain:
            links.append(lambda x, y: self._head_norm(name, heads, f"{x}{axes}", f"{y}{axes}"))
        own = self.value_norm
        if plain and own is not None:
            links.append(lambda x, y: own.op("norm_v", f"{x}{axes}", f"{y}{axes}", row=d))
        if self.clamped:
            links.append(
                lambda x, y: pointwise(f"clamp_{name}", f"{x}{axes} -> {y}{axes}", "clamp")
            )
        if plain or self.rotated is Rotated.NOTHING:
            return chain("full", links, name)
        if self.rotated is Rotated.PART:
            turned = partial_rotation(f"rotate_{name}", f"{name}_whole", name, f"{rows} {heads}")
            return (*chain("full", links, f"{name}_whole"), *turned)
        links.append(lambda x, y: rotation(f"rotate_{name}", f"{x}{axes}", f"{y}{axes}", "d"))
        return chain("full", links, name)

    def keys_and_values(self) -> tuple[Op, ...]:
        """Declare the products that make them."""
        key = self.heads.key
        return (*self._projection("k", key), *self._values(key))

    def _values(self, heads: str) -> tuple[Op, ...]:
        """Declare values: projected, or the keys as they are before their norm."""
        if self.sources is Sources.BOTH or self.value_norm is None:
            return self._projection("v", heads, plain=True)
        axes = f"[b {self.at.query} {heads} d]"
        return (self.value_norm.op("norm_v", f"k_1{axes}", f"v{axes}", row="d"),)

    def _head_norm(self, name: str, heads: str, tensor: str, result: str) -> Op:
        row = f"{heads} d" if self.head_norm is HeadNorm.WIDTH else "d"
        scale = "d" if self.head_norm is HeadNorm.HEAD else f"{heads} d"
        return self.norm.op(f"norm_{name}", tensor, result, row=row, scale=scale)

    def _joined(self, name: str, result: str) -> tuple[Op, ...]:
        """Declare keys or values at all positions, with those in the cache if there is one."""
        at, heads = self.at, self.heads
        width = self.value if name == "v" else "d"
        if self.cache is not CacheKind.COPIES:
            return (joined(result, name, heads.key, at, self.cache, width),)
        rows = f"b {at.query}"
        copied = f"{name}[{rows} {heads.key} {width}] -> many_{name}[{rows} {heads.query} {width}]"
        return (
            pointwise(f"copy_{name}", copied, "copy"),
            joined(result, f"many_{name}", heads.query, at, self.cache, width),
        )


def joined(  # noqa: PLR0917 - names of one thing
    result: str, tensor: str, heads: str, at: Positions, writes: CacheKind, width: str = "d"
) -> Op:
    """Declare the keys or values of a sequence at all of its positions."""
    own = f"{heads} {width}"
    pattern = f"{tensor}[b {at.query} {own}] -> {result}[b {at.key} {own}]"
    if writes is CacheKind.NOTHING:
        return view(result, pattern)
    return cache(result, pattern, kept=f"b {at.kept} {own}")


def output(
    at: Positions,
    heads: str,
    *,
    bias: Bias,
    call: Call = Call.SEPARATE,
    width: str = "d",
    context: str = "context",
) -> tuple[Op, ...]:
    """Declare the output projection from `context` to y[b r e]."""
    added = " + *bias[e]" if Bias.OUTPUT in bias else ""
    result = f"{context}[b {at.query} {heads} {width}]"
    summed = f"summed[b {at.query} e]"
    return (
        einsum("proj", f"{result}, *w[{heads} {width} e]{added} -> {summed}", call=call),
        view("scatter", f"{summed} -> y[b {at.residual} e]"),
    )
