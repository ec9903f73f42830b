"""`symbolic-cost derive`: where a coefficient comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from symbolic_cost.cli.asked import asking
from symbolic_cost.cli.options import Output, output

if TYPE_CHECKING:
    from symbolic_cost.emit.sheet import Sheet
    from symbolic_cost.jobs.subject import Asked


@click.command("derive")
@click.argument("model")
@click.option("--of", "--cost", "cost", required=True, help="Named cost as of `formula`, or step.")
@click.option("--system", help="A machine, for --of step.")
@click.option("--global-batch", type=int, help="Sequences per step, for --of step.")
@asking
@output
def command(
    *,
    model: str,
    cost: str,
    system: str | None,
    global_batch: int | None,
    asked: Asked,
    out: Output,
) -> None:
    """Explain a cost of MODEL: each coefficient by op, tensor and answer of the conventions.

    A notation that is named says which sizes are assumed, such as f = 4 e, too; of the family gpt
    they are Megatron's without one.

    --of step explains the time of a step: the chain of its parts, and the figures of the
    machine, each of a datasheet, calibrated or assumed, with the interval that follows.

    For example: symbolic-cost derive gpt --of saved --path block, where does the 34 come from
    """
    from symbolic_cost.jobs.derivation import derive

    if cost == "step":
        out.sheet(_step(model, asked, system, global_batch))
        return
    if system is not None or global_batch is not None:
        raise click.UsageError("--system and --global-batch are of --cost step alone")
    out.sheet(derive(model, cost, **asked).sheet())


def _step(model: str, asked: Asked, system: str | None, global_batch: int | None) -> Sheet:
    """Return where the time of a step comes from."""
    from symbolic_cost.jobs.job import job
    from symbolic_cost.jobs.provenance import step_sheet

    unread = {"phase": "--phase", "path": "--path", "notation_name": "--notation"}
    stray = [option for name, option in unread.items() if asked.get(name) is not None]
    if stray:
        raise click.UsageError(f"--cost step is of a whole job: {', '.join(stray)} unread")
    run = job(
        model,
        asked["strategy"],
        asked["numbers"],
        conventions=asked["conventions"] or "standard",
        attention=asked["attention"] or "flash",
        recompute=asked["recompute"],
        system=system,
        global_batch=global_batch,
    )
    return step_sheet(run)
