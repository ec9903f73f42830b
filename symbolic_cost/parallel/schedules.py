"""Pipeline schedules: bubble, activations in flight and messages as expressions.

Times are those of one microbatch and one stage: T_F forward, T_B input gradients, T_W weight
gradients. Activations are counted in those that one microbatch leaves on one stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property

from sympy import Expr, Integer, expand

from symbolic_cost.errors import looked_up, quote
from symbolic_cost.extrema import Max, Min
from symbolic_cost.lazy import Lazy
from symbolic_cost.parallel import orders
from symbolic_cost.parallel.orders import Orders, Place, Stage, dual_pipe, zero_bubble_v
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import T_B, T_F, T_W, M, pp, stage, v


@dataclass(frozen=True)
class Schedule:
    """One schedule; expressions in pp, M, v, stage (from 1), T_F, T_B and T_W.

    Args:
        bubble: time that the slowest stage waits in one step [s].
        in_flight: most activations that a stage keeps at once [microbatches].
        residue: of microbatches that wait for their weight gradients alone, beside those.
        entered: the same of what stands before the blocks, where those of its chunk are others.
        ended: the same of what stands behind the blocks.
        fullest: passes in flight of the first and of the last chunk (of two copies: of that where
            microbatches enter and of that where they end) when most are, by stage; at the first of
            these moments most of what stands before and behind the blocks is there, too.
        messages: activations and gradients sent in one step, by the whole pipeline.
        chunks: model chunks per stage.
        copies: copies of the blocks' weights per stage.
        entry: stages where microbatches enter, which hold the embedding.
        exit: stages where they end, which hold the head.
        multiple: M must be a multiple of it.
        least: fewest microbatches.
        plan: the order of tasks per stage, of (pp, M, chunks).
        chain: the places that a microbatch passes.
        hidden: communication that a pass of one microbatch hides beside one of another, as in
            "ep=full".
    """

    name: str
    meaning: str
    source: str
    bubble: Expr
    in_flight: Expr
    messages: Expr
    plan: Callable[[int, int, int], Orders]
    residue: Expr = Integer(0)
    entered: Expr | None = None
    ended: Expr | None = None
    fullest: Mapping[Stage, tuple[tuple[Expr, Expr], ...]] = field(default_factory=dict)
    chunks: Expr = Integer(1)
    copies: Expr = Integer(1)
    entry: frozenset[Stage] = frozenset({Stage.FIRST})
    exit: frozenset[Stage] = frozenset({Stage.LAST})
    multiple: Expr = Integer(1)
    least: Expr = Integer(1)
    chain: Callable[[int, int, int], list[Place]] = orders.straight
    hidden: str = ""

    @property
    def step_time(self) -> Expr:
        """Time of one step without communication and optimizer [s]."""
        return M * (T_F + T_B + T_W) + self.bubble

    @cached_property
    def parts_backward(self) -> bool:
        """Whether gradients of weights run apart from those of inputs: more than the sum counts."""
        moved = self.bubble.xreplace({T_B: T_B - T_F, T_W: T_W + T_F})
        return expand(moved - self.bubble) != 0

    def sends(self, stage: Stage) -> tuple[Expr, Expr]:
        """Return how often a stage sends activations and gradients, per microbatch.

        What enters at both ends does so in halves; what turns round at the last stage stays there.
        """
        if stage is Stage.MIDDLE:
            return self.chunks, self.chunks
        if self.entry == self.exit:
            return self.chunks / 2, self.chunks / 2
        ends = (self.chunks, self.chunks - 1)
        return ends if stage in self.entry else ends[::-1]

    @property
    def bubble_fraction(self) -> Expr:
        """Bubble per step time."""
        return self.bubble / self.step_time


_WHOLE = T_F + T_B + T_W
_THERE_AND_BACK = 2 * M * (pp - 1)


def _unequal() -> Expr:
    """Return what a stage of the V schedule waits for the next one: nothing for equal passes."""
    halves = (T_B - T_F) / 2, (T_F - T_B) / 2, (T_W - T_F) / 2, T_F - (T_B + T_W) / 2
    return Max(T_F - T_W, T_B - T_W, *halves)


def _interleaved() -> Mapping[Stage, tuple[tuple[Expr, Expr], ...]]:
    """Groups of pp microbatches pass chunk after chunk, so that those between hold pp each.

    The last chunk of the last stage keeps one, and none while the second group enters.
    """
    every = Min((v - 1) * pp + 2 * (pp - stage) + 1, M * v)
    first = Min(2 * pp, M), Min(2 * (pp - stage) + 1, M)
    most = tuple((one, every - (v - 2) * pp - one) for one in first)
    next_one, filled = Min(pp + 1, M), Min(2 * pp, M, (v - 1) * pp + 1)
    last = (pp, Integer(1)), (next_one, pp + 1 - next_one), (filled, Max(pp + 1 - M, 0))
    return {Stage.FIRST: most, Stage.MIDDLE: most, Stage.LAST: last}


def _forth_and_back() -> Mapping[Stage, tuple[tuple[Expr, Expr], ...]]:
    """Two chunks share what fits; one more enters when the last chunk is done with one."""
    forth = Min(2 * pp - stage, M), Min(2 * pp - stage + 1, M)
    return dict.fromkeys(Stage, tuple((one, 2 * Min(pp, M) - one) for one in forth))


SCHEDULES: Mapping[str, Schedule] = Lazy(
    {
        "gpipe": lambda: Schedule(
            "gpipe",
            "all forward, then all backward passes",
            "huang-2019",
            bubble=(pp - 1) * _WHOLE,
            in_flight=M,
            messages=_THERE_AND_BACK,
            plan=orders.gpipe,
        ),
        "1f1b": lambda: Schedule(
            "1f1b",
            "one forward, one backward pass in turn",
            "narayanan-2021",
            bubble=(pp - 1) * _WHOLE,
            in_flight=Min(pp - stage + 1, M),
            messages=_THERE_AND_BACK,
            plan=orders.one_forward_one_backward,
        ),
        "interleaved": lambda: Schedule(
            "interleaved",
            "1F1B with v chunks per stage",
            "narayanan-2021",
            bubble=(pp - 1) * _WHOLE / v,
            in_flight=Min((v - 1) * pp + 2 * (pp - stage) + 1, M * v) / v,
            messages=2 * M * (pp * v - 1),
            plan=orders.one_forward_one_backward,
            chunks=v,
            multiple=pp,
            entered=Min(2 * pp, M),
            ended=Integer(1),
            fullest=_interleaved(),
        ),
        "zb-h1": lambda: Schedule(
            "zb-h1",
            "1F1B with late weight gradients",
            "qi-2024",
            bubble=(pp - 1) * (T_F + T_B) - Min(M - 1, pp - 1) * Min(T_F, T_W),
            in_flight=Min(pp - stage + 1, M),
            residue=Min(stage - 1, M),
            messages=_THERE_AND_BACK,
            plan=orders.zero_bubble(lambda pp, stage: pp - stage, lambda _, stage: stage),
        ),
        "zb-h2": lambda: Schedule(
            "zb-h2",
            "as zb-h1 with more warm-up; 2 pp - 1 microbatches or more, or equal passes",
            "qi-2024",
            bubble=Max(
                (pp - 1) * (T_F + T_B) - Min(M - 1, 2 * pp - 2) * T_W,
                (pp - 1) * (T_B - T_F) + Max(2 * pp - 1 - M, 0) * T_F,
                0,
            ),
            in_flight=Min(2 * (pp - stage) + 1, M),
            residue=Min(2 * stage - 2, M),
            messages=_THERE_AND_BACK,
            plan=orders.zero_bubble(
                lambda pp, stage: 2 * (pp - stage) - 1, lambda _, stage: 2 * stage
            ),
        ),
        "zb-v": lambda: Schedule(
            "zb-v",
            "two chunks per stage, forth and back; 2 pp - 1 microbatches or more, or equal passes",
            "qi-2024",
            bubble=(pp - 1) * _unequal() + Max(2 * pp - 1 - M, 0) * T_W / 2,
            in_flight=Min(pp, M),
            entered=Min(2 * pp - 1, M),
            ended=Integer(1),
            fullest=_forth_and_back(),
            messages=4 * M * (pp - 1),
            plan=zero_bubble_v,
            chunks=Integer(2),
            exit=frozenset({Stage.FIRST}),
            least=pp,
            chain=orders.forth_and_back,
        ),
        "dualpipe": lambda: Schedule(
            "dualpipe",
            "microbatches from both ends, passes overlapped; T_F and T_B equal",
            "deepseek-2024",
            bubble=(pp / 2 - 1) * (T_F + 2 * T_B - T_W),
            in_flight=pp + 1,
            entered=pp,
            ended=Integer(1),
            fullest={
                Stage.FIRST: ((pp, Integer(1)),),
                Stage.MIDDLE: ((pp - 1, Integer(2)),),
                Stage.LAST: ((pp, Integer(1)),),
            },
            messages=_THERE_AND_BACK,
            plan=dual_pipe,
            copies=Integer(2),
            entry=frozenset({Stage.FIRST, Stage.LAST}),
            exit=frozenset({Stage.FIRST, Stage.LAST}),
            multiple=Integer(2),
            least=2 * pp,
            chain=orders.both_ways,
            hidden="ep=full,pp=full",  # section 3.2.1 of its source
        ),
    }
)
"""Every schedule by name."""


def schedule(name: str, chunks: Expr | int = v) -> Schedule:
    """Return a schedule by name; "interleaved" with one chunk per stage is 1f1b."""
    named = looked_up("schedule", name, SCHEDULES)
    return SCHEDULES["1f1b"] if named.chunks == v and chunks == 1 else named


def unread_chunks(name: str, chunks: object) -> list[str]:
    """Say that a number of chunks per stage is not that of a schedule; nothing if it is."""
    own = schedule(name).chunks
    if chunks is None or own in (v, chunks):
        return []
    many = "1 chunk" if own == 1 else f"{own} chunks"
    of_v = "'interleaved' has v of them, and is 1f1b with v=1"
    said = f"v = {chunks} contradicts schedule {quote(name)}, which has {many} per stage: {of_v}"
    return [said]
