"""Sheets as HTML pages with formulas as MathML: light and dark, no script, no request."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import escape

from sympy import Basic, Expr

from symbolic_cost.emit.formulas import latex, plain
from symbolic_cost.emit.sheet import Sheet, is_heading
from symbolic_cost.emit.table import saying
from symbolic_cost.errors import InputError
from symbolic_cost.reading import package_data

_LONG = 48
"""Letters of the longest formula that stands in one piece."""

_LONGEST = 400
"""Letters of the longest formula that is MathML; a longer one is read as text if at all."""

_MANY = 300
"""Rows of a table beyond which long formulas are text."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def write(sheet: Sheet) -> str:
    """Return a page with the table and its notes.

    Raises:
        InputError: latex2mathml is not installed.
    """
    notes = [f"<p>{escaped(note)}</p>" for note in sheet.notes]
    return page(sheet.title, [*scrolled(sheet), *notes])


def page(title: str, body: Sequence[str]) -> str:
    """Return a page that needs nothing else, and in which nothing runs."""
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        f'<head><meta charset="utf-8"><title>{escaped(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<style>\n{package_data('emit/page.css')}</style></head>",
        "<body>",
        *body,
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def scrolled(sheet: Sheet, anchor: str = "") -> list[str]:
    """Return the lines of a table that is scrolled where it is wider than the page."""
    label = escaped(sheet.title)
    start = f'<div class="wide" tabindex="0" role="region" aria-label="{label}">'
    return [start, *table(sheet, anchor), "</div>"]


def table(sheet: Sheet, anchor: str = "") -> list[str]:
    """Return the lines of a table; columns that say nothing are left out where none links.

    Args:
        sheet: the table.
        anchor: where rows are linked to: beginning of their anchors. The last column then names
            other rows, with commas between them; a formula that is text links to them itself.
    """
    heads = [escaped(column.title) for column in sheet.columns]
    classes = ["" if column.align == "left" else ' class="right"' for column in sheet.columns]
    places = anchors(sheet, anchor) if anchor else {}
    longest = _LONG if len(sheet.rows) > _MANY else _LONGEST
    printed = sheet.printed(lambda expr: mathml(expr, longest), escaped)
    if not anchor:
        shown = saying(printed, len(heads))
        heads, classes, *printed = [[row[n] for n in shown] for row in (heads, classes, *printed)]
    return [
        "<table>",
        f"<caption>{escaped(sheet.title)}</caption>",
        f"<thead>{_row('th', heads, classes)}</thead>",
        "<tbody>",
        *(
            f'<tr class="heading"><td colspan="{len(cells)}">{cells[0]}</td></tr>'
            if is_heading(row)
            else _row("td", *_linked(cells, classes, places))
            for row, cells in zip(sheet.rows, printed, strict=True)
        ),
        "</tbody>",
        "</table>",
    ]


def anchors(sheet: Sheet, anchor: str) -> dict[str, str]:
    """Return the anchors of the rows by their names, the first cells."""
    return {escaped(str(row[0])): f"{anchor}{place}" for place, row in enumerate(sheet.rows)}


def _linked(
    cells: list[str], classes: list[str], places: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Return the cells of a row that has an anchor and links to others, and their attributes."""
    if not places:
        return cells, classes
    classes = [f' id="{places[cells[0]]}"', *classes[1:]]
    names = {
        one: f'<a href="#{places[one]}">{one}</a>' for one in cells[-1].split(", ") if one in places
    }
    if names and cells[1:-1] and cells[1].startswith("<code>"):
        longest = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        every = rf"(?<![\w.])(?:{longest})(?![\w.])"  # a name is a link where it first stands
        code = re.sub(every, lambda one: names.pop(one[0], one[0]), cells[1])
        return [cells[0], code, *cells[2:-1], ""], classes
    links = ", ".join(names.get(one, one) for one in cells[-1].split(", "))
    return [*cells[:-1], links], classes


def _row(tag: str, cells: list[str], classes: list[str]) -> str:
    marked = zip(cells, classes, strict=True)
    return f"<tr>{''.join(f'<{tag}{kind}>{cell}</{tag}>' for cell, kind in marked)}</tr>"


def escaped(text: str) -> str:
    """Return a text in which nothing is HTML."""
    return escape(text).replace("\n", "<br>")


def mathml(expr: Basic, longest: int = _LONGEST) -> str:
    """Return a formula as MathML; a long one in pieces, between which a line may end.

    Args:
        expr: the formula.
        longest: characters beyond which it is text, which is a sixth as large.

    Raises:
        InputError: latex2mathml is not installed.
    """
    text = plain(expr) if isinstance(expr, Expr) else ""
    if len(text) <= _LONG:
        return _converted(latex(expr))
    if len(text) > longest:
        return f"<code>{escaped(text)}</code>"
    pieces = [""]
    for piece in re.split(r"\\allowbreak |(?<= [+-]) ", latex(expr, breakable=True)):
        pieces[-1] = f"{pieces[-1]} {piece}".strip()
        if all(pieces[-1].count(one) == pieces[-1].count(other) for one, other in _PAIRS):
            pieces.append("")
    return " ".join(map(_converted, [piece for piece in pieces if piece]))


_PAIRS = (("{", "}"), (r"\left", r"\right"), (r"\begin", r"\end"))


def _converted(tex: str) -> str:
    try:
        import latex2mathml.converter  # noqa: F401 - told where it is not installed
    except ImportError:
        raise InputError(
            "format html needs the package latex2mathml: pip install 'symbolic_cost[html]'"
        ) from None
    return _typeset(tex)


@lru_cache(4096)
def _typeset(tex: str) -> str:
    from latex2mathml.converter import convert

    return _short(convert(tex))


def _short(text: str) -> str:
    """Return MathML without what HTML knows; fractions are as large as those of a display."""
    inside = text[text.index(">") + 1 : text.rindex("</math>")]
    inside = re.sub(r"&#x([0-9A-F]{5});", lambda code: escape(chr(int(code[1], 16))), inside)
    inside = _WORD.sub(_joined, inside)
    inside = re.sub(r"<mrow><mrow>((?:(?!</?mrow>).)*)</mrow></mrow>", r"<mrow>\1</mrow>", inside)
    inside = re.sub(r"<mrow>(<m[in][^>]*>[^<]*</m[in]>)</mrow>", r"\1", inside)
    if inside.startswith("<mrow>") and inside.count("<mrow>") == 1:
        inside = inside.removeprefix("<mrow>").removesuffix("</mrow>")
    head = '<math displaystyle="true">' if "<mfrac>" in inside else "<math>"
    return f"{head}{inside}</math>"


_LETTER = r'<m(?:i|o|text) mathvariant="(normal|italic)">[^<]*</m(?:i|o|text)>'
_WORD = re.compile(f"(?:{_LETTER}){{2,}}")


def _joined(letters: re.Match[str]) -> str:
    """Return a word whose letters stood one by one; a word is upright unless its class says."""
    word = "".join(re.findall(r">([^<>]*)</m", letters[0]))
    word = word.replace("\N{MINUS SIGN}", "-")
    return f'<mi class="word">{word}</mi>' if letters[1] == "italic" else f"<mi>{word}</mi>"
