"""What a plan assumes, in words."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import TYPE_CHECKING

from sympy import Integer

from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.count import ROUTED
from symbolic_cost.models.shape import TRAINING
from symbolic_cost.serving.choice import Plan
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.engine_numbers import USED, Sized
from symbolic_cost.serving.precisions import CACHES, READINGS, STORED, VALUE, WEIGHTS, WIDE
from symbolic_cost.serving.spread import has_states
from symbolic_cost.serving.strategies import strategy_name
from symbolic_cost.systems.prices import Rates

if TYPE_CHECKING:
    from symbolic_cost.serving.plan import Plans


def engine_name(plan: Plan) -> str:
    """Return the strategy of an engine in words, after that of one that prefills apart."""
    own = strategy_name(plan.sized.engine.strategy)
    first = own if plan.apart is None else strategy_name(plan.apart[0].engine.strategy)
    return own if first == own else f"{own} after {first}"


def assumptions(plans: Plans, known: Rates) -> Iterator[str]:
    """Yield what the plans take for granted, the rates they rest on first."""
    best = plans.best[0]
    kernels = best.sized.engine.kernels
    errors = ", ".join(
        f"{kind} {float(mean):.0%} of {count}" for kind, (mean, count) in kernels.errors.items()
    )
    told = f"{kernels.note}{kernels.machine.efficiencies.fitted}"
    yield f"{told}; mean error of kernels left out of the fit: {errors or 'unknown'}"
    yield (
        f"weights and whole sequences take at most {USED:.0%} of the usable memory; sequences are "
        "in a steady state, each at a place of its own"
    )
    yield from _ways(plans)
    yield from _of_engine(best)
    name = best.sized.engine.machine.name
    if known.price is None:
        yield f"no price of {name} on record: give one"
    elif told := known.told("price"):
        yield told
    if known.power and (told := known.told("power", "PUE")):
        yield told


def _ways(plans: Plans) -> Iterator[str]:
    """Say what the ways to run prompts are, and what the times are of."""
    if any(plan.chunk is None and plan.apart is None for plan in plans.best):
        yield "chunk none: whole prompts run between decode steps, one by one"
    if any(plan.chunk for plan in plans.best):
        yield "chunk: prompt tokens that a step of the decoding sequences holds besides, at most"
    if any(plan.rate for plan in plans.best):
        yield "rate: engines have room for three standard deviations more sequences than the mean"
    if any(plan.apart for plan in plans.best):
        yield (
            "apart: engines for prompts, one by one, and for steps; caches move over the innermost "
            "link that joins all GPUs, and the first token comes with its cache"
        )
    yield (
        "TTFT: requests arrive by chance, at the throughput shown; ITL: mean time between two "
        "tokens of a sequence"
    )


def _of_engine(best: Plan) -> Iterator[str]:
    """Say what is assumed of how the engine runs, and one that prefills apart."""
    engine, load = best.sized.engine, best.steady.load
    yield from engine.declare(TRAINING).notes
    if engine.name in CATALOG and CATALOG[engine.name].note:
        yield CATALOG[engine.name].note
    engines = [engine] if best.apart is None else [engine, best.apart[0].engine]
    if load.shared:
        yield f"shared prefix: cached once per engine, read {READINGS[engine.reading]}"
    if engine.drafted:
        yield from _drafted(best.sized, load.yielded)
    if has_states(engine):
        yield "states have 16 bits; recurrences run as one kernel at the rate of activations"
    if engine.chooses:
        yield (
            "queries choose keys: attention goes on latents through those that are chosen, their "
            "choice through all positions, in prompts later ones too, in 16 bits"
        )
    if any(one.strategy.degree("pp") != 1 for one in engines):
        yield (
            "as many microbatches as stages are in flight, the slowest stage sets the pace; "
            "bubbles between unlike microbatches are left aside"
        )
    if any("dp" in one.strategy for one in engines):
        yield "ranks with sequences of their own run in step, each with as much to do"
    if any("ep" in one.strategy for one in engines):
        yield from dict.fromkeys(words for one in engines for words in _held_twice(one))
        groups, chosen = engine.declare(TRAINING).routed
        limit = f", in {chosen} of {groups} groups" if groups > chosen else ""
        yield (
            f"experts are chosen by chance, each alike{limit}; dispatch is in 16 bits, not "
            "overlapped; a token crosses once to a node that holds several of its experts"
        )
    yield from _precisions(engine)


def _precisions(engine: Engine) -> Iterator[str]:
    """Say what products and attention run in, where weights or cache do not say so alone."""
    asked, runs, wide = WEIGHTS[engine.weights][1], engine.units, engine.kernels.wide
    if runs == wide and engine.weights != wide:
        lacks = asked not in engine.machine.matrix
        why = f"{engine.machine.name} has no {asked} units: " if lacks else ""
        held = "stored weights" if engine.weights == STORED else f"{engine.weights} weights"
        few = "" if engine.weights in WIDE else f"{held} are widened as they are read, "
        yield f"{why}{few}products and attention run in {wide}"
    elif runs != wide:
        told = f"products of layers run in {runs}, the head and attention in {wide}"
        own = engine.kernels.products
        yield told if runs in own else f"{told}; of {runs} none are on record: shares of {wide}"
    if CACHES[engine.cache] != VALUE:
        yield f"{engine.cache} keys and values are widened as they are read"


def _drafted(sized: Sized, yielded: float) -> Iterator[str]:
    """Say what drafts, and what it yields."""
    drafted, small = sized.engine.drafted, sized.drafting
    told = f"{drafted} drafted token{'s' * (drafted > 1)} a step yield {yielded:.3g} tokens"
    if small is None:
        yield f"{told}; drafting itself takes no time"
    elif small.engine.borrows:
        yield f"{told}; one more block like the last and the head draft them, one by one"
    else:
        yield f"{told}, of {small.engine.name}"
        one, other = (each.engine.declare(TRAINING).bindings.get("V") for each in (sized, small))
        if one != other:
            yield f"vocabularies of {one} and {other} tokens: translating takes no time"


def _held_twice(engine: Engine) -> Iterator[str]:
    """Say which experts there are more than once."""
    model = engine.declare(TRAINING)
    size = model.size(ROUTED)
    count = int(size.xreplace({s: Integer(model.bindings[s.name]) for s in size.free_symbols}))
    ranks = int(engine.strategy.degree("ep"))
    each = ceil(count / ranks)
    if each * ranks > count:
        again = each * ranks - count
        yield f"{count} experts on {ranks} ranks: {each} on each, {again} of them once more"
