"""Nested totals: what each part of a model costs, and its share of the whole."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from sympy import Add, Expr, Integer, Mul

from symbolic_cost.algebra import sums
from symbolic_cost.analysis.forms import factored
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Column, Nested, Sheet
from symbolic_cost.errors import ConventionError
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import CostTable, Row
from symbolic_cost.numeric.binding import check_values
from symbolic_cost.records import dataclass


@dataclass(frozen=True, slots=True)
class _Node:
    path: str
    name: str
    level: int
    count: Expr
    total: Expr


def tree_sheet(table: CostTable, name: str, values: Mapping[str, object] | None = None) -> Sheet:
    """Return the totals of the parts of a model; those of children add to their parent's.

    Args:
        table: rows of one unit, as `NamedCost.rows` selects them.
        name: of the cost.
        values: numbers by symbol name; if they leave no symbol, numbers and shares stand beside
            the formulas.

    Raises:
        ConventionError: the rows have more than one unit.
        InputError: a value is refused.
    """
    units = sorted({row.unit for row in table})
    if len(units) > 1:
        raise ConventionError(f"a tree is of one unit, not of {', '.join(units)}: select rows")
    numbers = check_values(values or {})
    whole = _Node("", table.name, 0, Integer(1), _total(table))
    nodes = [whole, *_below(table.rows)]
    columns = [Column("part"), Column("formula")]
    rows: list[list[Cell]] = [
        [_label(node, node.count.xreplace(numbers)), node.total] for node in nodes
    ]
    of_whole = whole.total.xreplace(numbers)
    if units and not of_whole.free_symbols:
        columns += [Column("value", "right", units[0]), Column("share", "right", "%")]
        for row, node in zip(rows, nodes, strict=True):
            value = node.total.xreplace(numbers)
            exact = value if value.is_Rational else float(value)
            row.extend([exact, float(100 * value / of_whole) if of_whole else None])
    return Sheet(f"{name} of {table.name}", tuple(columns), tuple(map(tuple, rows)))


def _below(
    rows: Iterable[Row], parent: str = "", counted: Expr = Integer(1), level: int = 1
) -> Iterator[_Node]:
    """Give the nodes below a path, each before its children; a lone child joins its parent."""
    depth = len(parent.split(".")) if parent else 0
    groups = grouped((".".join(row.path.split(".")[: depth + 1]), row) for row in rows)
    for members in groups.values():
        path = _shared(row.path for row in members)
        counts = {row.count for row in members}
        count = counts.pop() if len(counts) == 1 else counted
        name = path.removeprefix(parent).removeprefix(".") or "itself"
        yield _Node(path, name, level, count / counted, _total(members))
        if any(row.path != path for row in members):
            yield from _below(members, path, count, level + 1)


def _shared(paths: Iterable[str]) -> str:
    """Return the path down to which all paths agree."""
    levels = zip(*(path.split(".") for path in paths), strict=False)
    return ".".join(level[0] for level in takewhile(lambda level: len(set(level)) == 1, levels))


def _total(rows: Iterable[Row]) -> Expr:
    by_count = sums((row.count, row.expr) for row in rows)
    return Add(*(factored(Mul(count, once)) for count, once in by_count.items()))


def _label(node: _Node, count: Expr) -> Nested:
    times = "" if node.count == 1 else f" \N{MULTIPLICATION SIGN} {plain(count)}"
    return Nested(node.path, node.name + times, node.level)
