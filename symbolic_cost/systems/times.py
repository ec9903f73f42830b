"""Times of ops: rows of a cost table as definitions of a chain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sympy import Add, Expr, Integer, Mul

from symbolic_cost.ledger import Collective, CollectiveKind, Phase, Quantity, Row
from symbolic_cost.symbols import Active, named
from symbolic_cost.systems.collectives import COLLECTIVES, Collectives
from symbolic_cost.systems.network import Hop, Hops, Network
from symbolic_cost.systems.overlap import NONE, Overlap
from symbolic_cost.systems.rooflines import MAXIMUM, Device, Roofline

TRAFFIC = (Quantity.READ, Quantity.WRITE)


@dataclass(frozen=True)
class Timing:
    """How work takes time on a machine.

    Args:
        device: its rates.
        network: its links.
        mesh: ranks by mesh axis, innermost first.
        roofline: how computing and memory make one time.
        collectives: how long a collective takes.
        overlaps: what of a communication is exposed, by mesh axis; none is hidden where not named.
    """

    device: Device
    network: Network
    mesh: Mapping[str, Expr]
    roofline: Roofline = MAXIMUM
    collectives: Collectives = COLLECTIVES["hierarchical ring"]
    overlaps: Mapping[str, Overlap] = field(default_factory=dict)

    def overlap(self, move: Collective) -> Overlap:
        """Return what of a collective is exposed; the outermost mesh axis of its group decides."""
        return self.overlaps.get(move.mesh_axis.split("+")[-1], NONE)

    def hops(self, mesh_axis: str) -> Hops:
        """Return where the groups of a mesh axis lie."""
        return self.network.hops(self.mesh, mesh_axis)

    def pair(self, mesh_axis: str) -> Hops:
        """Return where two members of a group lie that are as far apart as members may be."""
        outwards, pair = Integer(1), []
        for hop in reversed(self.hops(mesh_axis)):
            crosses = outwards * Active(hop.ranks)
            pair.append(Hop(hop.link, 1 + crosses))
            outwards = outwards * (1 - Active(hop.ranks))
        return tuple(reversed(pair))


class Definitions:
    """Collects the definitions of a chain."""

    def __init__(self) -> None:
        self.made: dict[str, Expr] = {}

    def add(self, name: str, expr: Expr) -> Expr:
        """Define a name and return its symbol; numbers and symbols need no name."""
        if expr.is_number or expr.is_Symbol:
            return expr
        return self.keep(name, expr)

    def keep(self, name: str, expr: Expr) -> Expr:
        """Define a name whatever it stands for, and return its symbol.

        Raises:
            RuntimeError: the name stands for something else already.
        """
        if self.made.setdefault(name, expr) != expr:
            raise RuntimeError(f"{name!r} is defined twice")
        return named(name)

    def hops(self, name: str, hops: Hops) -> Hops:
        """Define how many members of a group each link joins."""
        return tuple(
            Hop(hop.link, self.add(f"{name}.{hop.link.name}.ranks", hop.ranks)) for hop in hops
        )


@dataclass(frozen=True, slots=True)
class OpTime:
    """Times of one op in one phase, once [s]; symbols of the chain's definitions, or numbers.

    Args:
        path: dotted place in the model.
        kind: of the op.
        phase: when it runs.
        compute: of its units.
        memory: of its memory.
        busy: of both together.
        communication: of its collectives.
        exposed: what of that is waited for.
        collectives: kinds of the collectives.
    """

    path: str
    kind: str
    phase: Phase
    compute: Expr
    memory: Expr
    busy: Expr
    communication: Expr
    exposed: Expr
    collectives: tuple[CollectiveKind, ...]

    @property
    def time(self) -> Expr:
        """Busy and waiting [s]."""
        return self.busy + self.exposed

    @property
    def issued(self) -> int:
        """What the host issues: the op's work and its collectives."""
        return int(self.busy != 0) + len(self.collectives)


def op_times(rows: Iterable[Row], timing: Timing, definitions: Definitions) -> list[OpTime]:
    """Define the times of every op and phase; those that are defined already stay.

    Args:
        rows: of one microbatch; rows of the state, of a whole step and of the pipeline are no work.
        timing: how work takes time.
        definitions: to add to.
    """
    groups: dict[tuple[str, Phase], list[Row]] = {}
    for row in rows:
        is_work = row.quantity in {Quantity.FLOP, *TRAFFIC, Quantity.COMMUNICATION}
        if is_work and not row.per_step and row.kind != "pipeline":
            groups.setdefault((row.path, row.phase), []).append(row)
    return [_op_time(group, timing, definitions) for group in groups.values()]


def _op_time(rows: list[Row], timing: Timing, definitions: Definitions) -> OpTime:
    path, kind, phase = rows[0].path, rows[0].kind, rows[0].phase
    name, device = f"{path}.{phase}", timing.device
    # Additions of a reduction are made by the collective.
    flop = Add(*(r.expr for r in rows if r.quantity is Quantity.FLOP and r.collective is None))
    traffic = Add(*(row.expr for row in rows if row.quantity in TRAFFIC))
    compute, memory, busy = (Integer(0),) * 3
    if flop != 0 or traffic != 0:
        if flop != 0:
            compute = definitions.add(f"{name}.compute", device.compute_time(kind, flop))
        memory = definitions.add(f"{name}.memory", device.memory_time(traffic))
        took = timing.roofline.time(compute, memory, latency=device.latency, launch=device.launch)
        busy = definitions.add(f"{name}.busy", took)
    sums: dict[Overlap, list[Expr]] = {}
    moves = [r.collective for r in rows if r.quantity is Quantity.COMMUNICATION and r.collective]
    for move in moves:
        hops = definitions.hops(move.mesh_axis, timing.hops(move.mesh_axis))
        took = Mul(move.calls, timing.collectives.time(move.kind, move.message, hops))
        sums.setdefault(timing.overlap(move), []).append(took)
    communication, exposed = Integer(0), Integer(0)
    for policy, terms in sums.items():
        label = f"{name}.communication" if len(sums) == 1 else f"{name}.communication.{policy.name}"
        part = definitions.add(label, Add(*terms))
        communication += part
        exposed += policy.exposed(part, busy)
    return OpTime(
        path,
        kind,
        phase,
        compute,
        memory,
        busy,
        communication,
        definitions.add(f"{name}.exposed", exposed),
        tuple(dict.fromkeys(move.kind for move in moves)),
    )
