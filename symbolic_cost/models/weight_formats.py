"""Formats of weights in few bits: bytes of an element, and what blocks of elements share.

Tables of code words (16 and 256 values) are not counted.
"""

from collections.abc import Callable, Mapping
from enum import Enum

from sympy import Expr, Integer, Rational

from symbolic_cost.ops.declare import Op, Operand
from symbolic_cost.ops.stored import Block, Scale, Stored

Format = Callable[[Op, Operand], Stored]
"""The format of a weight of an op."""

HALF, ONE, SINGLE, SHORT = Rational(1, 2), Integer(1), Integer(4), Integer(2)
"""Bytes of an element of 4, 8, 32 and 16 bits."""


class Share(Enum):
    """What shares a scale, besides so many summed features or a block of both."""

    WEIGHT = "all of a weight"
    RESULT = "the summed features of a result"


Shared = Share | int | tuple[int, int]
"""What shares a scale: as named, summed features, or result features by summed ones."""

_WORD = 32


def sides_of(op: Op, weight: Operand) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the places of a weight's axes that its product sums over, and that it makes."""
    result, (x,) = op.outputs[0].axes, op.inputs
    summed = tuple(i for i, axis in enumerate(weight.axes) if axis not in result)
    result_axes = tuple(i for i, a in enumerate(weight.axes) if a in result and a not in x.axes)
    return summed, result_axes


def scaled(
    name: str,
    size: Expr,
    shared: Shared,
    scale: Expr,
    *,
    zero: Expr = Integer(0),
    packed: int = 0,
    index: bool = False,
    whole: int = 0,
    source: str,
) -> Format:
    """Return a format with a scale for a block.

    Args:
        name: of the format.
        size: of an element [byte].
        shared: what shares a scale.
        scale: of one [byte].
        zero: of one, which blocks share like scales [byte].
        packed: bits of a zero, where those of result features are packed in words of 32 bits.
        index: whether every summed feature has the number of its group.
        whole: what a weight has once, as scales of inputs and shapes [byte].
        source: of the layout.
    """

    def of(op: Op, weight: Operand) -> Stored:
        summed, outer = sides_of(op, weight)
        every: Block = ((*summed, *outer), None)
        blocks = _blocks(shared, summed, outer)
        scales = [Scale(scale, blocks)]
        if zero != 0:
            scales.append(Scale(zero, blocks))
        if packed:
            scales.append(Scale(SINGLE, (*blocks, (outer, Integer(_WORD // packed)))))
        if index:
            scales.append(Scale(SINGLE, ((outer, None),)))
        if whole:
            scales.append(Scale(Integer(whole), (every,)))
        return Stored(name, size, tuple(scales), source)

    return of


def _blocks(shared: Shared, summed: tuple[int, ...], outer: tuple[int, ...]) -> tuple[Block, ...]:
    if shared is Share.WEIGHT:
        return (((*summed, *outer), None),)
    if shared is Share.RESULT:
        return ((summed, None),)
    if isinstance(shared, tuple):
        return ((outer, Integer(shared[0])), (summed, Integer(shared[1])))
    return ((summed, Integer(shared)),)


def four_bits(name: str, *, double: bool) -> Format:
    """Return a format of 4 bits with a scale for 64 elements, itself in 8 bits if double.

    Source: dettmers-2023.
    """

    def of(op: Op, weight: Operand) -> Stored:
        summed, outer = sides_of(op, weight)
        every = (*summed, *outer)
        one = (Scale(SINGLE, ((every, Integer(64)),)),)
        two = (
            Scale(ONE, ((every, Integer(64)),)),
            Scale(SINGLE, ((every, Integer(64 * 256)),)),
            Scale(SINGLE, ((every, None),)),
        )
        return Stored(name, HALF, two if double else one, "dettmers-2023")

    return of


def grouped(bits: int, group: int, *, indexed: bool, words: int = 0) -> Format:
    """Return packed integers with a scale and a zero for a group of summed features.

    Args:
        bits: of an element, and of a zero.
        group: features of one group; -1 for all.
        indexed: whether every summed feature has the index of its group.
        words: summed features whose scales and zeros fill words together, if any do.
    """
    size, name = Rational(bits, 8), f"int{bits}"
    shared: Shared = Share.RESULT if group < 0 else words or group
    groups = words // group if words else 1
    return scaled(
        *(name, size, shared, groups * SHORT),
        zero=groups * size,
        index=indexed,
        source="frantar-2022",
    )


def floats(sides: tuple[int, int] | None, *, inputs: bool = False) -> Format:
    """Return 8-bit floats with a scale for a block of result and summed features.

    Args:
        sides: of a block; none if a weight is one block.
        inputs: whether the inputs of a product have a scale that is stored, one for all.
    """
    shared = sides or Share.WEIGHT
    return scaled("fp8", ONE, shared, SINGLE, whole=4 * inputs, source="deepseek-2024")


ROWS = scaled("int8", ONE, Share.RESULT, SINGLE, source="dettmers-2022")
"""8 bits with a scale for each result feature."""

MICROSCALED = scaled("mxfp4", HALF, 32, ONE, source="rouhani-2023")
"""4-bit floats with an exponent for 32 summed features."""

FORMATS: Mapping[str, Format] = {
    "nf4": four_bits("nf4", double=False),
    "nf4-double": four_bits("nf4", double=True),
    "int8": ROWS,
    "int4": grouped(4, 128, indexed=False),
    "fp8": floats((128, 128)),
    "mxfp4": MICROSCALED,
}
"""Formats by name: as bitsandbytes, AWQ with groups of 128, blocks of 128 x 128, and OCP MX."""
