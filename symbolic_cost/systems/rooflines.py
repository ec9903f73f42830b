"""Rates of a device, and rooflines: how its times for computing and for memory make one time.

Ops on the roofline of a machine are points below its roofs.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise

from sympy import Add, Expr, Integer

from symbolic_cost.algebra import add
from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.extrema import AtLeast, Choice, Max
from symbolic_cost.grouping import grouped
from symbolic_cost.ledger import CostTable, Phase, Quantity, Row, Units
from symbolic_cost.ops.update import TRAFFIC
from symbolic_cost.records import dataclass

Efficiency = Callable[[Expr], Expr]
"""Share of the peak rate that a product reaches, by its FLOP."""


def full(flop: Expr) -> Expr:  # noqa: ARG001 - one signature
    """Return one: every product reaches the peak."""
    return Integer(1)


@dataclass(frozen=True, slots=True)
class Curve:
    """Efficiency that grows with the size of a product: peak n/(n + half) for n FLOP.

    Args:
        peak: share of the peak rate that large products reach.
        half: size that reaches half of it [FLOP].
    """

    peak: Expr
    half: Expr = Integer(0)

    def __call__(self, flop: Expr) -> Expr:
        """Return the share of the peak rate."""
        return self.peak * flop / (flop + self.half)


@dataclass(frozen=True, slots=True)
class Table:
    """Efficiency by size from a table: the entry of the largest size that is not above.

    Args:
        entries: pairs of size [FLOP] and share of the peak rate, sizes growing.

    Raises:
        InputError: the table is empty, or its sizes do not grow.
    """

    entries: tuple[tuple[Expr, Expr], ...]

    def __post_init__(self) -> None:
        if not self.entries or any(one[0] >= two[0] for one, two in pairwise(self.entries)):
            raise InputError("efficiencies by size: give pairs (FLOP, share), FLOP growing")

    def __call__(self, flop: Expr) -> Expr:
        """Return the share of the peak rate; below the first size, that of the first size."""
        share = self.entries[0][1]
        for (_, below), (size, above) in pairwise(self.entries):
            share += (above - below) * AtLeast(flop, size)
        return share


@dataclass(frozen=True, slots=True)
class Device:
    """Rates of one device.

    Args:
        matrix: of its matrix units [FLOP/s].
        vector: of its vector units [FLOP/s].
        memory: bandwidth of its memory [byte/s].
        latency: of its memory [s].
        launch: of one kernel [s].
        host: in which the host issues one op [s].
    """

    matrix: Expr
    vector: Expr
    memory: Expr
    efficiency: Efficiency = full
    latency: Expr = Integer(0)
    launch: Expr = Integer(0)
    host: Expr = Integer(0)

    def compute_time(self, units: Units, flop: Expr) -> Expr:
        """Return the time of computing [s].

        Args:
            units: that compute.
            flop: that are computed [FLOP].
        """
        if units is Units.VECTOR:
            return flop / self.vector
        return flop / (self.matrix * self.efficiency(flop))

    def memory_time(self, traffic: Expr) -> Expr:
        """Return the time of reading and writing [s].

        Args:
            traffic: what is read and written [byte].
        """
        return traffic / self.memory


@dataclass(frozen=True, slots=True)
class Times:
    """What one op takes of each resource.

    Args:
        compute: of the units [s].
        memory: of the outermost memory [s].
        levels: of every level inside it [s].
        latency: of the memory [s].
        launch: of the kernel [s].
    """

    compute: Expr
    memory: Expr
    levels: tuple[Expr, ...] = ()
    latency: Expr = Integer(0)
    launch: Expr = Integer(0)


@dataclass(frozen=True, slots=True)
class Roofline:
    """A named answer to the question how long an op takes.

    Args:
        rule: time of an op from its times for each resource [s].
    """

    name: str
    meaning: str
    source: str
    rule: Callable[[Times], Expr]

    def time(
        self,
        compute: Expr,
        memory: Expr,
        levels: tuple[Expr, ...] = (),
        *,
        latency: Expr = Integer(0),
        launch: Expr = Integer(0),
    ) -> Expr:
        """Return the time of an op [s]; arguments as of `Times`."""
        return self.rule(Times(compute, memory, levels, latency, launch))


def _maximum(times: Times) -> Expr:
    return times.launch + Max(times.compute, times.memory)


def _launched(times: Times) -> Expr:
    return Max(times.launch + times.compute, times.memory)


def _ridge(times: Times) -> Expr:
    slow = times.memory + times.latency + add(*times.levels)
    return times.launch + Choice(AtLeast(times.compute, times.memory), times.compute, slow)


MAXIMUM = Roofline(
    "maximum",
    "computing and memory traffic overlap; the longer one counts; a launch before it",
    "williams-2009",
    _maximum,
)

_ROOFLINES = (
    MAXIMUM,
    Roofline(
        "launched maximum",
        "as maximum, but memory traffic overlaps with the launch as well",
        "subramanian-2024-head",
        _launched,
    ),
    Roofline(
        "ridge",
        "either computing or, left of the ridge point, memory, its latency and all inner levels",
        "lstm-roofline",
        _ridge,
    ),
)

ROOFLINES: Mapping[str, Roofline] = {answer.name: answer for answer in _ROOFLINES}
"""Every answer by name."""


def roofline(name: str) -> Roofline:
    """Return an answer by name.

    Raises:
        UnknownNameError: no such answer; the closest are offered.
    """
    return looked_up("roofline", name, ROOFLINES)


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
