"""`symbolic-cost comm`: what moves between ranks in one step, and between which."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output


@click.command("comm")
@click.argument("model")
@click.option("--node-size", default=8, show_default=True, help="GPUs per node.")
@click.option("--groups", is_flag=True, help="List who talks to whom; needs degrees.")
@click.option("--precision", default="bf16-mixed", show_default=True, help="Precision policy.")
@click.option("--per-op", is_flag=True, help="One row per op and message.")
@costing
@output
def command(
    *,
    model: str,
    node_size: int,
    groups: bool,
    precision: str,
    per_op: bool,
    choices: Choices,
    out: Output,
) -> None:
    """Tabulate the collectives of one rank of MODEL and step, with totals per rank and cluster.

    For example: symbolic-cost comm gpt3-175b --strategy tp=8,sp,pp=8,dp=8 --set M=64
    """
    from symbolic_cost.cli.session import session
    from symbolic_cost.cli.sheets.comm import communication_sheet, groups_sheet

    work = session(model, choices, precision=precision)
    if groups:
        out.sheet(groups_sheet(work, node_size))
    else:
        out.sheet(communication_sheet(work, per_op=per_op))
