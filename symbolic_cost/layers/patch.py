"""Patches of an image or a video as tokens, with learned tokens before them.

Axes: b images, ch channels, s frames, y and x pixels, ps, py and px those of a patch, n patches, r
positions of the learned tokens and the patches, n_x further learned tokens, p rows of the table of
positions, which all ranks hold whole, e embedding.
"""

from enum import Flag, StrEnum, auto

from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, conv, pointwise
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, ch whole, s whole, y whole, x whole, ps whole, py whole, px whole, n token patch, "
    "r token residual, n_x whole, p whole, e hidden"
)


class Places(StrEnum):
    """Which tokens have a position that is added."""

    NONE = "none"
    ALL = "all"
    SOME = "the class token and the patches, or those of another number"
    COMPUTED = "all, and they are constant"


class Piece(Flag):
    """What an embedding of patches has besides its kernel, its positions and its norm."""

    NONE = 0
    CLASS = auto()
    """A class token stands before the patches."""
    FURTHER = auto()
    """n_x further tokens stand before the patches."""
    BIAS = auto()
    """The convolution has one."""
    FRAMES = auto()
    """It is a video, cut into tubes."""


@dataclass(frozen=True)
class Patches:
    """Embedding from an image to x[b r e].

    Args:
        pieces: what it has besides.
        places: which tokens have a position.
        norm: of the sum, or None.
    """

    pieces: Piece = Piece.CLASS | Piece.BIAS
    places: Places = Places.ALL
    norm: Norm | None = None

    def ops(self) -> tuple[Op, ...]:
        image, kernel = ("y x", "py px")
        if Piece.FRAMES in self.pieces:
            image, kernel = ("s y x", "ps py px")
        bias = " + *bias[e]" if Piece.BIAS in self.pieces else ""
        pattern = f"!image[b ch {image}], *w[ch e {kernel}]{bias} -> patches[b e n]"
        return (conv("patch", pattern), *chain("patches", self._steps(), "x"))

    def _steps(self) -> list[Step]:
        learned = {Piece.CLASS: ", *token[e]", Piece.FURTHER: ", *further[n_x e]"}
        tokens = "".join(operand for piece, operand in learned.items() if piece in self.pieces)
        laid = "n n_x" if Piece.FURTHER in self.pieces else "n"
        steps: list[Step] = [
            lambda x, y: pointwise("class", f"{x}[b e n]{tokens} -> {y}[b r e]", "copy", laid=laid)
        ]
        if self.places is not Places.NONE:
            computed = self.places is Places.COMPUTED
            # Ranks that split positions hold the table whole.
            table = "!places[r e]:buffer" if computed else "*table[p e]"
            left_out = "" if computed else "p"
            steps.append(
                lambda x, y: pointwise(
                    "position", f"{x}[b r e], {table} -> {y}[b r e]", "add", laid=left_out
                )
            )
        if self.norm is not None:
            norm = self.norm
            steps.append(lambda x, y: norm.op("norm", f"{x}[b r e]", f"{y}[b r e]"))
        return steps
