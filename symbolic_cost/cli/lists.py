"""`symbolic-cost symbols`, `conventions`, ...: what there is, with meaning and source."""

from functools import partial

import click

from symbolic_cost.cli import options
from symbolic_cost.cli.options import Output


def command(name: str, meaning: str) -> click.Command:
    """Return the command that lists one kind of thing."""
    listed = options.command("list", help=f"List {meaning}.")
    listing: click.Command = listed(partial(_list, name))
    listing.name = name
    return listing


def _list(name: str, *, out: Output) -> None:
    if name == "publications":
        from symbolic_cost.cli.sheets.reproduce import publications_sheet

        out.sheet(publications_sheet())
        return
    if name in ("errata", "prices"):
        from symbolic_cost.cli.sheets import laws

        out.sheet(laws.errata_sheet() if name == "errata" else laws.prices_sheet())
        return
    from symbolic_cost.jobs.tables import lists

    out.sheet(lists.LISTS[name]())
