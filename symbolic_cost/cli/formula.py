"""`symbolic-cost formula`: one total, or a sheet of all formulas."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output


@click.command("formula")
@click.argument("cost")
@click.argument("model", required=False)
@click.option("--phase", help="fwd, bwd, recompute, train or step.")
@click.option("--path", help="Only this part of the model, e.g. block.mlp.")
@click.option("--sheet", is_flag=True, help="A LaTeX document of all formulas of MODEL.")
@costing
@output
def command(
    *,
    cost: str,
    model: str | None,
    phase: str | None,
    path: str | None,
    sheet: bool,
    choices: Choices,
    out: Output,
) -> None:
    """Print the total COST of MODEL as a formula.

    For example: symbolic-cost formula flops gpt --phase fwd --format latex,
    or symbolic-cost formula --sheet gpt --strategy tp,sp -o sheet.tex
    """
    if sheet:
        _document(cost if model is None else None, phase, path, choices, out)
        return
    if model is None:
        raise click.UsageError("name a cost and a model: symbolic-cost formula flops gpt")
    from symbolic_cost.jobs.tables.totals import total_latex, total_sheet

    if out.form == "latex":
        out.text(total_latex(choices.job(model), cost, phase, path))
        return
    out.sheet(choices.sheet(model, lambda job: total_sheet(job, cost, phase, path)))


def _document(
    model: str | None, phase: str | None, path: str | None, choices: Choices, out: Output
) -> None:
    """Write the LaTeX document of all formulas; what it would not read is refused."""
    unread = [name for name, given in (("--phase", phase), ("--path", path)) if given is not None]
    if model is None:
        raise click.UsageError("--sheet is of a model alone: symbolic-cost formula --sheet gpt")
    if unread:
        raise click.UsageError(f"--sheet has all costs of all parts: {' and '.join(unread)} unread")
    if out.form not in ("table", "latex"):
        raise click.UsageError(f"--sheet is LaTeX: --format {out.form} is not accepted with it")
    from symbolic_cost.emit.document import formula_sheet

    work = choices.job(model)
    out.text(formula_sheet(work.rows, str(work.strategy)))
