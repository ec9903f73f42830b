"""Reports: figures, chapters with pictures and tables, as one HTML page or as Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from symbolic_cost.emit import html, markdown
from symbolic_cost.emit.bibtex import bibtex, in_words
from symbolic_cost.emit.plots import picture
from symbolic_cost.emit.sheet import Sheet
from symbolic_cost.errors import visible
from symbolic_cost.records import dataclass

ANCHOR = "row"
"""Beginning of the anchors of rows that figures and other rows point to."""

_WIDTH = 3.5
"""Width of a picture [inch]: its letters can be read on a telephone."""


@dataclass(frozen=True)
class Figure:
    """A number that stands at the head.

    Args:
        note: what it is of.
        row: the row of an anchored table that it comes from; else a chapter's number.
    """

    name: str
    value: str
    note: str
    row: str | int


@dataclass(frozen=True)
class Picture:
    """A picture.

    Args:
        caption: what it shows, also for who cannot see it.
    """

    draw: Callable[[Any], None]
    caption: str


@dataclass(frozen=True)
class Chapter:
    """An answer to one question.

    Args:
        lines: paragraphs, the answer first.
        notes: a list below them.
        folded: tables that are opened by who wants them.
        anchored: a table whose rows are linked to.
    """

    title: str
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    folded: tuple[Sheet, ...] = ()
    anchored: Sheet | None = None


@dataclass(frozen=True)
class Written:
    """A report.

    Args:
        command: that writes it; empty where there is none.
        cited: keys of publications.
    """

    title: str
    verdict: str
    figures: tuple[Figure, ...]
    chapters: tuple[Chapter, ...]
    cited: tuple[str, ...] = ()


# ---------------------------------------------------------------------- HTML


def as_html(report: Written) -> str:
    """Return a report as a page of its own.

    Raises:
        InputError: latex2mathml or matplotlib is not installed.
    """
    chapters = [*report.chapters]
    tables = [one.anchored for one in chapters if one.anchored is not None]
    places = html.anchors(tables[0], ANCHOR) if tables else {}
    body = [
        "<main>",
        f"<h1>{_safe(report.title)}</h1>",
        f'<p class="verdict">{_safe(report.verdict)}</p>',
        '<ul class="figures">',
        *(_figure(one, places) for one in report.figures),
        "</ul>",
        *_contents(chapters),
    ]
    for place, chapter in enumerate(chapters, 1):
        body += _chapter(chapter, place)
    body += [*_references(report), "</main>"]
    return html.page(visible(report.title), body)


def _safe(text: str) -> str:
    return html.escaped(visible(text))


def _figure(one: Figure, places: Mapping[str, str]) -> str:
    place = f"chapter-{one.row}" if isinstance(one.row, int) else places[one.row]
    value = f'<a href="#{place}" title="where it comes from">{_safe(one.value)}</a>'
    return (
        f'<li>{_safe(one.name)}<span class="value">{value}</span>'
        f'<span class="note">{_safe(one.note)}</span></li>'
    )


def _contents(chapters: list[Chapter]) -> list[str]:
    items = (
        f'<li><a href="#chapter-{place}">{_safe(chapter.title)}</a></li>'
        for place, chapter in enumerate(chapters, 1)
    )
    return ['<nav aria-label="Contents"><ul>', *items, "</ul></nav>"]


def _chapter(chapter: Chapter, place: int) -> Iterator[str]:
    yield f'<section aria-labelledby="chapter-{place}">'
    yield f'<h2 id="chapter-{place}">{_safe(chapter.title)}</h2>'
    yield from (f"<p>{_safe(line)}</p>" for line in chapter.lines)
    yield from _list(chapter.notes)
    if chapter.pictures:
        yield '<div class="pictures">'
        for number, one in enumerate(chapter.pictures):
            yield _picture(one, f"p{place}{'abcdefgh'[number]}")
        yield "</div>"
    for sheet in chapter.sheets:
        yield from _table(sheet)
    for sheet in chapter.folded:
        yield f"<details><summary>{_safe(sheet.title)}</summary>"
        yield from _table(sheet)
        yield "</details>"
    if chapter.anchored is not None:
        yield from _table(chapter.anchored, ANCHOR)
    yield "</section>"


def _table(sheet: Sheet, anchor: str = "") -> Iterator[str]:
    yield from html.scrolled(sheet.visible, anchor)
    yield from _list(sheet.notes)


def _list(notes: tuple[str, ...]) -> Iterator[str]:
    if notes:
        yield f'<ul class="notes">{"".join(f"<li>{_safe(note)}</li>" for note in notes)}</ul>'


def _picture(one: Picture, name: str) -> str:
    caption = _safe(one.caption)
    return (
        f'<figure role="img" aria-label="{caption}">{inline(one.draw, name)}'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def inline(draw: Callable[[Any], None], name: str) -> str:
    """Return a picture as SVG inside of a page: black and white are the colours of the page.

    Args:
        draw: draws on a figure of matplotlib.
        name: beginning of its identifiers, which are unique within a page.
    """
    text = picture(draw, "svg", _WIDTH).decode()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    head, _, rest = text.partition(">")
    head = re.sub(r' (width|height|version|xmlns(:xlink)?)="[^"]*"', "", head)
    text = f'{head} aria-hidden="true">{rest}'.replace("xlink:href", "href")
    text = _unique_identifiers(text, name)
    text = re.sub(_PLACES, lambda place: " " * place[0].startswith(" ") + _rounded(place[0]), text)
    text = re.sub(r">\s+<", "><", text)
    return text.replace("#000000", "currentColor").replace("#ffffff", "var(--paper)").strip()


_PLACES = r' (?:d|x|y)="[^"]*"|translate\([^)]*\)'
_LINKED = r'(?:url\(#|href="#)([^")]+)'


def _unique_identifiers(text: str, name: str) -> str:
    """Return a picture with short identifiers that no other of a page has, and none without use."""
    used = {
        old: f"{name}{place:x}"
        for place, old in enumerate(dict.fromkeys(re.findall(_LINKED, text)))
    }
    text = re.sub(
        r' id="([^"]*)"', lambda one: f' id="{used[one[1]]}"' if one[1] in used else "", text
    )
    return re.sub(_LINKED, lambda one: one[0].replace(f"#{one[1]}", f"#{used[one[1]]}"), text)


def _rounded(place: str) -> str:
    return " ".join(re.sub(r"(-?\d+\.\d{2})\d+", r"\1", place).split())


def _references(report: Written) -> Iterator[str]:
    if not report.cited:
        return
    yield '<section aria-labelledby="references"><h2 id="references">References</h2><ul>'
    for key in report.cited:
        yield f"<li>{_safe(in_words(key))}</li>"
    yield "</ul><details><summary>BibTeX</summary>"
    yield f"<pre>{_safe_lines(bibtex(report.cited))}</pre></details></section>"


def _safe_lines(text: str) -> str:
    return "\n".join(html.escaped(visible(line)) for line in text.splitlines())


# ---------------------------------------------------------------------- Markdown


def as_markdown(report: Written) -> str:
    """Return a report as Markdown; of pictures there are the captions."""
    blocks = [f"# {_plain(report.title)}", f"**{_plain(report.verdict)}**"]
    blocks.append(
        "\n".join(f"- {_plain(f'{o.name}: {o.value} ({o.note})')}" for o in report.figures)
    )
    for chapter in report.chapters:
        blocks.append(f"## {_plain(chapter.title)}")
        blocks += [_plain(line) for line in chapter.lines]
        blocks += ["\n".join(f"- {_plain(note)}" for note in chapter.notes)] * bool(chapter.notes)
        blocks += [f"*{_plain(one.caption)}*" for one in chapter.pictures]
        sheets = (*chapter.sheets, *chapter.folded)
        sheets += () if chapter.anchored is None else (chapter.anchored,)
        blocks += [markdown.write(sheet.visible).rstrip("\n") for sheet in sheets]
    if report.cited:
        listed = "\n".join(f"- {_plain(in_words(key))}" for key in report.cited)
        blocks += ["## References", listed]
    return "\n\n".join(blocks) + "\n"


def _plain(text: str) -> str:
    return markdown.escaped(visible(text))
