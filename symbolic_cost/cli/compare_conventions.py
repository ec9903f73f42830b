"""`symbolic-cost compare-conventions`: what one preset counts more than another."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("compare-conventions")
@click.argument("model")
@click.argument("first")
@click.argument("second")
@click.option("--of", "cost", default="flops", show_default=True, help="A named cost.")
@click.option("--set", "settings", multiple=True, metavar="NAME=INTEGER", help="Bind a symbol.")
@output
def command(
    *, model: str, first: str, second: str, cost: str, settings: tuple[str, ...], out: Output
) -> None:
    """Subtract what conventions SECOND count for MODEL from what FIRST count, as a formula.

    For example: symbolic-cost compare-conventions gpt2 torch-flop-counter fvcore
    """
    from symbolic_cost.cli.sheets.compare_conventions import difference_sheet

    out.sheet(difference_sheet(model, first, second, cost, settings))
