"""Vision transformers: an encoder of patches, and the sizes of its images.

The traits are those of an encoder; the sequence is the image, so l has no meaning. Axes: as in the
layers; n_rel rows of a table of distances between patches.
"""

from collections.abc import Mapping

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.axes import Axis, Glossary, Role, axes, glossary
from symbolic_cost.layers import (
    attention,
    attention_core,
    gated,
    heads,
    mlp,
    patch,
    pooling,
    relative,
    rotary,
)
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.layers.heads import Classes
from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.patch import Patches
from symbolic_cost.layers.residual import Branch
from symbolic_cost.models.encoders.encoder import ATTENTION, CLASSES, TANH, Assumed, Encoder, Traits
from symbolic_cost.models.shape import Shape
from symbolic_cost.models.vision import divided, windows
from symbolic_cost.records import dataclass, field, replace
from symbolic_cost.symbols import exact

AXES = glossary(
    attention.AXES,
    attention_core.AXES,
    mlp.AXES,
    gated.AXES,
    rotary.AXES,
    relative.AXES,
    patch.AXES,
    heads.AXES,
    pooling.AXES,
    windows.AXES,
    divided.AXES,
    axes("c_n whole"),
)

VIT = Encoder(
    Patches(),
    replace(ATTENTION, core=AttentionCore(steps=Step.CAST)),
    branch=Branch(),
    last=Norm.LAYER,
    pooler=TANH,
    heads={CLASSES: Classes()},
    traits=Traits(assumed=Assumed.NONE),
    source="dosovitskiy-2020",
)
"""Pre-norm blocks on patches and a class token, softmax in single precision."""


@dataclass(frozen=True)
class Sizes:
    """Sizes of a vision transformer; all others are symbols.

    Args:
        b: microbatch [images].
        patches: of an image, or tubes of a video.
        patch: shape of one [pixels], frames first if there are any.
        image: shape [pixels], frames first if there are any.
        learned: tokens before the patches, the class token included.
        further: those besides the class token.
        places: rows of the table of positions; one for every token unless given.
        positions: tokens of the blocks where some patches are left out.
        window: positions of a window.
        others: sizes of further axes.
    """

    b: Expr | int = symbols.b
    patches: Expr | int = symbols.N_p**2
    patch: tuple[Expr | int, ...] = (symbols.s_p, symbols.s_p)
    image: tuple[Expr | int, ...] = (symbols.N_p * symbols.s_p, symbols.N_p * symbols.s_p)
    learned: Expr | int = 1
    further: Expr | int = 1
    places: Expr | int | None = None
    n_rel: Expr | int = symbols.n_rel
    n_layers: Expr | int = symbols.n_layers
    positions: Expr | int | None = None
    window: int = 1
    others: Mapping[str, Expr | int] = field(default_factory=dict)

    def glossary(self) -> Glossary:
        """Return the roles of all axes; further ones stay whole."""
        whole = {axis: Axis(axis, Role.WHOLE) for axis in self.others if axis not in AXES}
        return {**AXES, **whole}

    def axes(self, shape: Shape | None = None) -> dict[str, Expr]:  # noqa: ARG002 - the image is it
        """Return the size of every axis."""
        every = exact(self.patches) + self.learned
        positions = every if self.positions is None else exact(self.positions)
        named = {"b": self.b, "ch": symbols.n_ch, "n": self.patches, "n_x": self.further}
        named |= dict(zip(("s", "y", "x")[-len(self.image) :], self.image, strict=True))
        named |= dict(zip(("ps", "py", "px")[-len(self.patch) :], self.patch, strict=True))
        named |= dict.fromkeys(("r", "l", "t"), positions) | {
            "p": every if self.places is None else self.places
        }
        named |= {"e": symbols.e, "w": symbols.e, "f": symbols.f, "h": symbols.h, "k": symbols.h}
        named |= {"d": symbols.e / symbols.h, "g": 1, "c": 3, "one": 1}
        named |= {"n_rel": self.n_rel, "z": symbols.n_classes}
        named |= {"u_w": exact(self.b) * positions / self.window}
        named |= dict.fromkeys(("r_w", "l_w", "t_w"), self.window)
        named |= {"probes": 1, "c_n": 2, "sides": 4}
        return {axis: exact(size) for axis, size in (named | dict(self.others)).items()}
