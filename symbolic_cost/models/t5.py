"""T5 with symbols for sizes, as the table of encoder-decoders declares it."""

from dataclasses import replace

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.gated import GatedMLP
from symbolic_cost.layers.mlp import MLP
from symbolic_cost.models.seq2seq import Sizes
from symbolic_cost.models.seq2seq_families import SEQ2SEQ
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass


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
    cached: Expr | int | None = None
    name: str = "t5"

    def model(self) -> Model:
        """Declare the model."""
        plain = SEQ2SEQ["t5"]
        mlp = GatedMLP(self.function) if self.gated else MLP(self.function, Bias.NONE)
        family = replace(plain, perceptron=mlp).tied(tied=self.tied)
        sizes = Sizes(
            b=self.b,
            l=self.l,
            l_t=self.l_t,
            cached=self.cached,
            e=self.e,
            f=self.f,
            h=self.h,
            k=self.h,
            q=self.q,
            V=self.V,
            n_layers=self.n_layers,
            n_dec=self.n_dec,
            n_rel=self.n_rel,
        )
        return family.declare(self.name, sizes)
