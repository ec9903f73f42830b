"""Documents: tables, what their symbols mean, conventions and references, in several formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sympy import Basic, Symbol

from symbolic_cost.emit import html, latex, markdown, table
from symbolic_cost.emit.bibtex import bibtex, in_words
from symbolic_cost.emit.formulas import latex as typeset
from symbolic_cost.emit.formulas import macros, symbols_of
from symbolic_cost.emit.page import PAGES, Page
from symbolic_cost.emit.sheet import Phrase, Sheet, formulas_of, worded
from symbolic_cost.errors import UnknownNameError, unknown, visible
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY

FORMS = ("table", "latex", "markdown", "html")
"""Formats of a document."""


@dataclass(frozen=True)
class Section:
    """A heading and lines below it."""

    title: str
    lines: tuple[Phrase, ...]


@dataclass(frozen=True)
class Document:
    """Tables and what a reader must know of them.

    Args:
        head: lines below the title.
        cited: keys of publications.
    """

    title: str
    head: tuple[Phrase, ...]
    sheets: tuple[Sheet, ...]
    sections: tuple[Section, ...] = ()
    cited: tuple[str, ...] = ()

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Symbols that any formula has, as the glossary lists them."""
        said = [p for line in self._lines for p in line if isinstance(p, Basic)]
        return tuple(symbols_of([*said, *(f for sheet in self.sheets for f in formulas_of(sheet))]))

    @property
    def _lines(self) -> Iterator[Phrase]:
        yield from self.head
        for section in self.sections:
            yield from section.lines

    @property
    def text(self) -> tuple[Section, ...]:
        """All sections: symbols, those of the document, references."""
        meanings: list[str | Basic] = []
        for one in self.symbols:
            if one.name in GLOSSARY:
                meanings += ["; " * bool(meanings), one, f": {GLOSSARY[one.name].meaning}"]
        symbols = (Section("Symbols", (tuple(meanings),)),) if meanings else ()
        return (*symbols, *self.sections)

    @property
    def references(self) -> tuple[str, ...]:
        """Publications in words, in the order of their keys."""
        return tuple(map(in_words, self.cited))


def write(
    document: Document, form: str, page: Page = PAGES["article"], *, cites: bool = False
) -> str:
    """Return a document in a format, as text that ends in a newline.

    Args:
        document: what is written.
        form: one of `FORMS`.
        page: of LaTeX.
        cites: whether LaTeX cites what it rests on, with BibTeX behind its end.

    Raises:
        UnknownNameError: no such format; the closest are offered.
    """
    if form == "latex":
        return _latex(document, page, cites=cites)
    writers = {"markdown": _markdown, "html": _html, "table": _table}
    if form not in writers:
        raise UnknownNameError(unknown("format of a document", form, FORMS))
    return writers[form](_visible(document))


def _visible(document: Document) -> Document:
    """Escape what a terminal would obey instead of showing it."""
    return replace(
        document,
        title=visible(document.title),
        head=tuple(map(_visible_phrase, document.head)),
        sheets=tuple(replace(sheet.visible, notes=()) for sheet in document.sheets),
        sections=tuple(
            Section(visible(section.title), tuple(map(_visible_phrase, section.lines)))
            for section in document.sections
        ),
    )


def _visible_phrase(line: Phrase) -> Phrase:
    return tuple(visible(part) if isinstance(part, str) else part for part in line)


# ---------------------------------------------------------------------- LaTeX

_PREAMBLE = r"""\documentclass[10pt{option}]{{article}}
\usepackage[T1]{{fontenc}}
\usepackage{{lmodern}}
\usepackage[letterpaper,textwidth={width}pt,textheight={height}pt,columnsep={gap}pt]{{geometry}}
\usepackage{{amsmath,array,booktabs}}
\pdfinfoomitdate=1 \pdftrailerid{{}} \pdfsuppressptexinfo=15
\setlength{{\parindent}}{{0pt}}
\setlength{{\parskip}}{{3pt}}
\setlength{{\emergencystretch}}{{3em}}
\setlength{{\belowcaptionskip}}{{4pt}}
\setcounter{{topnumber}}{{9}}\setcounter{{totalnumber}}{{20}}\setcounter{{dbltopnumber}}{{9}}
\renewcommand{{\topfraction}}{{.95}}\renewcommand{{\dbltopfraction}}{{.95}}
\renewcommand{{\textfraction}}{{.02}}
\renewcommand{{\floatpagefraction}}{{.6}}\renewcommand{{\dblfloatpagefraction}}{{.6}}
\makeatletter\setlength{{\@fptop}}{{0pt}}\setlength{{\@dblfptop}}{{0pt}}
\newcommand{{\tablesdone}}{{\ifx\@deferlist\@empty\else\clearpage\fi}}\makeatother"""
# Pages of tables alone are filled from the top. In one column, tables that wait for a page come
# before the references, as in a paper; in two, wide tables always wait, and references do not.


def _latex(document: Document, page: Page, *, cites: bool) -> str:
    shown = _visible(document)
    sheets = shown.sheets
    cited = shown.cited if cites else ()
    places = [
        latex.Float(page, notes="none", cited=cited if n == 0 else ()) for n in range(len(sheets))
    ]
    symbols = shown.symbols
    lines = [
        _PREAMBLE.format(
            option=",twocolumn" * page.is_divided,
            width=page.text,
            height=page.height,
            gap=page.text - 2 * page.column if page.is_divided else 10,
        ),
        *latex.definitions(symbols),
        r"\begin{document}",
        r"\raggedright",
        rf"{{\large\bfseries {latex.text_of(shown.title)}}}\par\medskip",
        *(_phrase(_begun(line)) + r".\par" for line in shown.head),
        *(
            line
            for sheet, place in zip(sheets, places, strict=True)
            for line in latex.tables(sheet, place)
        ),
        *(line for section in shown.text for line in _section(section)),
        *([] if page.is_divided or not shown.cited else [r"\par\tablesdone"]),
        *_bibliography(shown),
        r"\end{document}",
        *([bibtex(shown.cited)] if cites and shown.cited else []),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def _begun(line: Phrase) -> Phrase:
    """Return a sentence with its first letter large; a symbol stays as it is."""
    first = line[0]
    begins = isinstance(first, str) and first[:2].isalpha()
    return (f"{first[0].upper()}{first[1:]}", *line[1:]) if begins else line


def _phrase(line: Phrase) -> str:
    return "".join(latex.text_of(p) if isinstance(p, str) else f"${macros(p)}$" for p in line)


def _section(section: Section) -> list[str]:
    return [
        rf"\pagebreak[2]\medskip{{\bfseries {latex.text_of(section.title)}}}\nopagebreak\par",
        *(_phrase(line) + r".\par" for line in section.lines),
    ]


def _bibliography(document: Document) -> list[str]:
    if not document.cited:
        return []
    pairs = zip(document.cited, document.references, strict=True)
    return [
        r"\begin{thebibliography}{99}\raggedright",
        *(rf"\bibitem{{{key}}} {latex.text_of(text)}." for key, text in pairs),
        r"\end{thebibliography}",
    ]


# ---------------------------------------------------------------------- other formats


def _table(document: Document) -> str:
    def lines(title: str, texts: Iterable[str]) -> str:
        return "\n".join([title, *(part for text in texts for part in table.folded(f"  {text}"))])

    blocks = [lines(document.title, map(worded, document.head))]
    blocks += [table.write(sheet).rstrip("\n") for sheet in document.sheets]
    blocks += [lines(section.title, map(worded, section.lines)) for section in document.text]
    blocks += [lines("References", document.references)] if document.cited else []
    return "\n\n".join(blocks) + "\n"


def _markdown(document: Document) -> str:
    def phrase(line: Phrase) -> str:
        return "".join(
            markdown.escaped(p) if isinstance(p, str) else f"${typeset(p)}$" for p in line
        )

    blocks = [f"# {markdown.escaped(document.title)}", *map(phrase, map(_begun, document.head))]
    blocks += [markdown.write(sheet).rstrip("\n") for sheet in document.sheets]
    for section in document.text:
        blocks += [f"## {markdown.escaped(section.title)}", *map(phrase, section.lines)]
    if document.cited:
        listed = "\n".join(f"- {markdown.escaped(one)}" for one in document.references)
        blocks += ["## References", listed]
    return "\n\n".join(blocks) + "\n"


def _html(document: Document) -> str:
    def paragraph(line: Phrase) -> str:
        parts = (html.escaped(p) if isinstance(p, str) else html.mathml(p) for p in line)
        return f"<p>{''.join(parts)}</p>"

    body = [f"<h1>{html.escaped(document.title)}</h1>", *map(paragraph, map(_begun, document.head))]
    body += [line for sheet in document.sheets for line in html.scrolled(sheet)]
    for section in document.text:
        body += [f"<h2>{html.escaped(section.title)}</h2>", *map(paragraph, section.lines)]
    if document.cited:
        body += ["<h2>References</h2>", *(f"<p>{html.escaped(o)}</p>" for o in document.references)]
    return html.page(document.title, body)


def sheets_as_latex(sheets: Sequence[Sheet], place: latex.Float) -> str:
    """Return tables for a paper: packages, macros of all symbols, one table after the other.

    The first has the caption and label of the place, the others their own titles.
    """
    shown = [sheet.visible for sheet in sheets]
    symbols = symbols_of(formula for sheet in shown for formula in formulas_of(sheet))
    lines = [f"% {latex.PACKAGES}", *latex.definitions(symbols)]
    for number, sheet in enumerate(shown, 1):
        own = place if number == 1 else replace(place, caption="", label=_numbered(place, number))
        notes = place.notes if number == len(shown) else "none"
        lines += latex.tables(sheet, replace(own, notes=notes))
    if place.cited:
        lines += [f"% {line}" for line in bibtex(place.cited).splitlines()]
    return "\n".join(lines) + "\n"


def _numbered(place: latex.Float, number: int) -> str:
    return f"{place.label}-{'abcdefghij'[number - 1]}" if place.label else ""
