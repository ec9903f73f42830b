"""Tables of learned positions: a sequence has no more positions than they have rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sympy import Expr, Integer

from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import is_of_positions

if TYPE_CHECKING:
    from symbolic_cost.models.fields import Fields


def position_tables(model: Model) -> tuple[tuple[Expr, Expr], ...]:
    """Return the rows of every table of learned positions, and the positions that are looked up."""
    looked_up = (op for part in model.parts for op in part.ops if is_of_positions(op))
    pairs = ((op.weights[0].axes[0], op.inputs[0].axes[-1]) for op in looked_up)
    return tuple((model.sizes[rows], model.sizes[at]) for rows, at in dict.fromkeys(pairs))


def beyond(model: Model, seq: int, spare: int) -> Iterator[str]:
    """Say which sequences are longer than a table of positions.

    Args:
        model: with numbers for its sizes.
        seq: tokens of a sequence without padding, which takes no position.
        spare: rows of a table that no position uses.
    """
    for rows, length in position_tables(model):
        least = min(length, Integer(seq))
        if least > rows - spare:
            held = (
                f"the table has {rows - spare}: {least} tokens are counted, which no run can place"
            )
            yield f"learned positions: {held}"


def spare_positions(fields: Fields, model: Model) -> int:
    """Return the rows of the table of positions that no position uses.

    They are those that a family has besides the positions which its configuration gives, as OPT's
    2, or those of a given number up to that of padding, as RoBERTa's 2 of 514.
    """
    given = fields.origins.get("max_position_embeddings")
    rows = model.bindings.get("P")
    besides = int(rows) - given.value if rows and given else 0
    values, before = fields.source.values, fields.record.spare.items()
    held = (values.get(key, usual) for key, usual in before)
    return max(besides, 0) + sum(row + 1 for row in held if isinstance(row, int))
