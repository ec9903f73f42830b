"""Tables for a paper: costs per op below human heads, collectives by kind, totals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sympy import Add, Eq, Expr, Ge

from symbolic_cost.analysis.forms import factored
from symbolic_cost.conventions.questions import Role
from symbolic_cost.costs import NamedCost
from symbolic_cost.emit import naming
from symbolic_cost.emit.document import Document, Section
from symbolic_cost.emit.sheet import Cell, Column, Phrase, Sheet, headed
from symbolic_cost.grouping import grouped
from symbolic_cost.jobs.header import ASSUMED, header
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.tables.per_op import FORMULAS, VALUES, below_headings
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.ledger import BACKWARD, CostTable, Phase, Quantity, Row
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import n, symbol
from symbolic_cost.units import Unit

HEADS = {
    "flops": "Training",
    "flops_fwd": "Forward",
    "flops_bwd": "Backward",
    "flops_recompute": "Recomputed",
    "flops_train": "Training",
    "params": "Parameters",
    "weights": "Weights",
    "weight_gradients": "Gradients",
    "saved": "Saved",
    "cache": "Cached",
    "bytes_fwd": "Read, written forward",
    "bytes_bwd": "Read, written backward",
    "bytes": "Read, written",
    "comm": "Sent",
    "comm_fwd": "Sent forward",
    "comm_bwd": "Sent backward",
    "comm_step": "Sent per step",
}
"""Heads of columns."""

COLUMNS = "flops_fwd,flops_bwd,flops_recompute,params,saved,comm,comm_step"
"""Costs of a formula sheet."""

_SIZED = (Role.VALUE, Role.MASK, Role.STATISTIC, Role.WEIGHT, Role.WEIGHT_GRADIENT)


def document(work: Setup, costs: Sequence[NamedCost]) -> Document:
    """Return the formula sheet of a job: tables, symbols, conventions and what they rest on."""
    numbers = [(Eq(symbol(one), value, evaluate=False), ", ") for one, value in work.values.items()]
    spread = tuple(part for pair in numbers for part in pair)[:-1]
    head: list[Phrase] = [("Strategy: ", *strategy_phrase(work.strategy), "; costs of one rank")]
    head += [(line,) for line in _header_lines(work)]
    bounds = [(Ge(a.size, a.least, evaluate=False), ", ") for a in work.structure.assumptions]
    several = tuple(part for pair in bounds for part in pair)[:-1]
    head += [(ASSUMED, *several)] if bounds else []
    head += [("Sizes: ", *spread)] if numbers else []
    sheets = [totals_sheet(work, costs), *op_sheets(work, costs, FORMULAS)]
    conventions = Section("Conventions", tuple(_conventions(work)))
    title, cited = f"Costs of {work.model.name}", citations(work)
    return Document(title, tuple(head), tuple(sheets), (conventions,), cited)


def op_sheets(work: Setup, costs: Sequence[NamedCost], only: str | None = None) -> list[Sheet]:
    """Return the table of costs per op, and of collectives by kind if these are asked for."""
    if any(row.total.free_symbols for row in work.bound) and only != VALUES:
        only = FORMULAS  # numbers of some cells alone would say little
    computed = [cost for cost in costs if not _moves(cost)]
    sheets = [_per_op(work, computed, only)] if computed else []
    if len(computed) < len(costs):
        sheets += [_collectives(work, only)]
    return [sheet for sheet in sheets if sheet.rows]


def _moves(cost: NamedCost) -> bool:
    return cost.quantities == (Quantity.COMMUNICATION,)


# ---------------------------------------------------------------------- ops


def _per_op(work: Setup, costs: Sequence[NamedCost], only: str | None) -> Sheet:
    shown = [cost for cost in costs if len(cost.rows(work.rows))]
    columns = [Column("Op"), *_heads([(HEADS[cost.name], cost.unit) for cost in shown], only)]
    ops: list[tuple[str, Expr, tuple[Cell, ...]]] = []
    for path in _ops(work.rows):
        own, bound = (op_rows(table, path) for table in (work.rows, work.bound))
        if any(len(cost.rows(own)) for cost in shown):
            pairs = ((cost.total(own.once()), cost.total(bound.once())) for cost in shown)
            cells = (path.rpartition(".")[2], *_cells(pairs, only))
            ops.append((path, own.rows[0].count, cells))
    title = f"Costs of {work.share.name} per op, each counted once, of one rank and microbatch"
    notes = header(work, *(cost.name for cost in costs))
    return Sheet(title, tuple(columns), tuple(below_headings(ops)), notes)


def _ops(table: CostTable) -> tuple[str, ...]:
    """Return the paths in the order in which ops run; communication is booked ahead of them."""
    return tuple(dict.fromkeys([*table.select(Quantity.READ).paths(), *table.paths()]))


def op_rows(table: CostTable, path: str) -> CostTable:
    """Return the rows of an op; a path may be the beginning of others as well."""
    return table.select(where=lambda row: row.path == path)


def _heads(named: list[tuple[str, Unit]], only: str | None) -> Iterator[Column]:
    for name, unit in named:
        if only != VALUES:
            yield Column(f"{name} [{unit}]")
        if only != FORMULAS:
            yield Column(f"{name} value", "right", unit)


def _cells(pairs: Iterator[tuple[Expr, Expr]], only: str | None) -> Iterator[Cell]:
    for total, bound in pairs:
        if only != VALUES:
            yield None if total == 0 else factored(total)
        if only != FORMULAS:
            yield None if total == 0 else number(bound)


# ---------------------------------------------------------------------- collectives


_PASSES = {"Forward": (Phase.FORWARD,), "Backward": BACKWARD, "Recomputed": (Phase.RECOMPUTE,)}
_STEP = "Per step"


def _pass(row: Row) -> str:
    named = (name for name, phases in _PASSES.items() if row.phase in phases)
    return _STEP if row.per_step else next(named, _STEP)


def _collectives(work: Setup, only: str | None) -> Sheet:
    """Tabulate what is sent per op, kind of collective and mesh axis."""
    tables = [table.select(Quantity.COMMUNICATION) for table in (work.rows, work.bound)]
    passes = [p for p in (*_PASSES, _STEP) if any(_pass(row) == p for row in tables[0])]
    named = [(name, Unit.BYTE) for name in passes]
    columns = [Column("Op"), Column("Collective"), Column("Over"), *_heads(named, only)]
    rows: list[tuple[str, Expr, tuple[Cell, ...]]] = []
    for path in [one for one in _ops(work.rows) if one in tables[0].paths()]:
        own, bound = (op_rows(table, path) for table in tables)
        sums = [_by_kind(table.once()) for table in (own, bound)]
        for place, (kind, over) in enumerate(dict.fromkeys(key[:2] for key in sums[0])):
            keys = [(kind, over, name) for name in passes]
            pairs = ((Add(*sums[0].get(key, ())), Add(*sums[1].get(key, ()))) for key in keys)
            name = "" if place else path.rpartition(".")[2]
            cells = (name, kind, over, *_cells(pairs, only))
            rows.append((path, own.rows[0].count, cells))
    title = f"Collectives of {work.share.name} by kind: what one rank sends per microbatch"
    title += ", and once per step" * (_STEP in passes)
    return Sheet(title, tuple(columns), tuple(below_headings(rows)), header(work, "comm"))


def _by_kind(table: CostTable) -> dict[tuple[str, str, str], list[Expr]]:
    return grouped(
        ((row.collective.kind.value, row.collective.group, _pass(row)), row.expr)
        for row in table
        if row.collective is not None
    )


# ---------------------------------------------------------------------- totals and text


def totals_sheet(
    work: Setup,
    costs: Sequence[NamedCost],
    printed: Callable[[Expr, Unit], Cell] = lambda total, _: number(total),
) -> Sheet:
    """Tabulate totals; what is sent by kind of collective and mesh axis."""
    rows: list[tuple[Cell, ...]] = []
    for cost in costs:
        tables = [cost.rows(table) for table in (work.rows, work.bound)]
        if not len(tables[0]):
            continue
        name = f"{HEADS[cost.name]} [{cost.unit}]"
        keys = dict.fromkeys(map(_kind, tables[0])) if _moves(cost) else {"": None}
        for key in keys:
            own, bound = (
                Add(*(row.total for row in table if not key or _kind(row) == key))
                for table in tables
            )
            rows.append(
                (f"{name}, {key}" if key else name, factored(own), printed(bound, cost.unit))
            )
    columns = headed("Cost, Formula, Value>")
    return Sheet(f"Totals of {work.share.name}, of one rank and microbatch", columns, tuple(rows))


def _kind(row: Row) -> str:
    move = row.collective
    return "" if move is None else f"{move.kind} over {move.group}"


def strategy_phrase(strategy: Strategy) -> Phrase:
    """Say a strategy as mathematics: each name with what it splits, and its degree.

    >>> from symbolic_cost.parallel.parsing import parse_strategy
    >>> strategy_phrase(parse_strategy("tp=8,sp"))
    ('tensor parallel ', Eq(m1, 8), ', Megatron sequence parallel')
    """
    parts: list[Expr | str] = []
    for name, degrees in strategy.degrees.items():
        entry = STRATEGIES[name]
        meaning = entry.meaning.partition(":")[0]
        parts += [", " if parts else "", meaning if ":" in entry.meaning else name]
        for own, degree in zip(entry.meshes.values(), degrees, strict=False):
            shown = own if own == degree else Eq(own, degree, evaluate=False)
            parts += [" ", shown]
    parts += [f"{', ' * bool(parts)}ZeRO stage {strategy.zero}"] if strategy.zero else []
    parts += [", weights whole after forward"] if strategy.reshard else []
    joined: list[Expr | str] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(part for part in joined if part != "") or ("one rank",)


def _header_lines(work: Setup) -> Iterator[str]:
    """Give the lines of the header but for strategy and numbers, which are mathematics here."""
    said = (line for line in header(work)[1:] if not line.startswith(ASSUMED))
    lines = [line.partition("; --")[0] for line in said]
    yield from lines[:-1] if work.values else lines


def _conventions(work: Setup) -> Iterator[Phrase]:
    """Give the meaning of the conventions and the answers that formulas can say."""
    chosen = work.counting
    yield (f"{chosen.name}: {chosen.meaning}",)
    parts: list[Expr | str] = ["FLOP of a sum of "]
    parts += [n, " products: ", chosen.contraction.expr, "; bytes of one element: "]
    for place, role in enumerate(_SIZED):
        parts += [", " * bool(place) + role.value.replace("_", " ") + " ", chosen.sizes.of(role)]
    yield (*parts, f"; collectives: {chosen.charge.name}")


def citations(work: Setup) -> tuple[str, ...]:
    """Return the keys of the publications that a job's numbers, strategy and sizes come from."""
    from symbolic_cost.models.catalog import CATALOG

    keys = [work.conventions.source, naming.current().source]
    keys += [CATALOG[work.model.name].source] if work.model.name in CATALOG else []
    keys += [STRATEGIES[name].source for name in work.strategy.degrees]
    keys += ["rajbhandari-2019"] if work.strategy.zero else []
    keys += [row.source for row in work.rows]
    return tuple(k for k in dict.fromkeys(keys) if k in REFERENCES and k != "definition")
