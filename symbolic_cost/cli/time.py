"""`symbolic-cost time`: how long a training step takes, and why."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output


@click.command("time")
@click.argument("model")
@click.option("--system", default="a100-80gb", show_default=True, help="A machine, or a TOML file.")
@click.option("--global-batch", type=int, help="Sequences per step; gives the microbatches.")
@click.option("--precision", default="bf16-mixed", show_default=True, help="Precision policy.")
@click.option("--optimizer", default="adam", show_default=True, help="Optimizer.")
@click.option("--schedule", default="1f1b", show_default=True, help="Pipeline schedule.")
@click.option("--roofline", default="maximum", show_default=True, help="Named roofline.")
@click.option("--overlap", default="", help="Per mesh axis, e.g. dp=full,tp=none.")
@click.option(
    "--scattered", is_flag=True, help="Stages send each tensor-parallel rank's part once."
)
@click.option("--ops", is_flag=True, help="The ops instead of the parts of the step.")
@click.option("--wrt", help="The derivative of the step by this symbol instead.")
@costing
@output
def command(
    *,
    model: str,
    system: str,
    global_batch: int | None,
    precision: str,
    optimizer: str,
    schedule: str,
    roofline: str,
    overlap: str,
    scattered: bool,
    ops: bool,
    wrt: str | None,
    choices: Choices,
    out: Output,
) -> None:
    """Time one training step of MODEL on a machine: its parts, MFU and HFU, or its ops.

    For example: symbolic-cost time gpt3-175b --system a100-80gb --strategy tp=8,sp,pp=8
    --global-batch 64 --recompute selective
    """
    from symbolic_cost.cli.sheets.time import Run, timed

    run = Run(system, global_batch, precision, optimizer, schedule, roofline, overlap, scattered)
    found = timed(model, choices, run, wrt)
    if wrt is not None:
        out.sheet(found.derivative(wrt))
    else:
        out.sheet(found.ops() if ops else found.step())
