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
    from symbolic_cost.cli.session import session
    from symbolic_cost.cli.sheets.formula import total_latex, total_sheet

    if sheet:
        from symbolic_cost.emit.document import formula_sheet

        work = session(model or cost, choices)
        out.text(formula_sheet(work.table, str(work.strategy)))
        return
    if model is None:
        raise click.UsageError("name a cost and a model: symbolic-cost formula flops gpt")
    work = session(model, choices)
    if out.form == "latex":
        out.text(total_latex(work, cost, phase, path))
        return
    out.sheet(total_sheet(work, cost, phase, path))
