"""GPT: pre-norm transformer decoder with learned positions and a tied output head."""

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.checking import checked
from symbolic_cost.errors import Problems
from symbolic_cost.layers.attention import Attention, CacheKind, Projection
from symbolic_cost.layers.attention_core import PLAIN
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.layers.residual import Outcome
from symbolic_cost.layers.tokens import Entry, Tokens
from symbolic_cost.models.decoders.decoder import Decoder
from symbolic_cost.models.decoders.kinds import DENSE, FULL, Kind
from symbolic_cost.models.decoders.reads import Reads
from symbolic_cost.models.decoders.sizes import Sizes
from symbolic_cost.models.decoders.switches import LAYER, ONE_EACH, TIED
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.declare import Model, Op
from symbolic_cost.records import dataclass, field, replace
from symbolic_cost.symbols import exact, size

GPT2 = Decoder(
    Attention(PLAIN, Projection.FUSED, cache=CacheKind.HEADS),
    MLP(),
    tokens=Tokens(steps=Entry.POSITION | Entry.DROP),
    head=TIED,
    branch=replace(LAYER, outcome=Outcome.DROP),
    reads=Reads(widening=4),
    sizes=ONE_EACH,
)
"""GPT-2 with separate calls of products and biases, as Megatron runs it."""

_DERIVED = ("q", "P")
"""Sizes that follow from others unless they are given."""


@checked
@dataclass(frozen=True)
class GPT:
    """Sizes and variants of a GPT; every size is a symbol unless given.

    Args:
        b: microbatch [sequences].
        l: sequence length [tokens].
        e: embedding width.
        f: MLP width; 4 e unless given.
        h: attention heads.
        q: head width; e/h unless given.
        V: vocabulary.
        P: learned positions; those of all tokens unless given.
        c: tokens that are in the cache already.
        mlp: its variant.
        dropout: whether embeddings and residual branches are dropped out.
    """

    b: Expr | int = symbols.b
    l: Expr | int = symbols.l
    e: Expr | int = symbols.e
    f: Expr | int = symbols.f
    h: Expr | int = symbols.h
    q: Expr | int | None = None
    V: Expr | int = symbols.V
    P: Expr | int | None = None
    n_layers: Expr | int = symbols.n_layers
    c: Expr | int = 0
    attention: Attention = field(default_factory=lambda: Attention(cache=CacheKind.HEADS))
    mlp: MLP = field(default_factory=MLP)
    dropout: bool = True
    name: str = "gpt"

    def __post_init__(self) -> None:
        """Refuse what is no size.

        Raises:
            InputError: every size that is zero, negative, a fraction, text or not real.
        """
        problems = Problems()
        for name in ("b", "l", "e", "f", "h", "q", "V", "P", "n_layers"):
            value = getattr(self, name)
            if value is not None or name not in _DERIVED:
                problems.attempt(size, value, name)
        problems.refuse()

    def model(self) -> Model:
        """Declare the model."""
        return self._decoder().declare(self.name, (self._blocks(),), self._shape())

    def block(self) -> tuple[Op, ...]:
        """Declare one transformer block from x[b r e] to y[b r e]."""
        return self._decoder().block(self._blocks())

    def sizes(self) -> dict[str, Expr]:
        """Return the size of every axis."""
        return self._decoder().sizes.axes(self._shape())

    def _blocks(self) -> Kind:
        return Kind(FULL, DENSE, exact(self.n_layers))

    def _shape(self) -> Shape:
        return Shape(exact(self.b), exact(self.l), exact(self.c))

    def _decoder(self) -> Decoder:
        width, heads = exact(self.e), exact(self.h)
        entry = Entry.POSITION | Entry.DROP if self.dropout else Entry.POSITION
        return replace(
            GPT2,
            attention=self.attention,
            perceptron=self.mlp,
            tokens=replace(GPT2.tokens, steps=entry),
            branch=GPT2.branch.having(Outcome.DROP, on=self.dropout),
            sizes=Sizes(
                n_layers=self.n_layers,
                e=width,
                f=self.f,
                h=heads,
                k=heads,
                q=width / heads if self.q is None else self.q,
                V=self.V,
                P=exact(self.l) + exact(self.c) if self.P is None else self.P,
            ),
        )


def declared(name: str, shape: Shape) -> Model:
    """Declare GPT on a shape; "unbounded" has as many positions as tokens, others P."""
    positions = None if name == "unbounded" else symbols.P
    return GPT(b=shape.b, l=shape.l, c=shape.c, P=positions).model()
