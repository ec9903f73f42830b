"""`symbolic-cost table`: rows are ops, columns are costs."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output

_COLUMNS = "flops_fwd,flops_bwd,params,saved,comm"


@click.command("table")
@click.argument("model")
@click.option("--columns", default=_COLUMNS, show_default=True, help="Named costs.")
@click.option("--only", type=click.Choice(["formulas", "values"]), help="Leave the other out.")
@costing
@output
def command(
    *,
    model: str,
    columns: str,
    only: str | None,
    choices: Choices,
    out: Output,
) -> None:
    """Tabulate the costs of MODEL per op: formulas, and values where sizes are known.

    For example: symbolic-cost table gpt3-175b --strategy tp --set tp=4
    """
    from symbolic_cost.jobs.tables.per_op import flat_sheet, grouped_sheet, named_costs

    costs = named_costs(columns)
    make = grouped_sheet if out.form == "table" else flat_sheet
    out.sheet(choices.sheet(model, lambda job: make(job, costs, only)))
