"""What a step rests on: model, strategy, machine, and how work takes time there."""

from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.axes import At, Role
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.conventions.questions import Role as Element
from symbolic_cost.errors import InputError
from symbolic_cost.extrema import Min
from symbolic_cost.lazy import Recent
from symbolic_cost.ledger import Phase
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.groups import arranged
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.schedules import Schedule
from symbolic_cost.parallel.stages import block_paths
from symbolic_cost.parallel.states import PRECISIONS, Precision, precision
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import Divided
from symbolic_cost.records import dataclass, replace
from symbolic_cost.systems.kernel_records import kernels
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.methods import Methods
from symbolic_cost.systems.overlap import Overlap, overlaps
from symbolic_cost.systems.pricing import Rates
from symbolic_cost.systems.routing import EACH, Routing
from symbolic_cost.systems.stacks import Stack
from symbolic_cost.systems.times import Timing


@dataclass(frozen=True)
class Setting:
    """Everything that a step is derived from."""

    model: Model
    strategy: Strategy
    machine: Machine
    training: Training
    methods: Methods

    @cached_property
    def policy(self) -> Precision:
        """Bytes per element."""
        return precision(self.training.precision)

    @cached_property
    def pipeline(self) -> Pipeline:
        """How the stages work together."""
        return replace(self.training.pipeline, scattered=self.methods.scattered)

    @cached_property
    def divided(self) -> Divided:
        """The model on the ranks of the mesh."""
        units = self.training.software.units
        return Divided(self.model, self.strategy, self.conventions, self.pipeline, ends=units)

    @property
    def structure(self) -> Structure:
        """The class of each degree."""
        return self.divided.structure

    @property
    def ranks(self) -> Strategy:
        """The strategy without the names that split nothing."""
        return self.divided.ranks

    @property
    def units(self) -> str:
        """Precision in which the device computes."""
        return self.policy.units

    @cached_property
    def conventions(self) -> Conventions:
        """Answers to the counting questions, with the bytes of the precision."""
        return self.training.counted(self.methods.conventions)

    def reduced(self, phase: Phase) -> Expr:
        """Return what a gradient's bytes are multiplied with on the wire in a phase.

        A stack may cast gradients to fewer bytes than the precision keeps, and never to more: those
        of 16 bits are reduced in 16 bits.
        """
        return self._reduced if phase is Phase.BACKWARD_WEIGHT else Integer(1)

    @cached_property
    def _reduced(self) -> Expr:
        runs, held = self.methods.stack, self.conventions.sizes.moved(Element.WEIGHT_GRADIENT)
        return Integer(1) if runs is None else Min(runs.gradients, held) / held

    @cached_property
    def made(self) -> Expr:
        """Bytes of a gradient as a product makes it, per byte of it on the wire."""
        sizes = self.conventions.sizes
        return sizes.value / (sizes.moved(Element.WEIGHT_GRADIENT) * self._reduced)

    @cached_property
    def timing(self) -> Timing:
        """How work takes time."""
        check_units(self.machine, self.policy)
        rates, runs = self._rates, self.methods.stack
        hidden = usually_hidden(runs, self.divided.pipeline.schedule)
        return Timing(
            self.machine.device(self.units) if rates is None else rates.device,
            self.machine.network() if rates is None else rates.network,
            arranged(self.ranks.mesh, self.methods.order),
            self.methods.roofline,
            self.methods.collectives,
            {**hidden, **self.methods.overlaps},
            self.machine.host_link() if self.training.offload else None,
            self.methods.strides,
            rates,
            self._routing,
        )

    @property
    def _routing(self) -> Routing:
        """How the stack sends the copies of a token to its experts."""
        runs, slots = self.methods.stack, At(Role.SLOT)
        once = runs is not None and runs.dispatch == "once" and self.model.placed(slots)
        return Routing(self.model.size(slots), *self.model.routed) if once else EACH

    @property
    def _rates(self) -> Rates | None:
        """The rates of kernels under the stack; the same object for the same rates."""
        runs, own = self.methods.stack, self.machine
        if runs is None:
            return None
        sizes, blocks = self.conventions.sizes, block_paths(self.model)
        figures = (
            own.name,
            str(own.kernels),
            str(own.cluster),
            *own.matrix.items(),
            *own.vector.items(),
            own.bandwidth,
            own.links,
        )
        key = (runs, *figures, own.efficiencies, self.units, sizes, blocks)
        return _RATES.of(
            key,
            lambda: Rates(
                kernels(own), runs, self.units, sizes.value, sizes.weight_gradient, blocks
            ),
        )


def usually_hidden(runs: Stack | None, plan: Schedule) -> dict[str, Overlap]:
    """Return what of communication is hidden, by mesh axis, where a job does not say."""
    hidden = {} if runs is None else overlaps(runs.overlap) | overlaps(plan.hidden)
    if plan.name in _IN_TURN:
        hidden.pop("pp", None)
    return hidden


_IN_TURN = ("gpipe", "1f1b")
"""Schedules whose stages have nothing to compute beside a send, whatever a stack hides of others.

Source: megatron-core, overlap_p2p_comm.
"""

_RATES: Recent[Rates] = Recent(64)


def check_units(machine: Machine, policy: Precision) -> None:
    """Refuse a precision in which a machine does not compute.

    Raises:
        InputError: which precisions it has is told.
    """
    if policy.units not in machine.matrix:
        has = ", ".join(one.name for one in PRECISIONS.values() if one.units in machine.matrix)
        raise InputError(
            f"precision {policy.name} computes in {policy.units}, of which {machine.name} has no "
            f"rate: accepted are {has}"
        )
