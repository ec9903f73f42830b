"""How far off a plan's figures may be: low and high, from the spread of every kind of kernel.

As for training steps (`systems.spread`): kinds are independent, one kind is off alike wherever it
occurs, and logarithms of figures move by what each kind would move them; these add in squares. For
example an ITL of 50 ms with 20 ms of attention known to 33 % and 30 ms of products known to 13 %:
6.6 and 3.9 ms are 13 and 8 %, which make 15, and four of five engines lie within 1.28 of these, 41
to 61 ms. A cluster's steps of training narrow nothing: engines are other software.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from symbolic_cost.ledger import Quantity
from symbolic_cost.records import dataclass
from symbolic_cost.serving.choice import Plan
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.passes import decode
from symbolic_cost.serving.pricing import COLLECTIVES, PASSES, PRODUCTS, PROMPTS, STEPS
from symbolic_cost.serving.share import is_state
from symbolic_cost.systems.spread import MEAN, QUANTILE, assumed, ends


@dataclass(frozen=True, slots=True)
class Span:
    """Four of five engines lie between; the figure's own unit.

    Args:
        high: end; inf where a queue may grow without end.
        most: kind of kernel that leaves most open.
    """

    low: float
    high: float
    most: str


def spreads(engine: Engine) -> Mapping[str, float]:
    """Return the standard deviation of the logarithm of the time of every kind of kernel."""
    return {
        kind: math.sqrt(sum(size**2 for size in _reasons(engine, name, kind)))
        for kind, name in _fits(engine).items()
    }


def _fits(engine: Engine) -> Mapping[str, str]:
    """Return the name of the fit of every kind of kernel."""
    errors, own = engine.kernels.errors, f"products {engine.units}"
    return {
        PRODUCTS: own if own in errors else "products bf16",
        PROMPTS: "attention prefill",
        STEPS: "attention decode",
        PASSES: "passes",
        COLLECTIVES: "collectives",
    }


def _reasons(engine: Engine, fit: str, kind: str) -> Iterator[float]:
    """Yield the spreads of a kind of kernel."""
    own = engine.kernels
    if fit in own.errors:
        yield MEAN * float(own.errors[fit][0])
    if own.origin != own.machine.name or fit not in own.errors:
        yield assumed("machine links" if kind == COLLECTIVES else "machine")
    boxes = kind == PRODUCTS and "products" not in own.machine.kernels
    yield assumed("box" if boxes else _UNSAID[kind])


_UNSAID = {
    PRODUCTS: "clock",
    PROMPTS: "unknown attention",
    STEPS: "unknown attention",
    PASSES: "unknown fusion",
    COLLECTIVES: "overlap",
}
"""What nobody says of an engine's software, as of a training stack that is not named; of products
the clock, where its box's own kernels were measured."""


def has_states(engine: Engine) -> bool:
    """Return whether the engine runs recurrences, of which no kernels are on record."""
    (run,) = decode(engine).runs
    shares = map(run.at, run.divided.structure.stages)
    return any(r.quantity is Quantity.CACHE and is_state(r) for s in shares for r in s.rows)


def between(engine: Engine, figure: Callable[[dict[str, float]], float]) -> Span:
    """Return the ends of a figure, which is made of how slow each kind of kernel is."""
    kinds = spreads(engine)
    moved = {
        kind: [figure({kind: math.exp(sign * QUANTILE * size)}) for sign in (-1, 1)]
        for kind, size in kinds.items()
    }
    low, high, above = ends(figure({}), moved.values(), assumed("step"))
    return Span(low, high, max(zip(above, kinds, strict=False))[1])


def span(plan: Plan, figure: Callable[[Plan], float]) -> Span:
    """Return the ends that a figure of a plan lies between."""
    return between(plan.sized.engine, lambda slow: figure(plan.slowed(slow) if slow else plan))
