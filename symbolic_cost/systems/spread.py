"""How far off a time may be: low and high from the spread of every kind of work.

Each kind has a relative spread: what its kernels' fit left over, what is only assumed of the stack,
and whether the kernels are another machine's. Kinds are independent of each other, and one kind is
off alike wherever it occurs: the step's logarithm moves by what each would move it, and these add
in squares. Boxes of one name differ, by limits of power, cooling and drivers: until a cluster is
calibrated, by its steps or by its own kernels, all of its computing is off alike.

For example a step of 10 s with products of 7 s known to 10 % and passes of 2 s known to 30 %:
7 and 6 % of it make 9.2 %, and four of five steps lie within 1.28 of these, about 8.9 to 11.3 s.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from symbolic_cost.program.lowering import lowered
from symbolic_cost.program.program import Program
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass
from symbolic_cost.systems.chain import Chain
from symbolic_cost.systems.kernels import Kernels
from symbolic_cost.systems.machines import CLUSTER
from symbolic_cost.systems.pricing import (
    ATTENTION,
    HOST,
    INSIDE,
    KINDS,
    OF_CLUSTER,
    OUTSIDE,
    PASSING,
    PRODUCTS,
    SLOWNESS,
    Rates,
)

QUANTILE = 1.2816
"""Spreads within which four of five normal numbers lie."""

COMPUTING = "computing"
"""What boxes of one name differ in: products, attention and passes."""

STEP = "the step"
"""What no kind of work is blamed for: stragglers, uneven stages, the input."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """What one kind of work leaves open.

    Args:
        kind: of work, or the efficiency of a cluster that several share.
        spread: standard deviation of the logarithm of its time.
        reasons: of the spread, the largest first.
        moves: by kind of work, what one spread adds to the logarithm of its time, where not the
            kind alone moves.
    """

    kind: str
    spread: float
    reasons: tuple[str, ...]
    moves: Mapping[str, float] = field(default_factory=dict)

    def moved(self, values: Mapping[str, float], spreads: float) -> Mapping[str, float]:
        """Return the slownesses when it is off by so many spreads."""
        sizes = self.moves or {self.kind: self.spread}
        names = {f"{SLOWNESS}.{kind}": size for kind, size in sizes.items()}
        return {
            name: values[name] * math.exp(spreads * size)
            for name, size in names.items()
            if name in values
        }


@dataclass(frozen=True, slots=True)
class Interval:
    """Four of five steps lie between.

    Args:
        low: end [s].
        high: end [s].
        shares: part of the squared width by kind of work, the largest first.
    """

    low: float
    high: float
    shares: tuple[tuple[Doubt, float], ...]

    @property
    def most(self) -> str:
        """The kind of work that leaves most open, and why."""
        doubt, share = self.shares[0]
        return f"{doubt.kind} ({share:.0%} of the interval): {doubt.reasons[0]}"


def doubts(rates: Rates) -> tuple[Doubt, ...]:
    """Return what every kind of work leaves open under a stack: less on a calibrated cluster.

    Steps under other software than that of the job narrow nothing.
    """
    cluster = rates.kernels.machine.cluster
    if rates.software in cluster.get("software", ()):
        return of_cluster(cluster)
    every = [Doubt(kind, *_joined(_reasons(kind, rates))) for kind in KINDS]
    rest = Doubt(STEP, assumed("step"), ("steps of one cluster differ",))
    return (*every, *_boxes(rates.kernels), rest)


def _boxes(own: Kernels) -> Iterator[Doubt]:
    """Yield what boxes of one name leave open, of which the kernels of another one were measured.

    The efficiencies of a record alone are those of training, which boxes are part of.
    """
    if own.errors and PRODUCTS not in own.machine.kernels:
        size, kinds = assumed("box"), OF_CLUSTER[COMPUTING]
        told = "boxes of one name differ in power, cooling and drivers; `calibrate` tells"
        yield Doubt(COMPUTING, size, (told,), dict.fromkeys(kinds, size))


def of_cluster(cluster: Mapping[str, Any]) -> tuple[Doubt, ...]:
    """Return what measured steps of a cluster leave open.

    What they leave of its numbers together is the sum of as many independent doubts, of which each
    moves its own number and those that stand behind it.

    Args:
        cluster: runs; step, the spread of one that its numbers leave; open, by number what every
            doubt adds to its logarithm.
    """
    told = f"what {cluster['runs']} measured steps of the cluster leave open"
    every = []
    for place, name in enumerate(CLUSTER):
        sizes = {one: cluster["open"][one][place] for one in CLUSTER}
        moves = {kind: size for one, size in sizes.items() for kind in OF_CLUSTER[one]}
        every.append(Doubt(name, math.hypot(*sizes.values()), (told,), moves))
    rest = f"what {len(CLUSTER)} numbers leave of {cluster['runs']} measured steps"
    return (*every, Doubt(STEP, cluster["step"], (rest,)))


def interval(chain: Chain, values: Mapping[str, object], rates: Rates) -> Interval:
    """Return the interval of a step."""
    run, fitted = opened(chain)
    fixed = {name: float(values[name]) for name in run.inputs if name not in fitted}  # type: ignore[arg-type]  # exact numbers
    return within(run, fixed, fitted, doubts(rates))


def opened(chain: Chain) -> tuple[Program, Mapping[str, float]]:
    """Return a step whose slownesses are inputs, and what the chain has for these."""
    names = [f"{SLOWNESS}.{kind}" for kind in KINDS]
    needed = chain.dependencies(["step"]).definitions
    free = {name: expr for name, expr in needed.items() if name not in names}
    fitted = {name: float(expr) for name, expr in needed.items() if name in names}
    return lowered(free, ("step",), free=names), fitted


def within(
    run: Program, fixed: Mapping[str, float], fitted: Mapping[str, float], known: tuple[Doubt, ...]
) -> Interval:
    """Return the interval of a step that is opened."""
    values = {name: float(number) for name, number in {**fixed, **fitted}.items()}
    step = run.floats(values)["step"]
    pairs = [
        [
            run.floats({**values, **doubt.moved(values, spreads)})["step"]
            for spreads in (-QUANTILE, QUANTILE)
        ]
        for doubt in known[:-1]
    ]
    low, high, above = ends(step, pairs, known[-1].spread)
    total = sum(up**2 for up in above)
    shares = zip(known, (up**2 / total for up in above), strict=True)
    return Interval(low, high, tuple(sorted(shares, key=lambda pair: -pair[1])))


def ends(
    value: float, moved: Iterable[Sequence[float]], spread: float
) -> tuple[float, float, list[float]]:
    """Return the ends that four of five values lie between, and how far above each doubt reaches.

    Doubts are of logarithms, as what they reach above is, and add in squares: no end is negative.

    Args:
        value: expected.
        moved: the value where each doubt is off by `QUANTILE` spreads, either way.
        spread: of what no doubt is blamed for.
    """
    off = QUANTILE * spread
    logs = [[math.log(one / value) for one in pair] for pair in moved]
    below, above = [*map(min, logs), -off], [*map(max, logs), off]
    return value * math.exp(-math.hypot(*below)), value * math.exp(math.hypot(*above)), above


MEAN = math.sqrt(math.pi / 2)
"""Standard deviation of normal numbers of mean size one."""

_FITS = {ATTENTION: "attention prefill", PASSING: "passes", INSIDE: "collectives"}

_SEVERAL = {PRODUCTS: 4, PASSING: 4}
"""Kernels of different shape in a block, at least, whose errors are independent: a sum of four is
off by half as much as each. Measured means of one weight vary by 0.07 on a100-80gb, single products
by 0.10; those of one kind of pass by 0.03, single ones by 0.10."""

_ASSUMED = {
    PRODUCTS: ("clock", "the clock that lasts in training"),
    ATTENTION: ("attention", "the generation of attention"),
    PASSING: ("fusion", "which passes over memory run together"),
    INSIDE: ("overlap", "what of a communication is hidden"),
    OUTSIDE: ("outer", "the share of outer links that is reached"),
    HOST: ("host", "how fast the host issues ops"),
}
"""What is assumed of a kind of work: the key of its spread, and words."""


def _reasons(kind: str, rates: Rates) -> Iterator[tuple[float, str]]:
    """Yield the spreads of a kind of work, and their reasons."""
    own, errors = rates.kernels, rates.kernels.errors
    name = f"products {own.measured(rates.precision)}" if kind == PRODUCTS else _FITS.get(kind)
    if name is not None and name in errors:
        error = float(errors[name][0]) / math.sqrt(_SEVERAL.get(kind, 1))
        yield MEAN * error, f"what the fit to kernels of {own.origin} left over"
        if kind == PRODUCTS and rates.precision == "fp4":
            yield (
                assumed("machine"),
                "no products in fp4 on record: those in fp8 instead",
            )
    key, words = _ASSUMED[kind]
    said = rates.stack.sources.get(key, "assumed")
    far = "unknown " if said == "assumed" and key in rates.stack.sources else ""
    if key != "clock" or PRODUCTS in own.machine.kernels:  # of other boxes the clock is one cause
        yield assumed(f"{far}{key}"), f"{words} (assumed)" if far else words
    if own.origin != own.machine.name or not errors:
        chips = package_data("systems/kernels.toml")["chips"].get(own.origin, ())
        other = "machine links" if kind == INSIDE else "machine"
        far = "chip" if own.machine.name in chips else other
        yield assumed(far if errors else "record"), own.note


def assumed(key: str) -> float:
    """Return a spread that is assumed: of a stack, or of another machine's kernels."""
    return float(package_data("systems/stacks.toml")["spread"][key])


def _joined(reasons: Iterator[tuple[float, str]]) -> tuple[float, tuple[str, ...]]:
    """Return a spread whose parts are independent, and their reasons, the largest first."""
    listed = sorted(reasons, reverse=True)
    return math.sqrt(sum(size**2 for size, _ in listed)), tuple(words for _, words in listed)
