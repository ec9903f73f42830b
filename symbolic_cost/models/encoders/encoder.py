"""Encoders: a family is a value, whose parts a configuration may replace.

    tokens -> blocks of attention and perceptron -> norm -> a head

Every position sees every other; layers that attend to a neighbourhood run the whole square with a
mask, as PyTorch does unless a kernel skips it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Flag, auto
from typing import Protocol

from sympy import Expr, Integer

from symbolic_cost.layers import (
    heads,
)
from symbolic_cost.layers.attention import Attention, Projection
from symbolic_cost.layers.attention_core import AttentionCore, Positions, Step
from symbolic_cost.layers.disentangled import Disentangled
from symbolic_cost.layers.embeddings import Words
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.heads import (
    Asked,
    Averaged,
    Boxes,
    Cells,
    Classes,
    Hidden,
    Predicted,
    Projected,
    Take,
    Taught,
    hidden_layer,
)
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.page_layout import OnPage
from symbolic_cost.layers.patch import Patches
from symbolic_cost.layers.pooling import AttentionPool, MeanPool, VectorQuery
from symbolic_cost.layers.relative import Distances, distances
from symbolic_cost.layers.residual import Branch, Layer, Outcome, Placing
from symbolic_cost.layers.rotary import angles
from symbolic_cost.layers.series import Channels, Foretold
from symbolic_cost.layers.spectrogram_frontend import Thinned
from symbolic_cost.layers.speech_frontend import Sound
from symbolic_cost.layers.speech_heads import Quantized, Voices
from symbolic_cost.layers.transducer import Transduced
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.vision.windows import inside, within
from symbolic_cost.ops.declare import Glossary, Operand, stored, unread, view
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op, OperandMap
from symbolic_cost.ops.part import OUTSIDE, Part, Place, scope
from symbolic_cost.records import dataclass, field, replace
from symbolic_cost.symbols import exact

ATTENTION = Attention(projection=Projection.SEPARATE, core=AttentionCore(steps=Step.DROP))
"""Attention of every position to every other."""

POST = Branch(placing=Placing.POST, outcome=Outcome.DROP)
"""y = norm(x + dropout(layer(x)))."""

Switch = Callable[["Encoder", bool], "Encoder"]
"""What a truth value of a configuration changes."""

Head = (
    Predicted
    | Classes
    | Boxes
    | Cells
    | Projected
    | Averaged
    | Quantized
    | Voices
    | Transduced
    | Taught
    | Asked
    | Foretold
)
TANH = Hidden()

MASKED, SEQUENCE, TOKENS = "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification"
CLASSES = "ForImageClassification"
SPAN, PAIRED, NEXT = "ForQuestionAnswering", "ForPreTraining", "ForNextSentencePrediction"
MULTIPLE = "ForMultipleChoice"
TRUNK = "Model"
MATCHED = "WithProjection"

HEADS: Mapping[str, Head] = {
    MASKED: Predicted(Hidden("gelu", norm=Norm.LAYER)),
    SEQUENCE: Classes(hidden=TANH),
    TOKENS: Classes(Take.EACH),
    SPAN: Classes(Take.EACH),
    NEXT: Classes(hidden=TANH),
}
"""Heads by the ends of the names of Hugging Face; PAIRED is MASKED and NEXT on one pooler."""


_CLASSES: Mapping[str, int] = {NEXT: 2, PAIRED: 2, MULTIPLE: 1}


class Assumed(Flag):
    """What holds where configurations of a family do not say it."""

    NONE = 0
    DROP = auto()
    """Attention and what is hidden are dropped out."""
    PROJECT = auto()
    """Tables as wide as the stream are projected as well."""
    OWN_HEAD = auto()
    """The output head has a weight of its own."""


@dataclass(frozen=True)
class Traits:
    """What configurations of a family say, and what holds where they do not.

    Args:
        switches: what a truth value changes, by field.
        tables: field of the rows of a table, by its axis.
        widening: perceptron width as a multiple of the embedding's; None if it must be given.
        offset: rows of the position table that no position uses.
        function: the activation function unless given, as configurations name it.
        dropouts: fields of the rates of attention and of what is hidden.
        classes: of heads whose number is not that of the labels.
        assumed: what holds unless given.
    """

    switches: Mapping[str, Switch] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    widening: int | None = None
    offset: int = 0
    function: str = "gelu"
    dropouts: tuple[str, str] = ("attention_probs_dropout_prob", "hidden_dropout_prob")
    classes: Mapping[str, int] = field(default_factory=lambda: _CLASSES)
    assumed: Assumed = Assumed.DROP


class Sized(Protocol):
    """Sizes of an encoder."""

    @property
    def n_layers(self) -> Expr | int:
        """Blocks."""

    def glossary(self) -> Glossary:
        """Return the roles of all axes."""

    def axes(self, shape: Shape) -> dict[str, Expr]:
        """Return the size of every axis."""


class Habit(Flag):
    """What encoders of a family do besides."""

    NONE = 0
    BARE_FIRST = auto()
    """The attention of the first block has no norm."""
    NORM_DISTANCES = auto()
    """Embeddings of distances are normalised."""
    SHARE = auto()
    """Layers share weights, in groups."""
    POOL = auto()
    """The pooler runs under every head, also where nothing reads it."""


@dataclass(frozen=True)
class Encoder:
    """A family of encoders; what is not said is as in BERT.

    Args:
        words: embedding of tokens, or of patches.
        last: norm after the blocks, or None.
        distances: whether scores have a bias by distance.
        pooler: hidden layer on the first position that the trunk has, or None.
        habits: what they do besides.
        unused: weights that are stored and not used, by name and axes.
        heads: by the end of the architecture's name.
        windowed: blocks, the first of them, whose positions attend within windows.
    """

    words: Words | Patches | Sound | Thinned | Channels = field(default_factory=Words)
    attention: Attention = ATTENTION
    perceptron: MLP | GatedMLP = field(default_factory=MLP)
    branch: Branch = POST
    last: Norm | None = None
    distances: Distances = Distances.NONE
    pooler: Hidden | AttentionPool | VectorQuery | MeanPool | None = TANH
    habits: Habit = Habit.NONE
    unused: Mapping[str, str] = field(default_factory=dict)
    heads: Mapping[str, Head] = field(default_factory=lambda: HEADS)
    traits: Traits = field(default_factory=Traits)
    source: str = "devlin-2018"
    windowed: int = 0

    def headed(self, **heads: Head) -> Encoder:
        """Return the family with other heads, by the name of their constant."""
        names = {name: globals()[name] for name in heads}
        return replace(self, heads={**self.heads, **{names[n]: h for n, h in heads.items()}})

    def attended(self, **changes: object) -> Encoder:
        """Return the family with another attention."""
        return replace(self, attention=replace(self.attention, **changes))  # type: ignore[arg-type]

    def worded(self, **changes: object) -> Encoder:
        """Return the family with another embedding."""
        return replace(self, words=replace(self.words, **changes))  # type: ignore[arg-type]

    def declare(
        self, name: str, shape: Shape, sizes: Sized, head: str = TRUNK, *, groups: int = 1
    ) -> Model:
        """Declare the model.

        Args:
            name: of the model.
            shape: what it runs on.
            sizes: of the model.
            head: one of `heads`, TRUNK or PAIRED.
            groups: of layers that share weights.
        """
        parts = self.parts(exact(sizes.n_layers), head, groups)
        axes = sizes.axes(shape)
        return Model(name, parts, axes, source=self.source, axes=sizes.glossary())

    def parts(self, layers: Expr, head: str = TRUNK, groups: int = 1) -> tuple[Part, ...]:
        """Return the parts of the model."""
        rotated = self.attention.rotated.value
        norm = (self.last.op("norm", "x[b r e]", "y[b r e]"),) if self.last else ()
        buffers = tuple(stored(name, w=axes) for name, axes in self.unused.items())
        turning: tuple[Op, ...] = (angles(rotated),) if rotated else ()
        if self.windowed:
            turning += scope("window", inside(turning))
        once = self.distances is Distances.ONCE
        table: tuple[Op, ...] = (distances(Positions()),) if once else ()
        if isinstance(self.attention, OnPage):
            table = self.attention.biases()
        if isinstance(self.attention, Disentangled):
            table = self.attention.embedded(normed=Habit.NORM_DISTANCES in self.habits)
        trunk = (
            Part("embedding", (*self.words.ops(), *buffers), takes={"wave": OUTSIDE}),
            *((Part("rotation", turning),) if turning else ()),
            *((Part("position", table),) if table else ()),
            *self._blocks(layers, groups),
            *((Part("norm", norm),) if norm else ()),
        )
        takes = {"x": trunk[-1].path}
        return (
            *trunk,
            *(replace(part, takes={**part.takes, **takes}) for part in self._tail(head)),
        )

    def block(self, *, bare: bool = False, windowed: bool = False) -> tuple[Op, ...]:
        """Declare one block from x[b r e] to y[b r e]; `bare` without the norm of attention."""
        biased = self.distances is not Distances.NONE
        outside = {"position": "position"} if biased else {}
        if isinstance(self.attention, Disentangled):
            outside = {"relative": "relative"}
        own = within(self.attention.ops()) if windowed else self.attention.ops()
        table = (distances(Positions()),) if self.distances is Distances.EACH else ()
        first: tuple[Op, ...] = (
            replace(self.branch, placing=Placing.NONE).around(
                "attention", own, "x", "middle", **outside
            )
            if bare
            else self.branch.around("attention", own, "x", "middle", **outside)
        )
        layer: Layer = self.perceptron
        return (*table, *first, *self.branch.around("mlp", layer.ops(), "middle", "y"))

    def _blocks(self, layers: Expr, groups: int) -> Iterator[Part]:
        once = self.distances is Distances.ONCE
        takes = {"x": "embedding", "position": "position"} if once else {"x": ""}
        if isinstance(self.attention, Disentangled):
            takes = {"x": "embedding", "relative": "position"}
        if Habit.SHARE in self.habits:
            for group, (ops, count) in enumerate(self._groups(layers, groups)):
                yield Part(
                    f"group{group}.block" if groups > 1 else "block", ops, count, takes, Place.BLOCK
                )
            return
        if Habit.BARE_FIRST in self.habits:
            yield Part("first.block", self.block(bare=True), Integer(1), takes, Place.LEADING)
            layers = layers - 1
        if self.windowed:
            ops = self.block(windowed=True)
            yield Part("local.block", ops, Integer(self.windowed), takes, Place.BLOCK)
            layers = layers - self.windowed
        yield Part("block", self.block(), layers, takes, Place.BLOCK)

    def _groups(self, layers: Expr, groups: int) -> Iterator[tuple[tuple[Op, ...], Expr]]:
        """Yield the ops of every group, whose layers share weights, and how often they run.

        Layer i of n belongs to group floor(i groups / n).
        """
        for group in range(groups):
            shared = tuple(op.mapped(_shared(group)) for op in self.block())
            if groups == 1:
                yield shared, layers
            else:
                number = int(layers)
                own = [i for i in range(number) if i * groups // number == group]
                yield shared, Integer(len(own))

    def _tail(self, head: str) -> Iterator[Part]:
        both = head == PAIRED and PAIRED not in self.heads
        read = head == TRUNK or both
        runs = read or (Habit.POOL in self.habits and not self._reads_pooler(head))
        if self.pooler is None and both:
            first = view("first", "x[b r e] -> first[b one e]")
            yield Part(
                "pooler", (first, *heads.classifier("next", "first[b one e]", target="follows"))
            )
        elif self.pooler is not None and runs:
            ops = pooler(self.pooler) if isinstance(self.pooler, Hidden) else self.pooler.ops()
            if both:
                ops += heads.classifier("next", "pooled[b one w]", target="follows")
            yield Part("pooler", ops if read else unread(ops))
        if head != TRUNK:
            own = self.heads[MASKED if both else head]
            before = {"features": "embedding"} if isinstance(own, Quantized) else {}
            yield Part("head", own.ops(), takes={"x": "", **before})

    def _reads_pooler(self, head: str) -> bool:
        classifier = self.heads.get(head)
        return isinstance(classifier, Classes) and classifier.hidden == self.pooler


def _shared(group: int) -> OperandMap:
    """Return what makes the weights of a layer those of all layers of its group."""

    def own(operand: Operand) -> Operand:
        plain = operand.is_weight and not operand.tensor.startswith("@")
        return operand.renamed(f"@group{group}.{operand.tensor}") if plain else operand

    return own


def pooler(layer: Hidden) -> tuple[Op, ...]:
    """Declare the hidden layer of the first token, from x[b r e] to pooled[b one w]."""
    return (
        view("first", "x[b r e] -> first[b one e]"),
        *hidden_layer("dense", layer, "first[b one e]", "pooled[b one w]"),
    )
