"""Named costs: what users ask for by one word, as a selection of rows."""

from sympy import Expr

from symbolic_cost.algebra import add
from symbolic_cost.errors import InputError, UnknownNameError, refuse, unknown
from symbolic_cost.ledger import BACKWARD, TRAINING, CostTable, Phase, Quantity, Row
from symbolic_cost.records import dataclass, replace
from symbolic_cost.units import Unit


@dataclass(frozen=True, slots=True)
class NamedCost:
    """A selection of rows of one unit.

    Args:
        phases: that are summed; all if empty.
        per_step: only what occurs once per step (True) or per microbatch (False).
    """

    name: str
    meaning: str
    unit: Unit
    quantities: tuple[Quantity, ...]
    phases: tuple[Phase, ...] = ()
    per_step: bool | None = None

    def rows(self, table: CostTable) -> CostTable:
        """Return the rows of a table that belong to the cost."""
        return table.select(phase=self.phases or None, where=self._belongs)

    def _belongs(self, row: Row) -> bool:
        in_time = self.per_step is None or row.per_step is self.per_step
        return row.quantity in self.quantities and in_time

    def total(self, table: CostTable) -> Expr:
        """Sum them to one plain SymPy expression."""
        rows = self.rows(table)
        return add(*(rows.total(quantity) for quantity in self.quantities))


PHASES: dict[str, tuple[Phase, ...]] = {
    "fwd": (Phase.FORWARD,),
    "bwd": BACKWARD,
    "recompute": (Phase.RECOMPUTE,),
    "train": TRAINING,
    "step": (Phase.STEP,),
}
"""Phases by the short names of the command line."""

_OTHER_WORDS = {"forward": "fwd", "backward": "bwd", "training": "train"}
"""Short names of phases by the words that rows and Python have for them."""

_COMM = (Quantity.COMMUNICATION,)
_TRAFFIC = (Quantity.READ, Quantity.WRITE)

_COSTS = (
    NamedCost("flops", "training FLOP of one microbatch", Unit.FLOP, (Quantity.FLOP,), TRAINING),
    NamedCost("flops_fwd", "forward FLOP", Unit.FLOP, (Quantity.FLOP,), PHASES["fwd"]),
    NamedCost("flops_bwd", "backward FLOP", Unit.FLOP, (Quantity.FLOP,), BACKWARD),
    NamedCost(
        "flops_recompute", "recomputed FLOP", Unit.FLOP, (Quantity.FLOP,), PHASES["recompute"]
    ),
    NamedCost(
        "flops_train", "training FLOP of one microbatch", Unit.FLOP, (Quantity.FLOP,), TRAINING
    ),
    NamedCost("params", "parameters of one rank", Unit.ELEMENT, (Quantity.PARAMETER,)),
    NamedCost("weights", "bytes of the weights", Unit.BYTE, (Quantity.WEIGHT,)),
    NamedCost(
        "weight_gradients", "bytes of their gradients", Unit.BYTE, (Quantity.WEIGHT_GRADIENT,)
    ),
    NamedCost("saved", "activations kept for backward", Unit.BYTE, (Quantity.SAVED,)),
    NamedCost(
        "cache", "keys, values and states kept for the next token", Unit.BYTE, (Quantity.CACHE,)
    ),
    NamedCost("bytes_fwd", "memory traffic of forward", Unit.BYTE, _TRAFFIC, PHASES["fwd"]),
    NamedCost("bytes_bwd", "memory traffic of backward", Unit.BYTE, _TRAFFIC, BACKWARD),
    NamedCost("bytes", "memory traffic of training", Unit.BYTE, _TRAFFIC, TRAINING),
    NamedCost("comm", "bytes communicated per microbatch", Unit.BYTE, _COMM, per_step=False),
    NamedCost("comm_fwd", "bytes communicated in forward", Unit.BYTE, _COMM, PHASES["fwd"]),
    NamedCost(
        "comm_bwd", "bytes communicated in backward", Unit.BYTE, _COMM, BACKWARD, per_step=False
    ),
    NamedCost("comm_step", "bytes communicated once per step", Unit.BYTE, _COMM, per_step=True),
)

COSTS: dict[str, NamedCost] = {entry.name: entry for entry in _COSTS}
"""Every named cost."""


_COMMANDS = {
    name: f"unknown cost {name!r}: symbolic-cost {name} MODEL has it, and its formulas"
    for name in ("memory", "time")
}


def named_cost(name: str, phase: str | None = None) -> NamedCost:
    """Return a named cost, narrowed to a phase if one is given.

    Raises:
        UnknownNameError: no such cost or phase; the closest are offered.
        InputError: a cost that has nothing in the phase: saved bytes are of no phase, comm_fwd is
            of the forward pass already.
    """
    problems = []
    phase = phase if phase is None else _OTHER_WORDS.get(phase, phase)
    if name not in COSTS:
        own = _COMMANDS.get(name, "")
        problems.append(own or unknown("cost", name, COSTS))
    if phase is not None and phase not in PHASES:
        problems.append(unknown("phase", phase, PHASES))
    refuse(problems, UnknownNameError)
    chosen = COSTS[name]
    if phase is None:
        return chosen
    shared = tuple(one for one in PHASES[phase] if one in _phases_of(chosen))
    if not shared:
        accepted = [short for short, its in PHASES.items() if set(its) & set(_phases_of(chosen))]
        which = ", ".join(accepted) or "none: leave --phase out"
        raise InputError(f"{name} has nothing in phase {phase!r}: it takes {which}")
    meaning = COSTS.get(f"{name}_{phase}", chosen).meaning
    return replace(chosen, name=f"{name} {phase}", meaning=meaning, phases=shared)


def _phases_of(cost: NamedCost) -> tuple[Phase, ...]:
    """Return the phases in which rows of a cost arise."""
    if not set(cost.quantities) <= {Quantity.FLOP, *_TRAFFIC, *_COMM}:
        return ()
    return cost.phases or (TRAINING if cost.per_step is False else (*TRAINING, Phase.STEP))


def forward_pass(table: CostTable) -> CostTable:
    """Return what a pass that nothing learns from costs, the weights and the cache it leaves."""
    held = (Quantity.CACHE, Quantity.CACHED, Quantity.PARAMETER, Quantity.WEIGHT)
    return table.select(
        where=lambda row: (
            row.quantity in held
            or (row.phase is Phase.FORWARD and row.quantity is not Quantity.SAVED)
        )
    )
