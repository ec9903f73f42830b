"""What `import` and `lift` print of exported graphs, files of weights and source code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sympy import Expr, Integer

from symbolic_cost.analysis.forms import factored
from symbolic_cost.conventions.presets import preset
from symbolic_cost.costs import named_cost
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import CostTable
from symbolic_cost.models.bound import bound
from symbolic_cost.models.configfile import PIPELINE, Document
from symbolic_cost.models.count import count
from symbolic_cost.models.stored.header import Header
from symbolic_cost.models.stored.places import components, stored
from symbolic_cost.models.traced.imported import Traced
from symbolic_cost.models.traced.lift import Lifted
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
    assumed = tuple(
        f"{note} ({times})" if times > 1 else note for note, times in graph.notes.items()
    )
    notes = (f"conventions {_CONVENTIONS}", *assumed, "saved bytes not checked against PyTorch")
    return Sheet(f"Graph {model.name}", headed("what, name, value>, formula, why"), rows, notes)


def _axes(graph: Traced) -> Iterator[tuple[Cell, ...]]:
    sizes = bound(graph.model).sizes
    for axis in graph.axes:
        yield (
            "axis",
            axis.name,
            _size_cell(sizes[axis.name]),
            axis.size,
            f"{axis.role}: {axis.reason}",
        )


def _parts(graph: Traced, numbers: CostTable) -> Iterator[tuple[Cell, ...]]:
    for part in graph.model.parts:
        flop = named_cost("flops_fwd").total(numbers.select(path=part.path))
        times = f"{part.repeat} times, " if part.repeat != 1 else ""
        yield "part", part.path, "", factored(flop), f"{times}{len(part.ops)} ops"


def _totals(table: CostTable, numbers: CostTable) -> Iterator[tuple[Cell, ...]]:
    for name in _COSTS:
        own = named_cost(name)
        yield "total", name, _size_cell(own.total(numbers)), factored(own.total(table)), ""


def _size_cell(size: Expr) -> Cell:
    """Return a number as one, and a formula in the dynamic sizes as it is."""
    return int(size) if isinstance(size, Integer) else factored(size)


def stored_sheet(source: str) -> Sheet:
    """Tabulate the data types of a checkpoint, or the parts of a pipeline.

    Raises:
        InputError: what is there is damaged, or no part of a pipeline is read.
    """
    if Path(source, PIPELINE).is_file():
        rows = tuple((name, *_part(one)) for name, one in components(Path(source)).items())
        return Sheet(f"Pipeline {Path(source).name}", headed("part, parameters>, is"), rows)
    header = stored(source)
    if header is None:
        raise InputError(f"{source}: there are no safetensors files")
    return _types(source, header)


def _types(source: str, header: Header) -> Sheet:
    rows: list[tuple[Cell, ...]] = [
        (dtype, str(count), str(size)) for dtype, (count, size) in header.dtypes.items()
    ]
    rows.append(("all", str(sum(one.count for one in header.tensors)), str(header.size)))
    columns = headed("data type, elements>, bytes>")
    buffers = len(header.tensors) - len(header.parameters)
    notes = (
        f"{len(header.tensors)} tensors, {header.count} elements of parameters",
        *((f"{buffers} buffers are no parameters",) if buffers else ()),
    )
    return Sheet(f"Weights of {Path(source).name}", columns, tuple(rows), notes)


def _part(one: Document | str) -> tuple[Cell, Cell]:
    if isinstance(one, str):
        return None, f"refused: {one}"
    try:
        totals = count(one.values, seq=1)
    except InputError as error:
        return None, f"refused: {error.problems[0]}"
    return str(totals["params"]), str(totals["architecture"])


def lifted_sheet(family: Lifted) -> Sheet:
    """Tabulate axes with their sizes, parts with their repetitions, and the ops of each."""
    columns = headed("what, name, is")
    notes = (
        f"predicted exactly: parameters and FLOP of {family.checked}, which nothing was fitted to",
        "a candidate: compare it with the family's source before it is declared",
    )
    return Sheet(f"Family of {family.model.name}", columns, tuple(_rows(family)), notes)


def _rows(family: Lifted) -> Iterator[tuple[Cell, ...]]:
    for name, (size, rest) in family.sizes.items():
        dynamic = "" if rest == 1 else f" * {rest}"
        yield "axis", name, f"{size}{dynamic}"
    for part in family.model.parts:
        yield "part", part.path, f"{family.repeats[part.path]} times"
        for op in part.ops:
            yield op.kind, op.path, op.pattern.text
