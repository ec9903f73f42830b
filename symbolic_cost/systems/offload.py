"""What is offloaded moves over the link to the host: how often, in which pass, and for how long."""

from collections.abc import Iterable, Iterator

from sympy import Expr, Integer

from symbolic_cost.algebra import add, mul
from symbolic_cost.ledger import Quantity, Row
from symbolic_cost.parallel.liveness import is_shared
from symbolic_cost.parallel.part_memory import STATES, waiting_rows
from symbolic_cost.parallel.sharded import States
from symbolic_cost.parallel.stages import Stage, block_paths
from symbolic_cost.parallel.table import StageCosts
from symbolic_cost.records import replace
from symbolic_cost.systems.definitions import Definitions
from symbolic_cost.systems.overlap import HOST, NONE
from symbolic_cost.systems.setting import Setting

STEP = "optimizer"
"""What happens once per step; the others are passes of a microbatch."""

CROSSINGS = {
    Quantity.SAVED: {"forward": 1, "backward": 1},
    Quantity.WEIGHT: {"forward": 1, "backward": 1, STEP: 1},
    Quantity.WEIGHT_GRADIENT: {"weight gradients": 2, STEP: 2},
    Quantity.MASTER_WEIGHT: {STEP: 2},
    Quantity.OPTIMIZER: {STEP: 2},
}
"""How often what is on the host crosses the link, by pass of a microbatch and once per step.

Saved inputs are written by forward and read by backward; weights are read by both, and written
when they are new; gradients are read and written where a microbatch adds to them; masters and
moments are read and written by the optimizer. Gradients are read twice then, for their norm and
for the optimizer.

For example 16 byte of moments per parameter on the host are 32 byte per parameter and step on the
link, whatever the number of microbatches.
"""


class Offload:
    """Writes what offloading takes."""

    def __init__(self, setting: Setting, to: Definitions) -> None:
        self.setting, self.to = setting, to

    def passing(self, stage: Stage, name: str, costs: StageCosts, busy: Expr) -> Expr:
        """Define what one pass of a microbatch waits for the link to the host [s].

        Args:
            stage: of the pipeline.
            name: of the pass.
            costs: of the stage.
            busy: time of the computing that may hide it [s].
        """
        if not self.setting.training.offload:
            return Integer(0)
        share = self._hosted(Quantity.SAVED)
        waits = mul(share, self._waiting(stage, name)) if share != 0 else share
        return self._exposed(
            f"{stage}.{name}", add(self._crossing(name, costs.of(CROSSINGS)), waits), busy
        )

    def step(self, stage: Stage, costs: StageCosts, states: States, busy: Expr) -> Expr:
        """Define what the end of a step waits for the link to the host [s].

        Args:
            stage: of the pipeline.
            costs: of the stage.
            states: master weights and moments.
            busy: time of the optimizer and of clipping [s].
        """
        if not self.setting.training.offload:
            return Integer(0)
        blocks = block_paths(self.setting.divided.split_model)
        copies = self.setting.divided.pipeline.schedule.copies
        rows = [*_resident(costs.of(STATES), copies, blocks), *states.rows()]
        return self._exposed(f"{stage}.{STEP}", self._crossing(STEP, rows), busy)

    def _hosted(self, quantity: Quantity) -> Expr:
        """Return the share of a quantity that is on the host."""
        return self.setting.training.hosted(quantity)

    def _crossing(self, name: str, rows: Iterable[Row]) -> Expr:
        """Return the bytes that cross in a pass [byte]."""
        listed = tuple(rows)
        return add(
            *(
                mul(times[name], self._hosted(quantity), _total(listed, quantity))
                for quantity, times in CROSSINGS.items()
                if name in times and self._hosted(quantity) != 0
            )
        )

    def _waiting(self, stage: Stage, name: str) -> Expr:
        """Return what waits for weight gradients [byte]: backward writes, their pass reads it."""
        setting = self.setting
        residue = setting.divided.pipeline.of(
            setting.divided.pipeline.schedule.residue, setting.divided.stages, stage
        )
        if name == "forward" or residue == 0:
            return Integer(0)
        return add(*(row.total for row in waiting_rows(self.setting.divided.table(stage))))

    def _exposed(self, name: str, size: Expr, busy: Expr) -> Expr:
        link = self.setting.timing.host
        if size == 0 or link is None:
            return Integer(0)
        moved = self.to.add(f"{name}.host.bytes", size)
        took = self.to.add(f"{name}.host", moved / link.bandwidth)
        policy = self.setting.methods.overlaps.get(HOST, NONE)
        return self.to.add(f"{name}.host.exposed", policy.exposed(took, busy))


def _total(rows: Iterable[Row], quantity: Quantity) -> Expr:
    return add(*(row.total for row in rows if row.quantity is quantity))


def _resident(states: Iterable[Row], copies: Expr, blocks: frozenset[str]) -> Iterator[Row]:
    """Yield weights and gradients; those of each block as often as the schedule keeps them."""
    for row in states:
        apart = row.part in blocks and not is_shared(row.tensor)
        yield replace(row, count=mul(row.count, copies)) if apart else row
