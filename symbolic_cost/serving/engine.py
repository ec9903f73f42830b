"""An engine: a model on the ranks of one copy of it, and the times of its forward passes.

A pass is derived as a training step is: the model is declared for the shape, divided over the
ranks, and its forward rows are priced, here by kind of kernel (`systems.kernels`). A prompt needs
the last token's logits alone, so the parts behind the blocks run on one token per sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby

from sympy import Add, Expr, Integer, Mul, Rational

from symbolic_cost.axes import At, Role
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import InputError, Problems, looked_up
from symbolic_cost.ledger import CostTable, Origin, Phase, Quantity, Row, Units
from symbolic_cost.models.count import QUEUE, ROUTED
from symbolic_cost.models.inference import Declare
from symbolic_cost.models.kernels import Attention, running
from symbolic_cost.models.quantized import held as held_as_stored
from symbolic_cost.models.shape import DECODE, TRAINING, Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import Divided
from symbolic_cost.systems.chain import Chain
from symbolic_cost.systems.kernels import Kernels, kernels
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.times import Definitions

STORED = "stored"
"""Weights as the configuration stores them."""

WEIGHTS: Mapping[str, tuple[Expr, str]] = {
    "bf16": (Integer(2), "bf16"),
    "fp16": (Integer(2), "bf16"),
    "fp8": (Integer(1), "fp8"),
    "int8": (Integer(1), "bf16"),
    "int4": (Rational(1, 2) + Rational(2, 128), "bf16"),
    STORED: (Integer(2), "bf16"),
}
"""Bytes of a weight and the precision of its products; int4 has a scale of 16 bits for 128.

Stored weights are those of a configuration: in few bits as it says, products in bf16.
"""

CACHES: Mapping[str, Expr] = {"bf16": Integer(2), "fp16": Integer(2), "fp8": Integer(1)}
"""Bytes of one element of the cache."""

PASS = "pass"  # noqa: S105 - a pass of a model
"""The definition of the whole pass."""

_VALUE = Integer(2)
_RANKS = ("tp", "pp", "dp", "ep")


@dataclass(frozen=True)
class Engine:
    """A model on the ranks of one copy of it.

    Args:
        name: of the model.
        declare: makes the model for a shape.
        strategy: degrees as numbers; tp, pp, and dp with ep where attention is data-parallel.
        machine: its rates, memory and links.
        weights: precision of weights, one of `WEIGHTS`.
        cache: precision of keys and values, one of `CACHES`.

    Raises:
        InputError: every name that is unknown, and what of the strategy does not serve.
    """

    name: str
    declare: Declare
    strategy: Strategy
    machine: Machine
    weights: str = "bf16"
    cache: str = "bf16"
    latent: Declare | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Check names, and that the model is one that generates from a cache."""
        problems = Problems()
        problems.attempt(looked_up, "precision of weights", self.weights, WEIGHTS)
        problems.attempt(looked_up, "precision of the cache", self.cache, CACHES)
        problems.found += [
            f"strategy: {name} does not serve; {', '.join(_RANKS)} do"
            for name in self.strategy.degrees
            if name not in _RANKS
        ]
        if self.strategy.zero:
            problems.found.append(
                "strategy: zero does not serve; there are no states to keep apart"
            )
        problems.found += _not_served(self.name, self.declare(TRAINING), self.declare(DECODE))
        if self.weights == STORED:
            problems.attempt(held_as_stored, self.declare(TRAINING))
        problems.refuse()

    @cached_property
    def kernels(self) -> Kernels:
        """Rates of kernels."""
        return kernels(self.machine)

    @property
    def ranks(self) -> Expr:
        """Ranks of the engine."""
        return self.strategy.ranks

    @property
    def stages(self) -> Expr:
        """Pipeline stages: so many microbatches are in flight."""
        return self.strategy.degree("pp")

    @cached_property
    def conventions(self) -> Conventions:
        """Bytes of weights and values; nothing is kept for a backward pass."""
        size, _ = WEIGHTS[self.weights]
        nothing = Integer(0)
        sizes = replace(
            STANDARD.sizes, value=_VALUE, weight=size, statistic=nothing, moment=nothing
        )
        return replace(STANDARD, name=f"serving, {self.weights} weights", sizes=sizes)

    def prefill(self) -> Pass:
        """Return the pass over prompts: b of l tokens each."""
        return Pass(self, TRAINING)

    def decode(self, tokens: int = 1) -> Pass:
        """Return a decode step: b sequences, c tokens of each in the cache.

        Args:
            tokens: new ones of each sequence; more than one where a draft is checked.
        """
        return Pass(self, replace(DECODE, l=Integer(tokens)))


@dataclass(frozen=True)
class Pass:
    """One forward pass of an engine."""

    engine: Engine
    shape: Shape

    @cached_property
    def _tables(self) -> dict[Stage, tuple[Divided, CostTable]]:
        """What the ranks of every stage do."""
        blocks = self._divided(self.shape)
        structure = blocks.structure
        if self.shape.c != 0:
            return {stage: (blocks, blocks.table(stage)) for stage in structure.stages}
        ends = self._divided(replace(self.shape, l=Integer(1)))
        return {
            stage: (blocks, _joined(blocks.table(stage), ends.table(stage), _behind(blocks.own)))
            for stage in structure.stages
        }

    def _divided(self, shape: Shape, *, held: bool = False) -> Divided:
        """Return the model on the ranks, with the experts that a pass reads or that are held."""
        engine = self.engine
        declare = engine.latent if shape.c != 0 and engine.latent else engine.declare
        model = declare(shape)
        own_weights = held_as_stored(model) if engine.weights == STORED else model
        kernel = running(own_weights, Attention.FLASH)
        own = on_every_rank(kernel.model, engine.strategy)
        read = own if held else expected(own)
        return Divided(read, engine.strategy, kernel.executed(engine.conventions))

    @cached_property
    def bindings(self) -> Mapping[str, int]:
        """Numbers of the model; those of the shape stay symbols."""
        known = self.engine.declare(self.shape).bindings
        return {name: number for name, number in known.items() if name not in ("b", "l", "c")}

    @cached_property
    def weight_bytes(self) -> Expr:
        """Weights of the fullest rank [byte]."""
        held = self._divided(self.shape, held=True)
        tables = map(held.table, held.structure.stages)
        return max((self._bound(t.total(Quantity.WEIGHT)) for t in tables), key=float)

    @cached_property
    def cache_bytes(self) -> Expr:
        """Cache of one rank after the pass [byte], of b sequences; a formula of b and l or c."""
        size = CACHES[self.engine.cache] / _VALUE
        totals = [self._bound(t.total(Quantity.CACHE)) * size for _, t in self._tables.values()]
        return totals[0]

    def _bound(self, expr: Expr) -> Expr:
        return expr.xreplace(
            {
                s: Integer(self.bindings[s.name])
                for s in expr.free_symbols
                if s.name in self.bindings
            }
        )

    @cached_property
    def chain(self) -> Chain:
        """The pass as definitions, symbols b and l or c; the last is `PASS` [s]."""
        to, terms = Definitions(), []
        for stage, (divided, table) in self._tables.items():
            took = _Priced(self, divided, to).stage(stage, table)
            terms.append(divided.structure.alike(stage) * took)
        to.keep(PASS, Add(*terms))
        return Chain(to.made).bound(self.bindings)


class _Priced:
    """Prices the forward rows of a stage."""

    def __init__(self, of: Pass, divided: Divided, to: Definitions) -> None:
        self.of, self.divided, self.to = of, divided, to
        self.kernels = of.engine.kernels
        self.rate = WEIGHTS[of.engine.weights][1]
        self.network = of.engine.machine.network()
        self.cores: set[str] = set()

    def stage(self, stage: Stage, table: CostTable) -> Expr:
        """Define the time of a stage [s]."""
        forward = [row for row in table if row.phase is Phase.FORWARD and not row.per_step]
        own = [row for row in forward if row.origin is Origin.OP]
        parts = self.divided.share(stage).parts
        self.cores |= {f"{part.path}.{op.path}" for part in parts for op in part.ops if op.core}
        caches = [row for row in table if row.quantity is Quantity.CACHE]
        sent = [row for row in forward if row.origin is Origin.PIPELINE]
        terms = [Mul(row.count, self._moved(row)) for row in sent]
        for part in parts:
            mine = [row for row in own if row.path.startswith(f"{part.path}.")]
            kept = [row for row in caches if row.path.startswith(f"{part.path}.")]
            took = Add(*self._part(mine, kept))
            terms.append(part.repeat * self.to.add(f"{stage}.{part.path}", took))
        return self.to.add(f"{stage}", Add(*terms))

    def _part(self, rows: list[Row], kept: list[Row]) -> Iterator[Expr]:
        """Yield the time of every kernel of a part; passes in a row are one."""
        order = list(dict.fromkeys(row.path for row in rows))
        ops = [[row for row in rows if row.path == path] for path in order]
        for product, group in groupby(ops, key=_is_kernel):
            listed = list(group)
            if not product:
                yield self._passed(listed, rows)
                yield from (self._moved(row) for op in listed for row in op if row.collective)
                continue
            for op in listed:
                yield self._kernel(op, kept)
                yield from (self._moved(row) for row in op if row.collective)

    def _kernel(self, op: list[Row], kept: list[Row]) -> Expr:
        if op[0].path not in self.cores:
            return self.kernels.product(op, self.rate, _VALUE)
        shape = self.of.shape
        if shape.c == 0:
            return self.kernels.attended(op, shape.l, _VALUE)
        size = CACHES[self.of.engine.cache] / _VALUE
        layer = op[0].path.rpartition(".")[0]
        near = [row for row in kept if row.path.startswith(f"{layer}.")] or kept
        return self.kernels.stepped(op, size * Add(*(row.expr for row in near)))

    def _passed(self, ops: list[list[Row]], rows: list[Row]) -> Expr:
        """Return the time of passes that run as one kernel.

        What one of them makes and only others of them read never reaches memory.
        """
        inside = {row.path for op in ops for row in op}
        made = {row.tensor for op in ops for row in op if row.quantity is Quantity.WRITE}
        asked = {
            row.tensor for row in rows if row.quantity is Quantity.READ and row.path not in inside
        }
        read = {row.tensor for op in ops for row in op if row.quantity is Quantity.READ}
        moved: list[tuple[str, Expr]] = []
        for op in ops:
            for row in op:
                fresh = row.quantity is Quantity.READ and row.tensor not in made
                left = row.quantity is Quantity.WRITE and not (
                    row.tensor in read and row.tensor not in asked
                )
                if fresh or left:
                    moved.append((row.kind, row.expr))
        return self.kernels.passed(moved)

    def _moved(self, row: Row) -> Expr:
        """Return the time of a row's collective."""
        move = row.collective
        if move is None:
            return Integer(0)
        mesh = self.divided.ranks.mesh
        return self.kernels.moved(move, self.network.hops(mesh, move.meshes))


def expected(model: Model) -> Model:
    """Return a model with as many experts as its tokens choose in the mean, each by chance.

    n tokens that choose k of E each reach E (1 - (1 - k/E)^n): 30.5 of 256 for 4 tokens with 8.
    """
    experts, queue = model.placed(ROUTED), model.placed(QUEUE)
    if not experts or not queue:
        return model
    chosen_by_one = model.size(At(Role.SLOT))
    tokens, every = model.work[1], model.size(ROUTED)
    chosen = every * (1 - (1 - chosen_by_one / every) ** tokens)
    copies = tokens * chosen_by_one
    per_expert = copies / (model.size(At(Role.BATCH, ("routed",))) * chosen)
    queues = dict.fromkeys((axis.name for axis in queue), per_expert)
    return replace(model, sizes={**model.sizes, experts[0].name: chosen, **queues})


def _not_served(name: str, whole: Model, step: Model) -> list[str]:
    """Say which blocks do not generate with attention to a cache, which is all that is priced."""
    generating = {
        part.path
        for part in step.parts
        if any(op.core for op in part.ops) and any(op.caches() for op in part.ops)
    }
    return [
        f"model {name}: serving is known for blocks with attention to a cache; {part.path} is none"
        for part in whole.parts
        if part.is_block and part.path not in generating
    ]


def _behind(model: Model) -> frozenset[str]:
    """Return the paths of the parts behind the last block."""
    last = max(place for place, part in enumerate(model.parts) if part.is_block)
    return frozenset(part.path for part in model.parts[last + 1 :])


def _joined(blocks: CostTable, ends: CostTable, behind: Iterable[str]) -> CostTable:
    """Return a table whose parts behind the blocks are those of another one, without a loss."""
    paths = tuple(f"{path}." for path in behind)
    rows = [row for row in blocks if not row.path.startswith(paths or ("\0",))]
    rows += [
        row for row in ends if row.path.startswith(paths or ("\0",)) and row.kind != "cross_entropy"
    ]
    return replace(blocks, rows=tuple(rows))


def _is_kernel(op: list[Row]) -> bool:
    """Return whether an op is a product or attention, and no pass over memory."""
    return any(row.units is Units.MATRIX for row in op)


def refuse_symbols(strategy: Strategy) -> None:
    """Refuse a strategy with degrees that are no numbers.

    Raises:
        InputError: every degree without a number.
    """
    problems = [
        f"strategy: {name} has no number: give one, as in {name}=8"
        for name, degrees in strategy.degrees.items()
        if not all(degree.is_Integer for degree in degrees)
    ]
    if problems:
        raise InputError(problems)
