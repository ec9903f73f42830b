"""A formula typed from a paper, held against the derived one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from sympy import Expr, Integer, Symbol

from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.notations import Notation
from symbolic_cost.analysis.verdict import Answer, Verdict, compared, without_brackets
from symbolic_cost.display import NotebookTable
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.errors import InputError, Problems
from symbolic_cost.jobs.subject import CostRequest, Subject, notated, subject
from symbolic_cost.jobs.tables.totals import number
from symbolic_cost.records import dataclass, replace
from symbolic_cost.typed import formula

ZERO = Integer(0)


@dataclass(frozen=True)
class Checked(NotebookTable):
    """A typed formula beside a derived one."""

    verdict: Verdict
    about: Subject
    assumed: Mapping[Symbol, Expr]

    __repr__ = NotebookTable.__str__

    def __bool__(self) -> bool:
        """Tell whether the two are equal, at these sizes if not at all."""
        return self.verdict.answer in (Answer.EQUAL, Answer.AT_SIZES)

    @property
    def sentence(self) -> str:
        """Say in one sentence what the typed formula is."""
        verdict = self.verdict
        if verdict.answer is Answer.FACTOR and verdict.factor is not None:
            return f"differs by a factor: derived = {plain(verdict.factor)} times typed"
        if verdict.answer is Answer.EQUAL:
            return "equal"
        text = plain(verdict.difference)
        if verdict.answer is Answer.AT_SIZES:
            return f"equal at these sizes; at others derived less typed is {text}"
        if verdict.answer is Answer.LEADING:
            sizes = ", ".join(map(plain, verdict.smaller))
            return f"equal to leading order: derived less typed is {text}, smaller by {sizes}"
        return f"differs: derived less typed is {text}"

    def sheet(self) -> Sheet:
        """Tabulate both formulas and their difference.

        Raises:
            InputError: a formula is no real number at the sizes of the model, as the root of 1 - l.
        """
        verdict = self.verdict
        rows: list[tuple[Cell, ...]] = [
            (name, expr, self._number(expr))
            for name, expr in (
                ("typed", verdict.typed),
                ("derived", factored(verdict.derived)),
                ("derived less typed", verdict.difference),
            )
        ]
        title = f"{self.about.cost.meaning} of {self.about.name}: {verdict.answer.value}"
        letters = self.about.letters
        named = f"notation {letters.name}: {letters.meaning}"
        notes = (self.sentence, named, *self.about.notes(self.assumed))
        return Sheet(title, headed("formula of, formula, value>"), tuple(rows), notes)

    def _number(self, expr: Expr) -> Cell:
        bound = self.about.run.value(expr)
        if not bound.free_symbols and not bound.is_extended_real:
            raise InputError(f"{plain(expr)} is no real number at these sizes")
        return number(bound)


def check(text: str, cost: str, model: str, **asked: Unpack[CostRequest]) -> Checked:
    """Hold a typed formula against the derived cost.

    A part that is repeated is taken once, as papers write formulas per layer. Conventions and the
    kernel of attention are the notation's unless given.

    Args:
        text: the formula.
        cost: named cost.
        model: name or path of a config.json.
        asked: path, phase, strategy, notation_name, numbers, conventions, attention, recompute,
            train: see `subject.CostRequest`.

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
        letters = notated(asked.get("notation_name") or "own")
        typed = formula(text, letters.names)
    except InputError as error:
        problems.texts += error.problems
    about = subject(model, cost, letters, problems, **asked)
    # A size that the model has tied already is no symbol of its formula any more.
    derived = without_brackets(about.cost.total(about.rows))
    used = about.assumed(derived.free_symbols | typed.free_symbols)
    verdict = compared(typed.xreplace(used), derived.xreplace(used))
    if verdict.answer is not Answer.EQUAL and about.run.value(verdict.difference) == 0:
        verdict = replace(verdict, answer=Answer.AT_SIZES)
    return Checked(verdict, about, used)
