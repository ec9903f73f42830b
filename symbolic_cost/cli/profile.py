"""`symbolic-cost profile`: module by module, as the Flops Profiler prints it."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("profile")
@click.argument("model")
@click.option("--batch", default=1, show_default=True, help="Sequences or images.")
@click.option("--seq", type=int, help="Tokens of each sequence; else those of the preset.")
@click.option("--latencies", metavar="FILE", help="JSON with measured latencies.")
@click.option(
    "--profiler", default="2023", show_default=True, help="Version that is followed: 2023 or 2021."
)
@output
def command(
    *,
    model: str,
    batch: int,
    seq: int | None,
    latencies: str | None,
    profiler: str,
    out: Output,
) -> None:
    """Profile MODEL, a name or a config.json: parameters, MACs and FLOP of every module.

    For example: symbolic-cost profile bert-base --batch 4 --seq 128
    """
    from symbolic_cost.published.module_profile.profile import named_profile
    from symbolic_cost.published.module_profile.text import profile_text

    made = named_profile(model, batch, seq, latencies, profiler)
    if out.form == "table":
        out.text(profile_text(made))
        return
    from symbolic_cost.cli.sheets.profile import profile_sheet

    out.sheet(profile_sheet(model, made))
