"""Columns as selections of derived rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

from sympy import Add, Expr, expand

from symbolic_cost.conventions.presets import (
    TRANSFORMER_TABLES_AS_CODED,
    TRANSFORMER_TABLES_AS_MEANT,
    TRANSFORMER_TABLES_AS_PRINTED,
)
from symbolic_cost.ledger import BACKWARD, CostTable, Phase, Quantity, Row, Units
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.update import TRAFFIC
from symbolic_cost.published.transformer_tables.blocks import LAYOUT, block, placement
from symbolic_cost.published.transformer_tables.slips import with_slips

CONVENTIONS = {
    "A": TRANSFORMER_TABLES_AS_PRINTED,
    "B": TRANSFORMER_TABLES_AS_CODED,
    "C": TRANSFORMER_TABLES_AS_MEANT,
}
"""How each variant counts."""

Pick = Callable[[Op, Row], bool]


def _of(*quantities: Quantity, phases: tuple[Phase, ...] = tuple(Phase)) -> Pick:
    return lambda _, row: row.quantity in quantities and row.phase in phases


def _first_input(op: Op, row: Row) -> bool:
    return _is_forward(row, Quantity.READ) and row.tensor == op.inputs[0].tensor


def _result(op: Op, row: Row) -> bool:
    return _is_forward(row, Quantity.WRITE) and row.tensor == op.outputs[0].tensor


def _other(op: Op, row: Row) -> bool:
    further_inputs = {operand.tensor for operand in op.inputs[1:]}
    read = _is_forward(row, Quantity.READ) and row.tensor in further_inputs
    return read or (_is_forward(row, Quantity.WRITE) and not _result(op, row))


def _is_forward(row: Row, quantity: Quantity) -> bool:
    return row.phase is Phase.FORWARD and row.quantity is quantity


COLUMNS: dict[str, Pick] = {
    "flops_fwd": _of(Quantity.FLOP, phases=(Phase.FORWARD,)),
    "activation_in_mem": _first_input,
    "activation_in_other_mem": _other,
    "activation_out_mem": _result,
    "activation_buffer": _of(Quantity.SAVED),
    "weights_mem": _of(Quantity.WEIGHT),
    "total_mem_fwd": _of(*TRAFFIC, phases=(Phase.FORWARD,)),
    "flops_bwd": _of(Quantity.FLOP, phases=BACKWARD),
    "activation_grad_mem": _of(Quantity.ACTIVATION_GRADIENT),
    "weights_grad_mem": _of(Quantity.WEIGHT_GRADIENT),
    "total_mem_bwd": _of(*TRAFFIC, phases=BACKWARD),
}
"""Sums of rows by column, in printed order."""


class Moved(NamedTuple):
    """What moves in one pass of one op: kind, bytes charged to one rank, ranks that take part."""

    kind: str
    charged: Expr
    ranks: Expr


class Counts(NamedTuple):
    """Costs of one op: its units, FLOP and bytes by column, and what moves, forward first."""

    units: Units
    sums: dict[str, Expr]
    moved: dict[str, Moved]

    @property
    def ranks(self) -> Expr | None:
        """Ranks of the collective, of the later one where a row has two; None if it has none."""
        return next((move.ranks for move in reversed(self.moved.values())), None)

    def expanded(self) -> Counts:
        """Return the same costs, sums of products multiplied out."""
        return self._replace(sums={name: expand(expr) for name, expr in self.sums.items()})

    def in_units(self, flop: Expr) -> Counts:
        """Return the same costs with FLOP in units of `flop`."""
        scaled = {name: expr * flop for name, expr in self.sums.items() if name.startswith("flops")}
        return self._replace(sums=self.sums | scaled)


def implied(variant: str, *, sequence: bool = True) -> CostTable:
    """Derive what the declarations of a variant imply per microbatch, without slips."""
    table = cost(block(variant), CONVENTIONS[variant], placement(variant, sequence=sequence))
    # p and w are split as r is, or else (B) a reduction may leave uneven parts.
    splits = tuple(split for split in table.splits if split.axis not in {"p", "w"})
    return replace(table.select(where=lambda row: not row.per_step), splits=splits)


@cache
def derived(variant: str, *, sequence: bool = True) -> CostTable:
    """Derive what a variant counts per microbatch, as expressions; arguments as of `implied`."""
    return with_slips(implied(variant, sequence=sequence), variant)


def counted(table: CostTable, variant: str) -> dict[str, list[tuple[str, Counts]]]:
    """Sum the rows of each op, as derived or with numbers bound, to its columns, by block."""
    ops = {op.path: op for part in block(variant).parts for op in part.ops}
    return {
        name: [(path, _counts(ops[path], table.select(path=f"block.{path}"))) for path in paths]
        for name, paths in LAYOUT[variant].items()
    }


def _counts(op: Op, rows: CostTable) -> Counts:
    sums = {
        name: Add(*(row.expr for row in rows if pick(op, row))) for name, pick in COLUMNS.items()
    }
    moved = {
        column: Moved(row.collective.kind, row.expr, row.collective.ranks)
        for column, phases in _PASSES.items()
        for row in rows.select(Quantity.COMMUNICATION, phase=phases)
        if row.collective is not None
    }
    return Counts(op.units, sums, moved)


_PASSES: dict[str, tuple[Phase, ...]] = {"comm_fwd": (Phase.FORWARD,), "comm_bwd": BACKWARD}
