"""Cost tables of a transformer's MLP and self-attention blocks under tensor parallelism.

Variant A is the tables as printed, B the code that was published with them, C what was meant.
The blocks are declared once (`blocks`); what each variant counts, places and gets wrong is a
preset of conventions, a placement and a list of named slips (`slips`).

Source: subramanian-2024; tables of commit cf96a49, code of 917b558, corrections of 80b63dc.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import ulp
from typing import Any

from sympy import Add, Expr, Rational

from symbolic_cost import symbols
from symbolic_cost.errors import UnknownNameError, unknown
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.published.contract import Comparison, compared, nearest, printed_data
from symbolic_cost.published.results import Erratum
from symbolic_cost.published.transformer_tables.blocks import LABELS, LAYOUT
from symbolic_cost.published.transformer_tables.columns import counted, derived
from symbolic_cost.published.transformer_tables.slips import SLIPS
from symbolic_cost.published.transformer_tables.times import Cell, TableInputs, symbolic, table_row

_TABLES = {"mlp": "transformer_mlp.csv", "sa": "transformer_attention.csv"}
_TOTALS = "transformer_totals"
_BLANK = "NaN"
_DIGITS_OF_A_DOUBLE = 16


def errata() -> list[Erratum]:
    """Return where the tables depart from what their own declarations imply."""
    return SLIPS.errata("transformer-tables", "Variant C is without it.")


def configuration() -> dict[str, Any]:
    """Return the inputs for which the tables were printed."""
    record = printed_data(_TOTALS)
    return {**record["config"], "system": record["system"], "variant": "A"}


PUBLISHED_INPUTS: Mapping[str, Any] = configuration()
"""The configuration that was printed: one block of GPT-3 175B on four A100."""

TOTALS = (
    "activation_buffer",
    "weights_mem",
    "weights_grad_mem",
    "flops_fwd",
    "flops_bwd",
    "t_total_fwd",
    "t_total_bwd",
    "t_comm_fwd",
    "t_comm_bwd",
)
"""Columns that are summed over rows and depth."""

_LONG = ("t_total_fwd", "t_total_bwd")
_DIGITS = 30


def evaluate(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the tables for any configuration.

    Args:
        inputs: b, l, e, h and system; f, m1, s1, depth, element_size, mask_element_size,
            flops_units and variant unless they are the defaults of `inputs.TableInputs`.

    Returns:
        Rows of the tables "mlp" and "sa" by printed column, blank cells as None, and their
        "totals" over rows and depth: FLOP and bytes in the units of flops_units and
        element_size (Tera-operations and GB unless given), times in ms.
    """
    run = TableInputs.accepted(inputs)
    table = bind(derived(run.variant, sequence=run.sequence_degree > 1), run.numbers())
    system = run.system.system(run.variant)
    labels = LABELS.get(run.variant, {})
    blocks = {
        block: [
            table_row(labels.get(path, path), counts.in_units(run.flop_unit), system)
            for path, counts in rows
        ]
        for block, rows in counted(table, run.variant).items()
    }
    totals = {block: _totals(rows, run.layers) for block, rows in blocks.items()}
    return {
        **{block: [_plain(row) for row in rows] for block, rows in blocks.items()},
        "totals": {block: _plain(cells) for block, cells in totals.items()},
    }


def reproduce() -> Sequence[Comparison]:
    """Compare the printed cells, blank ones included, and the printed totals."""
    return tuple(comparisons(evaluate(PUBLISHED_INPUTS)))


def formulas(variant: str = "A") -> dict[str, Expr]:
    """Return the formula of every cell and total that is a number, by block, op and column.

    FLOP and bytes are in base units, times in ms; s and mu are the bytes of an element and of a
    mask element, beta and alpha the link that a row uses. Totals of whole times are left out: they
    are sums of maxima, too long to be read.

    Raises:
        UnknownNameError: no such variant.
    """
    if variant not in LAYOUT:
        raise UnknownNameError(unknown("variant", variant, LAYOUT))
    by_key: dict[str, Expr] = {}
    for block, rows in counted(derived(variant), variant).items():
        cells = {
            path: table_row(path, counts.expanded(), symbolic(variant)) for path, counts in rows
        }
        by_key |= {
            f"{block}.{path}.{column}": cell
            for path, row in cells.items()
            for column, cell in row.items()
            if isinstance(cell, Expr)
        }
        totals = _totals(list(cells.values()), symbols.n_layers)
        by_key |= {
            f"totals.{block}.{column}": totals[column] for column in TOTALS if column not in _LONG
        }
    return by_key


def _totals(rows: Sequence[Mapping[str, Cell]], layers: Expr) -> dict[str, Cell]:
    """Sum the columns over rows and depth; the fraction of forward is independent of depth."""
    totals = {column: layers * Add(*(row[column] for row in rows)) for column in TOTALS}
    return {**totals, "time_spent_in_comms_fwd": totals["t_comm_fwd"] / totals["t_total_fwd"]}


def _plain(cells: Mapping[str, Cell]) -> dict[str, float | int | str | None]:
    """Turn exact numbers into floats, counts of ranks into integers."""
    return {name: _number(name, cell) for name, cell in cells.items()}


def _number(name: str, cell: Cell) -> float | int | str | None:
    if cell is None or isinstance(cell, str):
        return cell
    if name == "comm_size":
        return int(cell)
    # Only a latency times a logarithm is irrational.
    number = cell if cell.is_Rational else Rational(str(cell.evalf(_DIGITS)))
    return nearest(Fraction(value(number)))


def comparisons(values: Mapping[str, Any]) -> Iterator[Comparison]:
    """Compare every printed cell and total with the values of `evaluate`."""
    for block, name in _TABLES.items():
        for printed, computed in zip(_rows(name), values[block], strict=True):
            for column, text in printed.items():
                yield _compared(f"{block}.{printed['layer']}.{column}", text, computed[column])
    for block, totals in printed_data(_TOTALS)["depth_summed_totals"].items():
        for column, text in totals.items():
            yield _compared(f"totals.{block}.{column}", text, values["totals"][block][column])


def _rows(name: str) -> Sequence[dict[str, str]]:
    rows = printed_data(name)
    return [{key: cell for key, cell in row.items() if key != "Unnamed: 0"} for row in rows]


def _compared(key: str, printed: str, computed: float | str | None) -> Comparison:
    if printed == _BLANK or computed is None or isinstance(computed, str):
        text = "" if computed is None else str(computed)
        published = "" if printed == _BLANK else printed
        return Comparison(key, published, text, text == published)
    if len(printed.lstrip("0.")) >= _DIGITS_OF_A_DOUBLE:
        # The last bit of a double printed in full depends on the order of a sum.
        match = abs(float(printed) - computed) <= ulp(computed)
        note = "printed with every digit of a double; compared to the last bit"
        return Comparison(key, printed, repr(computed), match, note)
    return compared(key, printed, computed)
