"""GPipe: the speed-up of a pipeline, as its schedule bounds it.

The paper prints measured speed-ups alone, which no bound gives: they are listed, none is compared.

Source: huang-2019, section 2 and Table 2.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from sympy import Expr

from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.published.contract import Comparison, not_recomputed, printed_data
from symbolic_cost.published.inputs import Count, Inputs
from symbolic_cost.symbols import T_B, T_F, T_W, M, pp

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["gpipe_2019"]
"""Last cell of Table 2: eight partitions, 32 microbatches."""


_NOTES = {
    False: "measured; the bound leaves out imbalance, communication and recomputation",
    True: "measured, above the bound: the table's unit is its first cell, not one device",
}


class Run(Inputs):
    """One pipeline: K partitions (stages), M microbatches."""

    K: Count
    M: Count


@cache
def speedup() -> Expr:
    """Return the speed-up over one device, in pp and M [1]."""
    alone = M * pp * (T_F + T_B + T_W)
    bound: Expr = (alone / schedule("gpipe").step_time).factor()
    return bound


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, float]:
    """Compute the bound on the speed-up [1].

    Returns:
        "speedup_bound".
    """
    bound = speedup().xreplace(Run.accepted(inputs).bound("pp=K M"))
    return {"speedup_bound": float(value(bound))}


def reproduce() -> list[Comparison]:
    """List the measured speed-ups of Table 2 beside the bound; none is compared."""
    table = printed_data("gpipe_2019")
    comparisons = []
    for model in ("transformer", "amoebanet"):
        for partitions, *cells in table[model]:
            for column, cell in zip(table["columns"][1:], cells, strict=True):
                microbatches = int(column.removeprefix("M="))
                inputs = {"K": int(partitions), "M": microbatches}
                bound = evaluate(inputs)["speedup_bound"]
                key = f"{model}.K={partitions}.{column}"
                above = float(cell) > bound
                comparisons.append(not_recomputed(key, cell, _NOTES[above], f"{bound:.2f}"))
    return comparisons
