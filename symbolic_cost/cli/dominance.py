"""`symbolic-cost dominance`: which part takes most, as inequalities and as a map."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Choices, Output, costing, output, pictured, refuse_unpictured


@click.command("dominance")
@click.argument("model")
@click.argument("parts", nargs=-1, required=True)
@click.option("--of", "cost", default="flops", show_default=True, help="Named cost.")
@click.option("--over", nargs=2, metavar="SYMBOL=A:B SYMBOL=C:D", help="Axes of a picture.")
@pictured
@costing
@output
def command(
    *,
    model: str,
    parts: tuple[str, ...],
    cost: str,
    over: tuple[str, str] | None,
    width: str,
    choices: Choices,
    out: Output,
) -> None:
    """Say where each of PARTS of MODEL takes most of a cost, as inequalities; -o FILE.svg draws it.

    For example: symbolic-cost dominance llama-3-8b attention.core mlp head --set b=1
    --over l=512:1000000 e=512:32768 -o map.svg
    """
    refuse_unpictured(out.file, width=width)
    from symbolic_cost.costs import named_cost
    from symbolic_cost.emit.plots import drawn, is_picture
    from symbolic_cost.jobs.questions import dominance_picture, dominance_sheet

    if not is_picture(out.file):
        if over is not None:
            raise click.UsageError("--over are the axes of a picture: -o FILE.svg draws it")
        out.sheet(choices.sheet(model, lambda run: dominance_sheet(run, parts, cost)))
        return
    if over is None:
        raise click.UsageError("a picture needs its axes: --over l=512:1000000 e=512:32768")
    from symbolic_cost.emit.regions import draw

    across, up = map(_axis, over)
    run = choices.job(model)
    map_ = dominance_picture(run, parts, cost, across, up)
    title = f"What takes most of the {named_cost(cost).meaning} of {model}"
    drawn(out.file, lambda figure: draw(figure, map_, title), width)


def _axis(text: str) -> tuple[str, tuple[int, int]]:
    from symbolic_cost.errors import InputError, shown
    from symbolic_cost.numeric.spans import integers
    from symbolic_cost.symbols import symbol

    name, equals, span = text.partition("=")
    if not equals:
        raise InputError(
            f"--over {shown(text)}: SYMBOL=LEAST:MOST is accepted, as in l=512:1000000"
        )
    values = integers(span)
    return symbol(name.strip()).name, (values[0], values[-1])
