"""Parts of a network that a trail declared: what it repeats is derived once.

Ops up to a repeated block are one part, the block is one, those behind it are the next. A tensor
that a later part takes while its own part takes it too is handed on under a name of its own.
"""

from collections.abc import Iterator, Sequence

from sympy import Integer

from symbolic_cost.layers.conv import Trail
from symbolic_cost.ops.declare import Operand, Part, Place, view
from symbolic_cost.ops.op import Op, OperandMap
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class _Piece:
    """Ops of one part, and how often they run."""

    path: str
    ops: tuple[Op, ...]
    times: int

    @property
    def outputs(self) -> dict[str, Operand]:
        """What its ops make, by name."""
        return {operand.tensor: operand for op in self.ops for operand in op.outputs}

    @property
    def met(self) -> set[str]:
        """Names of what its ops take, constants too."""
        return {operand.tensor for op in self.ops for operand in op.inputs}

    @property
    def inputs(self) -> dict[str, Operand]:
        """What its ops take, but constants, by name."""
        operands = (operand for op in self.ops for operand in op.inputs)
        return {operand.tensor: operand for operand in operands if not operand.constant}


def parts(trail: Trail, name: str) -> tuple[Part, ...]:
    """Return the parts of a trail, numbered below a name; its name alone if nothing repeats."""
    pieces = tuple(_pieces(trail, name))
    if len(pieces) == 1:
        return (Part(name, tuple(trail.ops)),)
    makers = {tensor: piece for piece in pieces for tensor in piece.outputs}
    outer = [{t: makers[t] for t in piece.inputs if makers[t] is not piece} for piece in pieces]
    later = {tensor for sources in outer for tensor in sources}
    names = {t: f"{t}.on" if t in makers[t].inputs else t for t in later}
    made = [_part(piece, sources, names) for piece, sources in zip(pieces, outer, strict=True)]
    # A prompt and a time step are one tensor to all blocks: the first that takes it keeps it.
    for tensor in (maps.tensor for maps in trail.aside.values()):
        takers = [i for i, piece in enumerate(pieces) if tensor in piece.met]
        for i in takers[1:]:
            made[i] = replace(
                made[i], saved_before=(*made[i].saved_before, names.get(tensor, tensor))
            )
    return tuple(made)


def _pieces(trail: Trail, name: str) -> Iterator[_Piece]:
    """Yield the ops before, of and behind every repeated block."""
    bounds: list[tuple[int, int, int]] = []
    end = 0
    for first, last, times in trail.repeats:
        bounds += [(end, first, 1), (first, last, times)]
        end = last
    bounds.append((end, len(trail.ops), 1))
    filled = [bound for bound in bounds if bound[0] < bound[1]]
    for place, (first, last, times) in enumerate(filled):
        yield _Piece(f"{name}.{place}", tuple(trail.ops[first:last]), times)


def _part(piece: _Piece, sources: dict[str, _Piece], names: dict[str, str]) -> Part:
    own = _renamed({tensor: names[tensor] for tensor in sources})
    handed: Sequence[Op] = [
        view(names[tensor], f"{tensor}{axes} -> {names[tensor]}{axes}")
        for tensor, axes in ((t, f"[{' '.join(o.axes)}]") for t, o in piece.outputs.items())
        if names.get(tensor, tensor) != tensor
    ]
    ops = (*(op.mapped(own) for op in piece.ops), *handed)
    takes = {names[tensor]: source.path for tensor, source in sources.items()}
    return Part(piece.path, ops, Integer(piece.times), takes, Place.END)


def _renamed(names: dict[str, str]) -> OperandMap:
    """Return what renames the tensors of other parts."""

    def own(operand: Operand) -> Operand:
        new = names.get(operand.tensor)
        return operand if new is None or operand.is_weight else replace(operand, tensor=new)

    return own
