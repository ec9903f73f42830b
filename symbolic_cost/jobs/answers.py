"""Answers of a job: a table for people, its rows, totals, a frame and LaTeX."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sympy import Expr

from symbolic_cost.checking import checked
from symbolic_cost.costs import named_cost
from symbolic_cost.display import NotebookTable
from symbolic_cost.emit.sheet import Sheet, render
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.fit import fit
from symbolic_cost.jobs.peaks import Fit
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.parallel.moments import peak
from symbolic_cost.records import dataclass

if TYPE_CHECKING:
    import pandas as pd

    from symbolic_cost.jobs.timed import Timed
    from symbolic_cost.systems.goodput import Goodput
    from symbolic_cost.systems.prices import Costs


_WRITTEN = (Quantity.WEIGHT, Quantity.MASTER_WEIGHT, Quantity.OPTIMIZER)
"""What a checkpoint holds."""


@checked
@dataclass(frozen=True)
class Answer(NotebookTable):
    """One answer.

    Args:
        derived: gives the rows that it was made from, when they are asked for.
    """

    setup: Setup
    sheet: Sheet
    derived: Callable[[], CostTable]

    @cached_property
    def rows(self) -> CostTable:
        """What it was made from, sizes and degrees as symbols."""
        return self.derived()

    def total(
        self,
        quantity: Quantity | str,
        *,
        phase: Phase | Iterable[Phase | str] | str | None = None,
        path: str | None = None,
    ) -> Expr:
        """Return the total of a quantity ("flop") or of a named cost ("flops_fwd").

        Known numbers are in place; what has none stays a symbol. In the quantity's base unit.
        Memory has its "peak", a time its numbers, as "step" or "mfu": of all of it alone.

        Raises:
            InputError: unknown names, or numbers that do not fit.
        """
        own = self._number(str(quantity))
        if own is not None and (phase, path) != (None, None):
            raise InputError(f"{quantity} is one number: neither a phase nor a path is accepted")
        if own is not None:
            return own
        if quantity in set(Quantity):
            return bind(self.rows, self.setup.values).total(quantity, phase=phase, path=path)
        rows = self.rows if path is None else self.rows.select(path=path)
        return self.setup.value(named_cost(quantity).total(rows))

    def _number(self, name: str) -> Expr | None:  # noqa: ARG002 - some kinds of answers have names
        """Return a number that is no sum of rows, by name."""
        return None

    def frame(self) -> pd.DataFrame:
        """Return the table as a frame: whole formulas, exact numbers, and units beside numbers."""
        import pandas as pd

        table = self.sheet.split
        headings = [column.full_title for column in table.columns]
        return pd.DataFrame(table.rows, columns=headings, dtype=object)

    def latex(self, caption: str = "", label: str = "", width: str = "article") -> str:
        """Return the table as LaTeX that fits its page: article, ieee, acm, neurips or a width."""
        from symbolic_cost.emit.latex import Float, write
        from symbolic_cost.emit.page import page

        return write(self.sheet.visible, Float(page(width), caption, label))

    def __str__(self) -> str:
        return render(self.sheet, "table")

    __repr__ = __str__


@dataclass(frozen=True)
class MemoryAnswer(Answer):
    """What one rank holds."""

    __repr__ = Answer.__str__

    @cached_property
    def fits(self) -> Fit:
        """Whether every stage fits into the machine's memory; it says what binds."""
        return fit(self.setup)

    @property
    def peak(self) -> Expr:
        """The greatest of the moments of the step [byte]."""
        return self.setup.value(peak(self.rows))

    def _number(self, name: str) -> Expr | None:
        return self.peak if name == "peak" else None


class Exact(Fraction):
    """A fraction that is read as a decimal, though it may have a hundred digits.

    >>> Exact(1, 3), Exact(1, 3) == Fraction(1, 3)
    (Exact(0.333333333333), True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Print twelve digits."""
        return f"Exact({float(self):.12g})"


@dataclass(frozen=True)
class TimeAnswer(Answer):
    """How long a step takes.

    Args:
        timed: the step with the number of every definition.
    """

    timed: Timed

    __repr__ = Answer.__str__

    def _number(self, name: str) -> Expr | None:
        return self.timed.numbers.get(name)

    @property
    def step(self) -> Fraction | int | Expr:
        """The time of one step [s], exactly."""
        return self.number("step")

    @property
    def low(self) -> float | None:
        """The low end of the interval in which four of five steps lie [s]; none without a stack."""
        return None if self.timed.interval is None else self.timed.interval.low

    @property
    def high(self) -> float | None:
        """The high end of that interval [s]; none without a stack."""
        return None if self.timed.interval is None else self.timed.interval.high

    @property
    def doubt(self) -> str:
        """What carries the most uncertainty; empty without a stack."""
        return "" if self.timed.interval is None else self.timed.interval.most

    @property
    def mfu(self) -> float:
        """Share of the peak rate that the FLOP of the conventions make."""
        return float(self.timed.numbers["mfu"])

    def number(self, name: str) -> Fraction | int | Expr:
        """Return the number of a definition, such as "bubble" [s] or "mfu"."""
        number = self.timed.numbers[name]
        if not number.is_Rational:
            return number
        exact = value(number)
        return exact if isinstance(exact, int) else Exact(exact)

    def costs(self, **prices: float | str) -> Costs:
        """Return what one step costs on all ranks: dollars, energy and carbon.

        Args:
            **prices: price [USD/h], power [W], pue and grid in place of what is on record, as
                `systems.prices.rates` takes them.

        Raises:
            InputError: symbols without a number, or numbers that are refused.
        """
        from symbolic_cost.systems.prices import rates

        machine, strategy = self.setup.machine, self.setup.strategy.numbered(self.setup.values)
        name = "" if machine is None else machine.name
        return rates(name, **prices).costs(float(self.step) * int(strategy.ranks))  # type: ignore[arg-type]

    def goodput(self, **facts: float) -> Goodput:
        """Return what checkpoints and failures leave of a run of such steps.

        A rank writes its share of the weights, of the master copy and of the moments.

        Args:
            **facts: device_mtbf [s], writing [byte/s], restart [s], as of `systems.goodput`.

        Raises:
            InputError: symbols without a number, or numbers that are refused.
        """
        from symbolic_cost.systems.goodput import goodput

        rows = bind(self.setup.memory_rows, self.setup.values)
        size = sum(float(rows.total(quantity)) for quantity in _WRITTEN)
        ranks = int(self.setup.strategy.numbered(self.setup.values).ranks)
        return goodput(size, ranks, **facts)

    @property
    def fits(self) -> Fit:
        """Whether every stage fits into the machine's memory; it says what binds."""
        return self.timed.fit
