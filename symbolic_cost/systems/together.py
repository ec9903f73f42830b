"""What of a part of a model decides over its ops: which are one kernel, which sides are aligned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby

from sympy import Expr, Integer, Rational, ceiling

from symbolic_cost.algebra import mul, on_terms, sums
from symbolic_cost.axes import At, Role
from symbolic_cost.extrema import AtLeast, Min
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import Phase, Quantity, Row, Units
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.update import TRAFFIC
from symbolic_cost.ops.view import View
from symbolic_cost.records import dataclass, replace
from symbolic_cost.systems.stacks import Fusion, Stack


@dataclass(frozen=True, slots=True)
class Around:
    """What of a part decides over its ops.

    Args:
        inside: rows, by their id, of tensors that never reach memory.
        followers: path and phase of ops whose kernel is that of an earlier op.
        odd: by path of a product, one where a side of it is no multiple of `ALIGNED`, else zero.
        scalar: by path of a product of activations, the same of `LOADED`.
        together: by path and phase of a product that is one kernel with others of the same input,
            what all of these write [byte].
        casts: by path of a product, tensors that are cast for it where it is in a narrow precision.
        weights: by path of a product, its own.
        groups: by path of a product of several experts, how many a rank has.
        some: by path of an op, how often its kernels run: of the chunks behind the first once where
            there are any, of a softmax that no kernel takes whole as often as `_APART` says.
    """

    inside: frozenset[int] = frozenset()
    followers: frozenset[tuple[str, Phase]] = frozenset()
    odd: Mapping[str, Expr] = field(default_factory=dict)
    scalar: Mapping[str, Expr] = field(default_factory=dict)
    together: Mapping[tuple[str, Phase], Expr] = field(default_factory=dict)
    casts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    weights: Mapping[str, frozenset[str]] = field(default_factory=dict)
    groups: Mapping[str, Expr] = field(default_factory=dict)
    some: Mapping[str, Expr] = field(default_factory=dict)


def around(rows: Sequence[Row], stack: Stack, of_part: Around) -> Around:
    """Return what of a part decides over its ops.

    Under a compiler passes in a row are one kernel: what one of them writes and no other op reads
    stays inside. Where a stack joins projections, those of one layer and input are one product.
    """
    together = _together(rows) if stack.projections == "joined" else {}
    inside: set[int] = set()
    followers: set[tuple[str, Phase]] = set()
    ops = grouped((row.path, row) for row in rows)
    readers: dict[str, set[str]] = {}
    for row in rows:
        if row.quantity is Quantity.READ:
            readers.setdefault(row.tensor, set()).add(row.path)
    for path, own in ops.items():
        if path.endswith(stack.fusion.absorbed):
            followers |= {(path, row.phase) for row in own}
            inside |= {id(row) for row in own if row.quantity in TRAFFIC}
    for chain in _kernels(ops, stack.fusion):
        listed = [row for own in chain.values() for row in own]
        later = tuple(chain)[1:]
        followers |= {(path, row.phase) for path in later for row in chain[path]}
        written = {r.tensor for r in listed if r.quantity is Quantity.WRITE}
        hidden = {t for t in written if readers.get(t) and readers[t] <= chain.keys()}
        inside |= {id(row) for row in listed if row.quantity in TRAFFIC and row.tensor in hidden}
    kernels = replace(of_part, inside=frozenset(inside), followers=frozenset(followers))
    return replace(kernels, together=together)


def _kernels(ops: Mapping[str, list[Row]], fusion: Fusion) -> Iterator[dict[str, list[Row]]]:
    """Yield ops that are one kernel: passes in a row, or those of a scope that are joined."""
    if fusion.merges:
        for passes, group in groupby(ops.items(), key=lambda op: not any(map(_is_bound, op[1]))):
            chain = dict(group)
            if passes and len(chain) > 1:
                yield chain
    for names in fusion.kernels:
        scopes: dict[str, dict[str, list[Row]]] = {}
        for path, own in ops.items():
            scope, _, name = path.rpartition(".")
            if name in names:
                scopes.setdefault(scope, {})[path] = own
        yield from (chain for chain in scopes.values() if len(chain) > 1)


def _together(rows: Sequence[Row]) -> Mapping[tuple[str, Phase], Expr]:
    """Return what products of one layer and input write together, by path and phase [byte]."""
    inputs: dict[str, tuple[str, str]] = {}
    products = {row.path for row in rows if row.kind == "einsum" and row.units is Units.MATRIX}
    for row in rows:
        forward = row.phase is Phase.FORWARD and row.quantity is Quantity.READ
        if forward and row.path in products:
            inputs.setdefault(row.path, (row.path.rpartition(".")[0], row.tensor))
    sizes = sums(
        ((inputs[row.path], row.phase), row.expr)
        for row in rows
        if row.path in inputs and row.quantity is Quantity.WRITE
        if row.phase is not Phase.BACKWARD_INPUT
    )
    return {
        (path, phase): written
        for (layer, phase), written in sizes.items()
        for path, own in inputs.items()
        if own == layer
    }


ALIGNED = 64
"""Elements of 16 bits that fill 128 bytes: sides of products of a multiple of these are aligned."""

LOADED = 8
"""Elements of 16 bits that fill 16 bytes, which kernels for matrix units load at once.

Weights begin at such places whatever their sides; heads lie between others of their width.
"""


def shapes(part: Part, model: Model, placement: Placement, batches: Expr) -> Around:
    """Return what the declaration of a part says of its ops; arguments as below.

    A kernel of softmax takes so many batches of scores at once.
    """
    groups = {
        f"{part.path}.{op.path}": mul(*(model.sizes[name] for name in experts))
        / placement.degree(tuple(mesh for name in experts for mesh in placement.meshes(name)))
        for op in part.ops
        for experts in ([n for n in op.axes if n in model.axes and model.axes[n] in _ROUTED],)
        if experts and op.weights and op.units is Units.MATRIX
    }
    weights = {f"{part.path}.{op.path}": frozenset(w.tensor for w in op.weights) for op in part.ops}
    odd = misaligned(part.path, part.ops, model, placement)
    scalar = misaligned(
        part.path, (op for op in part.ops if not op.weights), model, placement, LOADED
    )
    some = {
        f"{part.path}.{op.path}": Min(1, model.sizes[name])
        for op in part.ops
        for name in op.axes
        if name in model.axes and model.axes[name] in _BETWEEN
        if all(name in operand.axes for operand in (*op.inputs, *op.outputs))
    }
    some |= {
        f"{part.path}.{op.path}": 1 + (_APART - 1) * _remains(op, model, placement, batches)
        for op in part.ops
        if op.kind in _SOFTMAX and batches != 1
    }
    casts = _casts(part)
    return Around(odd=odd, scalar=scalar, casts=casts, weights=weights, groups=groups, some=some)


_SOFTMAX = ("softmax", "softmax_single")
_APART = 5
"""Kernels of a softmax op by op, in either direction: it is cast to single precision, scaled,
masked, normalized and cast back. Each is taken to move what the one kernel does."""


def _remains(op: Op, model: Model, placement: Placement, batches: Expr) -> Expr:
    """Return one where the batches of a rank's scores are no multiple of a number, else zero.

    For example 16 heads on 8 ranks and one sequence: 2 batches, no multiple of 4.
    """
    roles = (Role.BATCH, Role.HEAD, Role.GROUP)
    names = [name for name in op.outputs[0].axes if name in model.axes]
    own = [name for name in names if model.axes[name].role in roles]
    sizes = (model.sizes[name] / placement.degree(placement.meshes(name)) for name in own)
    return _uneven(mul(*sizes) / batches)


_ROUTED = At(Role.EXPERT, ("",))
_BETWEEN = At(Role.WHOLE, ("between",))


def _casts(part: Part) -> Mapping[str, frozenset[str]]:
    """Return tensors that become narrow for a product, by its path: inputs, once, and gradients.

    A norm writes its result as the products want it; other inputs are read again, and so is the
    gradient of every product's result.

    Source: transformer-engine.
    """
    sources: dict[str, str] = {}
    kinds: dict[str, str] = {}
    cast: set[str] = set()
    casts: dict[str, frozenset[str]] = {}
    for op in part.ops:
        for operand in op.outputs:
            moved = isinstance(op, View) and len(op.inputs) == 1
            sources[operand.tensor] = (
                sources.get(op.inputs[0].tensor, "") if moved else operand.tensor
            )
            kinds[operand.tensor] = op.kind
        if not op.weights or op.units is not Units.MATRIX:
            continue
        values = [operand for operand in op.inputs if not operand.is_weight]
        new = {o.tensor for o in values if sources.get(o.tensor, o.tensor) not in cast}
        new -= {tensor for tensor in new if kinds.get(sources.get(tensor, ""), "").endswith("norm")}
        cast |= {sources.get(operand.tensor, operand.tensor) for operand in values}
        casts[f"{part.path}.{op.path}"] = frozenset(new | {o.gradient().tensor for o in op.outputs})
    return casts


def misaligned(
    path: str, ops: Iterable[Op], model: Model, placement: Placement, fill: int = ALIGNED
) -> Mapping[str, Expr]:
    """Return by path of a product one where a side is no multiple of some elements, else zero.

    Sides are features: hidden, inner, vocabulary, heads with their width; sequences and positions
    are none. For example 96 heads of 150 on 8 ranks are 1800 = 28.1 x 64.
    """
    return {
        f"{path}.{op.path}": _odd(op, model, placement, fill)
        for op in ops
        if op.units is Units.MATRIX and len(op.stages) == 1
    }


def _odd(op: Op, model: Model, placement: Placement, fill: int) -> Expr:
    sides: dict[Role, Expr] = {}
    for name in op.axes:
        axis = model.axes.get(name)
        role = None if axis is None else _SIDES.get(axis.role)
        if axis is None or role is None:
            continue
        if role is Role.HEAD and not op.weights and axis.role is not Role.WIDTH:
            continue  # heads are products of their own
        size = model.sizes[name] / placement.degree(placement.meshes(name))
        sides[role] = sides.get(role, Integer(1)) * size
    aligned = Integer(1)
    for size in sides.values():
        aligned = aligned * (1 - _uneven(size / fill))
    return 1 - aligned


def _uneven(blocks: Expr) -> Expr:
    """Return one where a number of blocks is no whole one, else zero."""
    return AtLeast(on_terms(ceiling)(blocks) - blocks, _LEAST)


_LEAST = Rational(1, 1000)
"""Less than the smallest part of a block that a side can leave."""

_SIDES = {
    **dict.fromkeys((Role.HEAD, Role.GROUP, Role.WIDTH), Role.HEAD),
    **{role: role for role in (Role.HIDDEN, Role.INNER, Role.VOCABULARY, Role.LATENT)},
}
"""Which side of a product an axis belongs to."""


def _is_bound(row: Row) -> bool:
    """Tell whether a row is of a product, or of a collective that others wait for."""
    return row.units is Units.MATRIX or row.collective is not None
