"""Encoder-decoders: a family is a value, whose parts a configuration may replace.

    source -> blocks -> norm;  target -> blocks that attend to the source -> norm -> logits

Axes: r, l, t positions of the source, o, m, u of the target (residual, queries, keys); h_t, d_t,
f_t heads, their width and the MLP width of the decoder where they differ; else as in the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.layers import (
    attention_core,
    moe,
)
from symbolic_cost.layers.attention import Attention, CacheKind
from symbolic_cost.layers.attention_core import SLIDING, Positions, Step
from symbolic_cost.layers.block_attention import Blocks
from symbolic_cost.layers.block_sparse import SparseBlocks
from symbolic_cost.layers.codebooks import PredictedCodes
from symbolic_cost.layers.embeddings import PLACES, Words
from symbolic_cost.layers.foreseeing import Foreseen
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.heads import Averaged, Classes, Output, Predicted, Take
from symbolic_cost.layers.local_attention import Neighbours
from symbolic_cost.layers.merged import MergedAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.relative import CrossAttention, Distances, distances
from symbolic_cost.layers.residual import Branch, Outcome
from symbolic_cost.layers.rotary import angles
from symbolic_cost.layers.series import Forecast, Marked
from symbolic_cost.layers.speech_frontend import Sound
from symbolic_cost.layers.speech_synthesis import Written
from symbolic_cost.models.decoders.mixers import letters_of
from symbolic_cost.models.encoder_decoders.sizes import Sizes
from symbolic_cost.models.encoders.encoder import ATTENTION, SEQUENCE, SPAN, TANH
from symbolic_cost.ops.declare import Op, dropout, pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import OUTSIDE, Part, Place, retitled
from symbolic_cost.records import dataclass, field, replace
from symbolic_cost.symbols import exact

SOURCE = Positions("r", "l", "t", "t")
TARGET = Positions("o", "m", "u", "u")
ENCODED = Positions("", "t", "t", "t")
"""A source whose keys and values are in the cache."""

TO_TARGET = {"r": "o", "l": "m", "t": "u", "z_s": "z_u", "z_r_s": "z_r_u"}

_UNPADDED = {"r": "r_u", "l": "l_u", "t": "t_u"}
"""Positions of a source without padding."""

GENERATED = "ForConditionalGeneration"
ENCODER_ONLY = "EncoderModel"
TOKENS_OF_SOURCE = "ForTokenClassification"
RECORDED = "ForAudioClassification"


Head = Predicted | PredictedCodes | Classes | Averaged | Foreseen | Written | Forecast
HEADS: Mapping[str, Head] = {
    GENERATED: Predicted(output=Output.TIE),
    SEQUENCE: Classes(hidden=TANH),
    SPAN: Classes(Take.EACH),
    TOKENS_OF_SOURCE: Classes(Take.EACH),
    RECORDED: Averaged(),
}

BART_TABLES: Mapping[str, str] = {"position": PLACES}
WORDS = Words(tables=BART_TABLES)


@dataclass(frozen=True)
class Reads:
    """What configurations of a family say.

    Args:
        switches: what a truth value changes, by field.
        offset: rows of the position table that no position uses.
        function: the activation function unless given.
        dropouts: fields of the rates of attention and of what is hidden.
    """

    switches: Mapping[str, Callable[[Seq2Seq, bool], Seq2Seq]] = field(default_factory=dict)
    offset: int = 0
    function: str = "gelu"
    dropouts: tuple[str, str] = ("attention_dropout", "dropout")
    untied: bool = False


@dataclass(frozen=True)
class Seq2Seq:
    """A family of encoder-decoders; what is not said is as in BART.

    Args:
        words: embedding of the source and of the target.
        entry: embedding of the source where it is no text.
        target: perceptron of the target where it is another.
        experts: that some layers have in place of the perceptron, or None.
        capacity: slots of the experts per chosen token; above 1 where they are padded.
        near: attention of the source where it is another; its positions are padded for
            Neighbours and SparseBlocks.
        far: attention of the target where it is another.
        ahead: embedding of the target where it is another.
        last: norm after the blocks, or None.
        last_dropped: whether what it gives is dropped out.
        tables: names of the token tables of source and target.
        heads: by the end of the architecture's name.
    """

    words: Words = WORDS
    entry: Sound | Marked | None = None
    attention: Attention = ATTENTION
    near: Attention | None = None
    far: Attention | None = None
    ahead: Words | None = None
    perceptron: MLP | GatedMLP = field(default_factory=MLP)
    target: GatedMLP | None = None
    experts: MixtureOfExperts | None = None
    capacity: Expr | int = 1
    branch: Branch = field(default_factory=lambda: Branch(outcome=Outcome.DROP))
    last: Norm | None = Norm.LAYER
    last_dropped: bool = False
    distances: Distances = Distances.NONE
    tables: tuple[str, str] = ("@token", "@token")
    heads: Mapping[str, Head] = field(default_factory=lambda: HEADS)
    reads: Reads = field(default_factory=Reads)
    source: str = "lewis-2019"

    def tied(self, *, tied: bool) -> Seq2Seq:
        """Return the family whose head is the token table, or is not."""
        head = self.heads[GENERATED]
        own = head.having(Output.TIE, on=tied) if isinstance(head, Predicted) else head
        return replace(self, heads={**self.heads, GENERATED: own})

    def declare(self, name: str, sizes: Sizes, head: str = GENERATED) -> Model:
        """Declare the model; a source that is encoded already has keys in the cache."""
        alone = head in (ENCODER_ONLY, TOKENS_OF_SOURCE, RECORDED)
        parts = [] if sizes.cached is not None else [*self._encoder(sizes)]
        if not alone:
            parts += self._decoder(sizes)
        if head in self.heads:
            ops = self.heads[head].ops()
            names = TO_TARGET | sizes.own_axes()
            parts.append(Part("head", ops if alone else retitled(ops, names)))
        return Model(
            name,
            tuple(parts),
            sizes.axes(),
            means=("z_s", "z_r_s", "z_u", "z_r_u"),
            source=self.source,
            axes=sizes.glossary(),
        )

    def _encoder(self, sizes: Sizes) -> Iterator[Part]:
        own = replace(self.near or self.attention, at=SOURCE, core=self._core())
        first = (
            *self._by_distance("each"),
            *self.branch.around("attention", own.ops(), "x", "middle", **self._outside()),
        )
        entry = self.entry or replace(self.words, token=self.tables[0])
        own_words = {} if sizes.V_s is None else {"v": "v_s"}
        own_words |= {} if sizes.P_s is None else {"p": "p_s"}
        yield Part("encoder.embedding", retitled(entry.ops(), own_words))
        yield from self._once("encoder", {})
        takes = {"x": "encoder.embedding", **self._shared("encoder")}
        for path, layer, count in self._layers(self.perceptron, symbols.n_layers, sizes.sparse[0]):
            ops = (*first, *self.branch.around("mlp", layer, "middle", "y"))
            yield Part(f"encoder.{path}", ops, count, takes, Place.BLOCK)
            takes = takes | {"x": f"encoder.{path}"}
        yield from self._last("encoder", {})
        if self._padded:
            cut = pointwise("unpad", "x[b r e] -> y[b r_u e]", "copy", laid="r")
            yield Part("encoder.tokens", (cut,))

    def _decoder(self, sizes: Sizes) -> Iterator[Part]:
        names = TO_TARGET | sizes.own_axes()
        entry = replace(self.ahead or self.words, token=self.tables[1]).ops()
        yield Part("decoder.embedding", retitled(entry, names))
        yield from self._once("decoder", names)
        takes = {
            "x": "decoder.embedding",
            "memory": self._memory,
            # of the cache, once the source is encoded
            "cross.k": OUTSIDE,
            "cross.v": OUTSIDE,
            **self._shared("decoder"),
        }
        cached = sizes.cached is not None
        counts = {True: exact(sizes.sliding), False: exact(sizes.n_dec) - sizes.sliding}
        for sliding, count in counts.items():
            if count == 0:
                continue
            first = self._decoder_attention(names, cached=cached, sliding=sliding)
            for path, layer, number in self._layers(
                self.target or self.perceptron, count, 0 if sliding else sizes.sparse[1]
            ):
                mlp = self.branch.around("mlp", layer, "middle", "y")
                named = f"decoder.sliding.{path}" if sliding else f"decoder.{path}"
                ops = (*first, *retitled(mlp, names))
                yield Part(named, ops, number, takes, Place.BLOCK)
                takes = takes | {"x": named}
        yield from self._last("decoder", names)

    @property
    def _padded(self) -> bool:
        return isinstance(self.near, Neighbours | SparseBlocks)

    @property
    def _memory(self) -> str:
        """Path of the part that the target attends to; what has experts has a last norm."""
        if self._padded:
            return "encoder.tokens"
        return "encoder.norm" if self.last else "encoder.block"

    def _layers(
        self, perceptron: MLP | GatedMLP, layers: Expr, sparse: int
    ) -> Iterator[tuple[str, tuple[Op, ...], Expr]]:
        if layers - sparse != 0:
            yield "block", perceptron.ops(), layers - sparse
        if self.experts is not None and sparse:
            routed = retitled(self.experts.ops(), letters_of(moe.AXES))
            yield "experts.block", routed, exact(sparse)

    def _decoder_attention(
        self, names: Mapping[str, str], *, cached: bool, sliding: bool
    ) -> tuple[Op, ...]:
        causal = replace(self._core(), steps=self._core().steps | Step.MASK)
        at = SLIDING if sliding else SOURCE
        own = self.far or self.attention
        own = replace(own, at=at, cache=CacheKind.HEADS, core=causal)
        first = self.branch.around("attention", own.ops(), "x", "attended", **self._outside())
        cross = CrossAttention(
            TARGET,
            ENCODED if cached else SOURCE,
            replace(self._core(), position=""),
            self.attention.heads,
            self.attention.bias,
            "e_s",
        )
        second = replace(self.branch, axes="b o e").around(
            "cross", cross.ops(), "attended", "middle", memory="memory"
        )
        inner = {old: new for old, new in names.items() if old not in TO_TARGET} | {"e_s": "e"}
        inner |= _UNPADDED if self._padded else {}
        return (*retitled((*self._by_distance("each"), *first), names), *retitled(second, inner))

    def _core(self) -> attention_core.AttentionCore:
        biased = "" if self.distances is Distances.NONE else "position"
        return replace(self.attention.core, position=biased)

    def _outside(self) -> dict[str, str]:
        return {} if self.distances is Distances.NONE else {"position": "position"}

    def _shared(self, side: str) -> dict[str, str]:
        return {"position": f"{side}.position"} if self.distances is Distances.ONCE else {}

    def _by_distance(self, place: str) -> tuple[Op, ...]:
        here = {"each": Distances.EACH, "once": Distances.ONCE}[place]
        return (distances(SOURCE),) if self.distances is here else ()

    def _once(self, side: str, names: Mapping[str, str]) -> Iterator[Part]:
        ops = self._by_distance("once")
        if isinstance(self.near, Blocks) and side == "encoder":
            ops = self.near.biases()
        rotated = self.attention.rotated.value
        if ops:
            yield Part(f"{side}.position", retitled(ops, names))
        if rotated:
            shared = f"@{side}"
            turned = tuple(
                op.mapped(lambda o: o.renamed(o.tensor.replace("@", f"{shared}_")))
                for op in (angles(rotated),)
            )
            yield Part(f"{side}.rotation", retitled(turned, names))

    def _last(self, side: str, names: Mapping[str, str]) -> Iterator[Part]:
        if self.last is None:
            return
        result = "normed[b r e]" if self.last_dropped else "y[b r e]"
        ops: tuple[Op, ...] = (self.last.op("norm", "x[b r e]", result),)
        if self.last_dropped:
            ops += (dropout("dropout", "normed[b r e] -> y[b r e]"),)
        yield Part(f"{side}.norm", retitled(ops, names))


@dataclass(frozen=True)
class Merged(Seq2Seq):
    """A family whose decoder attends to its own sequence and to the source at once."""

    def _decoder_attention(
        self, names: Mapping[str, str], *, cached: bool, sliding: bool
    ) -> tuple[Op, ...]:
        apart = {name: f"{name}_s" for name in ("r", "l", "t")}
        memory = Positions("" if cached else "r_s", "t_s" if cached else "l_s", "t_s", "t_s")
        own = MergedAttention(
            **vars(
                replace(self.attention, at=SLIDING if sliding else SOURCE, cache=CacheKind.HEADS)
            ),
            memory=memory,
        )
        ports = {"memory": "memory", "cross_k": "cross.k", "cross_v": "cross.v"}
        ops = self.branch.around("attention", own.ops(), "x", "middle", **ports)
        return retitled(ops, {**names, **{new: old for old, new in apart.items()}})
