"""`symbolic-cost search`: the best strategies of a model on so many GPUs."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, Searched, output, searched


@click.command("search")
@searched
@click.option("--global-batch", type=int, required=True, help="Sequences per step.")
@click.option(
    "--objective",
    default="step",
    show_default=True,
    metavar="step|memory|mfu|throughput|tokens-per-dollar|energy",
    help="What is looked for.",
)
@click.option("--top", default=10, show_default=True, help="Candidates to show.")
@click.option("--conventions", default="standard", show_default=True, help="Counting conventions.")
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
    of: Searched,
    global_batch: int,
    objective: str,
    top: int,
    conventions: str,
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
    from symbolic_cost.explore.asking import checked_space, read_ranges, search_of, usual
    from symbolic_cost.explore.told import search_sheet

    problems = Problems()
    base, chosen = of.subject(problems, conventions=conventions)
    varied = problems.attempt(read_ranges, vary)
    problems.refuse()
    space = checked_space(problems, of.gpus, global_batch, chosen, top)
    problems.refuse()
    if proves:
        from symbolic_cost.explore.proven import proof
        from symbolic_cost.explore.proven_told import proof_sheet

        done = proof(base, usual(base.facts, space, chosen), varied, objective)
        out.sheet(proof_sheet(done))
        return
    outcome = search_of(base, space, chosen, objective=objective, top=top)
    out.sheet(search_sheet(outcome, explain=explain))
