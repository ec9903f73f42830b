"""Ring attention: the block that hides the rotation of keys and values behind computation.

A rank computes scores and their weighted sum for its queries and one block of keys and values
while the next block arrives.

Source: liu-2023, section 3 and Tables 1 and 2.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from sympy import Expr

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.declare import Model, einsum
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.part import fragment
from symbolic_cost.published.contract import (
    Comparison,
    compared,
    not_recomputed,
    printed_data,
    printed_rows,
)
from symbolic_cost.published.inputs import Inputs, Rate
from symbolic_cost.symbols import F_m, beta, exact
from symbolic_cost.symbols import c as block
from symbolic_cost.symbols import e as width
from symbolic_cost.units import SI

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["ring_2023"]
"""First row of Table 2: A100 with NVLink."""

BLOCKS_HELD = 6
"""Blocks that a rank holds: queries, the result, keys and values in use and arriving."""

_INFINIBAND = "A100 InfiniBand"


class Host(Inputs):
    """One host: peak rate [TFLOP/s], link to the next rank [GB/s]; memory enters no length."""

    tflops: Rate
    bw_gb_s: Rate
    hbm_gb: Rate | None = None


@cache
def minimal_block() -> Expr:
    """Return the least block that hides the rotation, in F_m and beta [tokens]."""
    sizes = {"c": block, "t": block, "e": width}
    ops = (
        einsum("scores", "q[c e], keys[t e] -> scores[c t]"),
        einsum("attend", "scores[c t], values[t e] -> context[c e]"),
    )
    model = Model("ring-attention", (fragment("step", ops),), sizes, source="liu-2023")
    table = cost(model, MODEL_FLOP)
    flop = table.total(Quantity.FLOP, phase=Phase.FORWARD)
    reads = table.select(Quantity.READ, phase=Phase.FORWARD)
    moved = sum(row.total for row in reads if row.tensor in {"keys", "values"})
    # Both grow with the width; computation grows with the square of the block.
    return (moved / beta) / (flop / F_m) * block


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, float]:
    """Compute the least block and the least sequence per rank [1000 tokens]."""
    return {name: float(length) for name, length in _lengths(inputs).items()}


def reproduce() -> list[Comparison]:
    """Compare Table 2; its row of InfiniBand does not follow from the formula."""
    comparisons = []
    for row in printed_rows("ring_2023"):
        lengths = _lengths({name: float(row[name]) for name in ("tflops", "bw_gb_s")})
        for name, length in lengths.items():
            comparison = compared(f"{row['host']}.{name}", row[name], length)
            if row["host"] == _INFINIBAND:
                note = "the printed block is not F/B of the printed rates; six of it are the length"
                comparison = not_recomputed(comparison.key, row[name], note, comparison.computed)
            comparisons.append(comparison)
    return comparisons


def _lengths(inputs: Mapping[str, Any]) -> dict[str, Fraction]:
    host = Host.accepted(inputs)
    rates = {F_m: exact(host.tflops) * SI["T"], beta: exact(host.bw_gb_s) * SI["G"]}
    thousands = Fraction(value(minimal_block().xreplace(rates))) / SI["k"]
    return {"min_block_1e3": thousands, "min_seq_1e3": BLOCKS_HELD * thousands}
