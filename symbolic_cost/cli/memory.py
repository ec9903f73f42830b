"""`symbolic-cost memory`: what one rank holds, and when it holds most."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output


@click.command("memory")
@click.argument("model")
@click.option("--precision", default="bf16-mixed", show_default=True, help="Precision policy.")
@click.option("--optimizer", default="adam", show_default=True, help="Optimizer.")
@click.option("--schedule", default="1f1b", show_default=True, help="Pipeline schedule.")
@click.option("--offload", default="", help="Quantities kept on the host, e.g. optimizer,saved.")
@costing
@output
def command(
    *,
    model: str,
    precision: str,
    optimizer: str,
    schedule: str,
    offload: str,
    choices: Choices,
    out: Output,
) -> None:
    """Tabulate the memory of one rank of MODEL: states, activations, and the peak of a step.

    For example: symbolic-cost memory gpt3-175b --strategy tp=8,sp,pp=8,dp=8,zero=1
    --precision bf16-mixed --recompute selective --set M=8
    """
    from symbolic_cost.cli.sheets.memory import Kept, memory_sheet

    out.sheet(memory_sheet(model, choices, Kept(precision, optimizer, schedule, offload)))
