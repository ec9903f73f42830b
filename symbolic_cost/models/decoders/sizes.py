"""Sizes of decoders, and the size of every axis."""

from dataclasses import fields
from fractions import Fraction

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.extrema import Min
from symbolic_cost.layers.latent import Expansion
from symbolic_cost.models.shape import Shape
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact


@dataclass(frozen=True)
class Sizes:
    """Sizes of a decoder that a model may give; all others are symbols of the glossary.

    Args:
        e: embedding width.
        f: width of the perceptron.
        h: attention heads.
        k: key/value heads.
        q: head width.
        V: vocabulary.
        P: learned positions.
        capacity: slots of the experts per chosen token; above 1 where they are padded.
    """

    n_layers: Expr | int = symbols.n_layers
    e: Expr | int = symbols.e
    f: Expr | int = symbols.f
    h: Expr | int = symbols.h
    k: Expr | int = symbols.k
    q: Expr | int = symbols.q
    V: Expr | int = symbols.V
    P: Expr | int = symbols.P
    capacity: Expr | Fraction | int = 1

    def __post_init__(self) -> None:
        """Make every size exact."""
        for item in fields(self):
            object.__setattr__(self, item.name, exact(getattr(self, item.name)))

    def axes(self, shape: Shape, latent: Expansion | None = None) -> dict[str, Expr]:
        """Return the size of every axis that a decoder may have.

        Args:
            shape: what the model runs on.
            latent: where latent attention expands keys and values: heads of one group, of width
                d_n + d_r, or r_kv + d_r on the latents; None if attention is not latent.
        """
        b, l, c = shape.b, shape.l, shape.c
        plain = symbols.r_kv if latent is Expansion.NEVER else symbols.d_n
        width = plain + symbols.d_r if latent else self.q
        heads, group = (self.h, Integer(1)) if latent else (self.k, self.h / self.k)
        return {
            "b": b,
            **dict.fromkeys(("r", "l"), l),
            # Full layers use and keep all positions; a sliding layer keeps the window less one.
            **dict.fromkeys(("t", "m"), c + l),
            "near": Min(c, symbols.W - 1) + l,
            "m_near": Min(c + l, symbols.W - 1),
            "window": symbols.W,
            **dict.fromkeys(("e", "n_e"), self.e),
            "f": self.f,
            "c": Integer(3),
            "two": Integer(2),
            "n_4": Integer(4),
            "r_d": heads,
            "one": Integer(1),
            "h": self.h,
            "k": heads,
            "g": group,
            "d": width,
            "v": self.V,
            "p": self.P,
            "w": symbols.e_p,
            "n_z": symbols.n_classes,
            # Tokens by expert: the mean, since routing is not known.
            **dict.fromkeys(("x", "o"), symbols.E),
            "a": symbols.E_t,
            "u": b,
            **dict.fromkeys(("z", "z_r"), l * symbols.E_t * self.capacity / symbols.E),
            **{name: symbols.symbol(name) for name in _OWN_NAME},
            "d_n": symbols.d_n if latent else self.q - symbols.d_r,
        }


_OWN_NAME = ("f_m", "f_s", "r_m", "r_q", "r_kv", "d_r", "d_v", "h_x", "d_x")
"""Sizes whose axis bears their name."""
