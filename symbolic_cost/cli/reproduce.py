"""`symbolic-cost reproduce`: published numbers beside computed ones."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("reproduce")
@click.argument("name")
@click.option("--inputs", metavar="FILE", help="JSON with other inputs than the published ones.")
@click.option("--formulas", is_flag=True, help="Show the formula of each number.")
@output
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    inputs: str | None,
    *,
    formulas: bool,
    out: Output,
) -> None:
    """Reproduce the publication NAME: published, computed, match.

    The exit code is 1 if a number differs.
    """
    from symbolic_cost.cli.sheets.reproduce import reproduction_json, reproduction_sheet
    from symbolic_cost.errors import InputError
    from symbolic_cost.published.contract import formulas as formulas_of
    from symbolic_cost.published.contract import publication, reproduce
    from symbolic_cost.published.inputs import read_inputs

    publication(name)
    if formulas and not formulas_of(name):
        raise InputError(f"--formulas is not read: {name} offers none, only numbers")
    result = reproduce(name, None if inputs is None else read_inputs(inputs))
    known = formulas_of(name) if formulas else {}
    if out.form == "json":
        out.text(reproduction_json(result, known))
    else:
        out.sheet(reproduction_sheet(result, known))
    if result.matched < result.total:
        ctx.exit(1)
