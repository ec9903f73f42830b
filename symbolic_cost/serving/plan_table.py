"""Plans as a table for people, and as a front of speed per user against speed per GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from symbolic_cost.emit.front import Front
from symbolic_cost.emit.sheet import Cell, Column, Sheet, headed
from symbolic_cost.serving.choice import Plan
from symbolic_cost.serving.notes import assumptions, engine_name
from symbolic_cost.serving.plan import Plans
from symbolic_cost.serving.pools import Pools
from symbolic_cost.serving.spread import span
from symbolic_cost.systems.prices import Rates, rates
from symbolic_cost.units import Unit, gpu_count, human

_BRIEF = headed("engine, chunk>, seqs>, tokens/s/GPU>, TTFT> [s], ITL> [s], binds")
"""What people compare; the rest is told of the best plan, and of all in formats for programs."""

_FULL = (*_BRIEF, *headed("engines, tokens/s/user>, requests/s>, memory> [byte]"))


def plan_sheet(
    plans: Plans, price: float | None = None, most: int = 10, *, full: bool = False
) -> Sheet:
    """Tabulate plans.

    Args:
        plans: best first.
        price: of one GPU for an hour [USD]; that on record unless given.
        most: plans that are shown.
        full: whether every plan has every figure, as programs read them.
    """
    shown = plans.best[:most]
    best = shown[0]
    known = rates(best.sized.engine.machine.name, price=price)
    costs = (Column("USD/Mtoken", "right"), Column("kWh/Mtoken", "right"))
    columns = (*_FULL, *costs) if full else _BRIEF
    rows = tuple(
        (*_row(plan, full=full), *(_machine_fields(plan, known) if full else ())) for plan in shown
    )
    engine, load = best.sized.engine, best.steady.load
    shared = f" ({load.shared} shared)" if load.shared else ""
    title = (
        f"Serving {engine.name} on {gpu_count(best.gpus)} of {engine.machine.name}: "
        f"{load.input} tokens in{shared}, {load.output} out, {engine.weights} weights, "
        f"{engine.cache} cache"
    )
    notes = (*_notes(best, known), *assumptions(plans, known))
    left = len(plans.best) - len(shown)
    more = (f"{left} more are not shown",) if left else ()
    reasons = (f"left out: {name}: {reason}" for name, reason in plans.refused.items())
    return Sheet(title, columns, rows, (*notes, *more, *reasons))


def plan_front(plans: Plans, *, full: bool = False) -> Front:
    """Return the plans that no other beats in speed per GPU and per user; `full` as of a sheet."""
    points = sorted(plans.every, key=lambda plan: (plan.itl, -plan.tokens))
    front: list[Plan] = []
    for plan in points:
        if not front or plan.tokens > front[-1].tokens:
            front.append(plan)
    best = plans.best[0]
    sheet = plan_sheet(Plans(tuple(front), {}, ()), most=len(front), full=full)
    return Front(
        "ITL",
        "tokens/s/GPU",
        Unit.SECOND,
        Unit.RATIO,
        [plan.itl for plan in front],
        [plan.tokens for plan in front],
        [f"{engine_name(plan)}, {_way(plan)}, {plan.sequences:.0f}" for plan in front],
        "engine, chunk, sequences",
        f"{best.sized.engine.name} on {best.gpus} {best.sized.engine.machine.name}",
        sheet,
    )


def _row(plan: Plan, *, full: bool) -> tuple[Cell, ...]:
    return (
        engine_name(plan),
        plan.chunk if full else _way(plan),
        round(plan.sequences, 1),
        round(plan.tokens, 1),
        plan.ttft,
        plan.itl,
        plan.binds,
    )


def _way(plan: Plan) -> str:
    """Return how prompts run, in a word."""
    if plan.apart is not None:
        return "apart"
    return "none" if plan.chunk is None else str(plan.chunk)


def _machine_fields(plan: Plan, known: Rates) -> tuple[Cell, ...]:
    """Return what programs read besides."""
    costs = known.costs(1e6 / plan.tokens)
    rounded = (None if one is None else round(one, 4) for one in (costs.usd, costs.kwh))
    return (_engines(plan), round(1 / plan.itl, 3), round(plan.requests, 4), plan.memory, *rounded)


def _engines(plan: Plan) -> str:
    own = plan.apart
    return str(plan.engines) if own is None else f"{own[1]} prefill + {plan.engines} decode"


def _built(plan: Plan) -> str:
    """Return how many engines there are, and of how many GPUs."""
    own = [] if plan.apart is None else [(plan.apart[1], plan.apart[0], " that prefill")]
    own.append((plan.engines, plan.sized, " that decode" if own else ""))
    return " and ".join(
        f"{count} engine{'s' * (count > 1)} of {gpu_count(int(sized.engine.ranks))}{what}"
        for count, sized, what in own
    )


def _notes(best: Plan, known: Rates) -> Iterator[str]:
    """Yield what is to say of the best plan."""
    binds = _BINDS.get(best.binds, best.binds)
    yield (
        f"best: {_built(best)}, {best.requests:.4g} requests/s, "
        f"{1 / best.itl:.4g} tokens/s to each user; {binds}"
    )
    if isinstance(best.steady, Pools):
        own = best.steady
        yield (
            f"prompts apart: {_seconds(own.prompt)} each, their engines busy for {own.busy:.0%} of "
            f"the time; a cache moves in {_seconds(own.prefilling.transfer)}; "
            f"{own.flying * own.stages:.4g} sequences decode at each place"
        )
    figures: tuple[tuple[str, Callable[[Plan], float], Callable[[float], str]], ...] = (
        ("tokens/s/GPU", lambda plan: plan.tokens, _plainly),
        ("TTFT", lambda plan: plan.ttft, _seconds),
        ("ITL", lambda plan: plan.itl, _seconds),
    )
    asked = figures if best.rate is None else figures[1:]
    spans = [(name, span(best, figure), shown) for name, figure, shown in asked]
    between = ", ".join(
        f"{name} {shown(own.low)} to {shown(own.high)}" for name, own, shown in spans
    )
    yield f"four of five such engines: {between}; most is open in {spans[-1][1].most}"
    sized, load = best.sized, best.steady.load
    held, usable = best.memory, float(sized.engine.machine.usable.value)
    prefix = sized.cache(load.shared)
    shared = f", {human(prefix, Unit.BYTE)} of shared prefix" if prefix else ""
    yield (
        f"memory of a rank: {human(held, Unit.BYTE)} of {human(usable, Unit.BYTE)}: "
        f"{human(sized.weights, Unit.BYTE)} of weights{shared}, "
        f"{human(sized.sequence_bytes(load.longest), Unit.BYTE)} for each sequence at its end"
    )
    costs = known.costs(1e6 / best.tokens)
    told = [f"{costs.usd:.4g} USD"] if costs.usd is not None else []
    told += [f"{costs.kwh:.4g} kWh"] if costs.kwh is not None else []
    if told:
        yield f"a million output tokens: {' and '.join(told)}"


_BINDS = {
    "memory": "one more sequence does not fit in memory",
    "ITL": "one more sequence would miss the ITL",
    "TTFT": "one more sequence would miss the TTFT",
    "prompts": "steps take no more prompts",
    "rate": "no more is asked for",
    "prefill": "its prefill engines set the pace",
    "transfer": "caches take long to move",
    "decode": "its decode engines set the pace",
    "batch": "a larger batch serves more",
}


def _plainly(value: float) -> str:
    return f"{value:,.0f}" if value >= _WHOLE else f"{value:.3g}"


_WHOLE = 100


def _seconds(value: float) -> str:
    return "without end" if value == float("inf") else human(value, Unit.SECOND)
