"""`symbolic-cost diff`: two conventions, strategies, machines or models, term by term."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output

_PAIR = "FIRST SECOND"


@click.command("diff")
@click.argument("model")
@click.argument("other", required=False)
@click.option(
    "--conventions", nargs=2, metavar=_PAIR, help="Of FLOP per token, or presets of counting."
)
@click.option("--strategy", nargs=2, metavar=_PAIR, help='Two strategies; "" is one rank.')
@click.option("--system", nargs=2, metavar=_PAIR, help="Two machines, on which a step is timed.")
@click.option("--of", help="Named costs with commas between them.")
@click.option("--on", default="", help="Strategy of both, where something else differs.")
@click.option("--seq", type=int, help="Tokens of a sequence.")
@click.option("--set", "settings", multiple=True, metavar="NAME=NUMBER", help="Bind a symbol.")
@click.option("--attention", default="flash", show_default=True, metavar="flash|eager")
@click.option("--recompute", default="none", show_default=True, help="Recompute policy.")
@click.option("--global-batch", type=int, help="Sequences per step, of a time.")
@output
def command(
    *,
    model: str,
    other: str | None,
    conventions: tuple[str, str] | None,
    strategy: tuple[str, str] | None,
    system: tuple[str, str] | None,
    of: str | None,
    on: str,
    seq: int | None,
    settings: tuple[str, ...],
    attention: str,
    recompute: str,
    global_batch: int | None,
    out: Output,
) -> None:
    """Subtract one count of MODEL from another, term by term as formulas with their sources.

    For example: symbolic-cost diff llama-3-70b --conventions torchtitan verl, or
    symbolic-cost diff llama-3-70b --strategy tp=8 tp=8,sp, or --system a100-80gb h100, or two
    models.
    """
    from symbolic_cost.jobs.diff import diff
    from symbolic_cost.jobs.numbers import degree_names
    from symbolic_cost.numeric.assignments import parse_assignments

    difference = diff(
        model,
        other,
        conventions=conventions,
        strategy=strategy,
        system=system,
        of=of,
        on=on,
        seq=seq,
        numbers=parse_assignments(settings, degree_names()),
        attention=attention,
        recompute=recompute,
        **({} if global_batch is None else {"global_batch": global_batch}),
    )
    out.sheet(difference.sheet())
