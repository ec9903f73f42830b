"""The prefill step, declared, and what follows: attention between two exchanges, a perceptron.

The attention is that of ulysses-2023 with a key/value head per head. Axes of the perceptron: r
tokens in shards, l tokens of one data-parallel group, e embedding, f width.

Memory as the step runs is what is allocated, what is freed, and the running peak.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, Literal, NamedTuple

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.conventions.answers import MULTIPLY_ACCUMULATE
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.conventions.questions import ElementSizes
from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.declare import Model, einsum, view
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.placement import Placement
from symbolic_cost.published.contract import printed_data
from symbolic_cost.published.inputs import Count, Index, Inputs, indivisible
from symbolic_cost.published.ulysses_2023 import EXCHANGE, exchanged_attention

BLOCK = 512
"""Requests are rounded up to blocks [byte]."""

SMALL = 2**20
"""A rest of a segment up to this size is not split off [byte]."""

LARGE = 10 * 2**20
"""Requests from this size on get a segment of their own [byte]."""

SEGMENT = 2**21
"""Segments of large requests are multiples of it [byte]."""

WORKSPACE = 2**25
"""Workspace of the matrix products on an H100, allocated with the first of them [byte]."""


def caching(size: int) -> int:
    """Return what PyTorch's caching allocator counts for a fresh request [byte].

    A large request that nearly fills its segment gets all of it.

    >>> caching(1), caching(122_880_000), caching(399_360_000)
    (512, 123731968, 399360000)
    """
    rounded = -(-size // BLOCK) * BLOCK
    segment = -(-rounded // SEGMENT) * SEGMENT
    return rounded if rounded < LARGE or segment - rounded > SMALL else segment


ALLOCATORS: Mapping[str, Callable[[int], int]] = {"caching": caching, "payload": lambda size: size}
"""What is counted for a request [byte], by the allocator's name."""


class Moment(NamedTuple):
    """Bytes allocated at the end of a step, and the most that were allocated at once so far."""

    current: int
    peak: int


def moments(
    steps: Iterable[tuple[str, str]], sizes: Mapping[str, int], allocator: str
) -> dict[str, Moment]:
    """Follow a program's memory.

    Args:
        steps: name and events of each step; "+x" allocates x, "-x" frees it, in order.
        sizes: bytes asked for, by the event's name without sign.
        allocator: a key of ALLOCATORS.

    >>> list(moments([("a", "+x"), ("b", "+y -x")], {"x": 5, "y": 7}, "payload").values())
    [Moment(current=5, peak=5), Moment(current=7, peak=12)]
    """
    after, current, peak = {}, 0, 0
    for step, events in steps:
        for event in events.split():
            counted = ALLOCATORS[allocator](sizes[event[1:]])
            current += counted if event.startswith("+") else -counted
            peak = max(peak, current)
        after[step] = Moment(current, peak)
    return after


class Run(Inputs):
    """One prefill step.

    N tokens, d embedding width, h heads, P GPUs; TP and DP split a perceptron of L layers and width
    d_ff; elements of nbytes. `rank` prints; log is the commit whose lines are computed, allocator
    what is counted for a request, and workspace that of the matrix products [byte].
    """

    N: Count
    d: Count
    h: Count
    P: Count
    TP: Count
    DP: Count
    L: Count
    d_ff: Count
    nbytes: Count = 2
    rank: Index = 0
    log: Literal["3b1a699", "d7a62c8", "5e270bf"] = "3b1a699"
    allocator: Literal["caching", "payload"] = "caching"
    workspace: Index = WORKSPACE

    def contradictions(self) -> list[str]:
        """Say which inputs do not go together."""
        problems = []
        if self.P != self.TP * self.DP:
            degree = f"TP * DP = {self.TP} * {self.DP} = {self.TP * self.DP}"
            problems.append(f"P = {self.P} is not {degree}")
        if self.rank >= self.P:
            problems.append(f"rank = {self.rank} is not below P = {self.P}")
        return [
            *problems,
            *indivisible("h", self.h, "P", self.P),
            *indivisible("N", self.N, "P", self.P),
            *indivisible("d", self.d, "h", self.h),
            *indivisible("d_ff", self.d_ff, "TP", self.TP),
        ]

    def shape(self, dims: str) -> list[int]:
        """Return the sizes of dimensions such as "h, N/P, d/h"."""
        return [self._size(term.strip()) for term in dims.split(",")]

    def _size(self, term: str) -> int:
        numerator, *denominators = re.sub("d'", "d_ff", term).split("/")
        size: int = getattr(self, numerator)
        for denominator in denominators:
            size //= getattr(self, denominator)
        return size

    @property
    def bindings(self) -> dict[Expr, Expr]:
        """Number by symbol."""
        return self.bound("l=N e=d h f=d_ff n_layers=L s1=P m1=TP dp=DP s=nbytes")


class Tensor(NamedTuple):
    """One printed tensor: name and dimensions as printed, unit of its size, true dimensions."""

    name: str
    dims: str
    unit: str
    true: str


class Step(NamedTuple):
    """One step of the program; fields as the data file explains them."""

    name: str
    tensors: tuple[Tensor, ...]
    events: str = ""
    flops: tuple[str, ...] = ()
    contiguous: bool = False
    printed: tuple[str, ...] = ("peak",)


def _step(name: str, record: Mapping[str, Any]) -> Step:
    tensors = tuple(
        Tensor(one, dims, (rest or ["MB"])[0], (*rest[1:], dims)[0])
        for names, dims, *rest in record.get("tensors", ())
        for one in names.split()
    )
    return Step(name, **{**record, "tensors": tensors})


_DATA = {
    log: tuple(_step(name, record) for name, record in steps.items())
    for log, steps in printed_data("ulysses_logs.toml").items()
}
LOGS: Mapping[str, tuple[Step, ...]] = {
    "3b1a699": _DATA["published"],
    "d7a62c8": (*_DATA["published"][:-1], *_DATA["later"]),
    "5e270bf": _DATA["earlier"],
}
"""Steps by the commit of the log: as published, with the perceptron's FLOP, attention alone."""


CONVENTIONS = replace(
    MODEL_FLOP,
    name="ulysses-prefill",
    meaning="2 FLOP per multiply-accumulate of matrix products, ring bytes, one element size",
    source="pycomm-prefill",
    sizes=ElementSizes(value=symbols.s, weight=symbols.s, weight_gradient=symbols.s),
)
"""What a matrix product costs."""

AS_PRINTED = replace(
    CONVENTIONS, name="ulysses-prefill-as-printed", contraction=MULTIPLY_ACCUMULATE
)
"""The log of commit d7a62c8 counts the perceptron without the factor 2."""

_TENSOR_DATA = Placement(
    {"tensor": symbols.m1, "data": symbols.dp},
    {"r": ("tensor", "data"), "l": ("data",), "f": ("tensor",)},
)


@cache
def attention() -> CostTable:
    """Derive every cost of the attention on one of `s1` ranks."""
    table = cost(exchanged_attention(), CONVENTIONS, EXCHANGE)
    return table.map(lambda expr: expr.xreplace({symbols.k: symbols.h}))


@cache
def perceptron(*, as_printed: bool = False) -> CostTable:
    """Derive every cost of the perceptron on one of `m1 dp` ranks; layers occur `n_layers` times.

    `as_printed` a multiply-accumulate is one FLOP, as the later log has it.
    """
    gather = (view("gather", "output[r e] -> x[l e]"),)
    layer = (
        einsum("inter", "x[l e], *w[e f] -> inter[l f]"),
        einsum("out", "inter[l f], *w[f e] -> y[l e]"),
    )
    sizes = dict.fromkeys("rl", symbols.l) | {"e": symbols.e, "f": symbols.f}
    parts = (fragment("gather", gather), fragment("mlp", layer, symbols.n_layers))
    model = Model("perceptron", parts, sizes, source="pycomm-prefill")
    return cost(model, AS_PRINTED if as_printed else CONVENTIONS, _TENSOR_DATA)


def flop(run: Run, paths: Iterable[str], *, as_printed: bool = False) -> Fraction:
    """Return the FLOP of ops of the attention or of the perceptron on one GPU."""
    tables = (attention(), perceptron(as_printed=as_printed))
    totals = (
        table.below(path).total(Quantity.FLOP, phase=Phase.FORWARD)
        for path in paths
        for table in tables
    )
    return sum((_number(run, total) for total in totals), Fraction(0))


def volumes(run: Run) -> dict[str, Any]:
    """Return true FLOP [FLOP] and what the collectives move [byte]."""
    exchanges = list(_moves(run, attention()).values())
    moves = _moves(run, perceptron())
    gather, reduction = moves["gather.gather"], moves["mlp.out"]
    message, mlp = exchanges[0].message, flop(run, ["mlp"])
    numbers: dict[str, Fraction | int] = {
        "mlp_flops_true_total": run.P * mlp,
        "mlp_flops_true_per_gpu": mlp,
        "a2a_buffer_bytes_per_gpu": message,
        "a2a_calls": len(exchanges),
        "a2a_total_buffer_bytes_per_gpu": len(exchanges) * message,
        "a2a_wire_bytes_sent_per_gpu": sum((move.wire for move in exchanges), Fraction(0)),
        "a2a_message_bytes_per_pair_per_call": message / run.P,
        "mlp_allgather_recv_bytes_per_gpu": gather.wire,
        "mlp_allgather_output_bytes": gather.message,
        "mlp_allreduce_calls": reduction.calls,
        "mlp_allreduce_buffer_bytes": reduction.message,
        "mlp_allreduce_ring_wire_bytes_per_gpu_total": reduction.wire,
    }
    steps = {step.name: flop(run, step.flops) for step in LOGS["5e270bf"] if step.flops}
    return {"flops_per_gpu": {name: _exact(one) for name, one in steps.items()}} | {
        name: _exact(Fraction(number)) for name, number in numbers.items()
    }


class _Move(NamedTuple):
    """A collective: full message [byte], calls, and bytes sent by one GPU in all of them."""

    message: Fraction
    calls: int
    wire: Fraction


def _moves(run: Run, table: CostTable) -> dict[str, _Move]:
    return {
        row.path: _Move(
            _number(run, row.collective.message),
            int(_number(run, row.count)),
            _number(run, row.total),
        )
        for row in table.select(Quantity.COMMUNICATION, phase=Phase.FORWARD)
        if row.collective is not None
    }


def _number(run: Run, expr: Expr) -> Fraction:
    return Fraction(value(expr.xreplace(run.bindings)))


def _exact(number: Fraction) -> int | Fraction:
    return int(number) if number.denominator == 1 else number
