"""Mixture of experts: a router sends every token to some of the experts.

Axes: b sequences, r residual positions, l positions, e embedding, o experts as the router scores
them, a experts chosen for a token; u, z and x in place of b, l and a where tokens are sorted by
expert (x experts with z tokens of each of u sequences), f_m width of one expert, f_s of the shared
ones together, r_m the latent that experts work on where tokens are projected for them.
The sizes of a token's copies agree: b r a = u z_r x = u z x.

Tokens are sent to the ranks of their experts from where they rest, and gathered there by the ranks
that share an expert: l/m1 tokens of every rank cross nodes, as Megatron-Core's dispatcher does it.
"""

from enum import Flag, StrEnum, auto

from symbolic_cost.axes import axes
from symbolic_cost.conventions.questions import Saved
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.gated import GatedMLP, gated_products
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, einsum, lookup, norm, pointwise, scope, softmax, view
from symbolic_cost.records import dataclass, replace

AXES = axes(
    "b batch, r token residual, l token query, e hidden, o expert scored, a slot, x expert, "
    "u batch routed, z_r token posted, z token routed, f_m inner, f_s inner, r_m latent"
)

_SCORED = "probabilities[b r o]:single"
_CHOSEN = "best[b r a]:single"


class Shares(StrEnum):
    """How the probabilities of the chosen experts become weights."""

    NORMALISED = "divided by their sum"
    CAST = "the same, in the precision of values"
    PLAIN = "as they are"

    @property
    def precision(self) -> str:
        """How they are held, as in a pattern: a quotient stays in single precision."""
        return ":single" if self is Shares.NORMALISED else ""


class Trait(Flag):
    """What a mixture of experts does besides."""

    NONE = 0
    SHARED_GATE = auto()
    """A sigmoid opens the shared expert, by one value for every token."""
    CORRECTED = auto()
    """A learned value of every expert is added before the choice alone."""
    PLAIN = auto()
    """Perceptrons are two products, without a gate."""
    WEIGHED = auto()
    """A learned value of every expert multiplies its share."""
    OFFSET = auto()
    """A learned vector is added to what all experts give together."""


@dataclass(frozen=True)
class MixtureOfExperts:
    """Experts from x[b r e] to y[b r e].

    Args:
        function: the activation function.
        bias: of the router (output) and of the experts' products (inner).
        shares: how the chosen probabilities become weights.
        shared: axis of the width of an expert that sees every token; empty without one.
        traits: what else it does.
        after: norm of what all experts give together.
        latent: axis of the latent that routed experts work on; empty if they see tokens as they
            are.
        before: norm of what routed experts see, on their latent.
        each: norm of what an expert gives, one scale for all of them.
        scored: tensor that the router scores, where it is another than experts see.
    """

    function: str = "silu"
    bias: Bias = Bias.NONE
    shares: Shares = Shares.NORMALISED
    shared: str = ""
    traits: Trait = Trait.NONE
    after: Norm | None = None
    latent: str = ""
    before: Norm | None = None
    each: Norm | None = None
    scored: str = "x"

    @property
    def _width(self) -> str:
        """What routed experts see of a token."""
        return self.latent or "e"

    def ops(self) -> tuple[Op, ...]:
        y = "plain" if self.after or Trait.OFFSET in self.traits else "y"
        routed = "routed" if self.shared else y
        mixed = "mixed" if self.latent else routed
        offset = pointwise("offset", "plain[b r e], *bias[e] -> y[b r e]", "add")
        return (
            *self.routed(),
            *scope("experts", self._experts(), sent="sent", done="given" if self.each else "done"),
            *self._each_normed(),
            *self.combined(mixed),
            *self._widened(routed),
            *self._shared(y),
            *((self.after.op("norm_after", "plain[b r e]", "y[b r e]"),) if self.after else ()),
            *((offset,) if Trait.OFFSET in self.traits else ()),
        )

    def routed(self) -> tuple[Op, ...]:
        """Declare the choice of experts, and the tokens that they are sent."""
        bias = " + *bias[o]" if Bias.OUTPUT in self.bias else ""
        return (
            # Positions are routed where they rest, before what follows gathers them.
            einsum("router", f"{self.scored}[b r e], *w[e o]{bias} -> logits[b r o]"),
            softmax("probabilities", f"logits[b r o] -> {_SCORED}", row="o"),
            *self._choice(),
            *self._share(),
            *self._narrowed(),
            *self._dispatch(),
        )

    def combined(self, result: str) -> tuple[Op, ...]:
        """Declare the sum of what experts give of a token, each by its share."""
        e, weights = self._width, f"weights[u z_r x]{self.shares.precision}"
        return (
            view("scatter", f"done[u z x {e}] -> ready[u z_r x {e}]"),
            pointwise("weigh", f"ready[u z_r x {e}], {weights} -> weighed[u z_r x {e}]", "mul"),
            view("return", f"weighed[u z_r x {e}] -> back[b r a {e}]"),
            pointwise("combine", f"back[b r a {e}] -> {result}[b r {e}]", "gathered_sum", sums="a"),
        )

    def _choice(self) -> tuple[Op, ...]:
        corrected = "corrected[b r o]:single"
        chosen = f"{_CHOSEN}, places[b r a]:index"
        if Trait.CORRECTED not in self.traits:
            return (pointwise("choice", f"{_SCORED} -> {chosen}", "choice", row="o"),)
        return (
            pointwise("correct", f"{_SCORED}, *correction[o] -> {corrected}", "add"),
            pointwise("choice", f"{corrected} -> {chosen}", "choice", row="o"),
        )

    def _share(self) -> tuple[Op, ...]:
        held, weighed = self.shares.precision, Trait.WEIGHED in self.traits
        pattern = f"{_CHOSEN} -> {'plain_shares' if weighed else 'shares'}[b r a]{held}"
        plain = self.shares is Shares.PLAIN
        share = (
            pointwise("share", pattern, "copy") if plain else norm("share", pattern, "ratio", "a")
        )
        if not weighed:
            return (share,)
        factors = f"factors[b r a]{held}"
        return (
            share,
            lookup("factors", f"!places[b r a]:index, *table[o] -> {factors}"),
            pointwise(
                "share_mul", f"plain_shares[b r a]{held}, {factors} -> shares[b r a]{held}", "mul"
            ),
        )

    def _narrowed(self) -> tuple[Op, ...]:
        if not self.latent:
            return ()
        axes, plain = f"[b r {self.latent}]", "plain_narrow" if self.before else "narrow"
        return (
            einsum("narrow", f"x[b r e], *w[e {self.latent}] -> {plain}{axes}"),
            *(
                (self.before.op("norm_before", f"{plain}{axes}", f"narrow{axes}", row=self.latent),)
                if self.before
                else ()
            ),
        )

    def _each_normed(self) -> tuple[Op, ...]:
        """Declare the norm of what an expert gives of a token."""
        if self.each is None:
            return ()
        axes = f"[u z x {self._width}]"
        return (self.each.op("norm_each", f"given{axes}", f"done{axes}", row=self._width),)

    def _widened(self, result: str) -> tuple[Op, ...]:
        if not self.latent:
            return ()
        return (
            einsum("widen", f"mixed[b r {self.latent}], *w[{self.latent} e] -> {result}[b r e]"),
        )

    def _dispatch(self) -> tuple[Op, ...]:
        """Declare the copies of a token, and of its shares, sorted by expert."""
        held, e = self.shares.precision, self._width
        token = "narrow" if self.latent else "x"
        return (
            pointwise("order", "!places[b r a]:index -> order[b r a]:index", "order"),
            pointwise("copies", f"{token}[b r {e}] -> copied[b r a {e}]", "copy"),
            pointwise("copy_shares", f"shares[b r a]{held} -> picked[b r a]{held}", "copy"),
            view("dispatch", f"copied[b r a {e}] -> posted[u z_r x {e}]"),
            view("dispatch_shares", f"picked[b r a]{held} -> weights[u z_r x]{held}"),
            # The dispatcher gathers once and keeps what the products of the experts read.
            replace(
                view("gather", f"posted[u z_r x {e}] -> sent[u z x {e}]"), saved=Saved.GATHERED
            ),
        )

    def _experts(self) -> tuple[Op, ...]:
        bias = Bias.BOTH if Bias.INNER in self.bias else Bias.NONE
        e = self._width
        if Trait.PLAIN in self.traits:
            wide, narrow = (" + *bias[x f_m]", f" + *bias[x {e}]") if bias else ("", "")
            return (
                einsum("up", f"sent[u z x {e}], *w[x {e} f_m]{wide} -> u[u z x f_m]"),
                pointwise("act", "u[u z x f_m] -> a[u z x f_m]", self.function),
                einsum("down", f"a[u z x f_m], *w[x f_m {e}]{narrow} -> done[u z x {e}]"),
            )
        return gated_products(
            f"sent[u z x {e}]", f"done[u z x {e}]", "x", "f_m", self.function, bias=bias
        )

    def _shared(self, result: str) -> tuple[Op, ...]:
        if not self.shared:
            return ()
        mlp: GatedMLP | MLP = GatedMLP(self.function, width=self.shared)
        if Trait.PLAIN in self.traits:
            mlp = MLP(self.function, Bias.NONE, width=self.shared)
        common = "closed" if Trait.SHARED_GATE in self.traits else "common"
        return (
            *scope("shared", mlp.ops(), x="x", y=common),
            *self._shared_gate(),
            pointwise("join", f"routed[b r e], common[b r e] -> {result}[b r e]", "add"),
        )

    def _shared_gate(self) -> tuple[Op, ...]:
        if Trait.SHARED_GATE not in self.traits:
            return ()
        return (
            einsum("shared_gate", "x[b r e], *w[e] -> door[b r]"),
            pointwise("shared_open", "door[b r] -> open[b r]", "sigmoid"),
            pointwise("shared_mul", "closed[b r e], open[b r] -> common[b r e]", "mul"),
        )
