"""Plans: which engines serve a load best on so many GPUs, within the targets asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from symbolic_cost.checking import checked
from symbolic_cost.errors import (
    InputError,
    NothingFitsError,
    Problems,
    SymbolicCostError,
    looked_up,
    quote,
)
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.models.count import ROUTED
from symbolic_cost.models.inference import Declare
from symbolic_cost.models.shape import TRAINING
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.records import dataclass
from symbolic_cost.serving.choice import CHUNKS, Choice, Miss, MissedError, Plan
from symbolic_cost.serving.declared import NEXT, declaring, predicting
from symbolic_cost.serving.disaggregated import pairs
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.engine_numbers import Sized
from symbolic_cost.serving.load import MOST_TOKENS, Draft, Load, Targets
from symbolic_cost.serving.precisions import Reading
from symbolic_cost.serving.strategies import refuse_symbols, strategies, strategy_name
from symbolic_cost.symbols import exact
from symbolic_cost.systems.kernel_records import kernels
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.records import find_machine


@dataclass(frozen=True)
class Plans:
    """What was looked at.

    Args:
        best: the best of every engine, most tokens per second and GPU first.
        refused: why strategies were left out, in words, by strategy.
        every: all plans of every number of sequences, for a front.
    """

    best: tuple[Plan, ...]
    refused: Mapping[str, str]
    every: tuple[Plan, ...] = ()


@checked
def serve_plan(
    model: str,
    system: str | Machine,
    gpus: int,
    *,
    prompt: int,
    answer: int,
    rate: float | None = None,
    ttft: float | None = None,
    itl: float | None = None,
    strategy: str = "",
    weights: str = "bf16",
    cache: str = "bf16",
    split: bool = False,
    prefill_strategy: str = "",
    chunk: int | str = "best",
    shared_prefix: int = 0,
    prefix_reading: str = "each",
    draft: int = 0,
    acceptance: float = 0.0,
    draft_model: str = "",
) -> Plans:
    """Return the engines that serve a load best.

    Throughput, TTFT and ITL are closed forms of the number of sequences, their context and the
    chunk (`serving.steady`), of times derived from the model for every pass (`serving.passes`).

    Args:
        model: name, or path of a config.json.
        system: machine whose kernels are on record, or like one of these.
        gpus: that may be used.
        prompt: tokens of a prompt.
        answer: tokens of an answer.
        rate: requests per second; as many as possible where none is given.
        ttft: time to the first token at most [s].
        itl: time between tokens of a sequence at most [s].
        strategy: of one engine; every sensible one where none is given.
        weights: precision of weights: bf16, fp16, fp8, int8 or int4, or as "stored" by a
            configuration.
        cache: precision of keys and values: bf16, fp16 or fp8; states have 16 bits.
        split: whether engines that prefill may stand apart from those that decode.
        prefill_strategy: of one engine that prefills apart; as `strategy` where none is given.
        chunk: prompt tokens that a decode step holds at most, "none" for whole prompts between
            steps, "best" for the best of both.
        shared_prefix: tokens at the start of every prompt that all share: cached once per engine.
        prefix_reading: "each" where every sequence reads them, "cascade" where one kernel does.
        draft: tokens that are drafted per step, and checked by the next.
        acceptance: share of drafted tokens that is accepted, each alike.
        draft_model: that drafts them on the same ranks, "mtp" for one more block of the model;
            free of time where none is given.

    Raises:
        InputError: every option that is refused; or `NothingFitsError`, where nothing serves: what
            is nearest, and why.

    >>> best = serve_plan("llama-3-8b", "h100", 1, prompt=500, answer=100, strategy="tp=1").best[0]
    >>> best.binds, best.chunk, round(best.itl, 2)  # s
    ('memory', 8192, 0.13)
    """
    problems = Problems()
    if not 1 <= gpus <= _MOST_GPUS:
        problems.texts.append(f"gpus = {gpus}: an integer from 1 to {_MOST_GPUS} is accepted")
    machine = problems.attempt(find_machine, system) if isinstance(system, str) else system
    if machine is not None:
        problems.attempt(kernels, machine)
    drafts = problems.attempt(Draft, draft, acceptance, draft_model)
    yielded = getattr(drafts, "yielded", 1.0)
    load = problems.attempt(Load, prompt, answer, shared_prefix, yielded)
    wanted = problems.attempt(Targets, rate, ttft, itl)
    reading = problems.attempt(looked_up, "prefix_reading", prefix_reading, _READINGS)
    if reading is Reading.CASCADE and not shared_prefix:
        problems.texts.append("prefix_reading = 'cascade': say how long the shared prefix is")
    chunks = problems.attempt(_chunks, chunk)
    if prefill_strategy and not split:
        problems.texts.append("prefill_strategy: engines that prefill stand apart: ask for split")
    if split and gpus == 1:
        problems.texts.append("split: engines that stand apart take 2 GPUs or more")
    chosen = problems.attempt(_strategy, strategy) if strategy else None
    first = problems.attempt(_strategy, prefill_strategy) if prefill_strategy else None
    if first is not None and split and first.ranks >= gpus > 1:
        said = f"prefill_strategy {first}: {first.ranks} of {gpus} GPUs leave none that decodes"
        problems.texts.append(said)
    declared = problems.attempt(declaring, model)
    drafting = problems.attempt(_drafting, model, draft_model) if draft_model and declared else None
    if not problems.texts:
        problems.attempt(_refuse_too_long, declared[0](TRAINING), load)
    problems.refuse()
    shared = {"weights": weights, "cache": cache, "shared": shared_prefix}
    engine = _engine(model, declared, machine, drafted=draft, reading=reading, **shared)
    small = None
    if drafting:
        borrows = "@" if draft_model == NEXT else ""
        small = _engine(draft_model, drafting, machine, borrows=borrows, **shared)
    candidates = [chosen] if chosen else [*strategies(engine.declare, machine, gpus)]
    asked = Choice(gpus, load, wanted, chunks)
    apart = ([first] if first else candidates) if split else []
    return _best(engine, small, candidates, asked, apart)


_MOST_GPUS = 65536
_READINGS = {one.value: one for one in Reading}


def _chunks(chunk: int | str) -> Sequence[int | None]:
    if chunk == "best":
        return CHUNKS
    if chunk == "none":
        return (None,)
    if isinstance(chunk, int) and 1 <= chunk <= MOST_TOKENS:
        return (chunk,)
    accepts = f"an integer from 1 to {MOST_TOKENS}, 'best' or 'none' is accepted"
    raise InputError(f"chunk = {quote(chunk)}: {accepts}")


def _refuse_too_long(model: Model, load: Load) -> None:
    """Refuse sequences that are longer than a model's table of positions."""
    learned = [
        model.bindings.get(str(size), size)
        for part in model.parts
        for op in part.ops
        if op.path.endswith("position") and isinstance(op, Lookup)
        for size in (model.sizes[op.weights[0].axes[0]],)
    ]
    short = [n for n in learned if exact(n).is_Integer and int(n) < load.longest]
    if short:
        raise InputError(
            f"input + output = {load.longest}: {model.name} learned {short[0]} positions, and has "
            "none for later tokens"
        )


def _strategy(text: str) -> Strategy:
    """Read a strategy whose degrees are numbers."""
    strategy = parse_strategy(text)
    refuse_symbols(strategy)
    return strategy


Declared = tuple[Declare, Declare | None]
"""What declares a model, and how it decodes if otherwise."""


def _drafting(model: str, draft: str) -> Declared:
    """Return what declares the model that drafts."""
    return predicting(model) if draft == NEXT else declaring(draft)


def _engine(name: str, declared: Declared, machine: Machine, **options: Any) -> Engine:  # noqa: ANN401 - as of Engine
    """Return an engine of one rank."""
    return Engine(name, declared[0], Strategy(), machine, latent=declared[1], **options)


def _best(
    engine: Engine,
    small: Engine | None,
    candidates: Sequence[Strategy],
    asked: Choice,
    apart: Sequence[Strategy],
) -> Plans:
    """Return the best plan of every strategy."""
    looked = _Looked()

    def sized(one: Strategy) -> Sized:
        placed = Setup(engine.declare(TRAINING), one).strategy
        drafting = None if small is None else Sized(replace(small, strategy=_beside(placed, small)))
        return Sized(replace(engine, strategy=placed), drafting)

    known: dict[str, Sized] = {}
    for one in (*candidates, *(first for first in apart if first not in candidates)):
        with looked.at(strategy_name(one)):
            known[strategy_name(one)] = sized(one)
    for one in candidates:
        if strategy_name(one) in known:
            with looked.at(strategy_name(one)):
                looked.plans += asked.plans(known[strategy_name(one)])
    firsts = [known[strategy_name(one)] for one in apart if strategy_name(one) in known]
    for one in candidates if apart else ():
        if strategy_name(one) in known:
            _look_apart(looked, asked, firsts, known[strategy_name(one)])
    if not looked.plans:
        where = f"{engine.name} on {asked.gpus} of {engine.machine.name}"
        error = NothingFitsError if looked.runs else InputError
        raise error(_nothing(where, looked.refused, looked.misses))
    best: dict[object, Plan] = {}
    for plan in sorted(looked.plans, key=lambda plan: (-round(plan.tokens, 6), plan.itl)):
        best.setdefault((strategy_name(plan.sized.engine.strategy), plan.apart is None), plan)
    return Plans(tuple(best.values()), looked.refused, tuple(looked.plans))


def _beside(strategy: Strategy, small: Engine) -> Strategy:
    """Return how a small model runs on the ranks of another.

    A block of that model stands behind its last stage, on the ranks of one; what has no experts
    has copies on the ranks that divide these.
    """
    routed = small.declare(TRAINING).placed(ROUTED)
    left = {"pp": not small.borrows, "ep": bool(routed)}
    degrees = {name: d for name, d in strategy.degrees.items() if left.get(name, True)}
    return replace(strategy, degrees=degrees)


def _look_apart(looked: _Looked, asked: Choice, firsts: Sequence[Sized], then: Sized) -> None:
    """Add the plans of an engine that decodes beside others that prefill."""
    own = strategy_name(then.engine.strategy)
    if own in looked.refused and own not in looked.misses:  # it does not fit
        return
    name = f"{own}, prompts apart"
    with looked.at(name):
        listed = [*pairs(asked, firsts, then)]
        before = len(looked.plans)
        for pair in listed:
            with looked.at(name):
                looked.plans += pair.plans()
        if len(looked.plans) > before:
            looked.refused.pop(name, None)


class _Looked:
    """Plans, and why there are no others.

    Attributes:
        misses: what came nearest to the targets, by name.
        runs: whether any could run, on ranks that hold more or are faster.
    """

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.refused: dict[str, str] = {}
        self.misses: dict[str, Miss] = {}
        self.runs = False

    @contextmanager
    def at(self, name: str) -> Iterator[None]:
        """Take down why a strategy is left out."""
        try:
            yield
        except MissedError as missed:
            nearest = self.misses.setdefault(name, missed.nearest)
            if missed.nearest.excess <= nearest.excess:
                self.misses[name] = missed.nearest
                self.refused[name] = str(missed)
            self.runs = True
        except InputError as error:
            self.refused[name] = "; ".join(error.problems)
            self.runs = self.runs or isinstance(error, NothingFitsError)
        except SymbolicCostError as error:
            self.refused[name] = str(error)


def _nothing(what: str, refused: Mapping[str, str], misses: Mapping[str, Miss]) -> list[str]:
    """Return why nothing serves, what comes nearest first."""
    order = sorted(misses, key=lambda name: misses[name].excess)
    first = [f"nothing serves {what}"]
    if order:
        nearest = misses[order[0]]
        first.append(
            f"nearest, at {nearest.excess:.2f} times its target: {order[0]}: {nearest.words}"
        )
    return first + [
        f"{name}: {reason}" for name, reason in refused.items() if name not in order[:1]
    ]
