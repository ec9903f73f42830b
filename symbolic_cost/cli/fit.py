"""`symbolic-cost fit`: whether a model fits, and the largest that does."""

from __future__ import annotations

from functools import partial

import click

from symbolic_cost.cli.options import Output, output


@click.command("fit")
@click.argument("model")
@click.option("--system", default="a100-80gb", show_default=True, help="A machine, or a TOML file.")
@click.option("--gpus", type=int, required=True, help="Ranks.")
@click.option("--global-batch", type=int, help="Sequences per step; one per GPU unless given.")
@click.option(
    "--for",
    "symbols",
    default="l,b,n_layers",
    show_default=True,
    metavar="NAME,NAME",
    help="What is to be large.",
)
@click.option(
    "--choose",
    multiple=True,
    metavar="NAME=VALUE,VALUE",
    help="What may be chosen, e.g. tp=1,2,4,8 or recompute=full; zero=1,3 and sp=on unless given.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=NUMBER", help="Bind a size.")
@click.option("--precision", default="bf16-mixed", show_default=True, help="Precision policy.")
@click.option("--optimizer", default="adam", show_default=True, help="Optimizer.")
@click.option("--attention", default="flash", show_default=True, metavar="flash|eager")
@output
def command(
    *,
    model: str,
    system: str,
    gpus: int,
    global_batch: int | None,
    symbols: str,
    choose: tuple[str, ...],
    settings: tuple[str, ...],
    precision: str,
    optimizer: str,
    attention: str,
    out: Output,
) -> None:
    """Say whether MODEL fits on so many GPUs, and the largest length, microbatch or depth that do.

    For example: symbolic-cost fit llama-3-70b --system h100 --gpus 64
    """
    from symbolic_cost.errors import Problems
    from symbolic_cost.explore.ask import fit, read_choices
    from symbolic_cost.explore.told import fits_sheet
    from symbolic_cost.jobs.job import job
    from symbolic_cost.numeric.assignments import parse_assignments

    problems = Problems()
    numbers = problems.attempt(parse_assignments, settings)
    chosen = problems.attempt(read_choices, choose)
    make = partial(job, system=system, precision=precision, optimizer=optimizer)
    run = problems.attempt(partial(make, attention=attention), model, "", numbers)
    problems.refuse()
    names = tuple(name.strip() for name in symbols.split(","))
    out.sheet(fits_sheet(fit(run, gpus, global_batch, symbols=names, choose=chosen)))
