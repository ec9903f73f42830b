"""Inverse questions as typed: "memory == 80 GiB" for l. Formula, exact integer, what binds."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property

from sympy import Expr, Symbol
from sympy import Max as _Max
from sympy import Min as _Min

from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.inverse import How, first_change, last_within, positive_roots
from symbolic_cost.analysis.laurent import cleared
from symbolic_cost.costs import COSTS
from symbolic_cost.display import NotebookTable
from symbolic_cost.emit.sheet import Cell, Measured, Sheet, headed
from symbolic_cost.errors import InputError, Problems, quote
from symbolic_cost.explore.grammar import BYTE, COUNT, FLOP, SECOND, Name, Number, Operation, parsed
from symbolic_cost.jobs.header import by_unit, header
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.quantities import (
    Quantity,
    fuller,
    held_at_peak,
    quantity,
    refuse_moved,
    resized,
)
from symbolic_cost.jobs.questions import root_row
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact, symbol
from symbolic_cost.symbols import l as LENGTH  # noqa: N812 - a symbol of one letter
from symbolic_cost.units import Unit, human

_DIMENSIONS = {Unit.BYTE: BYTE, Unit.SECOND: SECOND, Unit.FLOP: FLOP, Unit.ELEMENT: COUNT}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "=="}
_STEPS, _LARGEST = 4096, 1 << 40


@dataclass(frozen=True)
class Question:
    """A bound on a quantity.

    Args:
        sign: ==, <=, <, >= or >.
    """

    name: str
    sign: str
    bound: Fraction
    dimension: tuple[int, int, int] | None
    text: str

    def meets(self, value: Fraction) -> bool:
        """Tell whether a value meets the bound; == is met up to it."""
        if value == self.bound:
            return self.sign not in ("<", ">")
        return (value < self.bound) is (self.sign in ("<", "<=", "=="))


def question(text: str) -> Question:
    """Read "memory == 80 GiB" or "80 GiB >= memory".

    Raises:
        InputError: not one comparison of a quantity and a number.
    """
    tree = parsed(text)
    match tree:
        case Operation(operation=sign, operands=(Name(name), Number() as own)) if sign in _TURNED:
            pass
        case Operation(operation=turned, operands=(Number() as own, Name(name))) if (
            turned in _TURNED
        ):
            sign = _TURNED[turned]
        case _:
            raise InputError(
                f"{quote(text)}: a quantity and a number are compared, as in memory == 80 GiB"
            )
    value = exact(own.value)
    return Question(name, sign, Fraction(int(value.p), int(value.q)), own.dimension, own.text)


@dataclass(frozen=True)
class Solved(NotebookTable):
    """The answer to an inverse question.

    Args:
        integer: the last that meets the bound, or the first where one does not; None where none
            does.
    """

    question: Question
    of: Quantity
    by: str
    integer: int | None

    __repr__ = NotebookTable.__str__

    @cached_property
    def _root(self) -> tuple[Expr | None, str]:
        return _closed(self.of, self.question, symbol(self.by), self.integer)

    @property
    def formula(self) -> Expr | None:
        """The root in closed form, of the moment or branch that binds; None without one."""
        return self._root[0]

    @property
    def refused(self) -> str:
        """Why there is no formula."""
        return self._root[1]

    @cached_property
    def legal(self) -> int | None:
        """The nearest to the integer that every condition allows."""
        if self.integer is None:
            return None
        one, two = (self.of.exactly(self.by, size) for size in (1, 2))
        return _legal(self.of, self.by, self.integer, down=two >= one)

    @cached_property
    def binds(self) -> str:
        """What the quantity is made of at the answer, largest share first."""
        at = self.legal if self.integer is not None else 1
        return "" if at is None else _binding(self.of, self.by, at)

    @cached_property
    def slope(self) -> Fraction | None:
        """Derivative of the quantity at the integer."""
        if self.integer is None:
            return None
        return Fraction(self.of.slope(self.by, **{self.by: self.integer}))

    def sheet(self) -> Sheet:
        """Tabulate formula, integers, what binds and the derivative."""
        unit, by = self.of.unit, self.by
        one = self.of.exactly(by, 1)
        least = human(one, unit)
        rows: list[tuple[Cell, ...]] = []
        formula, refused = self._root
        if formula is not None:
            rows.append(root_row(f"{by} in closed form", formula, How.CLOSED, self.of.run))
        if self.integer is None:
            rows.append((by, None, "none", f"{How.SEARCH.value}: {least} at {by} = 1 already"))
        whole = self.integer is not None and self.integer >= _LARGEST
        if whole:
            said = f"{How.SEARCH.value} up to {_LARGEST}: {least} at {by} = 1"
            rows.append((by, None, "every one", said))
        met = self.question.meets(one)
        side = f"{'last' if met else 'first'} integer"
        for name, size in ((side, self.integer), ("legal", self.legal)):
            if size is not None and not whole:
                value = human(self.of.exactly(by, size), unit)
                rows.append((f"{name} {by}", None, size, f"{How.SEARCH.value}: {value}"))
        if self.integer is not None and self.legal is None and not whole:
            rows.append((f"legal {by}", None, "none", "degrees divide no size on that side"))
        if self.slope is not None and not whole:
            slope = Measured(self.slope, unit)
            rows.append((f"derivative there, per {by}", None, slope, "what jumps is flat"))
        if self.binds and not whole:
            rows.append(("what binds", None, self.binds, "derived"))
        columns = headed("what, formula, value>, how")
        notes = [f"no closed form: {refused}"] if refused else []
        run, at = self.of.run, self.legal or self.integer or 1
        if not whole:
            notes += fuller(self.of, by, at)
            run = resized(run, by, at)
        title = f"{self.question.name} {self.question.sign} {self.question.text} for {by}"
        return Sheet(
            title, columns, tuple(rows), (*notes, *self._beyond(), *header(run, *by_unit(unit)))
        )

    def _beyond(self) -> Iterator[str]:
        """Say where the answer passes learned positions, or the length that is on record."""
        run, size = self.of.run, self.legal or self.integer or 0
        most, own = run.most(self.by), run.model.bindings.get(self.by)
        if most is not None and self.integer is not None and self.integer > most:
            yield f"no {self.by} above {most} is legal: the model has {most} learned positions"
        elif self.by == LENGTH.name and own is not None and size > own:
            yield (
                f"{size} is beyond the {LENGTH} = {own} on record for {run.model.name}: computed "
                "positions have no table that ends, but whether the model was trained for so many "
                "is not known"
            )


def solve(text: str, run: Job, by: str) -> Solved:
    """Answer an inverse question: the size of a symbol at which a quantity meets a bound.

    Args:
        text: as "memory == 80 GiB", "step <= 2 s" or "params <= 8e9".
        run: the job; its own number of the symbol is not used.
        by: name of the symbol.

    Raises:
        InputError: every problem of the question, a mismatch of units, or open symbols.
    """
    problems = Problems()
    asked = problems.attempt(question, text)
    variable = problems.attempt(symbol, by)
    problems.refuse()
    name = variable.name
    return answer(asked, quantity(run, asked.name), name)


def answer(asked: Question, it: Quantity, name: str) -> Solved:
    """Answer a question about a quantity; all that it tells besides is derived when asked for."""
    refuse_moved(name, it)
    if asked.dimension is not None and asked.dimension != _DIMENSIONS.get(it.unit):
        unit = "s" if it.unit is Unit.SECOND else "B" if it.unit is Unit.BYTE else it.unit.value
        raise InputError(
            f"{asked.name} is in {it.unit.value}; {asked.text} is of another unit: a number of "
            f"{unit} is accepted"
        )
    missing = [one for one in it.program.inputs if one != name and one not in it.values]
    if missing:
        raise InputError(f"no number for {', '.join(missing)}: bind them, as in --set b=1")
    return Solved(asked, it, name, _integer(it, asked, name))


def _integer(it: Quantity, asked: Question, by: str) -> int | None:
    """Return the last integer that meets the bound, on the side that the sign asks for."""

    def meets(size: int) -> bool:
        return asked.meets(it.exactly(by, size))

    if meets(1):
        return last_within(lambda size: 0 if meets(size) else 1, 0)
    return first_change(lambda size: 1 if meets(size) else -1)


def _legal(it: Quantity, by: str, size: int, *, down: bool) -> int | None:
    """Return the nearest legal size: not above the bound for what grows, else not below."""
    size = min(size, it.run.most(by) or size) if down else size
    steps = range(size, max(0, size - _STEPS), -1) if down else range(size, size + _STEPS)
    legal = (one for one in steps if it.legal(by, one) or (one == 1 and it.lone(by) is not None))
    return next(legal, None)


def _closed(
    it: Quantity, asked: Question, by: Symbol, integer: int | None
) -> tuple[Expr | None, str]:
    """Return the root of the branch that binds, in closed form, or why there is none."""
    if it.expr is None:
        return None, "the step is a chain of definitions"
    if integer is None:
        return None, f"no {by} meets the bound"
    if integer >= _LARGEST:
        return None, f"every {by} meets the bound"
    numbers = {symbol(n): exact(v) for n, v in it.values.items() if n != by.name}
    active = _active(it.expr, {**numbers, by: exact(integer)})
    numerator, _ = cleared(active - exact(asked.bound))
    try:
        roots = positive_roots(numerator, by)
    except InputError:
        return None, f"this equation has no exact solution for {by}"
    for root in roots:
        value = root.xreplace(numbers)
        near = abs(value - integer) if value.is_number else None
        if near is not None and near <= 1:
            return factored(root) if not root.is_number else root, ""
    return None, "ceilings or brackets move the answer away from every root"


def _active(expr: Expr, numbers: dict[Symbol, Expr]) -> Expr:
    """Return a formula with the chosen argument for every Max and Min, at some numbers."""
    while nodes := expr.atoms(_Max, _Min):
        inner = min((n for n in nodes if not any(o is not n and n.has(o) for o in nodes)), key=str)
        pick = max if isinstance(inner, _Max) else min
        chosen = pick(sorted(inner.args, key=str), key=lambda one: one.xreplace(numbers))
        expr = expr.xreplace({inner: chosen})
    return expr


def _binding(it: Quantity, by: str, size: int) -> str:
    """Say what the quantity is made of at a size."""
    if it.name == "memory":
        moment, shares = held_at_peak(it.run, {by: size})
        parts = [f"{name} {_percent(share)}" for name, share in [*shares.items()][:3]]
        return f"{moment}: {', '.join(parts)}"
    if it.expr is None:
        return ""
    run = it.run.replace(numbers={**it.run.numbers, by: size})
    sums: dict[str, Fraction] = {}

    rows = COSTS[it.name].rows(run.rows) if it.name in COSTS else run.rows.select(path=it.name)
    for row in rows:
        known = run.value(row.total)
        part = ".".join(row.path.split(".")[:2])
        sums[part] = sums.get(part, Fraction(0)) + Fraction(int(known.p), int(known.q))
    whole = sum(sums.values(), Fraction(0))
    largest = sorted(sums.items(), key=lambda pair: -pair[1])[:3]
    return ", ".join(f"{name} {_percent(size / whole)}" for name, size in largest)


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.3g} %"
