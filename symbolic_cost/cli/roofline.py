"""`symbolic-cost roofline`: the ops of a model below the roofs of a machine."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output


@click.command("roofline")
@click.argument("model")
@click.option("--system", default="a100-80gb", show_default=True, help="A machine, or a TOML file.")
@click.option("--precision", default="bf16", show_default=True, help="Of the matrix units.")
@costing
@output
def command(*, model: str, system: str, precision: str, choices: Choices, out: Output) -> None:
    """Place the ops of MODEL by arithmetic intensity and rate; -o FILE.svg draws them.

    For example: symbolic-cost roofline gpt3-175b --system h100 -o roofline.svg
    """
    from symbolic_cost.emit.plots import drawn, is_picture
    from symbolic_cost.emit.roofline import draw, points_sheet
    from symbolic_cost.jobs.header import header
    from symbolic_cost.systems.records import find_machine
    from symbolic_cost.systems.roofline_points import roofline_points

    work = choices.job(model)
    device = find_machine(system).device(precision)
    points = roofline_points(work.bound, device)
    title = f"{model} on {system}, {precision}"
    if is_picture(out.file):
        drawn(out.file, lambda figure: draw(figure, points, device, title))
    else:
        out.sheet(points_sheet(points, device, title, header(work)))
