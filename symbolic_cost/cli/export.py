"""`symbolic-cost export`: a job's costs as one file of code, with its tests inside."""

from __future__ import annotations

from typing import Any

import click

from symbolic_cost.cli.options import Choices, Output, training

_LANGUAGES = ("python", "c", "javascript", "rust", "julia")


@click.command("export")
@click.argument("costs")
@click.argument("model")
@click.option("--language", default="python", show_default=True, metavar="|".join(_LANGUAGES))
@click.option("--free", default="b,l", show_default=True, help="Sizes that stay arguments.")
@click.option("--tests", default=100, show_default=True, help="Configurations with exact results.")
@click.option("--seed", default=0, show_default=True, help="Of these.")
@click.option("-o", "--output", "file", metavar="FILE", help="Write to FILE, whole or not at all.")
@training
def command(
    *,
    costs: str,
    model: str,
    language: str,
    free: str,
    tests: int,
    seed: int,
    file: str | None,
    choices: Choices,
    trained: dict[str, Any],
) -> None:
    """Write COSTS of MODEL as code without dependencies: step_time, peak_memory, or named costs.

    Degrees without a number are arguments, as in
    symbolic-cost export step_time,peak_memory gpt3-175b --system a100-80gb
    --strategy tp,sp,pp=8,dp --language c -o step.c
    """
    from symbolic_cost.emit.code import source
    from symbolic_cost.jobs.exported import source_of

    names = [name.strip() for name in costs.split(",") if name.strip()]
    symbols = [name.strip() for name in free.split(",") if name.strip()]
    job = choices.job(model, **trained)
    what = source_of(job, names, free=symbols, tests=tests, seed=seed)
    Output("table", file).text(source(what, language))
