"""Quantities of a job by the names that people ask for: costs, parts, memory, the step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cached_property

from sympy import Expr

from symbolic_cost.conditions import check
from symbolic_cost.costs import COSTS, named_cost
from symbolic_cost.errors import InputError, unknown
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.setup import refuse_fixed
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.ledger import CostTable
from symbolic_cost.numeric.binding import check_values
from symbolic_cost.parallel.moments import moments, peak, shares
from symbolic_cost.program.exact import Number
from symbolic_cost.program.lowering import lowered
from symbolic_cost.program.program import Program
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import b, dp, dr, ep, named, v
from symbolic_cost.systems.chain import Chain
from symbolic_cost.units import Unit, human

TIMES = ("step", "exposed", "computing")
"""Times: of a step, of its communication that is waited for, and of the rest but the bubble."""

_OWN = {"memory": Unit.BYTE, **dict.fromkeys(TIMES, Unit.SECOND)}


@dataclass(frozen=True)
class Quantity:
    """One number of a job as a function of its symbols.

    Args:
        expr: its formula; None where that is a chain, as of a step.
        program: whose one output is called "it".
        values: numbers of symbols.
    """

    name: str
    unit: Unit
    expr: Expr | None
    program: Program
    values: Mapping[str, int | Fraction]
    run: Job

    def at(self, **sizes: int) -> Number:
        """Return the exact number with other sizes."""
        return self.program.exact({**self.values, **sizes})["it"]

    def slope(self, by: str, **sizes: int) -> Number:
        """Return the derivative by a symbol; what jumps is flat."""
        if by not in self._slopes:
            self._slopes[by] = self.program.derivative(by, ["it"])
        slopes = self._slopes[by].exact({**self.values, **sizes})
        return next(iter(slopes.values()))

    def exactly(self, by: str, size: int) -> Fraction:
        """Return the exact number at a size; a degree of one is none, as in a job of its own."""
        lone = self.lone(by) if size == 1 else None
        return Fraction(self.at(**{by: size})) if lone is None else lone

    def lone(self, by: str) -> Fraction | None:
        """Return the number where a degree is one; None of what is no degree, or not legal."""
        if by not in self._ones:
            self._ones[by] = _of_one(self, by)
        return self._ones[by]

    @cached_property
    def _ones(self) -> dict[str, Fraction | None]:
        return {}

    @cached_property
    def _slopes(self) -> dict[str, Program]:
        return {}

    def legal(self, by: str, size: int) -> bool:
        """Tell whether a size meets every condition, as that degrees divide it."""
        return is_legal(self.run, {**self.values, by: size})


def unit_of(name: str) -> Unit:
    """Return the unit of a quantity; a part without another cost is asked for its FLOP."""
    return _OWN.get(name) or (COSTS[name].unit if name in COSTS else Unit.FLOP)


def is_legal(run: Job, values: Mapping[str, int | Fraction]) -> bool:
    """Tell whether numbers meet every condition of a job."""
    try:
        conditions = (*run.rows.conditions, *run.structure.assumptions, *run.learned_positions)
        check(conditions, check_values(values))
    except InputError:
        return False
    return True


def in_its_precision(run: Job, *names: str) -> Job:
    """Return the job with the bytes of its precision, if memory or the step is among the names."""
    return run if run.precise or _OWN.keys().isdisjoint(names) else replace(run, precise=True)


def quantity(run: Job, name: str, cost: str = "flops") -> Quantity:
    """Return a quantity of a job by name.

    Args:
        run: the job.
        name: a named cost, "memory" (the peak of a rank), one of TIMES, or a part of the model, of
            which it is the cost: block.attention.core, or its last steps where these tell.
        cost: named cost of parts.
    """
    run = in_its_precision(run, name)
    values = dict(run.values)
    if name in TIMES:
        return _time(run, name)
    if name == "memory":
        expr = peak(run.memory_rows)
        return Quantity(name, Unit.BYTE, expr, lowered({"it": expr}), values, run)
    if name in COSTS:
        chosen, rows = named_cost(name), run.rows
    else:
        chosen = named_cost(cost)
        rows = run.rows.select(path=part_named(run.rows, name))
    expr = chosen.total(rows)
    if expr == 0:
        raise InputError(f"{name} of this job is zero")
    return Quantity(name, chosen.unit, expr, lowered({"it": expr}), values, run)


def _time(run: Job, name: str) -> Quantity:
    definitions = dict(Timed(run).step.chain.definitions)
    definitions["computing"] = named("step") - named("exposed") - named("bubble")
    whole = Chain(definitions).dependencies([name])
    program = lowered(whole.definitions, [name])
    it = Program(program.symbols, program.nodes, {"it": program.outputs[name]})
    if not it.inputs and not it.exact({})["it"]:
        raise InputError(f"{name} of this job is zero")
    return Quantity(name, Unit.SECOND, None, it, dict(run.counted_values), run)


_MOVING = frozenset(one.name for one in (b, dp, ep, dr))


def moves_microbatches(run: Job, by: str) -> bool:
    """Tell whether another size makes other microbatches of the job's global batch."""
    moves = by == b.name or by in _MOVING & {*run.strategy.symbols()}
    return run.global_batch is not None and moves


def is_made_anew(it: Quantity, by: str) -> bool:
    """Tell whether another size makes another job: microbatches, chunks, degrees of a step, ops."""
    degree = it.name in TIMES and by in it.run.strategy.symbols()
    chunks = by == v.name and by in it.run.values and it.name in _OWN
    return degree or chunks or by in it.run.model.fixed or moves_microbatches(it.run, by)


def refuse_moved(by: str, *quantities: Quantity) -> None:
    """Refuse a symbol with which microbatches or degrees of a step change, or nothing does."""
    refuse_unread(by, *quantities)
    for it in quantities:
        if moves_microbatches(it.run, by):
            batch = it.run.global_batch
            raise InputError(
                f"with another {by} a global batch of {batch} makes other microbatches: bind M "
                "instead, or ask for the optimum"
            )
        refuse_fixed(it.run.model, by)
        if is_made_anew(it, by):
            raise InputError(f"with another {by} a step is another chain: ask for the optimum")


def refuse_unread(by: str, *quantities: Quantity) -> None:
    """Refuse a symbol on which no quantity depends, neither itself nor by another job."""
    if not any(by in it.program.inputs or is_made_anew(it, by) for it in quantities):
        names = " and ".join(it.name for it in quantities)
        verb = "does" if len(quantities) == 1 else "do"
        raise InputError(f"{names} of this job {verb} not depend on {by}")


def part_named(rows: CostTable, name: str) -> str:
    """Return the path of a part by its last steps: attention is block.attention."""
    if name in rows.parts:
        return name
    matching = sorted(path for path in rows.parts if path.endswith(f".{name}"))
    if not matching:
        last = {path.rpartition(".")[2] for path in rows.parts}
        raise InputError(unknown("quantity or part", name, {*last, *rows.parts, *COSTS, *_OWN}))
    if len(matching) > 1:
        raise InputError(f"{name} may be {', '.join(matching[:5])}: name one of them")
    return matching[0]


def resized(run: Job, by: str, size: int) -> Job:
    """Return the job with another degree of its strategy, or another number."""
    if by in run.strategy.bindings():
        return run.replace(strategy=run.strategy.resized(by, size))
    return run.replace(numbers={**run.numbers, by: size})


def _of_one(it: Quantity, by: str) -> Fraction | None:
    """Return a quantity where a degree is one, which is none: ops of other kinds and no sends.

    None for what is no degree, and where that job is not legal.
    """
    if by not in it.run.strategy.symbols():
        return None
    try:
        own = resized(it.run, by, 1)
        if not is_legal(own, own.values):
            return None
        if it.name in COSTS and named_cost(it.name).total(own.rows) == 0:
            return Fraction(0)
        return Fraction(quantity(own, it.name).at())
    except InputError:
        return None


def fuller(it: Quantity, by: str, size: int) -> Iterator[str]:
    """Say which stage of the pipeline holds more than that of which a memory is."""
    run = it.run
    others = [one for one in run.structure.stages if it.name == "memory" and one is not run.stage]
    held = {
        stage: Fraction(quantity(run.replace(stage=stage), it.name).at(**{by: size}))
        for stage in others
    }
    fullest = max(held, key=lambda stage: held[stage], default=run.stage)
    if fullest in held and held[fullest] > Fraction(it.at(**{by: size})):
        more = human(held[fullest], it.unit)
        yield f"stage {fullest} holds {more} there, more than stage {run.stage}: --stage {fullest}"


def held_at_peak(run: Job, sizes: Mapping[str, int | Fraction]) -> tuple[str, dict[str, Fraction]]:
    """Return the moment of the peak, and the share of every quantity in what is held [1].

    The job has the bytes of its precision. Another size makes no other rows, so that those of the
    job are told the size.
    """
    table = run.memory_rows
    values = {**run.values, **sizes}
    known = lowered(moments(table)).exact(values)
    moment = max(known, key=lambda name: known[name])
    held = lowered(shares(table, moment)).exact(values)
    parts = {
        n.replace("_", " "): Fraction(size) / Fraction(known[moment]) for n, size in held.items()
    }
    return moment, dict(sorted(parts.items(), key=lambda pair: -pair[1]))
