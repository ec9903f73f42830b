"""Where a number comes from: its formula, the formulas that this names, down to the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sympy import Expr

from symbolic_cost.analysis.forms import factored
from symbolic_cost.checking import checked
from symbolic_cost.costs import named_cost
from symbolic_cost.display import NotebookTable
from symbolic_cost.emit.bibtex import bibtex
from symbolic_cost.emit.sheet import Cell, Sheet, headed, render
from symbolic_cost.errors import InputError, unknown
from symbolic_cost.jobs.answers import Answer, TimeAnswer
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.provenance import figures, source_of
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.tables.paper import citations as cited
from symbolic_cost.jobs.tables.paper import op_rows
from symbolic_cost.jobs.tables.seconds import figure_text
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.ledger import CostTable
from symbolic_cost.records import dataclass
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import GLOSSARY, in_glossary_order

_LEVELS = 3


@dataclass(frozen=True)
class Explained(NotebookTable):
    """A number with the chain of formulas that it comes from."""

    sheet: Sheet

    def __str__(self) -> str:
        return render(self.sheet, "table").rstrip("\n")

    __repr__ = __str__


@checked
def explain(of: Answer | Setup, name: str = "", *, levels: int = _LEVELS) -> Explained:
    """Return the chain of formulas of a number, down to the inputs.

    Args:
        of: what the number is of: job.time() for "step", "mfu" or any other definition, a job or
            another of its answers for a named cost.
        name: of the number; "step" of a time, "flops" of all else unless given.
        levels: of definitions that are shown below a time.

    Raises:
        InputError: no such number; the closest are offered.
    """
    if isinstance(of, TimeAnswer):
        return Explained(_of_time(of, name or "step", levels))
    return Explained(_of_cost(of.setup if isinstance(of, Answer) else of, name or "flops"))


@checked
def citations(of: Setup | Answer | CostTable | str) -> str:
    """Return BibTeX of exactly the publications that something rests on.

    Args:
        of: a job, an answer, a table of rows, or the key of a publication.

    Raises:
        InputError: no such publication.
    """
    if isinstance(of, str):
        if of not in REFERENCES:
            raise InputError(unknown("publication", of, REFERENCES))
        return bibtex([of])
    if isinstance(of, CostTable):
        keys = dict.fromkeys([of.conventions.source, *(row.source for row in of)])
        return bibtex(key for key in keys if key in REFERENCES and key != "definition")
    return bibtex(cited(of.setup if isinstance(of, Answer) else of))


# ---------------------------------------------------------------------- a named cost


def _of_cost(work: Setup, name: str) -> Sheet:
    cost = named_cost(name)
    own, bound = (cost.rows(table) for table in (work.rows, work.bound))
    rows: list[tuple[Cell, ...]] = [
        (cost.name, factored(cost.total(own)), number(cost.total(bound)), cost.meaning)
    ]
    for path in own.paths():
        below = [op_rows(table, path) for table in (own, bound)]
        what = ", ".join(dict.fromkeys(row.tensor or row.kind for row in below[0]))
        totals = [cost.total(table) for table in below]
        rows.append((f"  {path}", factored(totals[0]), number(totals[1]), what))
    rows += _inputs(work, {s for row in own for s in row.total.free_symbols})
    columns = headed("number, formula, value>, from")
    return Sheet(
        f"Where {cost.name} of {work.model.name} comes from",
        columns,
        tuple(rows),
        header(work, cost.name),
    )


def _inputs(work: Setup, symbols: set[Expr]) -> Iterator[tuple[Cell, ...]]:
    for one in in_glossary_order(symbols):
        meaning = GLOSSARY[one.name].meaning if one.name in GLOSSARY else ""
        yield (
            f"  {one.name}",
            None,
            work.values.get(one.name),
            f"{meaning}; {source_of(work, one.name)}",
        )


# ---------------------------------------------------------------------- a time


def _of_time(of: TimeAnswer, name: str, levels: int) -> Sheet:
    chain = of.timed.step.chain
    if name not in chain.definitions:
        raise InputError(unknown("number of a step", name, chain.definitions))
    order, left = _down(chain.definitions, name, levels)
    rows: list[tuple[Cell, ...]] = [
        (2 * depth * " " + one, chain.definitions[one], figure_text(of.timed, one), "definition")
        for one, depth in order
    ]
    rows += [
        (row[0], row[1], str(row[2]), row[3])
        for row in _inputs(of.setup, set(chain.dependencies([name]).symbols))
    ]
    machine = of.setup.machine
    known_figures = () if machine is None else figures(machine)
    rows += [
        (f"  {one.name}", None, f"{float(one.value):.6g}", f"{one.status}: {one.source}")
        for one in known_figures
    ]
    columns = headed("number, formula, value>, from")
    more = (f"{left} more definitions lie below: levels={levels + 2} shows more",) * bool(left)
    title = f"Where {name} of {of.setup.model.name} comes from"
    return Sheet(title, columns, tuple(rows), (*more, *header(of.setup, "step")))


def _down(
    definitions: Mapping[str, Expr], name: str, levels: int
) -> tuple[list[tuple[str, int]], int]:
    """Return definitions below one with their depth, each where it is first named, and the rest."""
    order: dict[str, int] = {}
    rest: set[str] = set()

    def walk(one: str, depth: int) -> None:
        if one in order:
            return
        order[one] = depth
        named = sorted(s.name for s in definitions[one].free_symbols if s.name in definitions)
        for below in named:
            if depth < levels:
                walk(below, depth + 1)
            else:
                rest.add(below)

    walk(name, 0)
    return list(order.items()), len(rest - order.keys())
