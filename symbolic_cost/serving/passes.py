"""Forward passes of an engine: prompts, decode steps, and steps that hold both.

A pass is derived as a training step is: the model is declared for the shape, divided over the
ranks, and its forward rows are priced, here by kind of kernel (`serving.pricing`). A prompt needs
the last token's logits alone, so the parts behind the blocks run on one token per sequence.

A pass of two shapes is one run of the model on the tokens of both. Every product reads its weights
once: for example a decode step of 64 sequences beside 448 tokens of a prompt is, to each layer, one
product with 512 rows. Attention and recurrences stay apart, each over its own cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from sympy import Add, Expr, Integer, ceiling

from symbolic_cost.axes import At, Role
from symbolic_cost.conditions import Condition, check
from symbolic_cost.extrema import Max
from symbolic_cost.ledger import Quantity, Row
from symbolic_cost.models.count import QUEUE, ROUTED
from symbolic_cost.models.kernels import Attention, Running, running
from symbolic_cost.models.quantized import as_stored as held_as_stored
from symbolic_cost.models.shape import DECODE, TRAINING, Shape
from symbolic_cost.numeric.binding import check_values
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.layout import UNEVEN
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import Divided
from symbolic_cost.program.evaluator import Evaluator
from symbolic_cost.records import dataclass
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.precisions import CACHES, STORED, VALUE
from symbolic_cost.serving.pricing import KINDS, Priced
from symbolic_cost.serving.share import Share, is_state
from symbolic_cost.symbols import b_p, c_p
from symbolic_cost.systems.chain import Chain
from symbolic_cost.systems.definitions import Definitions

ResultT = TypeVar("ResultT")

PASS = "pass"  # noqa: S105 - a pass of a model
"""The definition of the whole pass."""
_OPEN = ("b", "l", "c", "b_p", "c_p")
"""Symbols of shapes."""


@dataclass(frozen=True)
class Run:
    """A shape on the ranks.

    Args:
        shape: of the tokens.
        divided: the model on all of them.
        ends: the model on the last token of every prompt; None for a decode step.
    """

    shape: Shape
    divided: Divided
    ends: Divided | None

    def at(self, stage: Stage) -> Share:
        """Return what the ranks of a stage do."""
        rows = self.divided.table(stage).rows
        behind = () if self.ends is None else _behind(self.divided.split_model)
        if self.ends is not None:
            ends = self.ends.table(stage).rows
            rows = (*(r for r in rows if r.part not in behind), *_of(ends, behind))
        scored = tuple(row for row in rows if row.kind != "cross_entropy")
        return Share(self.shape, self.divided.share(stage).parts, scored, self.divided)


@dataclass(frozen=True)
class Pass:
    """One forward pass of an engine."""

    engine: Engine
    shapes: tuple[Shape, ...]

    @property
    def chain(self) -> Chain:
        """The pass as definitions in symbols of its shapes: times by kind, and `PASS` [s]."""
        return self.general.bound(self.numbers)

    @property
    def general(self) -> Chain:
        """The same with symbols for sizes and degrees as well; engines of a structure share it."""
        return self._once("pass", self._derived)

    @cached_property
    def seconds(self) -> Evaluator:
        """The times by kind [s], of numbers of the shapes.

        Raises:
            InputError: everything of the model that the degrees do not divide.
        """
        general = self.general
        check(general.conditions, check_values(self.numbers))
        program = self._once("program", lambda: general.compiled(*KINDS).program)
        return Evaluator(program.bound(self.numbers))

    def _derived(self) -> Chain:
        to = Definitions()
        terms: dict[str, list[Expr]] = {kind: [] for kind in KINDS}
        structure = self.runs[0].divided.structure
        for stage in structure.stages:
            shares = [run.at(stage) for run in self.runs]
            for kind, took in Priced(self.engine, shares, to).stage(stage).items():
                terms[kind].append(took)
        # As many microbatches as stages are in flight, so that the slowest sets the pace of all.
        stages = structure.strategy.degree("pp")
        paces = {
            kind: took[0] if len(took) == 1 else stages * Max(*took) for kind, took in terms.items()
        }
        to.keep(PASS, Add(*(to.keep(kind, took) for kind, took in paces.items())))
        return Chain(to.definitions, tuple(self._conditions()))

    def _conditions(self) -> Iterator[Condition]:
        """Yield what the numbers of the model and of the degrees must meet."""
        for run in self.runs:
            for stage in run.divided.structure.stages:
                yield from run.divided.costs(stage).conditions

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Numbers of the model and of the degrees; those of the shapes stay symbols."""
        own = [self.engine.declare, self.engine.way(self.shapes[0])]
        known = {name: n for each in own for name, n in each(self.shapes[0]).bindings.items()}
        known |= self.engine.strategy.bindings()
        return {name: number for name, number in known.items() if name not in _OPEN}

    @cached_property
    def _strategy(self) -> Strategy:
        """The strategy with a symbol for every degree of which only the class matters."""
        return Structure(self.engine.strategy).symbolic

    @cached_property
    def weight_bytes(self) -> Expr:
        """Weights of the fullest rank [byte]."""

        def totals() -> list[Expr]:
            held, borrows = self._divided(self.shapes[0]), self.engine.borrows
            rows = (
                (r for r in held.table(s).rows if r.quantity is Quantity.WEIGHT)
                for s in held.structure.stages
            )
            return [
                Add(*(r.total for r in own if not (borrows and r.tensor.startswith(borrows))))
                for own in rows
            ]

        return max(map(self._bound, self._once("weights", totals)), key=float)

    @cached_property
    def cache_bytes(self) -> Expr:
        """Cache and states of one rank after the pass [byte], of the sequences of one shape.

        A formula of b and l or c; that of the fullest stage where stages differ.
        """
        size = CACHES[self.engine.cache] / VALUE

        def totals() -> list[Expr]:
            (run,) = self.runs
            shares = map(run.at, run.divided.structure.stages)
            rows = ([r for r in s.rows if r.quantity is Quantity.CACHE] for s in shares)
            return [Add(*(r.total * (1 if is_state(r) else size) for r in own)) for own in rows]

        return max(map(self._bound, self._once("cache", totals)), key=_at_a_thousand)

    def _once(self, what: str, make: Callable[[], ResultT]) -> ResultT:
        """Return what is derived once for all engines of a structure."""
        known, key = self.engine.memo, (what, str(self._strategy), self.shapes)
        if key not in known:
            known[key] = make()
        result: ResultT = known[key]
        return result

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Every shape on the ranks, each beside the tokens of all."""
        tokens = Add(*(self._kernels(shape).model.work[1] for shape in self.shapes))
        return tuple(
            Run(shape, self._divided(shape, tokens), self._ends(shape, tokens))
            for shape in self.shapes
        )

    def _ends(self, shape: Shape, tokens: Expr) -> Divided | None:
        """Return the model on the last tokens of prompts; None for a decode step."""
        last = replace(shape, l=Integer(1))
        return None if shape.by_steps else self._divided(last, tokens)

    def _kernels(self, shape: Shape) -> Running:
        """Return the model on a shape as its kernels run it, on every rank."""
        engine = self.engine

        def declared() -> Running:
            model = engine.way(shape)(shape)
            stored = held_as_stored(model) if engine.weights == STORED else model
            own = running(stored, Attention.FLASH)
            return replace(
                own, model=on_every_rank(_twice(own.model, self._strategy), self._strategy)
            )

        return self._once(f"model {shape}", declared)

    def _divided(self, shape: Shape, tokens: Expr | None = None) -> Divided:
        """Return the model on the ranks, with the experts that some tokens reach, or with all."""
        own = self._kernels(shape)
        model = own.model if tokens is None else expected(own.model, tokens)
        conventions = own.executed(self.engine.conventions)
        return Divided(model, self._strategy, conventions, Pipeline(layout=UNEVEN))

    def _bound(self, expr: Expr) -> Expr:
        return expr.xreplace(
            {s: Integer(self.numbers[s.name]) for s in expr.free_symbols if s.name in self.numbers}
        )


CHUNK = Shape(b_p, c=c_p)
"""Part of prompts: l more tokens for each of some, whose earlier tokens are in the cache."""


def prefill(engine: Engine) -> Pass:
    """Return the pass over whole prompts: b of l tokens each."""
    return Pass(engine, (TRAINING,))


def chunk(engine: Engine) -> Pass:
    """Return the pass over part of prompts: l more tokens of each of b_p, after c_p cached."""
    return Pass(engine, (CHUNK,))


def decode(engine: Engine) -> Pass:
    """Return a decode step: b sequences, c tokens of each in the cache.

    Every sequence has one new token, and those that are checked where a draft is.
    """
    return Pass(engine, (_step(engine),))


def mixed(engine: Engine) -> Pass:
    """Return a decode step that holds part of prompts as well: symbols of both."""
    return Pass(engine, (_step(engine), CHUNK))


def _step(engine: Engine) -> Shape:
    return replace(DECODE, l=Integer(1 + engine.drafted))


def expected(model: Model, tokens: Expr | None = None) -> Model:
    """Return a model with as many experts as tokens choose in the mean, each by chance.

    n tokens that choose k of E each reach E (1 - (1 - k/E)^n): 30.5 of 256 for 4 tokens with 8.
    """
    experts, queue = model.placed(ROUTED), model.placed(QUEUE)
    if not experts or not queue:
        return model
    chosen_by_one, own = model.size(At(Role.SLOT)), model.work[1]
    every = model.size(ROUTED)
    chosen = every * (1 - (1 - chosen_by_one / every) ** (own if tokens is None else tokens))
    per_expert = own * chosen_by_one / (model.size(At(Role.BATCH, ("routed",))) * chosen)
    queues = dict.fromkeys((axis.name for axis in queue), per_expert)
    return replace(model, sizes={**model.sizes, experts[0].name: chosen, **queues})


def _twice(model: Model, strategy: Strategy) -> Model:
    """Return a model of whose experts some are held twice where the ranks do not divide them.

    For example 256 experts on 144 ranks: two on each, 32 of them a second time.
    """
    experts = model.placed(ROUTED)
    if not experts or "ep" not in strategy:
        return model
    ranks = strategy.degree("ep")
    held = ranks * ceiling(model.size(ROUTED) / ranks)
    return replace(model, sizes={**model.sizes, experts[0].name: held})


def _behind(model: Model) -> tuple[str, ...]:
    """Return the paths of the parts behind the last block."""
    last = max(place for place, part in enumerate(model.parts) if part.is_block)
    return tuple(part.path for part in model.parts[last + 1 :])


def _of(rows: Iterable[Row], parts: Iterable[str]) -> tuple[Row, ...]:
    """Return the rows of some parts."""
    wanted = set(parts)
    return tuple(row for row in rows if row.part in wanted)


def _at_a_thousand(total: Expr) -> float:
    """Return what a formula comes to where every symbol is 1000, to tell stages apart."""
    return float(total.xreplace(dict.fromkeys(total.free_symbols, Integer(1000))))
