"""`symbolic-cost comm`: what moves between ranks in one step, and between which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from symbolic_cost.cli.options import Choices, Output, output, training

if TYPE_CHECKING:
    from symbolic_cost.emit.sheet import Sheet
    from symbolic_cost.jobs.job import Job


@click.command("comm")
@click.argument("model")
@click.option("--node-size", default=8, show_default=True, help="GPUs per node.")
@click.option("--groups", is_flag=True, help="List who talks to whom; needs degrees.")
@click.option("--order", default="", help="Mesh axes, innermost first, e.g. tp,cp,dp,pp.")
@click.option("--per-op", is_flag=True, help="One row per op and message.")
@training
@output
def command(
    *,
    model: str,
    node_size: int,
    groups: bool,
    order: str,
    per_op: bool,
    choices: Choices,
    trained: dict[str, Any],
    out: Output,
) -> None:
    """Tabulate the collectives of one rank of MODEL and step, with totals per rank and cluster.

    For example: symbolic-cost comm gpt3-175b --strategy tp=8,sp,pp=8,dp=8 --set M=64
    """
    if groups and per_op:
        raise click.UsageError("--groups and --per-op are two tables: give one of them")
    from symbolic_cost.jobs.tables.traffic import communication_sheet, groups_sheet

    def make(run: Job) -> Sheet:
        return groups_sheet(run, node_size) if groups else communication_sheet(run, per_op=per_op)

    out.sheet(choices.sheet(model, make, **trained, order=order))
