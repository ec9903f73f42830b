"""`symbolic-cost schedule`: a pipeline schedule, as formulas and drawn."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output


@click.command("schedule")
@click.option("--strategy", default="pp=4", show_default=True, help="Gives the stages: pp=4.")
@click.option("--microbatches", default=8, show_default=True, help="Of one step and pipeline.")
@click.option("--schedule", "name", default="1f1b", show_default=True, help="Its name.")
@click.option("--chunks", default=2, show_default=True, help="Model chunks per stage.")
@output
def command(*, strategy: str, microbatches: int, name: str, chunks: int, out: Output) -> None:
    """Bubble, activations in flight and messages of a pipeline schedule.

    With -o FILE.svg or FILE.png the schedule is drawn, as in
    symbolic-cost schedule --strategy pp=4 --microbatches 8 --schedule zb-h1 -o schedule.svg
    """
    from symbolic_cost.cli.sheets.schedule import schedule_sheet, stages_of
    from symbolic_cost.emit.plots import drawn, is_picture
    from symbolic_cost.emit.timeline import draw
    from symbolic_cost.parallel.timeline import timeline

    stages = stages_of(strategy)
    events = timeline(name, stages, microbatches, chunks)
    if is_picture(out.file):
        title = f"{name}, {stages} stages, {microbatches} microbatches"
        drawn(out.file, lambda figure: draw(figure, events, title))
        return
    out.sheet(schedule_sheet(name, stages, microbatches, chunks, events))
