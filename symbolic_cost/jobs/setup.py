"""A setup: model, strategy, training, machine and numbers as one value, and what follows from it.

The order in which things are put together lives here and nowhere else: kernels are chosen, ops get
the axes of the strategy, every data-parallel rank its microbatch, a stage its parts; then rows are
derived with degrees as symbols, and numbers are bound.
"""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from types import MappingProxyType

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.checking import checked
from symbolic_cost.conditions import Least, check
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.costs import forward_pass
from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import InputError, quote, refuse
from symbolic_cost.jobs.numbers import RATES, check_count, checked_numbers
from symbolic_cost.ledger import CostTable, Row
from symbolic_cost.models.kernels import Attention, Running, running
from symbolic_cost.models.positions import position_tables
from symbolic_cost.numeric.binding import bind, check_values
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.communication import sent_by_cluster, sent_by_rank
from symbolic_cost.parallel.coverage import Repeated
from symbolic_cost.parallel.layout import AUTO
from symbolic_cost.parallel.memory import Memory, Training
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.schedules import unread_chunks
from symbolic_cost.parallel.stages import block_count
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.structure import Structure, structure
from symbolic_cost.parallel.table import Divided
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import Active, exact
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.methods import Methods


@checked
@dataclass(frozen=True)
class Setup(NotebookTable):
    """What is run, and how.

    Args:
        strategy: degrees of the mesh; symbols where it gives no number.
        conventions: what is reported, and how it is counted.
        attention: the kernel of attention cores; None for what the layers declare.
        numbers: by symbol name, beside those of the model and the strategy. b is the microbatch
            of one rank.
        precise: whether rows have the bytes of the precision; else those of the conventions.
        global_batch: sequences of one step, if the microbatches come from these.

    Raises:
        InputError: numbers that contradict the strategy, or that nothing reads, or a stage that
            the pipeline lacks.
    """

    model: Model
    strategy: Strategy = field(default_factory=Strategy)
    conventions: Conventions = STANDARD
    training: Training = field(default_factory=Training)
    machine: Machine | None = None
    methods: Methods = field(default_factory=Methods)
    attention: Attention | None = Attention.FLASH
    stage: Stage = Stage.FIRST
    numbers: Mapping[str, int | Fraction] = field(default_factory=lambda: MappingProxyType({}))
    precise: bool = False
    global_batch: int | None = None

    def __post_init__(self) -> None:
        """Check numbers against the model, the strategy and each other."""
        rates = RATES if self.machine is not None and self.machine.name == "symbolic" else ()
        given = self._declared_for(self.numbers)
        numbers = checked_numbers(self.model, self.strategy, given, rates)
        refuse(unread_chunks(self.training.schedule, numbers.get("v")))
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "strategy", self.strategy.numbered(numbers))
        object.__setattr__(self, "strategy", self._sharing_heads())
        self.structure.checked(self.stage)
        if self.global_batch is not None:
            check_count("global batch", self.global_batch)

    def _declared_for(self, numbers: Mapping[str, int | Fraction]) -> Mapping[str, int | Fraction]:
        """Have the model declared for the numbers that it depends on; return all others."""
        fixed, declare = self.model.fixed, self.model.at
        given = {name: number for name, number in numbers.items() if name in fixed}
        check_values(given)
        if declare is not None and given and given != fixed:
            from symbolic_cost.models.training import training

            own = training(declare({**fixed, **given}), self.model.trains)
            object.__setattr__(self, "model", own)
        return {name: number for name, number in numbers.items() if name not in fixed}

    def _sharing_heads(self) -> Strategy:
        """Return the strategy; ranks beyond the key/value heads share these, where both are known.

        For example 8 key/value heads on tp=16: two ranks hold each head, and half of the query
        heads that share it. Where layers differ, heads that the ranks divide have no copies.
        """
        strategy, sizes = self.strategy, self.model.sizes
        if "tp" not in strategy:
            return strategy
        numbers = {**self.model.bindings, **self.numbers}
        counts = {axis: bind(sizes[axis], numbers) for axis in self.model.grouped}
        if not counts or not all(n.is_Integer for n in counts.values()):
            return strategy
        least = min(counts.values())
        if strategy.copies == 1:
            ranks = bind(strategy.degrees["tp"][0], numbers)
            if not (ranks.is_Integer and ranks > least and ranks % least == 0):
                return strategy
            strategy = replace(strategy, copies=int(ranks / least))
        ranks = least * strategy.copies
        shared = tuple(axis for axis, count in counts.items() if count % ranks != 0)
        return replace(strategy, shared=shared)

    @cached_property
    def values(self) -> Mapping[str, int | Fraction]:
        """Every known number by symbol name: of the model, of the strategy, and as given."""
        own = {**self.model.bindings, **self.model.fixed}
        return {**own, **self.strategy.bindings(), **self.numbers}

    @cached_property
    def counted_values(self) -> Mapping[str, int | Fraction]:
        """Every known number, the microbatches of a step among them."""
        count = self.value(self.training.microbatches)
        return {**self.values, **({"M": int(count)} if count.is_Integer else {})}

    @cached_property
    def learned_positions(self) -> tuple[Least, ...]:
        """Rows that tables of learned positions need, one for each position."""
        return tuple(
            Least("learned positions", rows, length, "positions beyond have no row")
            for rows, length in position_tables(self.model)
        )

    def most(self, by: str) -> int | None:
        """Return the largest size of a symbol that tables of learned positions have rows for."""
        rows = [self.value(p.size) for p in self.learned_positions if p.least == symbols.symbol(by)]
        return min((int(count) for count in rows if count.is_Integer), default=None)

    @cached_property
    def running(self) -> Running:
        """The model with its kernels."""
        return running(self.model, self.attention)

    @cached_property
    def structure(self) -> Structure:
        """What of the strategy decides which rows there are: the class of each degree."""
        return structure(self.strategy)

    @cached_property
    def placed(self) -> Strategy:
        """The same structure with the symbol of every degree in its place."""
        return self.structure.symbolic

    @cached_property
    def _run(self) -> Training:
        """The training under the software that runs it."""
        runs = self.methods.stack
        return self.training if runs is None else replace(self.training, software=runs.software)

    @cached_property
    def trained(self) -> Training:
        """The training with what numbers decide: one chunk is none, and uneven stages.

        What is kept of gathered inputs is decided here for memory, communication and time alike:
        as the training says, else as the conventions do.
        """
        trained, saved = self._run, self.counting.saved
        chunks = exact(self.values.get("v", trained.chunks))
        if chunks != trained.chunks or saved is not trained.saved:
            trained = replace(trained, chunks=chunks, saved=saved)
        if trained.layout != AUTO:
            return trained
        blocks, stages = map(self.value, (block_count(self.model), self.placed.degree("pp")))
        slots = stages * trained.pipeline.chunks_of_a_stage
        known = blocks.is_Integer and slots.is_Integer
        return replace(trained, layout="uneven" if known and blocks % slots != 0 else "even")

    @cached_property
    def pipeline(self) -> Pipeline:
        """How stages share the blocks, and how they send."""
        return replace(self.trained.pipeline, scattered=self.methods.scattered)

    @cached_property
    def global_model(self) -> Model:
        """The model on the microbatches of all data-parallel ranks."""
        return on_every_rank(self.running.model, self.placed)

    @cached_property
    def divided(self) -> Divided:
        """The model on the ranks of the mesh, degrees as symbols."""
        units = self.trained.software.units
        return Divided(self.global_model, self.placed, self.counting, self.pipeline, ends=units)

    @property
    def share(self) -> Model:
        """The parts of one stage, with the axes of the strategy."""
        return self.divided.share(self.stage)

    @cached_property
    def counting(self) -> Conventions:
        """The conventions, with the bytes of the precision where they are asked for."""
        training, rules = self._run, self.conventions
        return training.counted(rules) if self.precise else training.conventions_of(rules)

    @cached_property
    def rows(self) -> CostTable:
        """Every cost of one rank and microbatch, degrees as symbols.

        A degree that is a symbol is several, as a degree of one is none: a bracket [pp > 1] is one.
        """
        table = self._table(self.divided)
        degrees = self.placed.mesh.values()
        several = {Active(one): Integer(1) for one in degrees if one.is_Symbol}
        if not several:
            return table
        return replace(table, rows=tuple(_with(row, several) for row in table.rows))

    def rows_under(self, strategy: Strategy) -> CostTable:
        """Return the same with the degrees of a strategy, which splits what the job's does."""
        own = on_every_rank(self.running.model, strategy)
        divided = replace(self.divided, model=own, strategy=strategy)
        return self._table(divided)

    def _table(self, divided: Divided) -> CostTable:
        """Return the costs of the stage; a step of generation has no backward pass."""
        table = divided.table(self.stage, self.training.recompute)
        return forward_pass(table) if self.model.follows else table

    @cached_property
    def bound(self) -> CostTable:
        """The same with every known number in place."""
        return bind(self.rows, self.values)

    @cached_property
    def stages_memory(self) -> Memory:
        """What the ranks of every stage hold; the precision says the bytes."""
        counted = self._run.counted(self.conventions)
        alike = counted == self.counting
        divided = self.divided if alike else replace(self.divided, conventions=counted)
        return Memory(divided, self.trained)

    @cached_property
    def memory_rows(self) -> CostTable:
        """What one rank of the stage holds [byte]; refused where known numbers do not fit."""
        table = self.stages_memory.table(self.stage)
        check(table.conditions, check_values(self.values))
        return table

    @cached_property
    def sent_by_rank(self) -> Mapping[str, Expr]:
        """What one rank sends in a step [byte], by mesh axis."""
        return sent_by_rank(self.rows, self.training.microbatches)

    @cached_property
    def sent_by_cluster(self) -> Mapping[str, Expr]:
        """What all ranks together send in a step [byte], by mesh axis."""
        return sent_by_cluster(
            self.global_model,
            self.placed,
            self.counting,
            self.training.recompute,
            microbatches=self.training.microbatches,
            pipeline=self.pipeline,
        )

    @cached_property
    def repeated(self) -> tuple[Repeated, ...]:
        """Ops that the ranks of a mesh axis run alike."""
        return self.divided.ranks.repeated(self.divided.split_model)

    def value(self, expr: Expr | float | Fraction | str) -> Expr:
        """Return an expression with every known number in place; a number is itself."""
        if isinstance(expr, str):
            raise InputError(
                f"value of {quote(expr)}: an expression is accepted, as the total of a row; "
                f".total({expr!r}) gives a cost by name"
            )
        number: Expr = bind(exact(expr), self.values)
        return number


def _with(row: Row, known: Mapping[Expr, Expr]) -> Row:
    """Return a row with known brackets in place; most have none."""
    return replace(row, expr=row.expr.xreplace(known)) if row.expr.has(Active) else row


def needed_machine(setup: Setup, what: str) -> Machine:
    """Return the machine of a job, which something needs."""
    if setup.machine is None:
        raise InputError(f"{what} needs a machine: --system h100, or system='h100' in Python")
    return setup.machine


def refuse_fixed(model: Model, by: str) -> None:
    """Refuse to take a cost as a function of a symbol that the model's ops depend on."""
    if by in model.fixed:
        raise InputError(f"with another {by}, {model.name} has other ops: one number is accepted")
