"""Ops on the roofline of a machine: the points, and their drawing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sympy import Add, Expr

from symbolic_cost.errors import InputError
from symbolic_cost.ledger import CostTable, Phase, Quantity, Row
from symbolic_cost.systems.rooflines import MATRIX_KINDS, Device
from symbolic_cost.systems.times import TRAFFIC


@dataclass(frozen=True, slots=True)
class Point:
    """One op in one phase.

    Args:
        path: dotted place in the model.
        kind: of the op.
        phase: when it runs.
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

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flop / self.traffic

    @property
    def units(self) -> str:
        """Units that compute it."""
        return "matrix" if self.kind in MATRIX_KINDS else "vector"


def roofline_points(table: CostTable, device: Device) -> tuple[Point, ...]:
    """Return the ops of a table that compute and touch memory, in order.

    Args:
        table: with numbers bound.
        device: its rates, numbers too.

    Raises:
        InputError: symbols are left.
    """
    groups: dict[tuple[str, Phase], list[Row]] = {}
    for row in table:
        if row.quantity in {Quantity.FLOP, *TRAFFIC} and row.collective is None:
            groups.setdefault((row.path, row.phase), []).append(row)
    points = (_point(rows, device) for rows in groups.values())
    return tuple(point for point in points if point is not None)


def _point(rows: list[Row], device: Device) -> Point | None:
    flop = Add(*(row.expr for row in rows if row.quantity is Quantity.FLOP))
    traffic = Add(*(row.expr for row in rows if row.quantity in TRAFFIC))
    if flop == 0 or traffic == 0:
        return None
    kind, count = rows[0].kind, rows[0].count
    times = (device.compute_time(kind, flop), device.memory_time(traffic))
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
    )


def roofs(device: Device) -> Mapping[str, tuple[Expr, Expr]]:
    """Return peak rate and ridge point of both kinds of units [FLOP/s, FLOP/byte]."""
    peaks = {"matrix": device.matrix, "vector": device.vector}
    return {name: (peak, peak / device.memory) for name, peak in peaks.items()}


def draw_roofline(
    points: Iterable[Point], device: Device, path: str | Path, title: str = "Roofline"
) -> None:
    """Draw points below the roofs of a device; the ending of the path says the format.

    Args:
        points: as `roofline_points` gives them.
        device: its rates.
        path: of the file that is written.
        title: above the drawing.

    Raises:
        InputError: there is no point, or matplotlib is missing.
    """
    shown = list(points)
    if not shown:
        raise InputError("no op both computes and touches memory: there is nothing to draw")
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - optional, and slow to load
        from matplotlib.figure import Figure  # noqa: PLC0415 - the same
    except ImportError:
        raise InputError("plots need matplotlib: pip install 'symbolic_cost[plots]'") from None
    with rc_context({"svg.hashsalt": "symbolic_cost"}):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
        _draw_roofs(axes, shown, device)
        _draw_points(axes, shown)
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="arithmetic intensity [FLOP/byte]",
            ylabel="rate [FLOP/s]",
            title=title,
        )
        axes.legend(fontsize="small")
        ending = Path(path).suffix.removeprefix(".")
        metadata = {"Date": None} if ending == "svg" else None
        figure.savefig(path, metadata=metadata)


def _draw_roofs(axes: Any, points: list[Point], device: Device) -> None:  # noqa: ANN401 - untyped
    ridges = [float(ridge) for _, ridge in roofs(device).values()]
    near = [point.intensity for point in points] + ridges
    ends = (min(near) / 2, max(near) * 2)
    for name, (peak, ridge) in roofs(device).items():
        corners = [ends[0], float(ridge), ends[1]]
        rates = [min(float(peak), corner * float(device.memory)) for corner in corners]
        axes.plot(corners, rates, label=f"{name} units, ridge at {float(ridge):.4g} FLOP/byte")


def _draw_points(axes: Any, points: list[Point]) -> None:  # noqa: ANN401 - matplotlib is untyped
    for phase in dict.fromkeys(point.phase for point in points):
        drawn = [point for point in points if point.phase is phase]
        axes.scatter(
            [point.intensity for point in drawn],
            [point.rate for point in drawn],
            s=16,
            label=phase.value.replace("_", " "),
        )
