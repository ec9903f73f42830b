"""The formulas of a GPT under every strategy: one table per cost, one row per strategy.

Writes Markdown to standard output; `make reports` approves it.
"""

from __future__ import annotations

import symbolic_cost as sc

STRATEGIES = (
    *("", "tp", "tp,sp", "cp", "ulysses", "ring", "2d", "2.5d", "3d"),
    *("dp,zero=1", "dp,zero=3", "pp", "tp,sp,pp,dp,zero=1"),
)
COSTS = {
    "FLOP forward": ("flop", "forward"),
    "Parameters": ("parameter", None),
    "Saved for backward [byte]": ("saved", None),
    "Sent in forward [byte]": ("communication", "forward"),
    "Sent in backward [byte]": ("communication", "backward_input"),
    "Sent once a step [byte]": ("communication", "step"),
}
"""Quantity and phase of each."""


def report() -> str:
    """Return the report as Markdown."""
    tables = {name: sc.cost("gpt", "model-flop", name) for name in STRATEGIES}
    lines = ["# A GPT under every strategy", "", "One rank and microbatch; `model-flop` counts."]
    for title, (quantity, phase) in COSTS.items():
        rows = []
        for name, table in tables.items():
            total = sc.factored(table.total(quantity, phase=phase))
            rows.append((name or "one rank", total or "none"))
        lines += ["", f"## {title}", "", sc.markdown(("strategy", "formula"), rows).rstrip()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(report(), end="")
