"""Times of ops: rows of a cost table as definitions of a chain."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property
from itertools import count

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.extrema import Choice, Max
from symbolic_cost.lazy import Recent
from symbolic_cost.ledger import Collective, CollectiveKind, Origin, Phase, Quantity, Row
from symbolic_cost.ops.update import TRAFFIC, Work
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import Active
from symbolic_cost.systems.collectives import COLLECTIVES, Collectives
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.network import Hop, Hops, Link, Network
from symbolic_cost.systems.overlap import NONE, Overlap, exposed, partial
from symbolic_cost.systems.pricing import PASSING, SLOWNESS, Rates
from symbolic_cost.systems.rooflines import MAXIMUM, Device, Roofline
from symbolic_cost.systems.routing import EACH, Routing
from symbolic_cost.systems.together import Around, around

_ONE = Integer(1)
_POSITIONS = ("ulysses", "ring")
"""Mesh axes of positions besides cp."""


_KEYS: Recent[int] = Recent(1024, passing=True)
_NUMBERS = count()


@dataclass(frozen=True)
class Timing:
    """How work takes time on a machine.

    Args:
        mesh: ranks by mesh axis, innermost first.
        overlaps: what of a communication is exposed, by mesh axis; none is hidden where not named.
        host: link over which offloaded bytes move; None where nothing is offloaded.
        strides: ranks between neighbours on a mesh axis, where their order is open.
        rates: by kind of kernel, in place of the roofline.
        routing: of tokens to their experts, whose copies may go as one.
    """

    device: Device
    network: Network
    mesh: Mapping[str, Expr]
    roofline: Roofline = MAXIMUM
    collectives: Collectives = COLLECTIVES["hierarchical ring"]
    overlaps: Mapping[str, Overlap] = field(default_factory=dict)
    host: Link | None = None
    strides: Mapping[str, Expr] = field(default_factory=dict)
    rates: Rates | None = None
    routing: Routing = EACH

    def key(self, meshes: Iterable[str] = ()) -> int:
        """Return what tells it from others for collectives of some mesh axes, or for computing.

        Axes outside of these change nothing: a tensor-parallel group lies where it lies, whatever
        number of stages is around it.
        """
        group = tuple(meshes)
        if group not in self._keys:
            axes = tuple(self.mesh)
            reached = len(axes) if self.strides else max(map(axes.index, group), default=-1) + 1
            inner = (*self._key, *((name, self.mesh[name]) for name in axes[:reached]))
            self._keys[group] = _KEYS.of(inner, lambda: next(_NUMBERS))
        return self._keys[group]

    @cached_property
    def _keys(self) -> dict[tuple[str, ...], int]:
        return {}

    @cached_property
    def _key(self) -> tuple[object, ...]:
        answers = (self.roofline, self.collectives, *sorted(self.overlaps.items(), key=str))
        rates = (self.device, self.network, self.host, self.rates, self.routing)
        return (*rates, answers, *self.strides.items())

    @property
    def steal(self) -> Expr:
        """Part of hidden communication by which computing beside it is slower."""
        return Integer(0) if self.rates is None else self.rates.stack.steal

    def overlap(
        self, meshes: tuple[str, ...], phase: Phase, kind: CollectiveKind | None = None
    ) -> Overlap:
        """Return what of a collective is exposed; the outermost mesh axis of its group decides.

        What is said of "cp" goes for every way to split positions: ulysses and ring as well.
        """
        if self.strides and len(meshes) > 1 and self.overlaps:  # that of the greatest stride
            first, *others = meshes
            share, stride = self.overlap((first,), phase, kind).share, self.strides[first]
            for mesh in others:
                outside = Active(self.strides[mesh] / stride)
                share = Choice(outside, self.overlap((mesh,), phase, kind).share, share)
                stride = Choice(outside, self.strides[mesh], stride)
            return partial(share)
        outermost = max(meshes, key=tuple(self.mesh).index)
        names = (outermost, "cp") if outermost in _POSITIONS else (outermost,)
        if outermost == "ep" and kind not in (None, CollectiveKind.ALL_TO_ALL):
            names = ("dp",)  # experts are on all data-parallel ranks, which sum and gather here
        said = (self.overlaps[name] for name in names if name in self.overlaps)
        return next(said, NONE).of(phase, kind)

    def hops(self, meshes: tuple[str, ...]) -> Hops:
        """Return where the groups of some mesh axes lie."""
        return self.network.hops(self.mesh, meshes, self.strides)

    def pair(self, mesh: str) -> Hops:
        """Return where two members of a group lie that are as far apart as members may be."""
        outwards, pair = Integer(1), []
        for hop in reversed(self.hops((mesh,))):
            crosses = outwards * Active(hop.ranks)
            pair.append(Hop(hop.link, 1 + crosses))
            outwards = outwards * (1 - Active(hop.ranks))
        return tuple(reversed(pair))


@dataclass(frozen=True, slots=True)
class OpTime:
    """Times of one op in one phase, once [s]; symbols of the chain's definitions, or numbers."""

    path: str
    kind: str
    phase: Phase
    compute: Expr
    memory: Expr
    busy: Expr
    communication: Expr
    exposed: Expr
    moves: tuple[Collective, ...]
    kernels: Expr = _ONE

    @property
    def collectives(self) -> tuple[CollectiveKind, ...]:
        """Kinds of its collectives."""
        return tuple(dict.fromkeys(move.kind for move in self.moves))

    @property
    def time(self) -> Expr:
        """Busy and waiting [s]."""
        return self.busy + self.exposed

    @property
    def issued(self) -> Expr:
        """What the host issues: the op's kernels, and one call per kind of collective.

        One rank calls none: [p > 1] for a group of p ranks.
        """
        calls = (self._any_ranks(kind) for kind in self.collectives)
        return add(self.kernels if self.busy != 0 else Integer(0), *calls)

    def _any_ranks(self, kind: CollectiveKind) -> Expr:
        """Return one if any group of a kind has more than one rank, else zero."""
        groups = {Active(move.ranks) for move in self.moves if move.kind is kind}
        return 1 - mul(*(1 - active for active in groups))


def op_times(
    rows: Iterable[Row], timing: Timing, definitions: Definitions, of_part: Around | None = None
) -> list[OpTime]:
    """Define the times of every op and phase.

    Args:
        rows: of one microbatch; rows of the state, of a whole step and of the pipeline are no work.
        timing: how work takes time.
        definitions: to add to.
        of_part: what its declaration says of its products, as of `together.shapes`.
    """
    groups: dict[tuple[str, Phase], list[Row]] = {}
    for row in rows:
        is_work = row.quantity in {Quantity.FLOP, *TRAFFIC, Quantity.COMMUNICATION}
        if is_work and not row.per_step and row.origin is Origin.OP:
            groups.setdefault((row.path, row.phase), []).append(row)
    listed = [row for group in groups.values() for row in group]
    one = of_part or Around()
    one = around(listed, timing.rates.stack, one) if timing.rates else one
    return [
        _once_timed(group, groups.get((path, Phase.FORWARD), []), one, timing, definitions)
        for (path, _), group in groups.items()
    ]


def _once_timed(
    rows: list[Row], forward: list[Row], one: Around, timing: Timing, definitions: Definitions
) -> OpTime:
    """Define the times of an op, or return those of the same work elsewhere."""
    place = rows[0].path, rows[0].phase
    work = ((row.quantity, row.units, row.expr, *_moved(row, timing)) for row in rows)
    beside = () if timing.rates is None else (place in one.followers, *_beside(rows, forward, one))
    what = ("op", timing.key(), *place, *beside, *work)
    return definitions.once(what, None, lambda: _op_time(rows, forward, one, timing, definitions))


def _moved(row: Row, timing: Timing) -> tuple[object, ...]:
    """Return what of a row's collective tells how long it takes."""
    move = row.collective
    return () if move is None else (move, timing.key(move.meshes))


def _beside(rows: list[Row], forward: list[Row], one: Around) -> Iterator[object]:
    """Yield what of a part's other work tells how long an op's takes."""
    for told in (one.odd, one.scalar, one.groups, one.casts, one.some):
        yield told.get(rows[0].path)
    yield one.together.get((rows[0].path, rows[0].phase))
    yield from (id(row) in one.inside for row in rows)
    if rows[0].kind == "fused":
        yield from (row.expr for row in forward)


def bundles(timing: Timing, move: Collective) -> bool:
    """Tell whether a collective goes with others of its block in one message.

    Those among data-parallel ranks do: they gather weights and sum gradients.
    """
    if timing.rates is None or timing.rates.stack.gathers == "tensor":
        return False
    meshes = set(move.meshes)
    return meshes <= _DATA and not meshes.isdisjoint(_WEIGHTS)


_DATA = {"dp", "replicas", "ep"}
"""Mesh axes over which weights are sharded and gradients summed."""

_WEIGHTS = {"dp", "replicas"}
"""Those over which nothing else moves."""


def work_time(work: Work, timing: Timing, name: str, definitions: Definitions) -> tuple[Expr, Expr]:
    """Define computing and memory traffic [s].

    Units of one kind work after each other, and so do those of the other kind.
    """
    flop, traffic, memory = work.flop, work.traffic, Integer(0)
    compute = add(*(timing.device.compute_time(u, f) for u, f in flop.items() if f != 0))
    if compute != 0:
        compute = definitions.add(f"{name}.compute", compute)
    if traffic != 0:
        memory = definitions.add(f"{name}.memory", timing.device.memory_time(traffic))
    return compute, memory


def collective_time(move: Collective, timing: Timing, definitions: Definitions) -> Expr:
    """Define one call of a collective [s]."""
    routing = timing.routing if "ep" in move.meshes else EACH
    return sent_time(move.kind, move.meshes, move.message, timing, definitions, routing=routing)


def sent_time(
    kind: CollectiveKind,
    meshes: tuple[str, ...],
    size: Expr,
    timing: Timing,
    definitions: Definitions,
    *,
    pair: str = "",
    routing: Routing = EACH,
) -> Expr:
    """Define one call of a collective [s]; many ops, stages and structures make the same.

    Args:
        kind: of the collective.
        meshes: of its group.
        size: of its message [byte].
        timing: how work takes time.
        definitions: to add to.
        pair: name of two members of the pipeline between whom it runs, in place of the group.
        routing: of tokens to experts, see `Timing`.
    """

    def made() -> Expr:
        places = timing.pair("pp") if pair else timing.hops(meshes)
        hops = definitions.hops(pair or "+".join(meshes), places)
        if timing.rates is not None:
            return timing.rates.moved(kind, size, hops, definitions, routing)
        return timing.collectives.time(kind, size, hops)

    what = ("collective", timing.key(meshes), kind, meshes, size, pair, routing)
    return definitions.once(what, None, made)


def _busy(
    rows: list[Row], forward: list[Row], one: Around, timing: Timing, definitions: Definitions
) -> tuple[Expr, Expr, Expr, Expr]:
    """Define computing, memory traffic and both together [s]; and how many kernels do it."""
    name, device = f"{rows[0].path}.{rows[0].phase}", timing.device
    some = one.some.get(rows[0].path, _ONE)
    if timing.rates is None:
        compute, memory = work_time(Work.of(rows), timing, name, definitions)
        once = {name: mul(some, getattr(device, name)) for name in ("latency", "launch")}
        took = timing.roofline.time(compute, mul(some, memory), **once)
        busy = definitions.add(f"{name}.busy", took) if compute != 0 or memory != 0 else Integer(0)
        return compute, memory, busy, some
    own = timing.rates.op(rows, forward, one)
    if own is None:
        return Integer(0), Integer(0), Integer(0), _ONE
    compute = definitions.add(f"{name}.compute", own.compute)
    memory = definitions.add(f"{name}.memory", mul(some, own.memory))
    slowness = definitions[f"{SLOWNESS}.{own.kind}"]
    took = mul(slowness, mul(some, own.call) + Max(compute, memory))
    within = timing.rates.stack.issues == "experts" and rows[0].path not in one.groups
    kernels = Integer(0) if within else mul(some, own.kernels)
    return compute, memory, definitions.add(f"{name}.busy", took), kernels


def _op_time(
    rows: list[Row], forward: list[Row], one: Around, timing: Timing, definitions: Definitions
) -> OpTime:
    path, kind, phase = rows[0].path, rows[0].kind, rows[0].phase
    name = f"{path}.{phase}"
    compute, memory, busy, kernels = _busy(rows, forward, one, timing, definitions)
    moves = tuple(
        r.collective
        for r in rows
        if r.quantity is Quantity.COMMUNICATION
        and r.collective
        and not bundles(timing, r.collective)
    )
    if timing.rates is not None:
        ordered = mul(definitions[f"{SLOWNESS}.{PASSING}"], timing.rates.ordered(moves, one))
        busy += definitions.add(f"{name}.ordered", ordered) if ordered != 0 else ordered
    sums: dict[Overlap, tuple[str, list[Expr]]] = {}
    stolen = []  # by expert messages, whichever others hide in the same way
    for move in moves:
        took = mul(move.calls, collective_time(move, timing, definitions))
        policy = timing.overlap(move.meshes, phase, move.kind)
        sums.setdefault(policy, (move.meshes[-1], []))[1].append(took)
        if move.meshes[-1] == "ep":
            stolen.append(mul(timing.steal, took - _alone((policy, took))))
    parts = []
    for policy, (mesh, terms) in sums.items():
        label = f"{name}.communication" if len(sums) == 1 else f"{name}.communication.{mesh}"
        parts.append((policy, definitions.add(label, add(*terms))))
    communication = add(*(part for _, part in parts))
    # Under a stack products of the part hide it: `passes` sees to it that they last.
    waits = (exposed(parts, busy),) if timing.rates is None else (*map(_alone, parts), *stolen)
    waited = add(*waits)
    left = definitions.add(f"{name}.exposed", waited)
    return OpTime(path, kind, phase, compute, memory, busy, communication, left, moves, kernels)


def _alone(part: tuple[Overlap, Expr]) -> Expr:
    """Return what is waited for of a communication beside enough computing [s]."""
    policy, time = part
    return policy.exposed(time, time)
