"""BERT with symbols for sizes, as the table of encoders declares it."""

from enum import StrEnum

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.models.encoder import MASKED, PAIRED, TRUNK, Sizes
from symbolic_cost.models.encoder_families import ENCODERS
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


class Heads(StrEnum):
    """What stands on the encoder, by the ends of the names of Hugging Face."""

    POOLER = TRUNK
    MASKED = MASKED
    PRETRAINING = PAIRED


@dataclass(frozen=True)
class BERT:
    """Sizes of a BERT; every size is a symbol unless given.

    Args:
        b: microbatch [sequences].
        l: sequence length [tokens].
        e: embedding width.
        f: MLP width.
        h: attention heads.
        V: vocabulary.
        P: learned positions.
        T: token types.
        heads: what stands on the encoder.
    """

    b: Expr | int = symbols.b
    l: Expr | int = symbols.l
    e: Expr | int = symbols.e
    f: Expr | int = symbols.f
    h: Expr | int = symbols.h
    V: Expr | int = symbols.V
    P: Expr | int = symbols.P
    T: Expr | int = symbols.T
    n_layers: Expr | int = symbols.n_layers
    heads: Heads = Heads.MASKED
    name: str = "bert"

    def model(self) -> Model:
        """Declare the model."""
        sizes = Sizes(
            self.n_layers,
            self.e,
            self.f,
            self.h,
            self.h,
            exact(self.e) / self.h,
            self.V,
            self.P,
            self.T,
            n_classes=2,
        )
        shape = Shape(exact(self.b), exact(self.l))
        return ENCODERS["bert"].declare(self.name, shape, sizes, self.heads)
