"""Sheets as standalone HTML pages with formulas as MathML."""

from html import escape

from sympy import Expr

from symbolic_cost.emit.formulas import latex
from symbolic_cost.emit.sheet import Sheet
from symbolic_cost.errors import InputError

_STYLE = """
body { font: 16px/1.4 system-ui, sans-serif; margin: 2rem; color: #222; background: #fff; }
table { border-collapse: collapse; border-top: 2px solid; border-bottom: 2px solid; }
caption { font-weight: 600; text-align: left; padding-bottom: 0.5rem; }
th, td { padding: 0.3rem 0.8rem; text-align: left; }
thead { border-bottom: 1px solid; }
.right { text-align: right; font-variant-numeric: tabular-nums; }
"""


def write(sheet: Sheet) -> str:
    """Return a page with the table and its notes.

    Raises:
        InputError: latex2mathml is not installed.
    """
    heads = [escape(column.title) for column in sheet.columns]
    classes = ["" if column.align == "left" else ' class="right"' for column in sheet.columns]
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        f'<head><meta charset="utf-8"><title>{escape(sheet.title)}</title>',
        f"<style>{_STYLE}</style></head>",
        "<body>",
        "<table>",
        f"<caption>{escape(sheet.title)}</caption>",
        f"<thead>{_row('th', heads, classes)}</thead>",
        "<tbody>",
        *(_row("td", cells, classes) for cells in sheet.printed(_mathml, _escaped)),
        "</tbody>",
        "</table>",
        *(f"<p>{_escaped(note)}</p>" for note in sheet.notes),
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _row(tag: str, cells: list[str], classes: list[str]) -> str:
    marked = zip(cells, classes, strict=True)
    return f"<tr>{''.join(f'<{tag}{kind}>{cell}</{tag}>' for cell, kind in marked)}</tr>"


def _escaped(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _mathml(expr: Expr) -> str:
    try:
        from latex2mathml.converter import convert
    except ImportError:
        raise InputError(
            "format html needs the package latex2mathml: pip install 'symbolic_cost[html]'"
        ) from None
    return convert(latex(expr))
