"""An engine in numbers: the times of its passes, and what its memory takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property

from sympy import Integer

from symbolic_cost.program.evaluator import Evaluator
from symbolic_cost.records import dataclass
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.passes import Pass, chunk, decode, mixed
from symbolic_cost.serving.pricing import KINDS

USED = 0.9
"""Share of the usable memory that weights and cache take; the rest is for what passes need."""

MOST_SEQUENCES = 4096
"""Of one microbatch; servers admit fewer."""

ByKind = Mapping[str, float]
"""Times by kind of kernel [s]."""


@dataclass(frozen=True)
class Sized:
    """An engine with the times of its passes and what its memory takes.

    Args:
        drafting: a small model on the same ranks, which drafts tokens one by one.
    """

    engine: Engine
    drafting: Sized | None = None

    @cached_property
    def step(self) -> Pass:
        """A decode step."""
        return decode(self.engine)

    @cached_property
    def _prefilled(self) -> Evaluator:
        return chunk(self.engine).seconds

    @cached_property
    def _stepped(self) -> Evaluator:
        return self.step.seconds

    @cached_property
    def _mixed(self) -> Evaluator:
        return mixed(self.engine).seconds

    def prefilled(self, prompts: float, tokens: float, cached: float) -> ByKind:
        """Return the times of a pass over part of prompts [s], by kind."""
        numbers = {"b_p": prompts, "l": tokens, "c_p": cached}
        own = self._prefilled(numbers)
        return self._with(own, lambda small: small.prefilled(prompts, tokens, cached), 1)

    def stepped(self, sequences: float, context: float) -> ByKind:
        """Return the times of a decode step [s], by kind; with the tokens drafted before it."""
        own = self._stepped({"b": sequences, "c": context})
        drafted = self.engine.drafted
        return self._with(own, lambda small: small.stepped(sequences, context), drafted)

    def mixed(
        self, sequences: float, context: float, prompts: float, tokens: float, cached: float
    ) -> ByKind:
        """Return the times of a decode step that holds part of some prompts [s], by kind."""
        numbers = {"b": sequences, "c": context, "b_p": prompts, "l": tokens, "c_p": cached}

        def drafts(small: Sized) -> ByKind:
            first = small.mixed(sequences, context, prompts, tokens, cached)
            others = small.stepped(sequences, context)
            return {k: first[k] + (self.engine.drafted - 1) * others[k] for k in KINDS}

        return self._with(self._mixed(numbers), drafts, 1)

    def _with(self, own: ByKind, drafts: Callable[[Sized], ByKind], times: int) -> ByKind:
        """Return the times of a pass and of what drafts for it."""
        if self.drafting is None:
            return own
        small = drafts(self.drafting)
        return {kind: own[kind] + times * small[kind] for kind in KINDS}

    @cached_property
    def weights(self) -> float:
        """Weights of the fullest rank [byte], those of a drafting model included."""
        small = 0.0 if self.drafting is None else self.drafting.weights
        return float(self.step.weight_bytes) + small

    def cache(self, tokens: int) -> float:
        """Return the cache and states of one sequence of so many tokens on one rank [byte]."""
        if tokens == 0:
            return 0.0
        size, new = self.step.cache_bytes, 1 + self.engine.drafted
        numbers = {"b": 1, "c": tokens - new}
        own = float(size.xreplace({s: Integer(numbers[s.name]) for s in size.free_symbols}))
        return own + (0.0 if self.drafting is None else self.drafting.cache(tokens))

    def sequence_bytes(self, tokens: int) -> float:
        """Return what one sequence of so many tokens adds to the cache of a rank [byte]."""
        return self.cache(tokens - self.engine.shared)

    @cached_property
    def fixed_bytes(self) -> float:
        """What a rank holds before any sequence: weights, and the cache of a shared prefix."""
        return self.weights + self.cache(self.engine.shared)

    @cached_property
    def room(self) -> float:
        """Memory of one rank that is left for the cache [byte]."""
        return USED * float(self.engine.machine.usable.value) - self.fixed_bytes

    def most(self, tokens: int) -> int:
        """Return how many sequences of so many tokens fit, in each microbatch of one rank."""
        if self.room <= 0:
            return 0
        each = self.sequence_bytes(tokens) * int(self.engine.stages)
        return MOST_SEQUENCES if each == 0 else min(MOST_SEQUENCES, int(self.room / each))

    @property
    def copies(self) -> int:
        """Groups of ranks that hold sequences of their own: data-parallel, experts' included.

        Ranks that share key/value heads hold the same sequences.
        """
        strategy = self.engine.strategy
        return int(strategy.degree("dp") * strategy.degree("ep"))


@dataclass(frozen=True)
class Clock:
    """The times of an engine's passes as one number each, as `steady.Times` asks for them.

    Args:
        slow: how many times as long a kind of kernel takes as expected.
    """

    sized: Sized
    slow: Mapping[str, float] = field(default_factory=dict)
    _known: dict[tuple[object, ...], float] = field(default_factory=dict, repr=False, compare=False)

    def prefill(self, prompts: float, tokens: float, cached: float) -> float:
        """Return the time of so many more tokens of some prompts [s]."""
        return self._sum(self.sized.prefilled, prompts, tokens, cached)

    def decode(self, sequences: float, context: float) -> float:
        """Return the time of a decode step [s]."""
        return self._sum(self.sized.stepped, sequences, context)

    def mixed(
        self, sequences: float, context: float, prompts: float, tokens: float, cached: float
    ) -> float:
        """Return the time of a decode step that holds part of some prompts [s]."""
        return self._sum(self.sized.mixed, sequences, context, prompts, tokens, cached)

    def _sum(self, times: Callable[..., ByKind], *numbers: float) -> float:
        key = (times.__name__, *numbers)
        if key not in self._known:
            each = times(*numbers).items()
            self._known[key] = sum(float(t) * self.slow.get(kind, 1.0) for kind, t in each)
        return self._known[key]
