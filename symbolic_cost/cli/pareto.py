"""`symbolic-cost pareto`: what no other combination beats, as a table or a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from symbolic_cost.cli.options import Output, output, pictured, refuse_unpictured, swept

if TYPE_CHECKING:
    from symbolic_cost.explore.lines import Line


@click.command("pareto")
@click.argument("model")
@swept
@click.option(
    "--axes",
    multiple=True,
    metavar="X,Y",
    help="Two figures that are made small; step,memory and step,cost unless given.",
)
@pictured
@output
def command(
    *,
    model: str,
    axes: tuple[str, ...],
    width: str,
    line: Callable[[str], Line],
    out: Output,
) -> None:
    """Find the combinations that no other beats in both figures; -o FILE.svg draws them.

    The cost is in device seconds of one token.

    For example: symbolic-cost pareto llama-3-70b --system h100 --global-batch 1024
    --vary gpus=256,512,1024 tp=1:8:x2 pp=1:16:x2 -o pareto.svg
    """
    refuse_unpictured(out.file, width=width)
    from symbolic_cost.emit.front import draw
    from symbolic_cost.emit.plots import drawn, is_picture
    from symbolic_cost.emit.sheet import stacked
    from symbolic_cost.explore.lines import pareto_lines

    fronts = pareto_lines(line(model), axes)
    if is_picture(out.file):
        drawn(out.file, lambda figure: draw(figure, fronts), width)
    else:
        both = stacked("front", {f"{one.x}, {one.y}": one.sheet for one in fronts})
        out.sheet(replace(both, title=f"{fronts[0].title}: what no other beats in both figures"))
