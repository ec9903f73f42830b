"""What the import of an exported graph prints."""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Expr, Integer

from symbolic_cost.analysis.forms import factored
from symbolic_cost.conventions.presets import preset
from symbolic_cost.costs import named_cost
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.ledger import CostTable
from symbolic_cost.models.bound import bound
from symbolic_cost.models.traced.imported import Traced
from symbolic_cost.ops.derive import cost

_COSTS = ("params", "flops_fwd", "flops_train", "saved")
_CONVENTIONS = "torch-flop-counter"


def graph_sheet(graph: Traced) -> Sheet:
    """Tabulate dynamic sizes, axes with their roles and why, parts, and formulas with numbers."""
    model = graph.model
    table = cost(model, preset(_CONVENTIONS))
    numbers = cost(bound(model), preset(_CONVENTIONS))
    rows = (
        *(("input", symbol, "", None, place) for symbol, place in graph.dims.items()),
        *_axes(graph),
        *_parts(graph, numbers),
        *_totals(table, numbers),
    )
    columns = headed("what, name, value>, formula, why")
    assumed = tuple(
        f"{note} ({times})" if times > 1 else note for note, times in graph.notes.items()
    )
    notes = (f"conventions {_CONVENTIONS}", *assumed, "saved bytes not checked against PyTorch")
    return Sheet(f"Graph {model.name}", columns, rows, notes)


def _axes(graph: Traced) -> Iterator[tuple[Cell, ...]]:
    sizes = bound(graph.model).sizes
    for axis in graph.axes:
        yield "axis", axis.name, _shown(sizes[axis.name]), axis.size, f"{axis.role}: {axis.reason}"


def _parts(graph: Traced, numbers: CostTable) -> Iterator[tuple[Cell, ...]]:
    for part in graph.model.parts:
        flop = named_cost("flops_fwd").total(numbers.select(path=part.path))
        times = f"{part.repeat} times, " if part.repeat != 1 else ""
        yield "part", part.path, "", factored(flop), f"{times}{len(part.ops)} ops"


def _totals(table: CostTable, numbers: CostTable) -> Iterator[tuple[Cell, ...]]:
    for name in _COSTS:
        own = named_cost(name)
        yield "total", name, _shown(own.total(numbers)), factored(own.total(table)), ""


def _shown(size: Expr) -> Cell:
    """Return a number as one, and a formula in the dynamic sizes as it is."""
    return int(size) if isinstance(size, Integer) else factored(size)
