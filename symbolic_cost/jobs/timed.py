"""The time of a job's step, with the number of every definition."""

from collections.abc import Mapping
from functools import cached_property

from sympy import Expr

from symbolic_cost.conditions import check
from symbolic_cost.conventions.presets import MODEL_FLOP, STANDARD
from symbolic_cost.errors import InputError, SymbolicCostError
from symbolic_cost.jobs.fit import fit
from symbolic_cost.jobs.header import without_number
from symbolic_cost.jobs.peaks import Fit
from symbolic_cost.jobs.setup import Setup, needed_machine
from symbolic_cost.numeric.binding import check_values
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.memory import Memory
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import Divided
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import M, exact, named
from symbolic_cost.systems.setting import Setting
from symbolic_cost.systems.spread import Interval, interval
from symbolic_cost.systems.step import StepTime, step_time
from symbolic_cost.units import Unit, human


@dataclass(frozen=True)
class Timed:
    """A step of a job.

    Args:
        by: name of a symbol that stays one for a derivative, be it a degree or the microbatches.
    """

    setup: Setup
    by: str = ""

    def __post_init__(self) -> None:
        needed_machine(self.setup, "a time")

    @property
    def title(self) -> str:
        """What is timed, on what."""
        return f"One step of {self.setup.model.name} on {needed_machine(self.setup, 'a time').name}"

    @cached_property
    def step(self) -> StepTime:
        """The step as a chain of definitions."""
        try:
            step = self._derived()
            check(step.chain.conditions, check_values(self.setup.values))
        except SymbolicCostError:
            self.setup.bound  # noqa: B018 - refuses them by the names of the degrees
            raise
        return step

    def _derived(self) -> StepTime:
        setting = self.setting
        return step_time(
            setting.model, setting.strategy, setting.machine, setting.training, setting.methods
        )

    @cached_property
    def setting(self) -> Setting:
        """What the step rests on."""
        setup, machine = self.setup, needed_machine(self.setup, "a time")
        methods = replace(
            setup.methods,
            conventions=setup.running.executed(setup.trained.conventions_of(STANDARD)),
            counted=MODEL_FLOP if setup.conventions == STANDARD else setup.conventions,
        )
        ranks = setup.strategy.numbered(setup.values)
        degrees = {s.name for entry in STRATEGIES.values() for s in entry.meshes.values()}
        strategy = Structure(ranks).symbolic if self.by in degrees else ranks
        model = on_every_rank(setup.running.model, strategy)
        training = setup.trained
        if self.by == "M":
            training = replace(training, microbatches=M)
        return Setting(model, strategy, machine, training, methods)

    @property
    def open_symbols(self) -> tuple[str, ...]:
        """The symbols that have no number: without any, the step is a formula of them."""
        symbols, known = self.step.chain.symbols, self.setup.counted_values
        return tuple(symbol.name for symbol in symbols if symbol.name not in known)

    @cached_property
    def numbers(self) -> Mapping[str, Expr]:
        """The number of every definition and symbol."""
        chain, values = self.step.chain, self.setup.counted_values
        if self.open_symbols:
            raise InputError(
                f"no time without numbers for {', '.join(self.open_symbols)}: bind them, as in "
                "--set M=8"
            )
        sizes = {symbol.name: values[symbol.name] for symbol in chain.symbols}
        return {**chain.evaluate(sizes), **{name: exact(size) for name, size in sizes.items()}}

    @cached_property
    def interval(self) -> Interval | None:
        """The ends of four of five steps [s]; none for the efficiencies of a record alone."""
        rates = self.setting.timing.rates
        if rates is None:
            return None
        return interval(self.step.chain, self.numbers, rates)

    def number(self, expr: Expr) -> Expr:
        """Return an expression in the definitions as a number."""
        return expr.xreplace(self._numbers)

    @cached_property
    def _numbers(self) -> Mapping[Expr, Expr]:
        return {named(name): number for name, number in self.numbers.items()}

    @property
    def microbatches(self) -> Expr:
        """Microbatches of one step and pipeline."""
        return self.setup.value(self.setup.training.microbatches)

    @cached_property
    def fit(self) -> Fit:
        """Whether the job fits into the memory of the machine."""
        return fit(self.setup, self.memory)

    @cached_property
    def memory(self) -> Memory:
        """What the ranks of every stage hold."""
        return self.memory_of(self.step.divided)

    def memory_of(self, divided: Divided) -> Memory:
        """Return what the ranks of every stage hold, of the step's model on them.

        What is kept does not depend on which pairs a kernel computes, so that the step's own
        tables say it where the conventions are the same but for these.
        """
        setup = self.setup
        executed = setup.running.executed(setup.counting)
        divided = (
            divided if divided.conventions == executed else replace(divided, conventions=executed)
        )
        return Memory(divided, setup.trained)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the numbers those of no real run."""
        if self.open_symbols:
            return (without_number(self.open_symbols),)
        lines = [] if self.fit else [*self.fit.summary]
        shares = {name: float(self.numbers[name]) for name in ("mfu", "hfu")}
        above = [f"{name.upper()} {share:.3g}" for name, share in shares.items() if share > 1]
        if above:
            lines.append(
                f"{' and '.join(above)} above 1: conventions {self.setup.conventions.name} count "
                f"work that attention {self.setup.running.attention} leaves out"
            )
        return tuple(lines)

    def __str__(self) -> str:
        step, mfu = float(self.numbers["step"]), float(self.numbers["mfu"])
        own = self.interval
        ends = "" if own is None else f" ({ends_of(own)})"
        return f"{self.title}: {human(step, Unit.SECOND)}{ends}, MFU {mfu:.3f}"


def ends_of(own: Interval) -> str:
    """Say which ends four of five steps lie between."""
    return f"{human(own.low, Unit.SECOND)} to {human(own.high, Unit.SECOND)}"
