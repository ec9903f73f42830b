"""`symbolic-cost systems`: machines, with the source of every number."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("systems")
@click.argument("name", required=False)
@output
def command(*, name: str | None, out: Output) -> None:
    """List the machines, or every number of one (a name, or a TOML file) with its source.

    For example: symbolic-cost systems h100
    """
    from symbolic_cost.cli.sheets.systems import machine_sheet, machines_sheet

    out.sheet(machines_sheet() if name is None else machine_sheet(name))
