"""What a search may choose: options that are structure, and numbers of every structure.

A candidate is a structure (which strategies split anything, ZeRO stage, schedule, recomputation)
and its numbers (degrees, microbatch, chunks). There are few of the first and many of the second:
512 GPUs and a batch of 512 make some hundred structures, each with up to a few hundred numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from math import isqrt
from typing import NamedTuple

from symbolic_cost.errors import InputError
from symbolic_cost.explore.choices import (
    CONTEXT,
    DATA_AXES,
    DEGREES,
    FLAGS,
    OPEN,
    UNSAID,
    Way,
    common,
    switches,
    ways,
)
from symbolic_cost.explore.space import Space
from symbolic_cost.explore.subject import Facts
from symbolic_cost.lazy import Recent
from symbolic_cost.records import dataclass

MOST_NUMBERS = 10**6
"""No more degrees and microbatches are looked at, each with every option."""

_INTERLEAVED = "interleaved"

_TWO, _MANY = 2, 4

_CHUNKS = ("one", "several")

_LAYOUTS = ("even", "uneven")


class Numbers(NamedTuple):
    """The numbers of one candidate.

    Args:
        cp: ranks that split positions, however they do.
        ep: expert-parallel ranks, inside dp.
        b: sequences of a microbatch and rank.
    """

    tp: int
    cp: int
    pp: int
    ep: int
    dp: int
    b: int
    M: int
    v: int = 1

    def bindings(self) -> dict[str, int]:
        """Return the numbers of a job besides degrees."""
        return {"b": self.b, "M": self.M} | ({"v": self.v} if self.v > 1 else {})


@dataclass(frozen=True)
class Shape:
    """What numbers have in common that share their structures.

    Args:
        degrees: a number of each degree's class, by name of the strategy.
        chunks: of a stage, "one" or "several".
        layout: "uneven" where stages hold unlike numbers of blocks.
    """

    degrees: tuple[tuple[str, int], ...]
    chunks: str = "one"
    layout: str = "even"

    @property
    def names(self) -> frozenset[str]:
        """The strategies that split something."""
        return frozenset(name for name, _ in self.degrees)


@dataclass(frozen=True)
class Structured:
    """One structure of a space: a shape, and the options that it is run with.

    Args:
        positions: "sp" where tensor-parallel ranks split those of the residual, else empty.
        zero: level of ZeRO.
        options: recompute, schedule, layout and those of `switches` and of a way, as of a job;
            empty where nothing is said, the flag of what is on or off, and OPEN for what is a
            number of the candidates.
    """

    shape: Shape
    positions: str
    zero: int
    options: tuple[tuple[str, str], ...]

    @property
    def job_options(self) -> dict[str, str | bool]:
        """The options by the names of a job."""
        said = (FLAGS.get(text, (name, text)) for name, text in self.options if text)
        return {name: text for name, text in said if text != OPEN}

    def run(self, way: Way) -> Structured:
        """Return the structure with nothing left open."""
        options = {**dict(self.options), **way._asdict()}
        return replace(self, options=tuple(options.items()))

    def strategy(self, numbers: Numbers | None = None) -> str:
        """Return the strategy as text, of some numbers or of those of the class."""
        words = []
        for name, degree in self.shape.degrees:
            known = "cp" if name in CONTEXT else name
            words.append(f"{name}={degree if numbers is None else getattr(numbers, known)}")
        words += [self.positions] if self.positions else []
        return ",".join(words + ([f"zero={self.zero}"] if self.zero else []))


@dataclass(frozen=True)
class Candidates:
    """Every candidate: numbers by shape, each with all structures of the shape, run in every way.

    Args:
        structures: by shape; what its ways do not have in common is open.
        ways: by shape.
        left_out: how many numbers are of no candidate, by reason.
    """

    numbers: Mapping[Shape, Sequence[Numbers]]
    structures: Mapping[Shape, Sequence[Structured]]
    ways: Mapping[Shape, Sequence[Way]]
    left_out: Mapping[str, int]

    def chosen(self, shape: Shape, structure: Structured, row: int) -> tuple[Structured, Numbers]:
        """Return the structure and the numbers of a row of candidates, ways slowest."""
        way, place = divmod(row, len(self.numbers[shape]))
        return structure.run(self.ways[shape][way]), self.numbers[shape][place]

    def rows(self, shape: Shape) -> int:
        """Return how many rows of candidates a shape has."""
        return len(self.numbers[shape]) * len(self.ways[shape])

    @property
    def count(self) -> int:
        """How many candidates there are."""
        return sum(self.rows(one) * len(self.structures[one]) for one in self.numbers)


_CANDIDATES: Recent[Candidates] = Recent(8)


class NoCandidateError(InputError):
    """What is chosen makes no candidate on so many ranks."""


def candidates(space: Space, facts: Facts) -> Candidates:
    """Return every candidate of a space for a job."""
    return _CANDIDATES.of((space, facts), lambda: _candidates(space, facts))


def _candidates(space: Space, facts: Facts) -> Candidates:
    left_out: Counter[str] = Counter()
    numbers = _numbers(space, facts, left_out)
    every = {shape: ways(shape.names, _words(space)) for shape in numbers}
    run = {shape: _possible(own, facts) for shape, own in every.items()}
    structures = {shape: tuple(_structures(space, shape, common(run[shape]))) for shape in numbers}
    for shape, own in every.items():
        rows = len(structures[shape]) * len(numbers[shape])
        left_out[facts.unhosted] += (len(own) - len(run[shape])) * rows
    return Candidates(numbers, structures, run, +left_out)


def _numbers(space: Space, facts: Facts, left_out: Counter[str]) -> dict[Shape, list[Numbers]]:
    """Return what divides the ranks and the sequences of a step, by shape; count what does not."""
    numbers: dict[Shape, list[Numbers]] = {}
    meshes = count = 0
    for tp, cp, pp, ep, dp in _meshes(space, experts=bool(facts.experts)):
        meshes += 1
        if space.global_batch % dp:
            left_out["the global batch is not divisible by dp"] += 1
            continue
        share = space.global_batch // dp
        sequences = _among(space.b, share)
        apart = len(space.b or sequences) - len(sequences)
        left_out["the global batch is not divisible by b and dp"] += apart
        for v in _chunks(space, pp, facts.blocks):
            uneven = pp > 1 and facts.blocks is not None and facts.blocks % (pp * v) != 0
            listed = [Numbers(tp, cp, pp, ep, dp, b, share // b, v) for b in sequences]
            for context in space.context if cp > 1 else ("cp",):
                degrees = _classes(facts, {"tp": tp, context: cp, "pp": pp, "dp": dp, "ep": ep})
                shape = Shape(degrees, _CHUNKS[v > 1], _LAYOUTS[uneven])
                numbers.setdefault(shape, []).extend(listed)
            count += len(listed)
            if count > MOST_NUMBERS:
                raise InputError(
                    f"more than {MOST_NUMBERS} degrees and microbatches of {space.gpus} ranks: "
                    "choose some, as in tp=1,2,4,8"
                )
    if not meshes:
        raise NoCandidateError(
            f"no degrees make {space.gpus} ranks: tp, pp, dp and cp must multiply to them"
        )
    found = {shape: listed for shape, listed in numbers.items() if listed}
    if not found:
        raise NoCandidateError(
            f"no candidate on {space.gpus} ranks: "
            + ("; ".join(+left_out) or "the model has fewer blocks than stages")
        )
    return found


def _possible(run: tuple[Way, ...], facts: Facts) -> tuple[Way, ...]:
    """Return the ways that a machine allows: without a link to the host, no offloading.

    Where all of them offload, the model says why it refuses them.
    """
    resident = tuple(way for way in run if not way.offload) if facts.unhosted else run
    return resident or run


def _classes(facts: Facts, degrees: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return degrees that stand for all of their class, those of one rank left out.

    See `Structure`. Ranks of tp that are a multiple of the key/value heads share them. Where layers
    have unlike numbers of these, each number of ranks is a class: it says which of them are shared.
    """
    classes = {name: _TWO for name, degree in degrees.items() if degree > 1}
    if degrees["pp"] > _TWO:
        classes["pp"] = _MANY
    if "ep" in classes:
        classes["dp"] = _TWO if degrees["ep"] == degrees["dp"] else _MANY
    if facts.heads and degrees["tp"] > facts.heads[0] and degrees["tp"] % facts.heads[0] == 0:
        classes["tp"] = degrees["tp"] if len(facts.heads) > 1 else _TWO * facts.heads[0]
    return tuple((name, classes[name]) for name in DEGREES if name in classes)


def _meshes(space: Space, *, experts: bool) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield tp, cp, pp, ep and dp that make the ranks."""
    for tp in _among(space.tp, space.gpus):
        for cp in _among(space.cp, space.gpus // tp):
            for pp in _among(space.pp, space.gpus // tp // cp):
                dp = space.gpus // tp // cp // pp
                if not space.dp or dp in space.dp:
                    for ep in _among(space.ep, dp) if experts else (1,):
                        yield tp, cp, pp, ep, dp


def _chunks(space: Space, pp: int, blocks: int | None) -> Iterator[int]:
    """Yield the chunks that a stage may have: one, and those of the interleaved schedule."""
    if pp > 1 and blocks is not None and blocks < pp:
        return
    if pp == 1 or set(space.schedule) - {_INTERLEAVED}:
        yield 1
    if pp > 1 and _INTERLEAVED in space.schedule:
        most = blocks // pp if blocks is not None else 1
        yield from (v for v in space.v or _divisors(most) if v > 1)


def _words(space: Space) -> dict[str, tuple[str, ...]]:
    chosen = {name: getattr(space, name) for name in UNSAID}
    return chosen | {"scattered": tuple("scattered" if on else "" for on in space.scattered)}


def _structures(space: Space, shape: Shape, way: Way) -> Iterator[Structured]:
    """Yield the structures that numbers of a shape may have."""
    schedules = [name for name in space.schedule if _CHUNKS[name == _INTERLEAVED] == shape.chunks]
    chosen = _words(space)
    for sp, zero, schedule, recompute in product(
        space.sp if "tp" in shape.names else (False,),
        (0,) if shape.names.isdisjoint(DATA_AXES) else space.zero,
        schedules if "pp" in shape.names else ("1f1b",),
        space.recompute,
    ):
        options = {"recompute": recompute, "schedule": schedule, "layout": shape.layout}
        for own in switches(shape.names, sp=sp, chosen=chosen):
            said = {**options, **way._asdict(), **own}
            yield Structured(shape, "sp" if sp else "", zero, tuple(said.items()))


def _among(chosen: tuple[int, ...], whole: int) -> tuple[int, ...]:
    divisors = _divisors(whole)
    return tuple(n for n in chosen if n in divisors) if chosen else divisors


@cache
def _divisors(whole: int) -> tuple[int, ...]:
    """Return the divisors of a number in order.

    >>> _divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    low = [n for n in range(1, isqrt(whole) + 1) if whole % n == 0]
    return tuple(dict.fromkeys(low + [whole // n for n in reversed(low)]))
