"""What stands between a tower and a language model, by kind: a connector's widths, and images."""

from collections.abc import Callable, Mapping
from math import isqrt
from typing import ClassVar

from sympy import Expr, Integer

from symbolic_cost.errors import InputError
from symbolic_cost.models.build import Fields, Shape
from symbolic_cost.models.nested.sections import MERGER, resampler
from symbolic_cost.models.vision.config import freed
from symbolic_cost.models.vision.sides import side_lengths
from symbolic_cost.models.vision.transformer import Sizes
from symbolic_cost.ops.declare import Model, Op
from symbolic_cost.records import dataclass, field


@dataclass(frozen=True)
class Beside:
    """Widths of a connector that are not the usual, and weights beside it with their sizes."""

    widths: tuple[int, ...] = ()
    ops: tuple[Op, ...] = ()
    sizes: Mapping[str, Expr] = field(default_factory=dict)


@dataclass(frozen=True)
class Middle:
    """A connector as wide as the tower or the language model.

    Attributes:
        feature: of the tower that it takes unless the whole says.
        tiled: whether images come in tiles, whose number of tokens only their sides tell.
    """

    feature: ClassVar[str] = "default"
    tiled: ClassVar[bool] = False

    def read(self, fields: Fields, inner: Fields, text: Model, e: int, merge: int) -> Beside:  # noqa: ARG002 - of others
        """Read its widths, of a tower of some width whose patches a token joins."""
        return Beside()


@dataclass(frozen=True)
class Adapter(Middle):
    """Fields of the tower's section give the widths, all alike; it takes joined patches."""

    names: tuple[str, ...]

    def read(self, fields: Fields, inner: Fields, text: Model, e: int, merge: int) -> Beside:  # noqa: ARG002
        """Read what is as wide as the tower's perceptron."""
        widths, wide = [inner.size(name) for name in self.names], e * merge
        inner.require(
            holds=len(set(widths)) == 1 and inner.size("intermediate_size") == wide,
            problem=f"widths {widths} are to be one, and intermediate_size the {wide} features of "
            "joined patches",
            name=self.names[-1],
        )
        return Beside((widths[0], widths[0]))


@dataclass(frozen=True)
class Resampler(Middle):
    """The perceptron of the language model, before a resampler that a section tells."""

    key: str
    tiled: ClassVar[bool] = True

    def read(self, fields: Fields, inner: Fields, text: Model, e: int, merge: int) -> Beside:  # noqa: ARG002
        return Beside((int(text.sizes["f"]), e), *resampler(fields, self.key))


@dataclass(frozen=True)
class Merger(Middle):
    """A perceptron whose width stands in the section of the tower."""

    def read(self, fields: Fields, inner: Fields, text: Model, e: int, merge: int) -> Beside:  # noqa: ARG002
        return Beside((inner.size(MERGER), int(text.sizes["e"])))


@dataclass(frozen=True)
class Halved(Middle):
    """A hidden layer that is cut in two halves, as wide as a field of the whole says."""

    key: str
    feature: ClassVar[str] = "full"

    def read(self, fields: Fields, inner: Fields, text: Model, e: int, merge: int) -> Beside:  # noqa: ARG002
        wide = fields.size(self.key, int(text.sizes["e"]))
        fields.require(holds=wide % 2 == 0, problem="an even width is halved", name=self.key)
        return Beside((wide // 2, e))


@dataclass(frozen=True)
class Images:
    """Images of a batch, as a tower takes them.

    Args:
        tokens: of an image, in the sequence of the language model.
        batch: images.
        sizes: of the tower.
    """

    tokens: Expr
    batch: Expr
    sizes: Sizes


@dataclass(frozen=True)
class Seeing:
    """What tells the images of a batch.

    Args:
        inner: fields of the tower's section.
        sizes: of the tower, on an image of its own sides.
        tokens: of such an image.
        tokens_field: that says the tokens of an image; empty where none does.
        side: patches along a side that a token joins.
    """

    fields: Fields
    inner: Fields
    shape: Shape
    sizes: Sizes
    tokens: Expr
    tokens_field: str
    side: int


def images(own: Seeing) -> Images:
    """Read the images of a batch as the kind of the tower has them."""
    read = _KINDS.get(own.inner.family, _fixed)(own)
    patches = read.tokens * own.side**2
    own.inner.require(
        holds=own.shape.i == 0 or patches % read.sizes.window == 0,
        problem=f"windows of {read.sizes.window} patches do not divide the {patches} of an image",
        name="window_size",
    )
    return read


def _fixed(own: Seeing) -> Images:
    _check_grid(own)
    number = own.shape.i / own.tokens
    if number.is_integer is False:
        told = f"{own.shape.i} image tokens are no multiple of the {own.tokens} of an image"
        raise InputError(told)
    return Images(own.tokens, own.shape.b * number, own.sizes)


def _free(own: Seeing) -> Images:
    """Return one image a sequence, of as many patches as its tokens join."""
    if own.shape.i == 0:
        return _cut(own, Integer(1), Integer(0))
    told = "of one image; several attend each to its own patches"
    own.fields.assume("image_tokens", told)
    return _cut(own, own.shape.i, own.shape.b)


def _in_a_row(own: Seeing) -> Images:
    """Return all images of a batch in one row, whose patches meet all others under a mask."""
    if own.shape.i == 0:
        return _cut(own, Integer(1), Integer(0))
    return _cut(own, own.shape.i * own.shape.b, Integer(1))


def _cut(own: Seeing, tokens: Expr, batch: Expr) -> Images:
    return Images(tokens, batch, freed(own.sizes, tokens * own.side**2))


_KINDS: Mapping[str, Callable[[Seeing], Images]] = {
    **dict.fromkeys(
        (
            *("qwen2_vl_vision", "qwen2_5_vl_vision", "qwen3_vl_vision", "qwen3_vl_moe_vision"),
            *("qwen3_5_vision", "qwen3_5_moe_vision", "qwen4_exp_vision"),
            *("glm4v_vision", "glm4v_moe_vision"),
            "cohere_compass_vision",
        ),
        _free,
    ),
    "pixtral": _in_a_row,
}
"""How towers of images of any size take them; others have sides of their own."""


def _check_grid(own: Seeing) -> None:
    """Note a grid of patches that is no grid of tokens, where there are images."""
    image = side_lengths(own.inner, "image_size", 224)
    patch = side_lengths(own.inner, "patch_size", 16)
    grid = [whole // part for whole, part in zip(image, patch, strict=True)]
    joined = [own.side] * len(grid)
    fits = not any(side % each for side, each in zip(grid, joined, strict=True))
    if own.tokens_field:
        number = own.fields.size(own.tokens_field, 256)
        root = isqrt(number)
        joined = [max(side // max(root, 1), 1) for side in grid]
        rows = [side // each for side, each in zip(grid, joined, strict=True)]
        fits = rows == [root, root] and root**2 == number
    problem = f"{' x '.join(map(str, grid))} patches of an image are no grid of whole tokens"
    own.inner.require(holds=own.shape.i == 0 or fits, problem=problem, name="image_size")
