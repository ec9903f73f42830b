"""`symbolic-cost memory`: what one rank holds, and when it holds most."""

from __future__ import annotations

from typing import Any

import click

from symbolic_cost.cli.options import Choices, Output, output, training


@click.command("memory")
@click.argument("model")
@click.option("--offload", default="", help="Quantities kept on the host, e.g. optimizer,saved.")
@training
@output
def command(
    *, model: str, offload: str, choices: Choices, trained: dict[str, Any], out: Output
) -> None:
    """Tabulate the memory of one rank of MODEL: states, activations, and the peak of a step.

    With --system it says whether every stage fits. For example: symbolic-cost memory gpt3-175b
    --strategy tp=8,sp,pp=8,dp=8,zero=1 --precision bf16-mixed --recompute selective --set M=8
    """
    out.sheet(choices.sheet(model, lambda job: job.memory().sheet, **trained, offload=offload))
