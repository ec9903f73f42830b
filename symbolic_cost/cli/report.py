"""`symbolic-cost report`: a published report, as text."""

from __future__ import annotations

import click

from symbolic_cost.cli.options import Output, output

_REPORTS = ("megatron",)


@click.command("report")
@click.argument("name")
@click.option("--inputs", metavar="FILE", help="JSON with other inputs than the published ones.")
@click.option("--corrected", is_flag=True, help="Show the true figures and what differs.")
@output
def command(*, name: str, inputs: str | None, corrected: bool, out: Output) -> None:
    """Write the report NAME (megatron) in its published layout.

    For example: symbolic-cost report megatron --inputs run.json
    """
    from symbolic_cost.errors import UnknownNameError, unknown
    from symbolic_cost.published.inputs import read_inputs
    from symbolic_cost.published.megatron_report import PUBLISHED_INPUTS, report

    if name not in _REPORTS:
        raise UnknownNameError(unknown("report", name, _REPORTS))
    chosen = PUBLISHED_INPUTS if inputs is None else read_inputs(inputs)
    out.text(report(chosen, corrected=corrected))
