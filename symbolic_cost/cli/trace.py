"""`symbolic-cost trace`: a step for Perfetto, or for ASTRA-sim."""

from __future__ import annotations

from typing import Any

import click

from symbolic_cost.cli.options import Choices, every_stage, training


@click.command("trace")
@click.argument("model")
@click.option("-o", "--output", "file", metavar="FILE.json", help="Timeline; whole or not at all.")
@click.option(
    "--chakra", "folder", metavar="DIR", help="Chakra traces of all ranks, and their groups."
)
@training
def command(
    *,
    model: str,
    file: str | None,
    folder: str | None,
    choices: Choices,
    trained: dict[str, Any],
) -> None:
    """Write a step of MODEL: when every stage runs which pass, or what every rank does.

    -o writes a timeline for ui.perfetto.dev or chrome://tracing, as of
    symbolic-cost trace llama-3-70b --strategy tp=8,sp,pp=4,dp=8,zero=1 --system h100 --set b=1
    --global-batch 64 -o step.perfetto.json

    --chakra writes DIR/step.RANK.et for ASTRA-sim: ops with FLOP and bytes, collectives with sizes
    and groups, sends between stages, in the order of the schedule; DIR/groups.json names the ranks
    of the groups.
    """
    if (file is None) == (folder is None):
        raise click.UsageError("give -o FILE.json for a timeline, or --chakra DIR for traces")
    job = every_stage(choices).job(model, **trained)
    if folder is not None:
        from symbolic_cost.jobs.chakra import chakra_traces

        chakra_traces(job, folder)
    elif file is not None:
        from symbolic_cost.jobs.perfetto import step_trace

        step_trace(job, file)
