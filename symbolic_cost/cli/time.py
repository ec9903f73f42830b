"""`symbolic-cost time`: how long a training step takes, and why."""

from __future__ import annotations

from typing import Any

import click

from symbolic_cost.cli.options import Choices, Output, output, training


@click.command("time")
@click.argument("model")
@click.option("--roofline", default="maximum", show_default=True, help="Named roofline.")
@click.option("--overlap", default="", help="Per mesh axis, e.g. dp=full,host=full.")
@click.option(
    "--scattered", is_flag=True, help="Stages send each tensor-parallel rank's part once."
)
@click.option("--order", default="", help="Mesh axes, innermost first, e.g. tp,cp,dp,pp.")
@click.option("--offload", default="", help="Quantities kept on the host, e.g. optimizer,saved.")
@click.option("--ops", is_flag=True, help="The ops instead of the parts of the step.")
@click.option("--wrt", help="The derivative of the step by this symbol instead.")
@training
@output
def command(
    *,
    model: str,
    roofline: str,
    overlap: str,
    scattered: bool,
    order: str,
    offload: str,
    ops: bool,
    wrt: str | None,
    choices: Choices,
    trained: dict[str, Any],
    out: Output,
) -> None:
    """Time one training step of MODEL on a machine: its parts, MFU and HFU, or its ops.

    For example: symbolic-cost time gpt3-175b --system a100-80gb --strategy tp=8,sp,pp=8
    --global-batch 64 --recompute selective
    """
    if ops and wrt is not None:
        raise click.UsageError("--ops and --wrt are two tables: give one of them")
    from symbolic_cost.jobs.tables.seconds import derivative_sheet, ops_sheet

    if trained["system"] is None:
        trained["system"] = "a100-80gb"
    methods = {"roofline": roofline, "overlap": overlap, "scattered": scattered, "order": order}
    run = choices.job(model, **trained, **methods, offload=offload)
    if wrt is not None:
        out.sheet(derivative_sheet(run, wrt))
        return
    answer = run.time()
    out.sheet(ops_sheet(answer.timed) if ops else answer.sheet)
