"""Commands that write documents and reports, and files for other programs: code, traces."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from typing import Any

import click

from symbolic_cost.cli import Group
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

    names = [name.strip() for name in costs.split(",")]
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


class _Reports(Group):
    """`report run` and `report megatron`."""

    kind = "report"


@command("report", _Reports)
def report() -> None:
    """Report on a job on one page (run), or print a published report (megatron).

    For example: symbolic-cost report run llama-3-70b --strategy tp=8,sp,pp=4,dp=8,zero=1
    --system h100 --stack megatron-core --global-batch 128 --set b=1 -o report.html

    symbolic-cost report megatron --inputs run.json
    """


@command("report run")
def run(*, model: str, file: str, choices: Choices, trained: dict[str, Any]) -> None:
    """Report on MODEL, run this way: where it runs, what binds, what to change, and why.

    The page needs no network and no script; it follows the colours of the system. Every number
    stands with its formula and source. Strategies on as many ranks are searched: half a minute.

    For example: symbolic-cost report run gpt3-175b --strategy tp=8,sp,pp=8,dp=8,zero=1
    --system a100-80gb --global-batch 64 --recompute selective --set b=1 -o report.html
    """
    from symbolic_cost.explore.report import check_path
    from symbolic_cost.explore.report import report as reported

    check_path(file)
    if trained["system"] is None:
        trained["system"] = "a100-80gb"
    reported(every_stage(choices).job(model, **trained)).write(file)


@command("report megatron")
def megatron(*, inputs: str | None, corrected: bool, out: Output) -> None:
    """Print the report of Megatron's theoretical memory and traffic in its published layout.

    For example: symbolic-cost report megatron --inputs run.json
    """
    from symbolic_cost.published.inputs import of_file, read_inputs
    from symbolic_cost.published.megatron_report import PUBLISHED_INPUTS
    from symbolic_cost.published.megatron_report import report as printed

    chosen = PUBLISHED_INPUTS if inputs is None else read_inputs(inputs)
    with of_file(inputs):
        text = printed(chosen, corrected=corrected)
    out.text(text)


report.add_command(run)
report.add_command(megatron)


@command("sheet")
def sheet(
    *,
    model: str,
    columns: str | None,
    width: str,
    two_column: bool,
    cite: bool,
    choices: Choices,
    out: Output,
) -> None:
    """Write a document of all formulas of MODEL: FILE.tex, .pdf, .md, .html, or .bib.

    Without -o it is text. Tables fit their page: costs per op, collectives by kind, totals; then
    symbols, conventions and references. A .bib holds exactly what it rests on.

    For example: symbolic-cost sheet gpt3-175b --strategy tp,sp,pp --width ieee --cite -o paper.tex
    """
    ending = PurePath(out.file or "").suffix.lower()
    written = "latex" if ending in (".pdf", ".bib") else out.form
    _check(out, written, columns, cites=cite, pages=width != "article" or two_column)
    if ending == ".pdf":
        from symbolic_cost.emit.pdf import check_pdflatex

        check_pdflatex()  # said at once, before anything is derived
    text = partial(_text, model, columns, choices, width=width, number=1 + two_column, cites=cite)
    out.text(text(form=written, ending=ending))


def _text(
    model: str,
    columns: str | None,
    choices: Choices,
    *,
    width: str,
    number: int,
    cites: bool,
    form: str,
    ending: str,
) -> str | bytes:
    from symbolic_cost.emit.bibtex import bibtex
    from symbolic_cost.emit.document import write
    from symbolic_cost.emit.page import page
    from symbolic_cost.emit.pdf import compiled
    from symbolic_cost.errors import Problems
    from symbolic_cost.jobs.tables.paper import COLUMNS, citations, document
    from symbolic_cost.jobs.tables.per_op import named_costs

    problems = Problems()
    place = problems.attempt(lambda: page(width, columns=number))
    costs = problems.attempt(named_costs, columns or COLUMNS)
    work = problems.attempt(choices.job, model)
    problems.refuse()
    if ending == ".bib":
        return bibtex(citations(work))
    text = write(document(work, costs), form, place, cites=cites)
    return compiled(text) if ending == ".pdf" else text


def _check(out: Output, form: str, columns: str | None, *, cites: bool, pages: bool) -> None:
    from symbolic_cost.emit.document import FORMS
    from symbolic_cost.errors import refuse

    problems = []
    if form not in FORMS:
        accepted = "--format latex, markdown, html or table, or -o FILE.tex, .pdf, .md, .html, .bib"
        problems.append(f"a sheet is no {form}: {accepted} is accepted")
    if form != "latex":
        problems += ["--cite is not read: it is of LaTeX"] * cites
        problems += ["--width and --two-column are not read: they are of LaTeX"] * pages
    if (out.file or "").lower().endswith(".bib") and (columns or pages or cites):
        problems.append("--columns, --width, --two-column, --cite are not read: -o is BibTeX alone")
    refuse(problems)
