"""A formula sheet: a LaTeX document of all that a model costs under a strategy."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sympy import Expr, Integer

from symbolic_cost.analysis.forms import factored
from symbolic_cost.conventions.questions import Conventions, Role
from symbolic_cost.costs import COSTS, NamedCost
from symbolic_cost.emit.formulas import latex, latex_text, where_list
from symbolic_cost.ledger import CostTable, Quantity, Row
from symbolic_cost.references import REFERENCES

_TEXT_WIDTH = 265  # mm: A4 landscape within margins of 16 mm
_NAME_WIDTH = 32  # mm
_GAP = 4  # mm between columns

_PREAMBLE = rf"""\documentclass[10pt]{{article}}
\usepackage[T1]{{fontenc}}
\usepackage[a4paper,landscape,textwidth={_TEXT_WIDTH}mm,vmargin=16mm]{{geometry}}
\usepackage{{amsmath,array,booktabs,longtable}}
\setlength{{\parindent}}{{0pt}}
\setlength{{\parskip}}{{3pt}}
\setlength{{\tabcolsep}}{{{_GAP / 2:g}mm}}
\setlength{{\LTleft}}{{0pt}}
\renewcommand{{\arraystretch}}{{1.3}}
\newcolumntype{{L}}[1]{{>{{\raggedright\arraybackslash}}p{{#1mm}}}}
\pagestyle{{plain}}
\begin{{document}}
"""

_COLUMNS = ("flops_fwd", "flops_bwd", "flops_recompute", "params", "saved", "comm", "comm_step")
_TOTALS = (*_COLUMNS[:4], "weights", "weight_gradients", *_COLUMNS[4:])


_SIZED = (Role.VALUE, Role.MASK, Role.STATISTIC, Role.WEIGHT, Role.WEIGHT_GRADIENT)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a model: its name, how often it occurs, and the rows of one occurrence."""

    name: str
    count: Expr
    rows: CostTable


def formula_sheet(table: CostTable, strategy: str = "") -> str:
    """Return a LaTeX document: a table of formulas per part, totals, symbols, conventions.

    It needs the packages amsmath, array, booktabs, geometry and longtable.

    Args:
        table: of a model.
        strategy: how the model is placed, in a few words.
    """
    placed = latex_text(strategy) or "one rank"
    counted = latex_text(table.conventions.name)
    return "\n".join(
        [
            _PREAMBLE,
            rf"{{\Large\bfseries Costs of {latex_text(table.name)}}}\par",
            rf"per rank and microbatch; strategy: {placed}; conventions: {counted}\par\bigskip",
            *(line for part in _parts(table) for line in _table(part)),
            *_totals(table),
            *_symbols(table),
            *_conventions(table.conventions),
            *_references(table),
            r"\end{document}",
            "",
        ]
    )


# ---------------------------------------------------------------------- tables


def _parts(table: CostTable) -> Iterator[_Part]:
    found: dict[tuple[str, Expr], list[Row]] = {}
    for row in table:
        name = row.path.partition(".")[0]
        found.setdefault((name, row.count), []).append(replace(row, count=Integer(1)))
    for (name, count), rows in found.items():
        yield _Part(name, count, replace(table, rows=tuple(rows)))


def _table(part: _Part) -> list[str]:
    """Give a table of one part: a line per op, a column per cost that occurs."""
    costs = [COSTS[name] for name in _COLUMNS if len(COSTS[name].rows(part.rows))]
    if not costs:  # a part of moves that other columns count, as the panels of a grid
        return []
    width = (_TEXT_WIDTH - _NAME_WIDTH) / len(costs) - _GAP
    columns = f"L{{{_NAME_WIDTH - _GAP}}}" + f"L{{{width:.1f}}}" * len(costs)
    heads = ["", *(rf"\small {_heading(cost)}" for cost in costs)]
    return [
        *_section(part.name + ("" if part.count == 1 else f", one of ${latex(part.count)}$")),
        rf"\begin{{longtable}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        _line(heads),
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endfoot",
        *(_op(path, part, costs) for path in _ops(part.rows)),
        r"\end{longtable}",
    ]


def _ops(table: CostTable) -> tuple[str, ...]:
    """Return the paths in the order in which ops run; communication is booked ahead of them."""
    return tuple(dict.fromkeys([*table.select(Quantity.READ).paths(), *table.paths()]))


def _op(path: str, part: _Part, costs: list[NamedCost]) -> str:
    name = latex_text(path.removeprefix(part.name).removeprefix(".")).replace(".", r".\allowbreak ")
    rows = part.rows.select(path=path)
    return _line([name, *(_formula(cost.total(rows)) for cost in costs)])


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _formula(expr: Expr) -> str:
    return "" if expr == 0 else f"${latex(factored(expr), breakable=True)}$"


def _heading(cost: NamedCost) -> str:
    named = cost.unit.value in cost.meaning
    return latex_text(cost.meaning if named else f"{cost.meaning} [{cost.unit}]")


# ---------------------------------------------------------------------- text


def _section(title: str) -> list[str]:
    return [rf"\pagebreak[2]\medskip{{\large\bfseries {title}}}\nopagebreak\par"]


def _totals(table: CostTable) -> Iterator[str]:
    """Give an equation per cost, a term per part, over as many lines as it takes."""
    yield from _section("Totals")
    for cost in (COSTS[name] for name in _TOTALS):
        terms = [
            latex(factored(part.count * cost.total(part.rows)), breakable=True)
            for part in _parts(table)
            if len(cost.rows(part.rows))
        ]
        if terms:
            yield (
                r"\begin{list}{}{\leftmargin=62mm\labelwidth=60mm\topsep=0pt}"
                rf"\raggedright\item[{{{_heading(cost)}\hfill}}]"
                rf"$\displaystyle {{}}={' + '.join(terms)}$\end{{list}}"
            )


def _symbols(table: CostTable) -> Iterator[str]:
    yield from _section("Symbols")
    exprs = (expr for row in table for expr in (row.expr, row.count))
    yield where_list(exprs) + r"\par"


def _conventions(chosen: Conventions) -> Iterator[str]:
    """Give the meaning of the conventions and the answers that formulas can say."""
    yield from _section("Conventions")
    yield f"{latex_text(chosen.meaning)}.\\par"
    sizes = ", ".join(
        rf"{latex_text(role.value.replace('_', ' '))} ${latex(chosen.sizes.of(role))}$"
        for role in _SIZED
    )
    yield (
        rf"FLOP of a sum of $n$ products: ${latex(chosen.contraction.expr)}$; "
        rf"bytes of one element: {sizes}; collectives: {latex_text(chosen.charge.name)}.\par"
    )


def _references(table: CostTable) -> Iterator[str]:
    yield from _section("References")
    keys = dict.fromkeys([table.conventions.source, *(row.source for row in table)])
    for key in keys:
        found = REFERENCES[key]
        yield rf"[{latex_text(key)}] {latex_text(found.title)}. {latex_text(found.where)}.\par"
