"""Memory of one rank: states, activations in flight, workspace, and the moments of the step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sympy import Add, Expr, Integer, Mul

from symbolic_cost import symbols
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import InputError, shown, unknown
from symbolic_cost.extrema import Max
from symbolic_cost.ledger import CostTable, Phase, Quantity, Row
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.schedules import Schedule, schedule
from symbolic_cost.parallel.sharded import States
from symbolic_cost.parallel.stages import stage_model
from symbolic_cost.parallel.states import optimizer, precision
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.parallel.workspace import greatest, workspace_row

STATES = (
    Quantity.WEIGHT,
    Quantity.WEIGHT_GRADIENT,
    Quantity.MASTER_WEIGHT,
    Quantity.OPTIMIZER,
)
"""What stays from step to step."""

MOMENTS = {
    "between steps": (STATES, None),
    "end of forward": ((*STATES, Quantity.SAVED), None),
    "backward": ((*STATES, Quantity.SAVED), Phase.BACKWARD_INPUT),
    "optimizer step": (STATES, Phase.STEP),
}
"""What is there at the moments of a step: quantities, and the workspace of which phase."""

HOST = "host"
"""Kind of the rows that are kept in the memory of the host."""


@dataclass(frozen=True)
class Training:
    """How a model is trained, as far as memory is concerned.

    Args:
        precision: bytes per element.
        optimizer: its moments.
        recompute: what backward computes again.
        schedule: of the pipeline.
        microbatches: of one step and pipeline.
        offload: quantities kept in the memory of the host.
    """

    precision: str = "bf16-mixed"
    optimizer: str = "adam"
    recompute: Recompute = KEEP_ALL
    schedule: str = "1f1b"
    microbatches: Expr = symbols.M
    offload: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what cannot be offloaded."""
        accepted = [quantity.value for quantity in (*STATES, Quantity.SAVED)]
        strange = sorted(name for name in self.offload if name not in accepted)
        problems = [unknown("offload", name, accepted) for name in strange]
        number = symbols.exact(self.microbatches)
        if number.is_extended_positive is False:
            problems.append(f"microbatches = {shown(number)}: a positive number is accepted")
        if problems:
            raise InputError(problems)
        object.__setattr__(self, "microbatches", number)


def memory_table(
    model: Model,
    strategy: Strategy,
    conventions: Conventions,
    training: Training | None = None,
    *,
    stage: Stage = Stage.FIRST,
) -> CostTable:
    """Derive what one rank of a pipeline stage holds [byte].

    Args:
        model: parts and sizes.
        strategy: degrees of the mesh.
        conventions: answers to the counting questions; the precision says the element sizes.
        training: precision, optimizer, recomputation and schedule.
        stage: of the pipeline.

    Returns:
        Rows of weights, their gradients, master weights, optimizer states, saved activations
        times the microbatches in flight, and the workspace of the backward pass; rows kept on the
        host are of kind "host".

    Raises:
        InputError: unknown names, or a strategy that does not go with the model.
    """
    chosen = training or Training()
    policy, plan = precision(chosen.precision), schedule(chosen.schedule)
    counted = policy.applied(conventions)
    table, kept = (
        strategy_table(model, strategy, counted, way, stage=stage, schedule=plan.name)
        for way in (chosen.recompute, KEEP_ALL)
    )
    own = strategy.model(model)
    share = stage_model(own, strategy.degree("pp"), stage, plan)
    states = States(share, strategy.placement(own), counted, policy, optimizer(chosen.optimizer))
    sizes = {symbols.pp: strategy.degree("pp"), symbols.M: chosen.microbatches}
    sizes[symbols.stage] = stage.number(sizes[symbols.pp])
    rows = [
        *_resident(table, plan.copies),
        *states.rows(),
        *_in_flight(table, kept, plan, sizes),
        *table.select(Quantity.WORKSPACE),
        *_workspace(table, kept, chosen.recompute),
        *states.workspace(),
    ]
    placed = (
        replace(row, kind=HOST) if row.quantity.value in chosen.offload else row
        for row in rows
        if row.expr != 0
    )
    return replace(table, rows=tuple(placed))


def moments(table: CostTable) -> dict[str, Expr]:
    """Return what the device holds at each moment of the step [byte], by the moment's name."""
    held: dict[tuple[Quantity, Phase | None], list[Expr]] = {}
    for row in table:
        if row.kind != HOST:
            phase = row.phase if row.quantity is Quantity.WORKSPACE else None
            held.setdefault((row.quantity, phase), []).append(row.total)
    found = {}
    for name, (quantities, phase) in MOMENTS.items():
        present = [(quantity, None) for quantity in quantities]
        workspace = [] if phase is None else [(Quantity.WORKSPACE, phase)]
        found[name] = Add(*(term for key in present + workspace for term in held.get(key, ())))
    return found


def peak(table: CostTable) -> Expr:
    """Return the greatest of the moments [byte]."""
    at = moments(table)
    step, backward = at["optimizer step"], at["backward"]  # the others hold a part of these
    return backward if step == at["between steps"] else Max(step, backward, evaluate=False)


def _in_flight(
    table: CostTable, kept: CostTable, plan: Schedule, sizes: dict[Expr, Expr]
) -> Iterator[Row]:
    """Yield saved activations, and what waits for weight gradients, times the microbatches."""
    whole, waiting = plan.in_flight.subs(sizes), plan.residue.subs(sizes)
    for row in table.select(Quantity.SAVED):
        yield replace(row, count=Mul(row.count, whole))
    if waiting == 0:
        return
    seen: set[tuple[str, str]] = set()
    for row in kept.select(Quantity.READ, phase=Phase.BACKWARD_WEIGHT):
        if (row.path.partition(".")[0], row.tensor) not in seen:
            seen.add((row.path.partition(".")[0], row.tensor))
            yield replace(
                row,
                phase=Phase.FORWARD,
                quantity=Quantity.SAVED,
                count=Mul(row.count, waiting),
                source=plan.source,
            )


def _workspace(table: CostTable, kept: CostTable, policy: Recompute) -> Iterator[Row]:
    """Yield the most that backward holds beside: recomputed activations, and gradients."""
    again = _by(lambda row: policy.region(row.path), kept.select(Quantity.SAVED))
    inputs = _by(lambda row: policy.region(row.path), table.select(Quantity.SAVED))
    recomputed = [
        Mul(policy.every, size - inputs.get(region, Integer(0)))
        for region, size in again.items()
        if region is not None
    ]
    gradients = _by(lambda row: row.path, table.select(Quantity.ACTIVATION_GRADIENT))
    yield workspace_row("recomputed", Phase.BACKWARD_INPUT, greatest(recomputed))
    most = greatest(gradients.values())
    yield workspace_row("activation_gradients", Phase.BACKWARD_INPUT, most)


def _by(key: Callable[[Row], str | None], rows: CostTable) -> dict[str | None, Expr]:
    """Sum rows, each once, by a key."""
    sums: dict[str | None, list[Expr]] = {}
    for row in rows:
        sums.setdefault(key(row), []).append(row.expr)
    return {name: Add(*terms) for name, terms in sums.items()}


def _resident(table: CostTable, copies: Expr) -> Iterator[Row]:
    """Yield weights and gradients; those of blocks as often as the schedule keeps them."""
    for row in table:
        if row.quantity in STATES:
            yield row if row.count == 1 else replace(row, count=Mul(row.count, copies))
