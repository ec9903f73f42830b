"""A formula typed from a paper, held against the derived one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sympy import Expr, Integer, Symbol

from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.notations import Notation, notation
from symbolic_cost.analysis.verdict import Answer, Verdict, compared, without_brackets
from symbolic_cost.costs import NamedCost, named_cost
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Column, Sheet
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.job import Job, job
from symbolic_cost.jobs.tables.totals import below, number
from symbolic_cost.ledger import CostTable
from symbolic_cost.symbols import symbol
from symbolic_cost.typed import formula

ZERO = Integer(0)


@dataclass(frozen=True)
class Checked:
    """A typed formula beside a derived one."""

    verdict: Verdict
    cost: NamedCost
    run: Job
    notation: Notation
    path: str | None
    assumed: Mapping[Symbol, Expr]

    def __bool__(self) -> bool:
        """Tell whether the two are equal."""
        return self.verdict.answer is Answer.EQUAL

    @property
    def sentence(self) -> str:
        """Say in one sentence what the typed formula is."""
        verdict = self.verdict
        if verdict.answer is Answer.FACTOR and verdict.factor is not None:
            return f"differs by a factor: derived = {plain(verdict.factor)} times typed"
        if verdict.answer is Answer.EQUAL:
            return "equal"
        text = plain(verdict.difference)
        if verdict.answer is Answer.LEADING:
            sizes = ", ".join(map(plain, verdict.smaller))
            return f"equal to leading order: derived less typed is {text}, smaller by {sizes}"
        return f"differs: derived less typed is {text}"

    def sheet(self) -> Sheet:
        """Tabulate both formulas and their difference."""
        verdict = self.verdict
        rows: list[tuple[Cell, ...]] = [
            (name, expr, number(self.run.value(expr)))
            for name, expr in (
                ("typed", verdict.typed),
                ("derived", factored(verdict.derived)),
                ("derived less typed", verdict.difference),
            )
        ]
        columns = (Column("formula of"), Column("formula"), Column("value", "right"))
        where = self.path or self.run.share.name
        title = f"{self.cost.meaning} of {where}: {verdict.answer.value}"
        return Sheet(title, columns, tuple(rows), (self.sentence, *self._notes()))

    def _notes(self) -> tuple[str, ...]:
        tied = ", ".join(f"{plain(one)} = {plain(expr)}" for one, expr in self.assumed.items())
        times = occurrences(self.run, self.path)
        return (
            f"notation {self.notation.name}: {self.notation.meaning}",
            *((f"assumed by the notation: {tied}",) if tied else ()),
            *((f"one of {plain(times)}, which are alike",) if times is not None else ()),
            *header(self.run),
        )


def check(
    text: str,
    cost: str,
    model: str,
    *,
    path: str | None = None,
    phase: str | None = None,
    strategy: str = "",
    notation_name: str | Notation = "own",
    numbers: Mapping[str, int | Fraction] | None = None,
    conventions: str | None = None,
    attention: str | None = None,
    recompute: str = "none",
) -> Checked:
    """Hold a typed formula against the derived cost.

    A part that is repeated is taken once, as papers write formulas per layer. Conventions and the
    kernel of attention are the notation's unless given.

    Args:
        text: the formula.
        cost: named cost.
        model: name or path of a config.json.
        path: part of the model; all of it unless given.
        phase: as of the command `formula`.
        strategy: as of `jobs.job.job`.
        notation_name: whose letters the formula uses: a name, a TOML file or a notation.
        numbers: by symbol name.
        conventions: of counting.
        attention: kernel.
        recompute: policy.

    Raises:
        InputError: every problem of the formula and of the other arguments.

    >>> found = check(
    ...     "sbh(34 + 5as/h)", "saved", "gpt", path="block", notation_name="megatron"
    ... )
    >>> found.sentence
    'equal'
    """
    problems = Problems()
    letters, typed = Notation("own", "", {}), ZERO
    try:
        letters = notated(notation_name)
        typed = formula(text, letters.names)
    except InputError as error:
        problems.found += error.problems
    named = problems.attempt(named_cost, cost, phase)
    rules = conventions or letters.conventions or "standard"
    kernel = attention or letters.attention or "flash"

    def make() -> Job:
        more = {"conventions": rules, "attention": kernel, "recompute": recompute}
        return job(model, strategy, numbers, **more)  # type: ignore[arg-type]

    run = problems.attempt(make)
    problems.refuse()
    rows = below(run.rows, path)
    # A size that the model has tied already is no symbol of its formula any more.
    derived = without_brackets(named.total(once(rows, run, path)))
    tied = {symbol(name): expr for name, expr in letters.assumed.items()}
    used = {s: e for s, e in tied.items() if s in derived.free_symbols or s in typed.free_symbols}
    verdict = compared(typed.xreplace(used), derived.xreplace(used))
    return Checked(verdict, named, run, letters, path, used)


def notated(name: str | Notation) -> Notation:
    """Return a notation, or that of a name."""
    return name if isinstance(name, Notation) else notation(name)


def once(rows: CostTable, run: Job, path: str | None) -> CostTable:
    """Return the rows of one occurrence of a part."""
    return rows if occurrences(run, path) is None else rows.once()


def occurrences(run: Job, path: str | None) -> Expr | None:
    """Return how often a part of the model occurs, if it is one part and repeated."""
    if path is None:
        return None
    first = path.partition(".")[0]
    repeats = [part.repeat for part in run.share.parts if part.path.partition(".")[0] == first]
    return repeats[0] if len(repeats) == 1 and repeats[0] != 1 else None
