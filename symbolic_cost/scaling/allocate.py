"""Least loss for a budget in dollars, days, GPUs or energy, with the step time of a job.

The size follows from the law; what a step of that size takes follows from the job on the machine;
both are repeated until the size stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import field, fields
from functools import lru_cache

from symbolic_cost.errors import InputError, quote, refuse
from symbolic_cost.jobs.job import Job, job
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.records import dataclass
from symbolic_cost.scaling.family import Family
from symbolic_cost.scaling.law import Law
from symbolic_cost.scaling.optimum import optimum
from symbolic_cost.systems.prices import Costs, Rates
from symbolic_cost.systems.records import find_machine

DAY = 86400
BATCH_TOKENS = 2**22
"""Tokens of one step, where nothing is said."""

_ROUNDS, _STEP = 6, 8
_GUESSED = 0.4
"""Share of the peak at which the first size is chosen; the job's own takes its place."""

_RUN = {"recompute": "selective", "precision": "bf16-mixed"}
"""How the job runs."""

_NODE = 8
"""Devices that are bought together."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What may be spent; at least one of them, and days or GPUs so that there is a run.

    Args:
        days: of wall time.
        kwh: energy of the building.
    """

    usd: float | None = None
    days: float | None = None
    gpus: int | None = None
    kwh: float | None = None

    def run(self, rates: Rates) -> tuple[int, float, str]:
        """Return devices, days, and what binds.

        Raises:
            InputError: no budget, no days and no devices, or none that buys a device.
        """
        amounts = {one.name: getattr(self, one.name) for one in fields(self)}
        problems = [
            f"{name} = {value:g}: a positive number is accepted"
            for name, value in amounts.items()
            if value is not None and not 0 < value < math.inf
        ]
        if not problems and self.days is None and self.gpus is None:
            problems = ["neither days nor GPUs are given: a number of either is accepted"]
        free = self.usd is None and self.kwh is None
        if not problems and free and None in (self.days, self.gpus):
            problems = ["days and GPUs are given together, or one of them with dollars or energy"]
        refuse(problems)
        hours = rates.hours_of(self.usd, self.kwh)
        spent = "dollars" if hours == rates.hours_of(self.usd) else "energy"
        if self.days is not None and self.gpus is not None:
            asked = self.days * 24 * self.gpus
            if asked <= hours:
                return self.gpus, self.days, "days and GPUs"
            return self.gpus, hours / 24 / self.gpus, spent
        if self.gpus is not None:
            return self.gpus, hours / 24 / self.gpus, spent
        days = self.days or 0.0
        gpus = math.floor(hours / 24 / days)
        gpus -= gpus % _NODE if gpus > _NODE else 0  # whole servers, which strategies divide
        if gpus < 1:
            raise InputError(
                f"the budget buys {hours:.3g} device hours: less than one for {days:g} days"
            )
        return gpus, days, spent


@dataclass(frozen=True)
class Allocation:
    """The model to train and what comes of it.

    Args:
        constants: name of the set of the law.
        sizes: of the family's member.
        parameters: that the law counts.
        tokens: that the budget trains on.
        loss: by the law.
        days: of wall time.
        binds: what of the budget.
        step: of one step [s].
        mfu: share of the peak.
        strategy: how it runs; empty where a share of the peak was given instead of a job.
        costs: dollars, energy and carbon of the run.
        warnings: what is extrapolated or assumed.
    """

    constants: str
    sizes: dict[str, int]
    parameters: float
    tokens: float
    loss: float
    gpus: int
    days: float
    binds: str
    step: float | None
    mfu: float
    strategy: str
    costs: Costs
    warnings: tuple[str, ...] = field(default=())


def allocate(
    law: Law,
    family: Family,
    system: str,
    budget: Budget,
    rates: Rates,
    *,
    constants: str | None = None,
    strategy: str | None = None,
    mfu: float | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> Allocation:
    """Return the member of a family of least loss for a budget.

    Args:
        law: of N and D.
        family: of models; its FLOP take the place of 6ND.
        system: machine, by name or as a TOML file.
        budget: what may be spent.
        rates: what a device costs.
        constants: name of a set of the law.
        strategy: how it runs; else the fewest tensor-parallel ranks and stages that fit.
        mfu: share of the peak to be assumed, in place of a job.
        batch_tokens: of one step.

    Raises:
        InputError: every problem of the budget, or no member that fits.
    """
    gpus, days, binds = budget.run(rates)
    if mfu is not None and not 0 < mfu <= 1:
        raise InputError(f"mfu = {mfu:g}: a share above 0 and at most 1 is accepted")
    if batch_tokens < 1:
        raise InputError(f"batch_tokens = {batch_tokens}: a positive integer is accepted")
    place = _Place(system, gpus, strategy, batch_tokens)
    seconds = days * DAY
    peak = find_machine(system).peak("bf16")
    if not peak.is_number:
        raise InputError(f"machine {quote(system)} has symbols for rates: a budget needs numbers")
    spent = gpus * seconds * float(peak)

    def best(share: float) -> int:
        chosen = optimum(law, spent * share, constants, family=family)
        # A size that tensor-parallel ranks divide.
        size = chosen.member[str(family.free)]
        return max(1, round(size)) if size < _STEP else _STEP * max(1, round(size / _STEP))

    if mfu is None:
        size = _settled(best, lambda size: _timed(family, size, place).mfu)
        timed = _timed(family, size, place)
        tokens = seconds / timed.step * timed.tokens
        run = ", ".join(f"{name} {value}" for name, value in _RUN.items())
        assumed = f"the step is that of a job: b = 1, {timed.tokens} tokens, {run}"
    else:
        size, timed = best(mfu), _Timed("", 0.0, 0, mfu)
        tokens = spent * mfu / family.at(size)[1]
        assumed = f"MFU of {mfu:g} is assumed, not derived from a job"
    rest = map(rates.told, ("price", *(("power", "PUE", "carbon") if rates.power else ())))
    parameters, _ = family.at(size)
    point = {**dict.fromkeys(law.chosen, 1.0), law.chosen[0]: parameters, law.chosen[1]: tokens}
    return Allocation(
        law.constants(constants).name, family.member(size), parameters, tokens,
        float(law.at(point, constants)[law.gives]), gpus, days, binds,
        timed.step or None, timed.mfu, timed.strategy, rates.costs(gpus * seconds),
        (assumed, *filter(None, rest), *law.warnings(point, constants)),
    )  # fmt: skip


def _settled(best: Callable[[float], int], mfu: Callable[[int], float]) -> int:
    """Return the size of a share of the peak that is the size's own, or the last one tried."""
    size, seen = best(_GUESSED), set[int]()
    while size not in seen and len(seen) < _ROUNDS - 1:
        seen.add(size)
        size = best(mfu(size))
    return size


@dataclass(frozen=True, slots=True)
class _Timed:
    """A step [s] of a member, its tokens and its share of the peak."""

    strategy: str
    step: float
    tokens: int
    mfu: float


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a member runs: machine, devices, strategy if one is given, tokens of a step."""

    system: str
    gpus: int
    strategy: str | None
    batch: int


@lru_cache(64)
def _timed(family: Family, size: int, place: _Place) -> _Timed:
    """Time a member under the first strategy that fits."""
    tried = []
    if place.strategy:
        strategy = parse_strategy(place.strategy)
        if strategy.ranks != place.gpus:
            raise InputError(
                f"strategy {place.strategy} has {strategy.ranks} ranks, and {place.gpus} GPUs run: "
                f"degrees whose product is {place.gpus} are accepted"
            )
    for text in [place.strategy] if place.strategy else _strategies(place.gpus):
        run = _job(family, size, place, text)
        if not run.memory().fits:
            tried.append(text)
            continue
        answer = run.time()
        tokens = int(run.global_batch or 1) * family.member(size)["l"]
        return _Timed(text, float(answer.step), tokens, answer.mfu)
    raise InputError(
        f"a {family.name} of {family.at(size)[0]:.3g} parameters does not fit on {place.gpus} of "
        f"{place.system} under {' or '.join(tried[-3:]) or 'any strategy'}: give one that does"
    )


def _strategies(gpus: int) -> Iterator[str]:
    """Yield strategies from the least to the most divided: tensor-parallel, then stages."""
    for tensor, stages in ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 4), (8, 8), (8, 16)):
        if gpus % (tensor * stages) == 0:
            yield (
                f"tp={tensor},sp," * (tensor > 1)
                + f"pp={stages}," * (stages > 1)
                + f"dp={gpus // (tensor * stages)},zero=1"
            )


def _job(family: Family, size: int, place: _Place, strategy: str) -> Job:
    sizes = family.member(size)
    degree = parse_strategy(strategy).degree("dp")
    ranks = int(degree) if degree.is_Integer else 1
    sequences = ranks * max(1, math.ceil(place.batch / sizes["l"] / ranks))
    return job(
        family.name,
        strategy,
        {**sizes, "b": 1},
        system=place.system,
        global_batch=sequences,
        recompute=_RUN["recompute"],
        precision=_RUN["precision"],
    )
