"""`symbolic-cost report`: one page for a job, and published reports in their layout."""

from __future__ import annotations

from typing import Any

from symbolic_cost.cli import Group, options
from symbolic_cost.cli.options import Choices, Output, every_stage, typed_options


class _Reports(Group):
    """`report run` and `report megatron`."""

    kind = "report"


@options.command("report", _Reports)
def command() -> None:
    """Report on a job on one page (run), or print a published report (megatron).

    For example: symbolic-cost report run llama-3-70b --strategy tp=8,sp,pp=4,dp=8,zero=1
    --system h100 --stack megatron-core --global-batch 128 --set b=1 -o report.html

    symbolic-cost report megatron --inputs run.json
    """


@options.command("report run")
def run(
    *, model: str, file: str, stack: str | None, choices: Choices, trained: dict[str, Any]
) -> None:
    """Report on MODEL, run this way: where it runs, what binds, what to change, and why.

    The page needs no network and no script; it follows the colours of the system. Every number
    stands with its formula and source. Strategies on as many ranks are searched: half a minute.

    For example: symbolic-cost report run gpt3-175b --strategy tp=8,sp,pp=8,dp=8,zero=1
    --system a100-80gb --global-batch 64 --recompute selective --set b=1 -o report.html
    """
    from symbolic_cost.explore.report import check_path, report

    check_path(file)
    if trained["system"] is None:
        trained["system"] = "a100-80gb"
    report(every_stage(choices).job(model, **trained, **typed_options(stack=stack))).write(file)


@options.command("report megatron")
def megatron(*, inputs: str | None, corrected: bool, out: Output) -> None:
    """Print the report of Megatron's theoretical memory and traffic in its published layout.

    For example: symbolic-cost report megatron --inputs run.json
    """
    from symbolic_cost.published.inputs import read_inputs
    from symbolic_cost.published.megatron_report import PUBLISHED_INPUTS, report

    chosen = PUBLISHED_INPUTS if inputs is None else read_inputs(inputs)
    out.text(report(chosen, corrected=corrected))


command.add_command(run)
command.add_command(megatron)
