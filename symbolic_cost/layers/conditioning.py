"""Streams that a condition modulates: the time step, a prompt or a class as shifts and scales.

Axes: b samples, e width of a stream, e_t that of the condition, e_h of its hidden layers, r
positions of a stream; m_2 ... m_12 the pieces of a modulation: shifts, scales and gates.
"""

from collections.abc import Iterable, Iterator

from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, lookup, pointwise, split
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, e hidden, e_t hidden, e_h hidden, r token residual, "
    "m_2 whole, m_3 whole, m_4 whole, m_6 whole, m_9 whole, m_12 whole, "
    "n_c whole"
)

ATTENTION = ("shift_a", "scale_a", "gate_a")
PERCEPTRON = ("shift_m", "scale_m", "gate_m")
SIX = ATTENTION + PERCEPTRON
SECOND = ("shift_b", "scale_b", "gate_b")
"""Of a second attention on the same stream."""
LAST = ("shift", "scale")

PIECES = {f"m_{n}": n for n in (2, 3, 4, 6, 9, 12)}
"""Sizes of the axes of pieces."""


def modulation(pieces: tuple[str, ...]) -> tuple[Op, ...]:
    """Declare the product that makes pieces[b e] of cond[b e_t]."""
    axis = f"m_{len(pieces)}"
    return (
        pointwise("act", "cond[b e_t] -> a[b e_t]", "silu"),
        einsum("linear", f"a[b e_t], *w[{axis} e_t e] + *bias[{axis} e] -> pieces[{axis} b e]"),
        parted(pieces),
    )


def tabled(pieces: tuple[str, ...]) -> tuple[Op, ...]:
    """Declare pieces[b e] as those that all blocks share plus a table of the block's own."""
    axis = f"m_{len(pieces)}"
    added = f"shared[{axis} b e], *table[{axis} e] -> pieces[{axis} b e]"
    return (pointwise("add", added, "add"), parted(pieces))


def parted(pieces: Iterable[str]) -> Op:
    """Declare the pieces of pieces[m_n b e]."""
    names = tuple(pieces)
    results = ", ".join(f"{name}[b e]" for name in names)
    return split("split", f"pieces[m_{len(names)} b e] -> {results}")


def entered(
    shift: str, scale: str, rows: str = "b r", norm: Norm | None = Norm.LAYER_BARE
) -> tuple[Op, ...]:
    """Declare y = norm(x) (1 + scale) + shift on a stream x[b r e]."""
    axes, x = f"[{rows} e]", "x" if norm is None else "normed"
    first = () if norm is None else (norm.op("norm", f"x{axes}", f"normed{axes}"),)
    return (
        *first,
        pointwise("scale", f"{x}{axes}, {scale}[b e] -> scaled{axes}", "mul"),
        pointwise("shift", f"scaled{axes}, {shift}[b e] -> y{axes}", "add"),
    )


def gated(gate: str, rows: str = "b r") -> tuple[Op, ...]:
    """Declare y = x + gate outcome."""
    axes = f"[{rows} e]"
    return (
        pointwise("opening", f"outcome{axes}, {gate}[b e] -> opened{axes}", "mul"),
        pointwise("residual", f"x{axes}, opened{axes} -> y{axes}", "add"),
    )


@dataclass(frozen=True)
class Embedded:
    """A vector of a sample, as a condition[b e_t]: two products, or a row of a table.

    Args:
        name: of what is embedded.
        width: axis of what goes in; that of the rows of a table if `table`.
        function: between the products; a table is looked up if empty.
        shared: prefix of the names of weights that several parts use; own ones if empty.
    """

    name: str
    width: str
    function: str = "silu"
    shared: str = ""

    def ops(self) -> Iterator[Op]:
        """Declare the embedding as {name}[b e_t]."""
        own, w = self.name, self._weight
        if not self.function:
            table = f"!{own}_of[b]:index, *{w('table')}[{self.width} e_t] -> {own}[b e_t]"
            yield lookup(own, table)
            return
        first = f"!{own}_of[b {self.width}], *{w('w1')}[{self.width} e_h]"
        yield einsum(f"{own}.linear_1", f"{first} + *{w('b1')}[e_h] -> {own}.u[b e_h]")
        yield pointwise(f"{own}.act", f"{own}.u[b e_h] -> {own}.a[b e_h]", self.function)
        second = f"{own}.a[b e_h], *{w('w2')}[e_h e_t] + *{w('b2')}[e_t]"
        yield einsum(f"{own}.linear_2", f"{second} -> {own}[b e_t]")

    def _weight(self, name: str) -> str:
        return f"@{self.shared}.{self.name}.{name}" if self.shared else name


def conditioned(parts: tuple[Embedded, ...]) -> tuple[Op, ...]:
    """Declare cond[b e_t] as the sum of embeddings."""
    ops = [op for part in parts for op in part.ops()]
    last = parts[0].name
    for i, part in enumerate(parts[1:]):
        total = "cond" if i == len(parts) - 2 else f"sum{i}"
        ops.append(
            pointwise(f"add{i}", f"{last}[b e_t], {part.name}[b e_t] -> {total}[b e_t]", "add")
        )
        last = total
    return tuple(ops)
