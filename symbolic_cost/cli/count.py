"""`symbolic-cost count`: exact counts of a published configuration."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("count")
@click.argument("config")
@click.option("--batch", default=1, show_default=True, help="Sequences.")
@click.option("--seq", default=1024, show_default=True, help="Tokens of each sequence.")
@click.option(
    "--conventions", default="torch-flop-counter", show_default=True, help="Counting conventions."
)
@output
def command(*, config: str, batch: int, seq: int, conventions: str, out: Output) -> None:
    """Count parameters, FLOP, cache and saved activations of CONFIG, a config.json.

    For example: symbolic-cost count path/to/config.json --batch 1 --seq 4096
    """
    from symbolic_cost.jobs.launched import count

    counts = count(config, batch, seq, conventions)
    if out.form == "json":
        import json

        out.text(json.dumps(counts, indent=1))
        return
    from symbolic_cost.cli.sheets.count import count_sheet

    out.sheet(count_sheet(config, counts, batch, seq, conventions))
