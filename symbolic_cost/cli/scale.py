"""`symbolic-cost scale`: how a cost grows."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output


@click.command("scale")
@click.argument("cost")
@click.argument("model")
@click.option("--wrt", default="l", show_default=True, help="The symbol that grows.")
@click.option("--at", "point", help="A named model at whose sizes the numbers are taken.")
@costing
@output
def command(
    *,
    cost: str,
    model: str,
    wrt: str,
    point: str | None,
    choices: Choices,
    out: Output,
) -> None:
    """Derivative, elasticity and leading term of a cost, and where attention meets the MLP.

    For example: symbolic-cost scale flops_train gpt --wrt l --at gpt3-175b
    """
    from symbolic_cost.jobs.tables.growth import scaling_sheet

    out.sheet(choices.sheet(model, lambda job: scaling_sheet(job, cost, wrt, point)))
