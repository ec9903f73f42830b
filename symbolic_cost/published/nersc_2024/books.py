"""Where the published model counts otherwise than its declaration implies.

`BOOKS` is how it keeps its books: what kernels it has in mind and which row a collective is
charged to. `SLIPS` and `TIME_SLIPS` are departures that a corrected mode repairs.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from symbolic_cost.ledger import BACKWARD, Phase, Quantity, Row, Units
from symbolic_cost.published.nersc_2024.declaration import (
    BIASES,
    FUSED,
    NORMS,
    PRODUCTS,
    Scheme,
    core_products,
    derived,
)
from symbolic_cost.published.results import Departures
from symbolic_cost.symbols import F_m, F_v, b, e, h, l, m1, m2, panels, s

STATES = (Quantity.WEIGHT, Quantity.WEIGHT_GRADIENT)
_VECTORS = (*BIASES, *NORMS)


_ALL = ("1d", "2d", "2d-seqp")

BOOKS = Departures()
"""How the model keeps its books: its kernels, and which row a collective is charged to."""

SLIPS = Departures()
"""Slips of the counts."""


@cache
def counted(scheme: Scheme, repaired: frozenset[str] = frozenset()) -> tuple[Row, ...]:
    """Return the rows that the model counts, without the slips that are repaired."""
    booked = BOOKS.applied(derived(scheme), scheme.strategy, scheme)
    return SLIPS.applied(booked, scheme.strategy, scheme, repaired)


def op_of(row: Row) -> str:
    """Return the name of a row's op."""
    return row.path.removeprefix("block.")


def _is_gradient(row: Row) -> bool:
    return row.tensor.startswith("d")


@BOOKS.of(*_ALL)
def _sums_in_place(row: Row, _: Scheme) -> tuple[Row, ...]:
    """Adding a bias reads its input or writes its result, not both.

    Backward it moves the gradient of its result and its own alone.
    """
    if op_of(row) not in BIASES:
        return (row,)
    written = row.quantity is Quantity.WRITE and not row.tensor.endswith(".bias")
    reread = row.quantity is Quantity.READ and row.phase in BACKWARD and not _is_gradient(row)
    return () if written or reread else (row,)


@BOOKS.of(*_ALL)
def _three_products(row: Row, _: Scheme) -> tuple[Row, ...]:
    """A norm reads the gradient of its result for each of its three gradients, its scale not."""
    if op_of(row) not in NORMS or row.phase not in BACKWARD or row.quantity is not Quantity.READ:
        return (row,)
    if _is_gradient(row):
        return (replace(row, expr=3 * row.expr),)
    return () if row.tensor.endswith(".scale") else (row,)


@BOOKS.of(*_ALL)
def _traffic_of_the_core(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    """The states of the random numbers are kept but not written.

    Backward reads keys and values before they are gathered.
    """
    if op_of(row) not in {FUSED, *PRODUCTS}:
        return (row,)
    if row.tensor == "seeds" and row.quantity is Quantity.WRITE:
        return ()
    read_again = row.quantity is Quantity.READ and row.phase in BACKWARD
    gathered = scheme.strategy != "1d" and not scheme.in_squares
    if read_again and row.tensor in {"keys", "values"} and gathered:
        return (replace(row, expr=row.expr / m2),)
    return (row,)


@BOOKS.of(*_ALL)
def _context_twice(row: Row, _: Scheme) -> tuple[Row, ...]:
    """The fused attention and the projection after it both keep the context."""
    if row.quantity is Quantity.SAVED and row.tensor == "context" and op_of(row) == FUSED:
        return (row, replace(row, path="block.vproj"))
    return (row,)


@BOOKS.of("1d")
def _recomputation(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    """What is recomputed is not kept; its FLOP are not counted again, but its time."""
    made_again = row.tensor in {"p", "masked", "masked.mask"}
    dropped = scheme.recompute and made_again and row.quantity is Quantity.SAVED
    return () if dropped else (row,)


@BOOKS.of("2d")
def _panels(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    """A product in panels moves what stays in place once per panel, and the rest once."""
    if op_of(row) not in scheme.in_panels:
        return (row,)
    result = row.quantity is Quantity.WRITE and row.phase is Phase.FORWARD
    gradient = row.quantity is Quantity.READ and row.phase in BACKWARD and _is_gradient(row)
    queries = row.quantity in {Quantity.READ, Quantity.WRITE} and row.tensor in {"q", "dq"}
    stays = queries if op_of(row) == "logits" else result or gradient
    return (replace(row, expr=panels * row.expr),) if stays else (row,)


@BOOKS.of("2d")
def _one_statistic(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    """A softmax in shards reduces one value per row, forward as backward."""
    move = row.collective
    if not scheme.in_squares or move is None or row.tensor != "scores.statistics":
        return (row,)
    one = s * b * h * l / m2
    return (replace(row, expr=one, collective=replace(move, message=one)),)


@BOOKS.of("2d")
def _scores_twice(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    """The gradient of the scores is broadcast for each of the gradients made of it."""
    twice = scheme.in_squares and row.collective is not None and row.tensor == "dscores"
    return (row, row) if twice else (row,)


@BOOKS.of("2d")
def _whole_vectors(row: Row, _: Scheme) -> tuple[Row, ...]:
    """Biases and weights of norms are whole along m2, and their sums over m2 are left out."""
    if op_of(row) not in _VECTORS:
        return (row,)
    if row.quantity in {*STATES, Quantity.PARAMETER}:
        return (replace(row, expr=m2 * row.expr),)
    moved = row.collective is not None and row.collective.meshes == ("m2",)
    return () if moved else (row,)


@BOOKS.of("2d")
def _norm_gradients(row: Row, _: Scheme) -> tuple[Row, ...]:
    """An all-reduce over m1 carries the gradients of a norm's weights."""
    move = row.collective
    if op_of(row) not in NORMS or move is None or row.phase is not Phase.BACKWARD_INPUT:
        return (row,)
    both = move.message + 2 * s * e / m1
    return (replace(row, expr=both, collective=replace(move, message=both)),)


_CHARGED_TO = {"x": "ln1", "normed": "ln2", "dbranch": "ln1", "dattended": "ln2"}
_CHARGED_TO_2D = {"full": "qkv", "context": "vproj", "wide": "fc1", "kept": "fc2"}


@BOOKS.of(*_ALL)
def _charges(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    """A collective is charged to the row that needs what it moves; gathers around norms to them."""
    charged = dict(_CHARGED_TO_2D if scheme.strategy == "2d" else _CHARGED_TO)
    charged |= {"k": FUSED, "v": FUSED} if scheme.flash else {"k": "logits", "v": "attend"}
    charged |= {"masked": "attend", "dscores": "logits"}
    if row.collective is None or row.tensor not in charged:
        return (row,)
    return (replace(row, path=f"block.{charged[row.tensor]}"),)


@BOOKS.of("2d")
def _message_per_panel(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    """What a product in panels exchanges goes panel by panel."""
    move = row.collective
    if move is None or op_of(row) not in scheme.in_panels:
        return (row,)
    message = move.calls * move.message / panels
    return (replace(row, collective=replace(move, message=message, calls=panels)),)


@BOOKS.of("2d", "2d-seqp")
def _keys_with_values(row: Row, _: Scheme) -> tuple[Row, ...]:
    """One collective moves keys and values of the fused attention, or their gradients."""
    move = row.collective
    if move is None or op_of(row) != FUSED:
        return (row,)
    both = replace(row, expr=2 * row.expr, collective=replace(move, message=2 * move.message))
    return () if row.tensor in {"v", "values", "dvalues"} else (both,)


@BOOKS.of(*_ALL)
def _units_of_the_core(row: Row, scheme: Scheme) -> tuple[Row, ...]:
    """Softmax and dropout of the fused attention run on vector units."""
    vectors = op_of(row) == FUSED and row.quantity is Quantity.FLOP
    vectors = vectors and row.expr not in core_products(scheme)
    return (replace(row, units=Units.VECTOR) if vectors else row,)


@SLIPS.of(*_ALL)
def _inflated_FLOP(row: Row, _: Scheme) -> tuple[Row, ...]:  # noqa: N802 - the unit's name
    """Vector operations of the fused attention are counted as the matrix operations.

    They are as many as would take as long.
    """
    vectors = op_of(row) == FUSED and row.units is Units.VECTOR
    return (replace(row, expr=F_m / F_v * row.expr, units=Units.MATRIX) if vectors else row,)


@SLIPS.of("2d")
def _norm_width(row: Row, _: Scheme) -> tuple[Row, ...]:
    """The width of a norm on one rank is l/m1 where e/m1 is meant."""
    if op_of(row) not in NORMS or row.collective is not None:
        return (row,)
    return (replace(row, expr=row.expr.xreplace({e: l})),)


@SLIPS.of(*_ALL)
def _no_statistics(row: Row, _: Scheme) -> tuple[Row, ...]:
    """Norms write mean and deviation, but neither keep them nor read them in backward."""
    saved = row.quantity is Quantity.SAVED or (
        row.quantity is Quantity.READ and row.phase in BACKWARD
    )
    return () if saved and row.tensor.endswith(".statistics") else (row,)


@SLIPS.of("1d")
def _whole_bias(row: Row, _: Scheme) -> tuple[Row, ...]:
    """Biases after a reduce-scatter act on all positions, though each rank has its share."""
    scattered = op_of(row) in {"fc2-bias", "vproj-bias"} and not row.tensor.endswith(".bias")
    return (replace(row, expr=m1 * row.expr),) if scattered else (row,)


@SLIPS.of("2d-seqp")
def _narrow_bias(row: Row, _: Scheme) -> tuple[Row, ...]:
    """The bias of the attention's projection is split along the width.

    That of the MLP, at the same place, is split along the positions.
    """
    vector = op_of(row) == "vproj-bias" and row.tensor.endswith(".bias")
    return (replace(row, expr=row.expr / m1),) if vector else (row,)


TIME_SLIPS = {
    "one tier": "an all-reduce in one tier takes the time of a reduce-scatter; across two, twice",
    "free links": "sending between domains is free where neighbours of the pipeline share one",
    "two-byte weights": "the optimizer keeps six times the weights, whatever their size",
}
"""Slips of times and totals, by name; see `layers`."""

ALL_SLIPS: Mapping[str, str] = {slip.name: slip.meaning for slip in SLIPS} | TIME_SLIPS
"""Every slip by name. As printed they are there, a corrected mode leaves them out."""
