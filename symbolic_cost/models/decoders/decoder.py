"""Decoders: a family is a value, whose parts a configuration may replace.

    tokens -> blocks of attention and perceptron -> norm -> logits

Blocks of one kind are one part with a repeat count, so depth and experts cost nothing to declare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Flag, StrEnum, auto

from sympy import Expr

from symbolic_cost.axes import Glossary, axes, glossary
from symbolic_cost.errors import InputError, quote
from symbolic_cost.layers import (
    attention,
    attention_core,
    differential,
    gated,
    latent,
    mlp,
    moe,
    rotary,
    tokens,
)
from symbolic_cost.layers.attention import Attention, Bias, CacheKind, Projection, Rotated
from symbolic_cost.layers.attention_core import GROUPED, SLIDING, AttentionCore, Step
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.latent import Expansion, LatentAttention
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.moe import MixtureOfExperts
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Branch, Layer
from symbolic_cost.layers.rotary import angles
from symbolic_cost.layers.rwkv import ChannelMix
from symbolic_cost.layers.tokens import Exit, Logits, Scores, Tokens
from symbolic_cost.models.decoders.kinds import (
    CHUNKED,
    EXPERTS,
    NEVER,
    NONE,
    SLIDES,
    UNTURNED,
    Kind,
    Sparse,
    Windows,
)
from symbolic_cost.models.decoders.mixers import Beside, Mixer
from symbolic_cost.models.decoders.reads import Reads
from symbolic_cost.models.decoders.sizes import Sizes
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.declare import Model, Op, Part, Place, einsum, pointwise, scope, view
from symbolic_cost.records import dataclass, field, replace

AXES = glossary(
    *(layer.AXES for layer in (attention, attention_core, differential, gated, latent, mlp, moe)),
    *(rotary.AXES, tokens.AXES, axes("n_e hidden, one whole")),
)


class Order(StrEnum):
    """How the two branches of a block run."""

    IN_TURN = "one after the other"
    SHARED_NORM = "side by side, on one norm"
    OWN_NORMS = "side by side, each on a norm of its own"


VARIANTS: Mapping[str, Mapping[str, object]] = {
    SLIDES: {"at": SLIDING},
    CHUNKED: {"at": SLIDING},
    UNTURNED: {"rotated": Rotated.NOTHING},
}
"""Fields of the attention that differ in layers of a kind, in every family."""


CORE = AttentionCore(steps=Step.MASK | Step.CAST | Step.COPY)
"""The core of most decoders: a softmax in single precision, keys and values copied if shared."""

MOST_PREDICTED = 64
"""Further tokens; each is a part of its own."""

ATTENTION = Attention(
    GROUPED, Projection.SEPARATE, Bias.NONE, rotated=Rotated.WHOLE, cache=CacheKind.HEADS, core=CORE
)
"""The attention of most decoders: grouped heads, rotated."""


class Habit(Flag):
    """What decoders of a family do besides."""

    NONE = 0
    LAST_NORM = auto()
    """A norm follows the blocks."""
    HALVE = auto()
    """A window is half as wide as a configuration says, and one more."""
    SCALE = auto()
    """Of copies of the residual stream, the one that a layer computes is scaled."""
    AVERAGE = auto()
    """Sequences are classified by the mean of their positions."""


@dataclass(frozen=True)
class Decoder:
    """A family of decoders; what is not said is as in Llama.

    Args:
        perceptron: of every block without experts.
        branch: norms and dropout of the residual branches.
        order: of the two branches of a block.
        habits: what they do besides.
        sparse: which layers are mixtures of experts.
        reads: what configurations say.
        sizes: symbols, where two sizes are one.
        mixers: others than attention, by the names of layers.
        renamed: how this family calls kinds of layers that others call otherwise.
        variants: fields of the attention that differ in layers of a kind.
        branches: of the mixer and of the perceptron, where they differ in layers of a kind.
        lengths: sizes of axes that this family alone has.
    """

    attention: Attention | LatentAttention = ATTENTION
    perceptron: MLP | GatedMLP | ChannelMix = field(default_factory=GatedMLP)
    experts: MixtureOfExperts = field(default_factory=MixtureOfExperts)
    tokens: Tokens = field(default_factory=Tokens)
    head: Logits | Scores | None = field(default_factory=lambda: Logits("w"))
    branch: Branch = field(default_factory=lambda: Branch(Norm.RMS))
    order: Order = Order.IN_TURN
    habits: Habit = Habit.LAST_NORM
    windows: Windows = NEVER
    sparse: Sparse = Sparse.NEVER
    reads: Reads = field(default_factory=Reads)
    sizes: Sizes = field(default_factory=Sizes)
    mixers: Mapping[str, Mixer] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    branches: Mapping[str, tuple[Branch, Branch]] = field(default_factory=dict)
    lengths: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def rotated(self) -> Rotated:
        """How much of queries and keys is rotated."""
        return self.attention.rotated

    def attended(self, **changes: object) -> Decoder:
        """Return the family with another attention."""
        return replace(self, attention=replace(self.attention, **changes))  # type: ignore[arg-type]

    def stepping(self, step: Step, *, on: bool) -> Decoder:
        """Return the family with a step of its attention core on or off."""
        own = self.attention.core
        steps = own.steps | step if on else own.steps & ~step
        return self.attended(core=replace(own, steps=steps))

    def declare(self, name: str, kinds: Iterable[Kind], shape: Shape, predicted: int = 0) -> Model:
        """Declare the model.

        Args:
            name: of the model.
            kinds: of layers, and how often they occur.
            shape: what it runs on; the loss is part of training alone.
            predicted: further tokens predicted, each by one more block and the same head.
        """
        fitted = self._fitted(shape, shared=predicted != 0)
        kinds = tuple(kinds)
        turning = fitted.turning(kinds)
        own = fitted.attention
        expansion = own.expansion if isinstance(own, LatentAttention) else None
        mixers = [self.mixers[k.mixer] for k in kinds if k.mixer in self.mixers]
        others = {axis: size for mixer in mixers for axis, size in mixer.sizes(shape).items()}
        return Model(
            name,
            (
                Part("embedding", fitted.tokens.ops()),
                *((Part("rotation", turning),) if turning else ()),
                *fitted.blocks(kinds),
                *fitted.output(),
                *(fitted.predictions(kinds, predicted) if predicted != 0 else ()),
            ),
            {**self.sizes.axes(shape, expansion), **others, **self.lengths},
            padded=("v",),
            means=("z", "z_r"),
            axes=glossary(AXES, self.own_axes, *(mixer.axes for mixer in mixers)),
        )

    @property
    def own_axes(self) -> Glossary:
        """Roles of axes that this family alone has."""
        return {}

    def blocks(self, kinds: tuple[Kind, ...]) -> tuple[Part, ...]:
        """Declare the blocks, and what this family has beside them."""
        return tuple(
            Part(
                path_of(kind, kinds),
                self.block(kind),
                kind.count,
                place=kind.place,
                layers=kind.layers,
            )
            for kind in kinds
        )

    def turning(self, kinds: tuple[Kind, ...]) -> tuple[Op, ...]:
        """Declare the angles that layers rotate by."""
        turns = self.rotated.value and any(self.attends(kind) for kind in kinds)
        return (angles(self.rotated.value, self.reads.angles),) if turns else ()

    def _fitted(self, shape: Shape, *, shared: bool) -> Decoder:
        fitted = replace(self, mixers={name: m.on(shape) for name, m in self.mixers.items()})
        if isinstance(self.attention, LatentAttention):
            if shape.c != 0 and self.attention.expansion is Expansion.OWN:
                fitted = fitted.attended(expansion=Expansion.CACHED)
        elif self.sizes.h == self.sizes.k:
            fitted = fitted.stepping(Step.COPY, on=False)
        if self.head is None:
            return fitted
        steps = self.head.steps if shape.c == 0 else self.head.steps & ~Exit.LOSS
        head = replace(self.head, steps=steps)
        if shared and isinstance(head, Logits) and head.weight == "w":
            head = replace(head, weight="@head")
        return replace(fitted, head=head)

    def block(self, kind: Kind) -> tuple[Op, ...]:
        """Declare one block from x[b r e] to y[b r e]."""
        mixer, layer = self._mixer(kind), self.experts if kind.sparse else self.perceptron
        path = "mixer" if kind.mixer in self.mixers else "attention"
        attention = self.attention
        if self.order is not Order.IN_TURN:
            return self._side_by_side(mixer, layer)
        first, second = self.branches.get(kind.mixer, (self.branch, self.branch))
        if kind.mixer == NONE:
            return second.around("mlp", layer.ops(), "x", "y")
        own = mixer.with_attention(attention) if isinstance(mixer, Beside) else mixer.ops()
        if kind.layer == NONE:
            return first.around(path, own, "x", "y")
        return (
            *first.around(path, own, "x", "middle", **self.ports(kind)),
            *second.around("mlp", layer.ops(), "middle", "y"),
        )

    def ports(self, kind: Kind) -> Mapping[str, str]:  # noqa: ARG002 - most take nothing
        """Return what the mixer of layers of a kind takes of other layers, by its names for it."""
        return {}

    def attends(self, kind: Kind) -> bool:
        """Return whether layers of a kind have the family's own attention."""
        other = self.mixers.get(kind.mixer)
        return kind.mixer != NONE and (other is None or isinstance(other, Beside))

    def _mixer(self, kind: Kind) -> Layer:
        attention = self.attention
        if kind.mixer in self.mixers:
            return self.mixers[kind.mixer]
        usual = {} if isinstance(attention, LatentAttention) else VARIANTS
        return replace(attention, **{**usual, **self.variants}.get(kind.mixer, {}))  # type: ignore[arg-type]

    def _side_by_side(self, attention: Layer, layer: Layer) -> tuple[Op, ...]:
        shared = self.order is Order.SHARED_NORM
        second = "attention.entry" if shared else "mlp.entry"
        norm = (self.branch.normed("norm"),)
        return (
            *scope("attention", norm, x="x", y="attention.entry"),
            *self.branch.beside("attention", attention.ops(), "attention.entry", "attended"),
            *(() if shared else scope("mlp", norm, x="x", y=second)),
            *self.branch.beside("mlp", layer.ops(), second, "processed"),
            pointwise("join", "attended[b r e], processed[b r e] -> joined[b r e]", "add"),
            pointwise("residual", "x[b r e], joined[b r e] -> y[b r e]", "add"),
        )

    def output(self) -> tuple[Part, ...]:
        """Declare the last norm and the output head, if there is one of them."""
        norm = scope("norm", (self.branch.normed("norm"),), x="x", y="normed")
        normed = Habit.LAST_NORM in self.habits
        tensor = "normed" if normed else "x"
        logits = scope("output", self.head.ops(), x=tensor) if self.head else ()
        if self.head is None and self.tokens.width != "e":
            logits = (einsum("project", f"{tensor}[b r e], *w[e w] -> narrow[b r w]"),)
        ops = (*(norm if normed else ()), *logits)
        return (Part("head", ops),) if ops else ()

    def predictions(self, kinds: tuple[Kind, ...], predicted: int) -> tuple[Part, ...]:
        """Declare the blocks that predict further tokens from a token and the last state."""
        norms = (
            self.branch.normed(f"norm_{name}", name, f"normed_{name}")
            for name in ("token", "state")
        )
        join = (
            *self.tokens.ops("token"),
            *norms,
            einsum("project_token", "normed_token[b r e], *w[e n_e] -> from_token[b r n_e]"),
            einsum("project_state", "normed_state[b r e], *w[e n_e] -> from_state[b r n_e]"),
            pointwise("join", "from_token[b r n_e], from_state[b r n_e] -> joined[b r n_e]", "add"),
            view("stream", "joined[b r n_e] -> y[b r e]"),
        )
        if not 0 < predicted <= MOST_PREDICTED:
            said = f"{quote(predicted)} further tokens are predicted"
            raise InputError(f"{said}: 1 to {MOST_PREDICTED} are accepted")
        further, last = self.further(kinds), path_of(kinds[-1], kinds)
        parts: list[Part] = []
        for place in range(predicted):
            scope = "prediction" if place == 0 else f"prediction_{place + 1}"
            blocks = [Part(path_of(kind, further), self.block(kind)) for kind in further]
            entry = Part("join", join, takes={"state": last})
            parts += (
                replace(part, path=f"{scope}.{part.path}", place=Place.END)
                for part in (entry, *blocks, *self.output())
            )
            last = f"{scope}.{blocks[-1].path}"
        return tuple(parts)

    def further(self, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        """Return the kinds of layers of a block for further tokens: the last kind.

        Where layers are one mixer or one perceptron each, it is one of both, as "*E" of Nemotron 3.
        """
        if all(NONE not in (kind.mixer, kind.layer) for kind in kinds):
            return kinds[-1:]
        attending = [kind for kind in kinds if kind.layer == NONE and self.attends(kind)]
        following = [kind for kind in kinds if kind.mixer == NONE]
        return (*attending[-1:], *following[-1:])


Switch = Callable[[Decoder, bool], Decoder]
"""What a truth value of a configuration changes."""


def path_of(kind: Kind, kinds: tuple[Kind, ...]) -> str:
    """Name a kind of block by what tells it from the others; recomputation goes by the end."""
    parts = []
    if len({other.mixer for other in kinds}) > 1:
        parts.append(_SHORT.get(kind.mixer, kind.mixer.removesuffix("_attention")))
    if len({other.layer for other in kinds}) > 1:
        parts.append(_SHORT.get(kind.layer, kind.layer))
    named = "_".join(filter(None, parts))
    return f"{named}.block" if named else "block"


_SHORT = {EXPERTS: "experts"}
