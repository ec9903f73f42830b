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
    from symbolic_cost.jobs.tables.totals import nested_sheet

    out.sheet(choices.sheet(model, lambda job: nested_sheet(job, cost, phase)))
