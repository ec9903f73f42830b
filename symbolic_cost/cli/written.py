"""Commands that write a model's formulas or step for other programs: code, workbooks, traces."""

from __future__ import annotations

from typing import Any

import click

from symbolic_cost.cli.options import Choices, Output, command, every_stage


@command("export")
def export(
    *,
    costs: str,
    model: str,
    language: str,
    free: str,
    file: str | None,
    choices: Choices,
    trained: dict[str, Any],
    **tested: Any,
) -> None:
    """Write COSTS of MODEL as code without dependencies: step_time, peak_memory, or named costs.

    Degrees without a number are arguments, as in
    symbolic-cost export step_time,peak_memory gpt3-175b --system a100-80gb
    --strategy tp,sp,pp=8,dp --language c -o step.c
    """
    from symbolic_cost.emit.code import source
    from symbolic_cost.jobs.code_export import source_of

    names = [name.strip() for name in costs.split(",") if name.strip()]
    symbols = [name.strip() for name in free.split(",") if name.strip()]
    what = source_of(choices.job(model, **trained), names, free=symbols, **tested)
    Output("table", file).text(source(what, language))


@command("workbook")
def workbook(*, model: str, file: str, choices: Choices, trained: dict[str, Any]) -> None:
    """Write a step of MODEL as a workbook: inputs, memory, communication and time.

    Change a size, a degree or a rate of the machine in it, and every number follows, as in
    symbolic-cost workbook llama-3-70b --strategy tp=8,sp,pp=4,dp=8,zero=1 --system h100
    --global-batch 64 -o costs.xlsx

    Where it is not bound, b (sequences of a microbatch) and M (microbatches) begin at 1.
    """
    from symbolic_cost.jobs.workbook import workbook

    workbook(every_stage(choices).job(model, **trained), file)


@command("trace")
def trace(
    *, model: str, file: str | None, folder: str | None, choices: Choices, trained: dict[str, Any]
) -> None:
    """Write a step of MODEL: when every stage runs which pass, or what every rank does.

    -o writes a timeline for ui.perfetto.dev or chrome://tracing, as of
    symbolic-cost trace llama-3-70b --strategy tp=8,sp,pp=4,dp=8,zero=1 --system h100 --set b=1
    --global-batch 64 -o step.perfetto.json

    --chakra writes DIR/step.RANK.et for ASTRA-sim: ops with FLOP and bytes, collectives with sizes
    and groups, sends between stages, in the order of the schedule; DIR/groups.json names the ranks
    of the groups.
    """
    if (file is None) == (folder is None):
        raise click.UsageError("give -o FILE.json for a timeline, or --chakra DIR for traces")
    job = every_stage(choices).job(model, **trained)
    if folder is not None:
        from symbolic_cost.jobs.chakra import chakra_traces

        chakra_traces(job, folder)
    elif file is not None:
        from symbolic_cost.jobs.perfetto import step_trace

        step_trace(job, file)


@command("calculator")
def calculator(*, model: str, file: str, choices: Choices, trained: dict[str, Any]) -> None:
    """Write a step of MODEL, a family or a named model, as a page that computes in the browser.

    The page needs no network: sizes, tp, sp, pp, dp, ZeRO, recomputation and the machine are its
    controls, and every number shows its formula. Options say where it starts, as in
    symbolic-cost calculator llama-3-70b --strategy tp=8,sp,pp=4,dp=8,zero=1 -o calculator.html

    Deriving what the controls reach takes half a minute.
    """
    from symbolic_cost.jobs.calculator import calculator

    calculator(every_stage(choices).job(model, **trained), file)


@command("lift")
def lift(*, files: tuple[str, ...], out: Output) -> None:
    """Lift exported graphs of one family to formulas in the fields of their configurations.

    FILES are NAME.pt2 or NAME.onnx with NAME.json beside each, at sizes that differ from each
    other; the last is held out, and predicted. For example:
    symbolic-cost lift a.pt2 b.pt2 c.pt2 d.pt2 held-out.pt2
    """
    from symbolic_cost.cli.sheets.graphs import lifted_sheet
    from symbolic_cost.models.traced.lift import lifted

    out.sheet(lifted_sheet(lifted(files)))


@command("schema")
def schema() -> None:
    """Print the JSON schema of what --format json writes, with its version.

    For example: symbolic-cost schema > sheet.schema.json
    """
    import json

    from symbolic_cost.emit.schema import schema

    click.echo(json.dumps(schema(), indent=2))
