"""`symbolic-cost tree`: nested totals with shares."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output


@click.command("tree")
@click.argument("model")
@click.option("--of", "cost", default="flops", show_default=True, help="A named cost.")
@click.option("--phase", help="fwd, bwd, recompute, train or step.")
@costing
@output
def command(
    *,
    model: str,
    cost: str,
    phase: str | None,
    choices: Choices,
    out: Output,
) -> None:
    """Nest the totals of a cost by the parts of MODEL, with their shares.

    For example: symbolic-cost tree gpt3-175b --of flops
    """
    from dataclasses import replace

    from symbolic_cost.cli.session import session
    from symbolic_cost.costs import named_cost
    from symbolic_cost.emit.tree import tree_sheet

    chosen = named_cost(cost, phase)
    work = session(model, choices)
    sheet = tree_sheet(chosen.rows(work.checked), chosen.name, work.values)
    out.sheet(replace(sheet, notes=sheet.notes + work.notes))
