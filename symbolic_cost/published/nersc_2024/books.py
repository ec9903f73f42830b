"""Where the published model counts otherwise than its declaration implies.

`BOOKS` is how it keeps its books: what kernels it has in mind and which row a collective is
charged to. `SLIPS` and `TIME_SLIPS` are departures that a corrected mode repairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from symbolic_cost.ledger import BACKWARD, Phase, Quantity, Row
from symbolic_cost.published.nersc_2024.declaration import (
    BIASES,
    FUSED,
    NORMS,
    PRODUCTS,
    Scheme,
    derived,
)
from symbolic_cost.symbols import b, e, h, l, m1, m2, panels, s

STATES = (Quantity.WEIGHT, Quantity.WEIGHT_GRADIENT)
_VECTORS = (*BIASES, *NORMS)


@dataclass(frozen=True, slots=True)
class Departure:
    """One departure.

    Args:
        name: of the departure.
        meaning: what the model does instead.
        strategies: in which it does.
        change: of a derived row; several rows or none may come of one.
    """

    name: str
    meaning: str
    strategies: tuple[str, ...]
    change: Callable[[Row, Scheme], tuple[Row, ...]]


def counted(scheme: Scheme, repaired: frozenset[str] = frozenset()) -> tuple[Row, ...]:
    """Return the rows that the model counts.

    Args:
        scheme: how the block runs.
        repaired: names of the slips that are left out.
    """
    rows = derived(scheme).rows
    for departure in BOOKS + SLIPS:
        if scheme.strategy in departure.strategies and departure.name not in repaired:
            rows = tuple(new for row in rows for new in departure.change(row, scheme))
    return rows


def op_of(row: Row) -> str:
    """Return the name of a row's op."""
    return row.path.removeprefix("block.")


def _is_gradient(row: Row) -> bool:
    return row.tensor.startswith("d")


def _add_in_place(row: Row, _: Scheme) -> tuple[Row, ...]:
    if op_of(row) not in BIASES:
        return (row,)
    written = row.quantity is Quantity.WRITE and not row.tensor.endswith(".bias")
    reread = row.quantity is Quantity.READ and row.phase in BACKWARD and not _is_gradient(row)
    return () if written or reread else (row,)


def _three_products(row: Row, _: Scheme) -> tuple[Row, ...]:
    if op_of(row) not in NORMS or row.phase not in BACKWARD or row.quantity is not Quantity.READ:
        return (row,)
    if _is_gradient(row):
        return (replace(row, expr=3 * row.expr),)
    return () if row.tensor.endswith(".scale") else (row,)


def _core_traffic(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    if op_of(row) not in {FUSED, *PRODUCTS}:
        return (row,)
    if row.tensor == "seeds" and row.quantity is Quantity.WRITE:
        return ()
    read_again = row.quantity is Quantity.READ and row.phase in BACKWARD
    gathered = scheme.strategy != "1d" and not scheme.in_squares
    if read_again and row.tensor in {"keys", "values"} and gathered:
        return (replace(row, expr=row.expr / m2),)
    return (row,)


def _context_twice(row: Row, _: Scheme) -> tuple[Row, ...]:
    if row.quantity is Quantity.SAVED and row.tensor == "context" and op_of(row) == FUSED:
        return (row, replace(row, path="block.vproj"))
    return (row,)


def _recomputed(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    made_again = row.tensor in {"p", "masked", "masked.mask"}
    dropped = scheme.recompute and made_again and row.quantity is Quantity.SAVED
    return () if dropped else (row,)


def _panels(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    if op_of(row) not in scheme.in_panels:
        return (row,)
    result = row.quantity is Quantity.WRITE and row.phase is Phase.FORWARD
    gradient = row.quantity is Quantity.READ and row.phase in BACKWARD and _is_gradient(row)
    queries = row.quantity in {Quantity.READ, Quantity.WRITE} and row.tensor in {"q", "dq"}
    stays = queries if op_of(row) == "logits" else result or gradient
    return (replace(row, expr=panels * row.expr),) if stays else (row,)


def _one_statistic(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    move = row.collective
    if not scheme.in_squares or move is None or row.tensor != "scores.statistics":
        return (row,)
    one = s * b * h * l / m2
    return (replace(row, expr=one, collective=replace(move, message=one)),)


def _scores_twice(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    twice = scheme.in_squares and row.collective is not None and row.tensor == "dscores"
    return (row, row) if twice else (row,)


def _whole_vectors(row: Row, _: Scheme) -> tuple[Row, ...]:
    if op_of(row) not in _VECTORS:
        return (row,)
    if row.quantity in {*STATES, Quantity.PARAMETER}:
        return (replace(row, expr=m2 * row.expr),)
    moved = row.collective is not None and row.collective.meshes == ("m2",)
    return () if moved else (row,)


def _norm_gradients(row: Row, _: Scheme) -> tuple[Row, ...]:
    move = row.collective
    if op_of(row) not in NORMS or move is None or row.phase is not Phase.BACKWARD_INPUT:
        return (row,)
    both = move.message + 2 * s * e / m1
    return (replace(row, expr=both, collective=replace(move, message=both)),)


_CHARGED_TO = {"x": "ln1", "normed": "ln2", "dbranch": "ln1", "dattended": "ln2"}
_CHARGED_TO_2D = {"full": "qkv", "context": "vproj", "wide": "fc1", "kept": "fc2"}


def _charge(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    charged = dict(_CHARGED_TO_2D if scheme.strategy == "2d" else _CHARGED_TO)
    charged |= {"k": FUSED, "v": FUSED} if scheme.flash else {"k": "logits", "v": "attend"}
    charged |= {"masked": "attend", "dscores": "logits"}
    if row.collective is None or row.tensor not in charged:
        return (row,)
    return (replace(row, path=f"block.{charged[row.tensor]}"),)


def _other_width(row: Row, _: Scheme) -> tuple[Row, ...]:
    if op_of(row) not in NORMS or row.collective is not None:
        return (row,)
    return (replace(row, expr=row.expr.xreplace({e: l})),)


def _no_statistics(row: Row, _: Scheme) -> tuple[Row, ...]:
    kept = row.quantity is Quantity.SAVED or (
        row.quantity is Quantity.READ and row.phase in BACKWARD
    )
    return () if kept and row.tensor.endswith(".statistics") else (row,)


def _whole_bias(row: Row, _: Scheme) -> tuple[Row, ...]:
    scattered = op_of(row) in {"fc2-bias", "vproj-bias"} and not row.tensor.endswith(".bias")
    return (replace(row, expr=m1 * row.expr),) if scattered else (row,)


def _narrow_bias(row: Row, _: Scheme) -> tuple[Row, ...]:
    vector = op_of(row) == "vproj-bias" and row.tensor.endswith(".bias")
    return (replace(row, expr=row.expr / m1),) if vector else (row,)


_ALL = ("1d", "2d", "2d-seqp")

BOOKS: tuple[Departure, ...] = (
    Departure(
        "sums in place",
        "adding a bias reads its input or writes its result, not both, and moves nothing backward "
        "but the gradient of its result and its own",
        _ALL,
        _add_in_place,
    ),
    Departure(
        "three products",
        "a norm reads the gradient of its result for each of its three gradients, its scale not",
        _ALL,
        _three_products,
    ),
    Departure(
        "traffic of the core",
        "the states of the random numbers are kept but not written; backward reads keys and "
        "values before they are gathered",
        _ALL,
        _core_traffic,
    ),
    Departure(
        "context twice",
        "the fused attention and the projection after it both keep the context",
        _ALL,
        _context_twice,
    ),
    Departure(
        "recomputation",
        "what is recomputed is not kept; its FLOP are not counted again, but its time",
        ("1d",),
        _recomputed,
    ),
    Departure(
        "panels",
        "a product in panels moves what stays in place once per panel, and the rest once",
        ("2d",),
        _panels,
    ),
    Departure(
        "one statistic",
        "a softmax in shards reduces one value per row, forward as backward",
        ("2d",),
        _one_statistic,
    ),
    Departure(
        "scores twice",
        "the gradient of the scores is broadcast for each of the gradients made of it",
        ("2d",),
        _scores_twice,
    ),
    Departure(
        "whole vectors",
        "biases and weights of norms are whole along m2, and their sums over m2 are left out",
        ("2d",),
        _whole_vectors,
    ),
    Departure(
        "norm gradients",
        "an all-reduce over m1 carries the gradients of a norm's weights",
        ("2d",),
        _norm_gradients,
    ),
    Departure(
        "charges",
        "a collective is charged to the row that needs what it moves; gathers around norms to them",
        _ALL,
        _charge,
    ),
)
"""How the model keeps its books."""

SLIPS: tuple[Departure, ...] = (
    Departure(
        "norm width",
        "the width of a norm on one rank is l/m1 where e/m1 is meant",
        ("2d",),
        _other_width,
    ),
    Departure(
        "no statistics",
        "norms write mean and deviation, but neither keep them nor read them in backward",
        _ALL,
        _no_statistics,
    ),
    Departure(
        "whole bias",
        "biases after a reduce-scatter act on all positions, though each rank has its share",
        ("1d",),
        _whole_bias,
    ),
    Departure(
        "narrow bias",
        "the bias of the attention's projection is split along the width, where that of the MLP, "
        "at the same place, is split along the positions",
        ("2d-seqp",),
        _narrow_bias,
    ),
)
"""Slips of the counts."""

TIME_SLIPS = {
    "one tier": "an all-reduce in one tier takes the time of a reduce-scatter; across two, twice",
    "free links": "sending between domains is free where neighbours of the pipeline share one",
    "inflated FLOP": "vector operations of the fused attention are counted as the matrix "
    "operations that would take as long",
    "two-byte weights": "the optimizer keeps six times the weights, whatever their size",
}
"""Slips of times and totals, by name; see `times`."""

ALL_SLIPS: Mapping[str, str] = {slip.name: slip.meaning for slip in SLIPS} | TIME_SLIPS
"""Every slip by name. As printed they are there, a corrected mode leaves them out."""
