"""Zero-bubble pipelines: bubble rates of Table 5 from the measured times of Table 9.

The bubbles are those of `parallel.schedules`. Messages lengthen a step beyond them: an event
simulation of the schedules with a latency per message finds the counts below, which the paper
does not print.

Source: qi-2024, Tables 5 and 9.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import Field
from sympy import Expr

from symbolic_cost.extrema import Max
from symbolic_cost.numeric.binding import value
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.published.contract import (
    Comparison,
    compared,
    not_recomputed,
    printed_data,
    printed_rows,
)
from symbolic_cost.published.inputs import Count, Inputs, Rate, indivisible
from symbolic_cost.symbols import T_B, T_F, T_W, M, alpha, pp

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["zero_bubble_2024"]
"""First row of Table 9 (1.5B parameters); times in ms."""

WAITS: Mapping[str, Expr] = {
    "1f1b": 2 * (pp - 1) * M / pp + 2 * Max(pp - 2, 0),
    "zb-h1": 4 * (pp - 1),
    "zb-h2": 2 * (pp - 1),
}
"""Messages that a step waits for, by schedule; pp divides M."""

_SCHEDULES = {
    "bubble_rate_1F1B": "1f1b",
    "ZB-H1": "zb-h1",
    "ZB-H2": "zb-h2",
    # The automatic schedule under the memory limit of 1F1B finds ZB-H1 in every printed row.
    "ZB-1p": "zb-h1",
}

_REASONS = {
    "1F1B-I": "chunks per stage are not printed, nor is how messages overlap with chunks",
    "ZB-2p": "found by the paper's search over schedules, not by a closed form",
}


class Run(Inputs):
    """One pipeline of p stages and m microbatches.

    Times of forward, input gradients and weight gradients of a microbatch on a stage, and latency
    of one message, in any unit.
    """

    p: Count
    m: Count
    T_F: Rate
    T_B: Rate
    T_W: Rate
    T_comm: float = Field(ge=0, allow_inf_nan=False, strict=False)

    def contradictions(self) -> list[str]:
        """Say which inputs do not go together."""
        return indivisible("m", self.m, "p", self.p)


def bubble_rate(name: str) -> Expr:
    """Return the share of a step in which a stage waits, in pp, M, T_F, T_B, T_W and alpha [1]."""
    work = M * (T_F + T_B + T_W)
    return 1 - work / (schedule(name).step_time + WAITS[name] * alpha)


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, float]:
    """Compute the bubble rates of every schedule that has a closed form [1]."""
    return {column: float(rate) for column, rate in _rates(inputs).items()}


def reproduce() -> list[Comparison]:
    """Compare Table 5 with the rates at the times of Table 9."""
    comparisons = []
    for row in printed_rows("zero_bubble_2024"):
        numbers = {name: int(row[name]) for name in ("p", "m")}
        times = {name: float(row[name]) for name in ("T_F", "T_B", "T_W", "T_comm")}
        key = f"{row['model']}.p={row['p']}.m={row['m']}"
        rates = _rates(numbers | times)
        comparisons += [compared(f"{key}.{name}", row[name], rate) for name, rate in rates.items()]
        comparisons += [
            not_recomputed(f"{key}.{name}", row[name], reason) for name, reason in _REASONS.items()
        ]
    return comparisons


def _rates(inputs: Mapping[str, Any]) -> dict[str, Fraction]:
    run = Run.accepted(inputs)
    numbers = run.bound("pp=p M=m T_F T_B T_W alpha=T_comm")
    return {
        column: Fraction(value(bubble_rate(name).xreplace(numbers)))
        for column, name in _SCHEDULES.items()
    }
