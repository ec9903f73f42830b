"""Software stacks: what of a framework decides how long a step takes, beside its machine.

A stack is a record of stacks.toml: which attention kernel it calls, how it fuses passes over
memory, how fast its host issues ops, how it bundles and hides what moves. Each fact has a source;
those that nobody published are assumed, and widen the interval of what is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.errors import InputError, looked_up
from symbolic_cost.ledger import CollectiveKind
from symbolic_cost.parallel.software import Making, Software
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.systems.kernel_records import KINDS, kernels, kind_of
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.records import machine as named_machine
from symbolic_cost.systems.records import machine_names
from symbolic_cost.systems.rooflines import MAXIMUM, Roofline

ROOFLINE = "roofline"
"""Name of the choice to have no stack: the efficiencies of the machine's record alone."""

UNKNOWN = "unknown"
"""Name of the stack whose facts are all assumed."""

ASSUMED = "assumed"
EAGER = "eager"


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation of attention kernels on one kind of device, beside those that were measured.

    Args:
        forward: its rate as a part of theirs.
        backward: its rate in backward as a part of that in forward.
        source: key of where that stands.
    """

    forward: Expr
    backward: Expr
    source: str


@dataclass(frozen=True)
class Fusion:
    """How passes over memory run together.

    Args:
        way: "alone" where every op is a kernel, "merged" where those in a row are one.
        share: of the memory's bandwidth that they reach; None for that of their kind.
        times: how much more they move than declared, by kind of op, where several kernels run.
        kernels: names of ops of one scope that are one kernel, group by group.
        remade: ends of paths of ops that are one kernel, whose backward makes what is inside again;
            its time is taken for that of the ops.
        absorbed: ends of paths of ops that run inside the kernels of their neighbours.
    """

    name: str
    meaning: str
    way: str
    share: Expr | None
    times: Mapping[str, Expr] = field(hash=False)
    kernels: tuple[tuple[str, ...], ...] = ()
    remade: tuple[tuple[str, ...], ...] = ()
    absorbed: tuple[str, ...] = ()

    @property
    def merges(self) -> bool:
        """Whether passes in a row are one kernel."""
        return self.way == "merged"


@dataclass(frozen=True)
class Stack:
    """One software stack.

    Args:
        attention: generation of its attention kernel, or "eager".
        fusion: how passes over memory run together.
        projections: "joined" where those of one input, as of queries, keys and values, are one
            product, else "apart".
        experts: "apart" where the product of every expert is a kernel, four at a time, else
            "grouped".
        wide: pass of products that stays in 16 bits where others are narrower; empty for none.
        cast: bytes that a cast to 8 bits moves, per byte of what is cast.
        cast_fp4: the same to 4 bits.
        weights: "cast once" per step where products are narrower, else "cast each" time.
        host: in which the host issues one op [s].
        issues: kernels that the host issues one by one: of "all" ops, or of "experts" alone where
            the rest of a block is a CUDA graph.
        launches: of kernels, "queued" ahead of the device, or "waited for" one by one.
        accumulation: of a microbatch's gradients of weights, as `Making` names it; "none" where
            nothing is known to be there.
        weight_gradients: "kept" from step to step in buffers of their own, or "made" by the first
            microbatch of each step as the weights' own.
        loss: "fused" where its gradient takes the place of what it kept, "in place" where that is
            the logits, "beside" where the gradient is beside them, else "apart": op by op.
        updates: of the optimizer, "fused" in one pass, or "foreach": op by op on all weights.
        ends: what of the units that are gathered and reduced is no block: "apart", part by part,
            or all of it the "root".
        gathers: what one message of sharded weights holds: a "tensor", or a "block" and more, a
            "bucket".
        dispatch: "once" where a token goes once to all its experts on a rank, else "copies".
        softmax: batches of scores, one per head and sequence, that its kernel takes at once; ranks
            with no multiple of them run it op by op.
        overlap: what of a communication is hidden where the job does not say, as of `overlap`.
        gradients: bytes of an element of a gradient that is reduced.
        copies: of a unit's weights and gradients, out of "messages" and into them, or of the
            gradients of "flat" parameters; "none" where nothing is known to be copied.
        steal: part of hidden communication by which computing beside it is slower.
        precision: policy of training where none is said.
        machines: kinds of machines that it runs on.
        sources: key of the source of every fact.
        family: names of the stack and of those that it is like, the nearest first.
    """

    name: str
    meaning: str
    attention: str
    fusion: Fusion
    projections: str
    experts: str
    wide: str
    cast: Expr
    cast_fp4: Expr
    weights: str
    host: Expr
    issues: str
    launches: str
    accumulation: str
    weight_gradients: str
    loss: str
    updates: str
    ends: str
    gathers: str
    dispatch: str
    softmax: Expr
    overlap: str
    gradients: Expr
    copies: str
    steal: Expr
    precision: str
    machines: tuple[str, ...]
    sources: Mapping[str, str] = field(hash=False)
    family: tuple[str, ...]

    @property
    def assumed(self) -> tuple[str, ...]:
        """Facts that nobody published."""
        return tuple(fact for fact, source in self.sources.items() if source == ASSUMED)

    @property
    def software(self) -> Software:
        """What of it decides what lives for a while."""
        how = {str(one): one for one in Making}.get(self.accumulation, Making.FUSED)
        own = self.loss, self.weight_gradients, how, self.updates, self.ends
        if "fusion" in self.assumed:
            return Software(*own)
        fusion = self.fusion
        return Software(*own, fusion.kernels, fusion.remade, fusion.absorbed)

    def copied(self, kind: CollectiveKind, made: Expr) -> Expr:
        """Return the bytes that copies, casts and scalings move per byte of a unit's message.

        Args:
            kind: of the collective.
            made: bytes of a gradient as a product makes it, per byte of it in the message.

        For example gradients of 2 byte that are reduced in 4 are read and written as they are cast,
        1 + 1/2; or joined, 1, cast, 1 + 1/2, and divided, 2.
        """
        cast = 1 + made
        joined = 2 * made + (0 if made == 1 else cast) + 2
        moved = {
            (CollectiveKind.ALL_GATHER, "messages"): Integer(2),
            (CollectiveKind.REDUCE_SCATTER, "messages"): cast,
            (CollectiveKind.REDUCE_SCATTER, "flat"): joined,
        }
        return moved.get((kind, self.copies), Integer(0))

    def check(self, machine: Machine) -> None:
        """Refuse a machine that the stack does not run on, or that no kernels are known for.

        Raises:
            InputError: naming the kinds of machines that it runs on.
        """
        kernels(machine)
        kind = kind_of(machine)
        if kind not in self.machines:
            runs = tuple(one.name for one in _stacks().values() if kind in one.machines)
            raise InputError(
                f"stack {self.name} runs on {' and '.join(self.machines)}s, and {machine.name} is "
                f"a {kind}: {', '.join(runs)} or {ROOFLINE} is accepted"
            )


def usual(machine: Machine | None, shape: Roofline = MAXIMUM) -> str:
    """Return the stack where none is said: a record of the library's own has its kernels.

    So has one that `calibrate` fitted to kernels or steps. Symbols for rates, another's record and
    the machines of publications have no kernels but the efficiencies that they state; and who names
    a roofline means these.
    """
    if shape != MAXIMUM or machine is None:
        return ROOFLINE
    if machine.kernels or machine.cluster:
        return _unnamed(machine)
    if machine.name not in machine_names() or not has_kernels(machine):
        return ROOFLINE
    return _unnamed(machine) if machine == named_machine(machine.name) else ROOFLINE


def _unnamed(machine: Machine) -> str:
    """Return the stack of middle values: of those that XLA compiles where nothing else runs."""
    return f"{UNKNOWN}-xla" if kind_of(machine) == "tpu" else UNKNOWN


def usual_attention(runs: Stack | None) -> str:
    """Return the kernel of attention cores that runs under a stack, "eager" or "flash"."""
    return EAGER if runs is not None and runs.attention == EAGER else "flash"


def usual_precision(runs: Stack | None) -> str:
    """Return the precision policy of training that is usual under a stack."""
    return (runs or _stacks()[UNKNOWN]).precision


def has_kernels(machine: Machine) -> bool:
    """Tell whether a machine is one that stacks run on, none that a publication made up."""
    return machine.host is not None or kind_of(machine) == "tpu"


def stack(name: str) -> Stack | None:
    """Return a stack by name; none for "roofline".

    Raises:
        InputError: no such stack; the closest are offered.
    """
    return None if name == ROOFLINE else looked_up("stack", name, {**_stacks(), ROOFLINE: None})


def stack_name(runs: Stack | None) -> str:
    """Return the name by which a stack, or the choice to have none, is asked for."""
    return ROOFLINE if runs is None else runs.name


def stack_names() -> tuple[str, ...]:
    """Return the names of all stacks, and of the choice to have none."""
    return (*_stacks(), ROOFLINE)


@cache
def _stacks() -> Mapping[str, Stack]:
    data = package_data("systems/stacks.toml")
    return {name: _stack(name, record) for name, record in data["stacks"].items()}


def generation(name: str, origin: str) -> Generation:
    """Return a generation of attention on a machine whose kernels were measured."""
    record = package_data("systems/stacks.toml")["generations"][name]
    forward = record["forward"]
    own = forward.get(origin, forward["other"])
    return Generation(exact(own), exact(record["backward"]), record["source"])


def misalignment() -> Expr:
    """Return by how much more time a product with an odd side takes."""
    return exact(package_data("systems/stacks.toml")["misalignment"]["value"])


def sustained(origin: str) -> Expr:
    """Return the part of the clock of kernels measured one by one that lasts in training."""
    record = package_data("systems/stacks.toml")["sustained"]
    return exact(record.get(origin, record["other"]))


def slower_host(machine: Machine) -> Expr:
    """Return how much longer than others a machine's processor takes to issue an op."""
    slow = package_data("systems/stacks.toml")["processors"]
    return exact(slow["value"] if machine.host and machine.host.name in slow["links"] else 1)


def _fusion(name: str) -> Fusion:
    data = package_data("systems/stacks.toml")
    record = data["fusions"][name]
    share = exact(record["share"]) if "share" in record else None
    times = {kind: exact(value) for kind, value in record.get("times", {}).items()}
    joined = tuple(map(tuple, record.get("joined", ())))
    remade = tuple(
        tuple(ops) for one in record.get("remade", ()) for ops in data["remade"][one]["ops"]
    )
    absorbed = tuple(record.get("absorbed", ()))
    return Fusion(name, record["meaning"], record["way"], share, times, joined, remade, absorbed)


def _stack(name: str, record: Mapping[str, Any]) -> Stack:
    data = package_data("systems/stacks.toml")
    family = [name]
    while like := data["stacks"][family[-1]].get("like"):
        family.append(like)
    whole = dict(data["every"])
    for one in reversed(family):
        whole |= data["stacks"][one]
    facts = {key: fact for key, fact in whole.items() if isinstance(fact, dict)}
    values = {
        key: fact["value"] if isinstance(fact["value"], str) else exact(fact["value"])
        for key, fact in facts.items()
    }
    sources = {key: fact["source"] for key, fact in facts.items()}
    machines = tuple(whole.get("machines", KINDS))
    return Stack(
        name=name,
        meaning=record["meaning"],
        machines=machines,
        sources=sources,
        family=tuple(family),
        **{**values, "fusion": _fusion(values["fusion"])},  # type: ignore[arg-type]  # as the record has them
    )
