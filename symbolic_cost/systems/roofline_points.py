"""Ops on the roofline of a machine: the points, and the roofs."""

from collections.abc import Mapping

from sympy import Add, Expr

from symbolic_cost.errors import InputError
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import CostTable, Phase, Quantity, Row, Units
from symbolic_cost.ops.update import TRAFFIC
from symbolic_cost.records import dataclass
from symbolic_cost.systems.rooflines import Device


@dataclass(frozen=True, slots=True)
class Point:
    """One op in one phase.

    Args:
        flop: that it computes, all its repetitions [FLOP].
        traffic: that it reads and writes, all its repetitions [byte].
        rate: that it reaches at most, the longer of computing and memory counting [FLOP/s].
    """

    path: str
    kind: str
    phase: Phase
    flop: float
    traffic: float
    rate: float
    units: Units

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flop / self.traffic


def roofline_points(table: CostTable, device: Device) -> tuple[Point, ...]:
    """Return the ops of a table that compute and touch memory, in order."""
    groups = grouped(
        ((row.path, row.phase), row)
        for row in table
        if row.quantity in {Quantity.FLOP, *TRAFFIC} and row.collective is None
    )
    points = (_point(rows, device) for rows in groups.values())
    return tuple(point for point in points if point is not None)


def _point(rows: list[Row], device: Device) -> Point | None:
    flop = Add(*(row.expr for row in rows if row.quantity is Quantity.FLOP))
    traffic = Add(*(row.expr for row in rows if row.quantity in TRAFFIC))
    kind, count = rows[0].kind, rows[0].count
    if 0 in (flop, traffic, count):  # a stage may have none of a part's blocks
        return None
    units = next(row.units for row in rows if row.units is not None)
    times = (device.compute_time(units, flop), device.memory_time(traffic))
    left = sorted(
        {symbol.name for expr in (flop, traffic, count, *times) for symbol in expr.free_symbols}
    )
    if left:
        raise InputError(f"{rows[0].path}: no point without values for {', '.join(left)}")
    longest = max(times)
    return Point(
        rows[0].path,
        kind,
        rows[0].phase,
        float(flop * count),
        float(traffic * count),
        float(flop / longest),
        units,
    )


def roofs(device: Device) -> Mapping[str, tuple[Expr, Expr]]:
    """Return peak rate and ridge point of both kinds of units [FLOP/s, FLOP/byte]."""
    peaks = {"matrix": device.matrix, "vector": device.vector}
    return {name: (peak, peak / device.memory) for name, peak in peaks.items()}
