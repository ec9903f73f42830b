"""`symbolic-cost search`: the best strategies of a model on so many GPUs."""

from __future__ import annotations

from functools import partial

import click

from symbolic_cost.cli.options import Output, output


@click.command("search")
@click.argument("model")
@click.option("--system", default="a100-80gb", show_default=True, help="A machine, or a TOML file.")
@click.option("--gpus", type=int, required=True, help="Ranks.")
@click.option("--global-batch", type=int, required=True, help="Sequences per step.")
@click.option(
    "--objective",
    default="step",
    show_default=True,
    metavar="step|memory|mfu|throughput",
    help="What is looked for.",
)
@click.option("--top", default=10, show_default=True, help="Candidates to show.")
@click.option(
    "--choose",
    multiple=True,
    metavar="NAME=VALUE,VALUE",
    help="What may be chosen, e.g. tp=1,2,4 or recompute=none,full or sp=on.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=NUMBER", help="Bind a size.")
@click.option("--precision", default="bf16-mixed", show_default=True, help="Precision policy.")
@click.option("--optimizer", default="adam", show_default=True, help="Optimizer.")
@click.option("--conventions", default="standard", show_default=True, help="Counting conventions.")
@click.option("--attention", default="flash", show_default=True, metavar="flash|eager")
@click.option(
    "--prove", "proves", is_flag=True, help="The best alone, over --vary as well, and its proof."
)
@click.option(
    "--vary",
    multiple=True,
    metavar="NAME=VALUES",
    help="With --prove: sizes and rates of the machine, e.g. l=1024:8192:x2 beta=1e10:1e11:x1.1.",
)
@click.option("--explain", is_flag=True, help="The parts of every step as well.")
@output
def command(
    *,
    model: str,
    system: str,
    gpus: int,
    global_batch: int,
    objective: str,
    top: int,
    choose: tuple[str, ...],
    settings: tuple[str, ...],
    precision: str,
    optimizer: str,
    conventions: str,
    attention: str,
    proves: bool,
    vary: tuple[str, ...],
    explain: bool,
    out: Output,
) -> None:
    """Search every strategy of MODEL on so many GPUs, and say why the best is the best.

    For example: symbolic-cost search gpt3-175b --system a100-80gb --gpus 512 --global-batch 512
    With --prove the best is that of every combination with sizes and rates that vary, by branch
    and bound: --prove --vary "l=1024:8192:x2 beta=1e10:1e11:x1.1" --objective throughput
    """
    from symbolic_cost.errors import Problems
    from symbolic_cost.explore.ask import prove, read_choices, read_ranges, search
    from symbolic_cost.explore.proven_told import proof_sheet
    from symbolic_cost.explore.told import search_sheet
    from symbolic_cost.jobs.job import job
    from symbolic_cost.numeric.assignments import parse_assignments

    problems = Problems()
    numbers = problems.attempt(parse_assignments, settings)
    chosen = problems.attempt(read_choices, choose)
    make = partial(
        job,
        system=system,
        precision=precision,
        optimizer=optimizer,
        conventions=conventions,
        attention=attention,
    )
    run = problems.attempt(make, model, "", numbers)
    varied = problems.attempt(read_ranges, vary)
    problems.refuse()
    if proves:
        done = prove(run, gpus, global_batch, vary=varied, objective=objective, choose=chosen)
        out.sheet(proof_sheet(done))
        return
    found = search(run, gpus, global_batch, objective=objective, top=top, choose=chosen)
    out.sheet(search_sheet(found, explain=explain))
