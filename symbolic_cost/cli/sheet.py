"""`symbolic-cost sheet`: all formulas of a model as a document."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath

from symbolic_cost.cli import options
from symbolic_cost.cli.options import Choices, Output


@options.command("sheet")
def command(
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
