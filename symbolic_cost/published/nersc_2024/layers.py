"""Rows of the published tables, their times, and totals of a step: selections of counted rows."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import NamedTuple

from sympy import Add, Expr, Integer

from symbolic_cost.extrema import Max
from symbolic_cost.ledger import Collective, CollectiveKind, CostTable, Phase, Quantity
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.published.nersc_2024.books import counted, op_of
from symbolic_cost.published.nersc_2024.declaration import Scheme, derived
from symbolic_cost.published.nersc_2024.inputs import StepInputs
from symbolic_cost.published.zero_2019 import bytes_per_parameter
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import T_B, T_F, T_W, dp, exact
from symbolic_cost.systems.collectives import Collectives, two_tier_rings
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.network import Hops
from symbolic_cost.systems.overlap import FULL, pipelined
from symbolic_cost.systems.rooflines import roofline
from symbolic_cost.systems.times import OpTime, Timing, op_times

PASSES: Mapping[str, Phase] = {"fwd": Phase.FORWARD, "bwd": Phase.BACKWARD_INPUT}
"""The two passes, and the phase that stands for each in the rows."""

_RECOMPUTED = ("logits", "softmax", "dpr_at")
_NOTHING: Mapping[Expr, Expr] = {}


class Layer(NamedTuple):
    """One row, as printed, of block "mlp" or "sa": the rows of one microbatch and block."""

    name: str
    block: str
    rows: CostTable

    def sum(self, *quantities: Quantity, way: str | None = None) -> Expr:
        """Return the sum of some costs of both passes or one; bytes in units of the element."""
        phase = None if way is None else PASSES[way]
        rows = self.rows.select(phase=phase, where=lambda row: row.quantity in quantities)
        return Add(*(row.expr for row in rows))

    def moves(self, way: str) -> list[Collective]:
        """Return the collectives of one pass."""
        rows = self.rows.select(Quantity.COMMUNICATION, phase=PASSES[way])
        return [row.collective for row in rows if row.collective is not None]


def layers(
    scheme: Scheme, repaired: frozenset[str] = frozenset(), numbers: Mapping[Expr, Expr] = _NOTHING
) -> tuple[Layer, ...]:
    """Return the rows of a scheme, for one microbatch and block.

    Args:
        scheme: how the block runs.
        repaired: names of the slips that are left out.
        numbers: of symbols.
    """
    rows = (
        replace(row, phase=PASSES["fwd" if row.phase is Phase.FORWARD else "bwd"])
        for row in counted(scheme, repaired)
    )
    table = replace(derived(scheme), rows=tuple(rows), selected_from=None)
    table = table.map(lambda expr: expr.xreplace(numbers)) if numbers else table
    return tuple(
        Layer(name, block, table.select(path=f"block.{name}"))
        for block, names in scheme.rows.items()
        for name in names
    )


@cache
def handed_on(scheme: Scheme, repaired: frozenset[str] = frozenset()) -> Expr:
    """Return what a stage of the pipeline sends on, in units of the element size.

    It is the input that the last norm keeps, not what it hands on, though both are as large.
    """
    rows = (row for row in counted(scheme, repaired) if op_of(row) == "ln1")
    tensors = (row for row in rows if not row.tensor.endswith(".statistics"))
    return Add(*(row.expr for row in tensors if row.quantity is Quantity.SAVED))


@dataclass(frozen=True)
class PassTime:
    """Times of one pass of a row [s]; the units' includes the launch.

    Args:
        launch: of its kernel.
        again: time that it takes once more.
    """

    op: OpTime
    launch: Expr
    again: Expr = Integer(0)

    @property
    def compute(self) -> Expr:
        """Of the units."""
        return self.op.compute + self.launch

    @property
    def exposed_memory(self) -> Expr:
        """For which the memory takes longer than the units."""
        return Max(self.op.memory - self.compute, 0)

    @property
    def total(self) -> Expr:
        """Of the pass, waiting included."""
        return self.op.time + self.again


class Timed:
    """Times of one configuration; units are those of the inputs."""

    def __init__(self, run: StepInputs) -> None:
        self.run, self.system = run, run.system
        self.stages_layers = Integer(run.depth) / run.pp
        self._numbers = run.numbers()
        self.layers = layers(run.scheme, run.repaired, self._numbers)
        self.collectives = _collectives(exact(self.system.nic_factor), run.repaired)
        self.times = {layer.name: self._passes(layer) for layer in self.layers}
        both = [[times[way].total for times in self.times.values()] for way in PASSES]
        self.forward, self.backward = (Add(*times) for times in both)

    def _passes(self, layer: Layer) -> dict[str, PassTime]:
        """Time a row; the first panels of a product are waited for, other collectives wholly."""
        panels = layer.name in self.run.scheme.in_panels
        policy = pipelined(exact(self.system.summa_nb))
        device = self.system.device
        timing = Timing(
            device,
            self.run.network,
            self.run.mesh,
            roofline("launched maximum"),
            self.collectives,
            dict.fromkeys(self.run.mesh, policy) if panels else {},
        )
        ops = op_times(layer.rows, timing, Definitions())
        times = {
            way: PassTime(op, device.launch)
            for way, phase in PASSES.items()
            for op in ops
            if op.phase is phase
        }
        if self.run.recompute_attention and layer.name in _RECOMPUTED:
            times["bwd"] = replace(times["bwd"], again=times["fwd"].total)
        return times

    @cached_property
    def weights(self) -> Expr:
        """Weights of one block."""
        return Add(*(layer.sum(Quantity.WEIGHT) for layer in self.layers))

    def data_parallel(self) -> Expr:
        """Return what is waited for weights and their gradients, over all blocks [s].

        The blocks behind the first one overlap with the passes of one block.
        """
        hops = self.run.network.hops(self.run.mesh, ("dp",))
        took = self.collectives.time(CollectiveKind.ALL_GATHER, self.weights, hops)
        times = (self.forward, self.backward)
        return Add(*(FULL.in_turn(took, busy, self.stages_layers) for busy in times))

    def sending(self) -> Expr:
        """Return the mean time of sending a microbatch on to the next stage [s].

        As printed, links between domains are free where neighbours share a domain at all.
        """
        stages, inside = self.run.pp, self.run.inside["pp"]
        if stages == 1:
            return Integer(0)
        message = handed_on(self.run.scheme, self.run.repaired).xreplace(self._numbers)
        fast, slow = (
            self.collectives.time(CollectiveKind.SEND_RECEIVE, message, self.system.hops(2, near))
            for near in (2, 1)
        )
        if inside == 1:
            return slow
        apart = stages // inside - 1
        crossing = apart * slow if "free links" in self.run.repaired else Integer(0)
        return ((stages - 1 - apart) * fast + crossing) / (stages - 1)

    def totals(self) -> dict[str, Expr]:
        """Return times [s], FLOP and memory of one step and rank, in the units of the inputs."""
        plan, sending, data = self._pipeline, self.sending(), self.data_parallel()
        once = {
            T_F: self.stages_layers * self.forward + sending,
            T_B: self.stages_layers * self.backward + sending,
            T_W: Integer(0),
        }
        working, bubble = (
            plan.of(expr, Integer(self.run.pp)).xreplace(once)
            for expr in (plan.schedule.step_time, plan.schedule.bubble)
        )
        total = working + data
        repeats = plan.microbatches * self.stages_layers
        both = [one for times in self.times.values() for one in times.values()]
        parts = {
            "comp": repeats * Add(*(one.compute for one in both)),
            "tp_comm": repeats * Add(*(one.op.exposed for one in both)),
            "dp_comm": data,
            "pp_comm": 2 * plan.microbatches * sending,
            "bubble": bubble,
            "mem": repeats * Add(*(one.exposed_memory for one in both)),
        }
        flop = Add(*(layer.sum(Quantity.FLOP) for layer in self.layers))
        return {
            "t": total,
            "throughput": self.run.global_batch_size / total,
            "t_fwd": self.forward,
            "t_bwd": self.backward,
            "flops_per_gpu": repeats * exact(self.system.flops_units) * flop,
            **{f"t_{name}": time for name, time in parts.items()},
            **{f"{name}_frac": time / total for name, time in parts.items()},
            **self._memory(),
        }

    @property
    def _pipeline(self) -> Pipeline:
        return Pipeline("1f1b", Integer(self.run.microbatches))

    def _memory(self) -> Mapping[str, Expr]:
        weights = self.weights * self.stages_layers
        per_weight = 6 / Integer(self.run.copies)
        if "two-byte weights" in self.run.repaired:
            # Bytes per element over the element's size, which is in 10**9 bytes.
            _, states = bytes_per_parameter("P_os")
            states = states.xreplace({dp: Integer(self.run.copies)})
            per_weight = states / (exact(self.system.element_size) * 10**9)
        plan = self._pipeline
        in_flight = plan.of(plan.schedule.in_flight, Integer(self.run.pp))
        saved = Add(*(layer.sum(Quantity.SAVED) for layer in self.layers))
        activations = saved * self.stages_layers * in_flight
        return {
            "wts_mem": weights,
            "wts_grad_mem": weights,
            "wts_optimizer_states_mem": per_weight * weights,
            "acts_mem": activations,
            "mem": (2 + per_weight) * weights + activations,
        }


def _collectives(nics: Expr, repaired: frozenset[str]) -> Collectives:
    """Return how long collectives take.

    As printed, an all-reduce in one tier takes the time of a reduce-scatter.
    """
    rings = two_tier_rings(nics)

    def rule(kind: CollectiveKind, size: Expr, hops: Hops) -> Expr:
        one_tier = any(hop.ranks == 1 for hop in hops)
        if kind is CollectiveKind.ALL_REDUCE and one_tier and "one tier" not in repaired:
            kind = CollectiveKind.REDUCE_SCATTER
        return rings.time(kind, size, hops)

    return replace(rings, rule=rule)
