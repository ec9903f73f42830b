"""ViT with symbols for sizes, as the table of vision transformers declares it."""

from enum import StrEnum

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.models.encoder import CLASSES, TRUNK
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.vision import VIT, Sizes
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


class Heads(StrEnum):
    """What stands on the class token, by the ends of the names of Hugging Face."""

    CLASSES = CLASSES
    POOLER = TRUNK


@dataclass(frozen=True)
class ViT:
    """Sizes of a ViT; every size is a symbol unless given.

    Args:
        b: microbatch [images].
        N_p: patches along one side of the square image.
        s_p: side of one patch [pixels].
        n_ch: channels of the image.
        e: embedding width.
        f: MLP width.
        h: attention heads.
        heads: what stands on the class token.
    """

    b: Expr | int = symbols.b
    N_p: Expr | int = symbols.N_p
    s_p: Expr | int = symbols.s_p
    n_ch: Expr | int = symbols.n_ch
    e: Expr | int = symbols.e
    f: Expr | int = symbols.f
    h: Expr | int = symbols.h
    n_classes: Expr | int = symbols.n_classes
    n_layers: Expr | int = symbols.n_layers
    heads: Heads = Heads.CLASSES
    name: str = "vit"

    def model(self) -> Model:
        """Declare the model."""
        side, patch = exact(self.N_p), exact(self.s_p)
        sizes = Sizes(
            b=self.b,
            patches=side**2,
            patch=(patch, patch),
            image=(side * patch, side * patch),
            n_ch=self.n_ch,
            e=self.e,
            f=self.f,
            h=self.h,
            q=exact(self.e) / self.h,
            n_classes=self.n_classes,
            n_layers=self.n_layers,
        )
        return VIT.declare(self.name, Shape(exact(self.b)), sizes, self.heads)
