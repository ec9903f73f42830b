"""Rows of the published tables: sums of what the model counts, as expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from sympy import Add, Expr

from symbolic_cost.ledger import BACKWARD, CollectiveKind, Phase, Quantity, Row
from symbolic_cost.published.nersc_2024.books import counted, op_of
from symbolic_cost.published.nersc_2024.declaration import (
    FUSED,
    LINEARS,
    MESHES,
    PRODUCTS,
    Scheme,
    matrix_flop,
)
from symbolic_cost.systems.times import TRAFFIC

PASSES: Mapping[str, tuple[Phase, ...]] = {
    "fwd": (Phase.FORWARD,),
    "bwd": (Phase.RECOMPUTE, *BACKWARD),
}
"""Phases of the two passes."""


class Moved(NamedTuple):
    """One collective of a row.

    Args:
        kind: of the collective.
        mesh: "m1" or "m2", whose ranks take part.
        message: in units of the element size.
    """

    kind: CollectiveKind
    mesh: str
    message: Expr


class Pass(NamedTuple):
    """Costs of one pass of a row.

    Args:
        matrix: on matrix units [FLOP].
        vector: on vector units [FLOP].
        traffic: in units of the element size.
        moves: collectives.
    """

    matrix: Expr
    vector: Expr
    traffic: Expr
    moves: tuple[Moved, ...]


class Layer(NamedTuple):
    """One row.

    Args:
        name: as printed.
        block: "mlp" or "sa".
        on_matrix_units: whether its time is that of matrix units.
        passes: costs by pass.
        activation: kept for backward, in units of the element size.
        weights: in units of the element size.
    """

    name: str
    block: str
    on_matrix_units: bool
    passes: Mapping[str, Pass]
    activation: Expr
    weights: Expr

    def map(self, change: Callable[[Expr], Expr]) -> Layer:
        """Apply a change to every expression."""
        passes = {
            name: Pass(
                change(one.matrix),
                change(one.vector),
                change(one.traffic),
                tuple(move._replace(message=change(move.message)) for move in one.moves),
            )
            for name, one in self.passes.items()
        }
        activation, weights = change(self.activation), change(self.weights)
        return self._replace(passes=passes, activation=activation, weights=weights)


@cache
def layers(scheme: Scheme, repaired: frozenset[str] = frozenset()) -> tuple[Layer, ...]:
    """Return the rows of a scheme, for one microbatch and block.

    Args:
        scheme: how the block runs.
        repaired: names of the slips that are left out.
    """
    rows = counted(scheme, repaired)
    return tuple(
        _layer(name, block, [row for row in rows if op_of(row) == name], scheme)
        for block, names in scheme.rows.items()
        for name in names
    )


@cache
def handed_on(scheme: Scheme, repaired: frozenset[str] = frozenset()) -> Expr:
    """Return what a stage of the pipeline sends on, in units of the element size.

    It is the input that the last norm keeps, not what it hands on, though both are as large.

    Args:
        scheme: as of `layers`.
        repaired: as of `layers`.
    """
    rows = (row for row in counted(scheme, repaired) if op_of(row) == "ln1")
    kept = [row for row in rows if not row.tensor.endswith(".statistics")]
    return _sum(kept, (Quantity.SAVED,))


def _layer(name: str, block: str, rows: list[Row], scheme: Scheme) -> Layer:
    return Layer(
        name,
        block,
        name in {*LINEARS, *PRODUCTS, FUSED},
        {one: _pass(name, rows, phases, scheme) for one, phases in PASSES.items()},
        _sum(rows, (Quantity.SAVED,)),
        _sum(rows, (Quantity.WEIGHT,)),
    )


def _pass(name: str, rows: list[Row], phases: tuple[Phase, ...], scheme: Scheme) -> Pass:
    mine = [row for row in rows if row.phase in phases]
    flop = _sum(mine, (Quantity.FLOP,))
    matrix = flop if name in {*LINEARS, *PRODUCTS} else Add()
    if name == FUSED:
        matrix = matrix_flop(scheme).total(Quantity.FLOP, phase=phases, path=f"block.{name}")
    moves = [
        Moved(move.kind, MESHES[move.group], move.calls * move.message)
        for row in mine
        if row.quantity is Quantity.COMMUNICATION and (move := row.collective) is not None
    ]
    if name == FUSED:
        moves = _together(moves)
    return Pass(matrix, flop - matrix, _sum(mine, TRAFFIC), tuple(moves))


def _together(moves: list[Moved]) -> list[Moved]:
    """Return one collective for keys and values."""
    groups: dict[tuple[CollectiveKind, str], list[Expr]] = {}
    for move in moves:
        groups.setdefault((move.kind, move.mesh), []).append(move.message)
    return [Moved(kind, mesh, Add(*sizes)) for (kind, mesh), sizes in groups.items()]


def _sum(rows: list[Row], quantities: tuple[Quantity, ...]) -> Expr:
    return Add(*(row.expr for row in rows if row.quantity in quantities))
