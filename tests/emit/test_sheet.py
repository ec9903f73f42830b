import csv
import io
import json
import re
from fractions import Fraction

import pytest
from sympy import Integer, Rational, ceiling

from symbolic_cost.emit import FORMATS
from symbolic_cost.emit.sheet import (
    Column,
    Measured,
    Nested,
    Sheet,
    exact,
    render,
    rounded,
    stacked,
)
from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.extrema import Max
from symbolic_cost.symbols import Active, b, cp, e, l, m1
from symbolic_cost.units import Unit

AWKWARD = Sheet(
    "Costs | of m_1 & é",
    (
        Column("name"),
        Column("formula"),
        Column("value", "right", Unit.FLOP),
        Column("share", "right", "%"),
    ),
    (
        ('a|b, "c"\nd [x]', 24 * b * l * Active(m1) / m1 - b, 3 * 10**15 + 1, Fraction(1, 3)),
        ("_x_ <b>$5 50% → é", Max(b, ceiling(e / cp)), None, -2.5),
        (None, Integer(7), -12, Rational(1, 8)),
    ),
    ("note_1 & *more* <i>",),
)
FORMULA = "24 b l [m1 > 1]/m1 - b"
CODE = "24*b*l*(m1 > 1)/m1 - b"


def test_shape_is_checked():
    columns = (Column("a"), Column("a"))
    with pytest.raises(InputError) as caught:
        Sheet("t", columns, (("x", 1), ("y",)))
    assert str(caught.value) == (
        "2 problems:\n"
        "  1. sheet 't': heading 'a' occurs twice\n"
        "  2. sheet 't': row 2 has 1 cells for 2 columns"
    )


def test_unknown_format():
    with pytest.raises(UnknownNameError, match=r"unknown format 'markdwon': did you mean markdown"):
        render(AWKWARD, "markdwon")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_ends_in_one_newline(name):
    text = render(AWKWARD, name)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_a_sheet_without_rows(name):
    assert "heading" in render(Sheet("empty", (Column("heading"),), ()), name)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(1, 10), 0.1),
        (Fraction(1, 3), "1/3"),
        (Fraction(10**400 + 1, 2), f"{10**400 + 1}/2"),
        (Fraction(4, 2), 2),
        (10**30, 10**30),
        (0.1, 0.1),
        (None, None),
        ("x", "x"),
        (b * e, "b*e"),
    ],
)
def test_exact(value, text):
    assert exact(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (10**30, None, str(10**30)),
        (1 / 3, None, "0.333333"),
        (Fraction(-2, 3), "ms", "-0.666667"),
        (Fraction(200, 3), "%", "66.67"),
        (Fraction(10**400 + 1, 2), None, "5.00000e+399"),
        (3 * 10**15, Unit.FLOP, "3 PFLOP"),
        (2**31, Unit.BYTE, "2 GiB"),
    ],
)
def test_rounded(value, unit, text):
    assert rounded(value, unit) == text


# ---------------------------------------------------------------- table


def test_table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert render(AWKWARD, "table").splitlines() == [
        "Costs | of m_1 & é",
        "",
        " name                formula                     value   share [%]",
        " ─────────────────────────────────────────────────────────────────",
        ' a|b, "c"            24 b l [m1 > 1]/m1 - b    3 PFLOP        0.33',
        " d [x]",
        " _x_ <b>$5 50% → é   max(b, ceiling(e/cp))                   -2.50",
        "                     7                        -12 FLOP        0.12",
        "",
        "note_1 & *more* <i>",
    ]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)


def test_table_folds_and_never_cuts(monkeypatch, terminal):  # noqa: ARG001
    monkeypatch.setenv("COLUMNS", "40")
    formula = sum(b**n * (l + n) for n in range(1, 40))
    text = render(Sheet("t", (Column("f"),), ((formula,), ("x" * 300,))), "table")
    assert max(map(len, text.splitlines())) <= 100
    assert "…" not in text
    assert text.count("b^") == 38
    assert text.count("x") == 300


def test_formulas_that_do_not_fit_stand_below_their_row(monkeypatch, terminal):  # noqa: ARG001
    monkeypatch.setenv("COLUMNS", "40")  # 80 are the least
    columns = (Column("op"), Column("n", "right"), Column("cost"), Column("cost formula"))
    formula = sum(b**n for n in range(2, 30))
    rows = ((("block, ", l, " times"), None, None, None), ("core scores", 7, e, formula))
    lines = render(Sheet("t", columns, rows), "table").splitlines()
    assert lines[2:6] == [
        " op              n   cost",
        " ────────────────────────",
        " block, l times",
        "   core scores   7   e",
    ]
    assert lines[6].startswith("     = b^29 + b^28 ")
    assert lines[7].startswith("        b^19 + ")
    assert max(map(len, lines)) <= 80


def test_table_has_no_colours(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in render(AWKWARD, "table")


def test_table_is_as_wide_as_a_wide_terminal(monkeypatch, terminal):  # noqa: ARG001
    monkeypatch.setenv("COLUMNS", "200")
    text = render(Sheet("t", (Column("f"),), (("word " * 39,),)), "table")
    assert max(map(len, text.splitlines())) > 190


def test_a_pipe_gets_the_same_from_every_terminal(monkeypatch):
    sheet = Sheet("t", (Column("f"),), (("word " * 39,),))
    texts = set()
    for columns in ("40", "100", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        texts.add(render(sheet, "table"))
    assert len(texts) == 1


NESTED = Sheet("t", (Column("part"),), ((Nested("", "gpt", 0),), (Nested("block.mlp", "mlp", 2),)))


def test_nested_names_are_indented_for_people():
    assert "\n gpt\n     mlp\n" in render(NESTED, "table")
    gap = 4 * "\N{NO-BREAK SPACE}"
    assert f"| {gap}mlp |" in render(NESTED, "markdown")
    assert f"<td>{gap}mlp</td>" in render(NESTED, "html")
    assert f"{{}}{gap}mlp " in render(NESTED, "latex")


def test_nested_names_are_paths_for_programs():
    assert render(NESTED, "csv") == 'part\n""\nblock.mlp\n'
    assert [r["part"] for r in json.loads(render(NESTED, "json"))["records"]] == ["", "block.mlp"]


# ---------------------------------------------------------------- csv and json


def test_csv():
    rows = list(csv.reader(io.StringIO(render(AWKWARD, "csv"))))
    assert rows == [
        ["name", "formula", "value [FLOP]", "share [%]"],
        ['a|b, "c"\nd [x]', CODE, "3000000000000001", "1/3"],
        ["_x_ <b>$5 50% → é", "max(b, ceil(e/cp))", "", "-2.5"],
        ["", "7", "-12", "0.125"],
    ]


def test_json():
    assert json.loads(render(AWKWARD, "json")) == {
        "schema_version": "symbolic-cost/sheet/1",
        "title": "Costs | of m_1 & é",
        "columns": [
            {"heading": "name", "unit": None},
            {"heading": "formula", "unit": None},
            {"heading": "value", "unit": "FLOP"},
            {"heading": "share", "unit": "%"},
        ],
        "records": [
            {
                "name": 'a|b, "c"\nd [x]',
                "formula": CODE,
                "value": 3 * 10**15 + 1,
                "share": "1/3",
            },
            {
                "name": "_x_ <b>$5 50% → é",
                "formula": "max(b, ceil(e/cp))",
                "value": None,
                "share": -2.5,
            },
            {"name": None, "formula": 7, "value": -12, "share": 0.125},
        ],
        "notes": ["note_1 & *more* <i>"],
    }


def test_programs_read_numbers_of_their_own_units_apart():
    sheet = Sheet("t", (Column("part"), Column("value")), (("step", Measured(0.5, Unit.SECOND)),))
    assert json.loads(render(sheet, "json"))["records"] == [
        {"part": "step", "value": 0.5, "value unit": "s"}
    ]
    assert "500 ms" in render(sheet, "table")


def test_stacked_sheets_keep_the_columns_of_all():
    one, other = (Sheet(x, (Column("a"), Column(x)), (("v", x),)) for x in ("p", "q"))
    both = stacked("which", {"first": one, "second": other})
    assert [column.heading for column in both.columns] == ["which", "a", "p", "q"]
    assert both.rows == (("first", "v", "p", None), ("second", "v", None, "q"))


def test_sentences_stand_below_their_rows_where_they_would_be_narrow():
    said = "a sentence of very many words that no narrow column holds in one line"
    columns = tuple(map(Column, ("name", "left", "middle", "why")))
    sheet = Sheet("t", columns, tuple((f"n{n}", 24 * "x", 24 * "y", said) for n in range(2)))
    assert f"     why: {said}" in render(sheet, "table")


def test_json_writes_what_json_lacks_as_text():
    sheet = Sheet("t", (Column("x"),), ((float("inf"),), (float("nan"),)))
    records = json.loads(render(sheet, "json"), parse_constant=pytest.fail)["records"]
    assert records == [{"x": "inf"}, {"x": "nan"}]


# ---------------------------------------------------------------- markdown


def test_markdown():
    assert render(AWKWARD, "markdown").splitlines() == [
        r"### Costs \| of m\_1 & é",
        "",
        r"| name | formula | value | share \[%\] |",
        "| :--- | :--- | ---: | ---: |",
        (
            r'| a\|b, "c"<br>d \[x\] | $\frac{24 b l \left[m_1 > 1\right]}{m_1} - b$ '
            "| 3 PFLOP | 0.33 |"
        ),
        (
            r"| \_x\_ \<b\>\$5 50% → é | "
            r"$\max\left(b, \left\lceil{\frac{e}{\mathit{cp}}}\right\rceil\right)$ |  | -2.50 |"
        ),
        "|  | 7 | -12 FLOP | 0.12 |",
        "",
        r"- note\_1 & \*more\* \<i\>",
    ]


# ---------------------------------------------------------------- latex


def test_latex():
    text = render(AWKWARD, "latex")
    lines = text.splitlines()
    assert lines[0] == r"% \usepackage{amsmath,array,booktabs}"
    assert r"\providecommand*{\Symcp}{\mathit{cp}}" in lines
    assert r"\caption{Costs \textbar{} of m\_1 \& é}" in lines
    assert r"{}name & formula & value & share [\%] \\" in lines
    assert (
        r"{}a\textbar{}b, ''c'' d [x] & "
        r"$24 \Symb \Syml \allowbreak [\SymmOne  > 1]/\SymmOne  - \Symb $ & 3 PFLOP & 0.33 \\"
        in lines
    )
    assert r"{} & 7 & $-$12 FLOP & 0.12 \\" in lines
    assert r"note\_1 \& *more* \textless{}i\textgreater{}.}" in text
    assert lines[-1] == r"\end{table}"


# ---------------------------------------------------------------- html


def test_html():
    text = render(AWKWARD, "html")
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">\n')
    assert "<title>Costs | of m_1 &amp; é</title>" in text
    assert "<td>a|b, &quot;c&quot;<br>d [x]</td>" in text
    assert '<td class="right">-2.50</td>' in text
    assert "<p>note_1 &amp; *more* &lt;i&gt;</p>" in text
    assert text.count("<math ") == 2
    assert "merror" not in text
    assert not re.search(r"<mi>\\", text), "a LaTeX command was not converted"


def test_html_without_its_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "latex2mathml.converter", None)
    with pytest.raises(InputError) as caught:
        render(AWKWARD, "html")
    assert str(caught.value) == (
        "format html needs the package latex2mathml: pip install 'symbolic_cost[html]'"
    )


HOSTILE = "gpt\x1b[2J\x07\u202eevil\u200f"


@pytest.mark.parametrize("form", ["table", "markdown", "latex", "html"])
def test_what_a_terminal_would_obey_is_escaped(form):
    columns = (Column(HOSTILE), Column("n", "right"))
    text = render(Sheet(HOSTILE, columns, ((HOSTILE, 3),), (HOSTILE,)), form)
    for character in ("\x1b", "\x07", "\u202e", "\u200f"):
        assert character not in text
    assert text.count("x1b") == 4 + 2 * (form == "html")  # the page has its title thrice


def test_texts_that_a_spreadsheet_would_run_are_defused():
    texts = ("=1+2", "+cmd", "-cmd", "@sum", "\t=1", "-3", "1e-3", "-", "gpt")
    columns = (Column("=heading"), Column("n"))
    rows = tuple((text, -number) for number, text in enumerate(texts))
    written = list(csv.reader(io.StringIO(render(Sheet("t", columns, rows), "csv"))))
    assert [row[0] for row in written] == [
        *("'=heading", "'=1+2", "'+cmd", "'-cmd", "'@sum", "'\t=1"),
        *("-3", "1e-3", "-", "gpt"),
    ]
    assert [row[1] for row in written[1:]] == [str(-number) for number in range(9)]
