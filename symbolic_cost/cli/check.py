"""`symbolic-cost check`: a formula from a paper, held against the derived one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from symbolic_cost.cli.asked import asking
from symbolic_cost.cli.options import Output, output

if TYPE_CHECKING:
    from symbolic_cost.jobs.subject import Asked


@click.command("check")
@click.argument("formula")
@click.argument("model")
@click.option(
    "--of", "--cost", "cost", required=True, help="Named cost, e.g. saved, flops_fwd, params, comm."
)
@asking
@output
@click.pass_context
def command(
    ctx: click.Context, *, formula: str, model: str, cost: str, asked: Asked, out: Output
) -> None:
    """Say whether FORMULA is the cost of MODEL: equal, equal to leading order, or how it differs.

    Products may be written without signs, powers with ^; max, min, ceil, floor, sqrt and
    log2 are functions. The exit code is 1 unless the two are equal.

    For example: symbolic-cost check "s*b*h*(34 + 5*a*s/h)" --cost saved gpt --path block
    --strategy "" --notation megatron
    """
    from symbolic_cost.jobs.check import check

    verdict = check(formula, cost, model, **asked)
    out.sheet(verdict.sheet())
    if not verdict:
        ctx.exit(1)
