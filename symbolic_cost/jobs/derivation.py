"""Where a formula comes from: each coefficient as a sum over ops, tensors and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Unpack

from sympy import Add, Expr, Symbol

from symbolic_cost.algebra import sums
from symbolic_cost.analysis.forms import factored
from symbolic_cost.analysis.normal import coefficients_kept
from symbolic_cost.analysis.verdict import without_brackets
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.display import NotebookTable
from symbolic_cost.emit.formulas import plain
from symbolic_cost.emit.sheet import Cell, Sheet, headed
from symbolic_cost.errors import Problems
from symbolic_cost.jobs.job import Job
from symbolic_cost.jobs.subject import CostRequest, Subject, notated, subject
from symbolic_cost.ledger import Phase, Quantity, Row
from symbolic_cost.ops.elementwise import KINDS
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import in_glossary_order, n


@dataclass(frozen=True)
class Share:
    """What one row adds to one coefficient.

    Args:
        why: the answer of the conventions that makes it so, with its source.
    """

    monomial: Expr
    number: Expr
    row: Row
    why: str


@dataclass(frozen=True)
class Derived(NotebookTable):
    """A total as coefficients, each the sum of named shares."""

    total: Expr
    shares: tuple[Share, ...]
    about: Subject
    assumed: Mapping[Symbol, Expr]

    __repr__ = NotebookTable.__str__

    @property
    def coefficients(self) -> dict[Expr, Expr]:
        """Coefficient by product of powers: {b l e: 34, b l^2 h: 5}; largest powers last."""
        return sums((share.monomial, share.number) for share in self.shares)

    def of(self, monomial: Expr) -> tuple[Share, ...]:
        """Return the shares of one coefficient."""
        return tuple(one for one in self.shares if one.monomial == monomial)

    def sheet(self) -> Sheet:
        """Tabulate every coefficient with what it is the sum of."""
        rows: list[tuple[Cell, ...]] = []
        for monomial, number in self.coefficients.items():
            for share in self.of(monomial):
                row = share.row
                phase = "" if row.phase is Phase.STATE else row.phase.value.replace("_", " ")
                formula = factored(row.expr)
                own = (row.path, row.tensor or row.kind, share.number, monomial)
                rows.append((*own, phase, formula, share.why))
            rows.append(("sum", "", number, monomial, "", None, ""))
        columns = headed("op, tensor, coefficient>, of, phase, formula, because")
        title = f"{self.about.cost.meaning} of {self.about.name} = {plain(factored(self.total))}"
        return Sheet(title, columns, tuple(rows), tuple(self._notes()))

    def _notes(self) -> Iterator[str]:
        for monomial, number in self.coefficients.items():
            parts = " + ".join(str(share.number) for share in self.of(monomial))
            yield f"{number} {plain(monomial)} = ({parts}) {plain(monomial)}"
        yield from self.about.notes(self.assumed)


def derive(model: str, cost: str, **asked: Unpack[CostRequest]) -> Derived:
    """Explain a cost: every coefficient by the ops, tensors and answers that it is the sum of.

    Args:
        model: name or path of a config.json.
        cost: named cost.
        asked: path, phase, strategy, notation_name, numbers, conventions, attention, recompute,
            train: see `subject.CostRequest`. The notation of Korthikanti et al. holds for the
            family gpt unless one is named.

    Raises:
        InputError: every problem of the arguments.

    >>> found = derive("gpt", "saved", path="block")
    >>> {str(one): int(number) for one, number in found.coefficients.items()}
    {'b*e*l': 34, 'b*h*l**2': 5}
    """
    problems = Problems()
    usual = "megatron" if model == "gpt" else "own"
    letters = problems.attempt(notated, asked.get("notation_name") or usual)
    problems.refuse()
    about = subject(model, cost, letters, problems, **asked)
    rows = [*about.cost.rows(about.rows)]
    bound = about.run.values
    free = {s for row in rows for s in row.total.free_symbols if s.name not in bound}
    used = about.assumed(free)
    why = _Why(about.run.counting, _operands(about.run))
    shares = tuple(share for row in rows for share in _shares(row, used, why))
    total = without_brackets(Add(*(row.total for row in rows))).xreplace(used)
    order = {one: place for place, one in enumerate(_ordered(shares))}
    ranked = tuple(sorted(shares, key=lambda share: order[share.monomial]))
    return Derived(total, ranked, about, used)


def _shares(row: Row, used: Mapping[Symbol, Expr], why: _Why) -> Iterator[Share]:
    expr = without_brackets(row.total).xreplace(dict(used))
    for one, number in coefficients_kept(expr).items():
        yield Share(one, number, row, why.of(row))


def _ordered(shares: tuple[Share, ...]) -> list[Expr]:
    """Sort products of powers by degree, then as the glossary lists their symbols."""
    monomials = dict.fromkeys(share.monomial for share in shares)
    symbols = in_glossary_order({symbol for one in monomials for symbol in one.free_symbols})

    def key(one: Expr) -> tuple[object, ...]:
        powers = one.as_powers_dict()
        degrees = [-powers.get(symbol, 0) for symbol in symbols]
        return (Add(*(p for base, p in powers.items() if not base.is_number)), degrees, str(one))

    return sorted(monomials, key=key)


def _operands(run: Job) -> dict[tuple[str, str], Operand]:
    """Return the declared operand by part and tensor, of all that ops take, make and save."""
    operands: dict[tuple[str, str], Operand] = {}
    for part in run.share.parts:
        for op in part.ops:
            for operand in _of_op(op):
                operands.setdefault((part.path, operand.tensor), operand)
    return operands


def _of_op(op: Op) -> Iterator[Operand]:
    yield from (*op.inputs, *op.outputs, *op.weights, *op.saves(), *op.caches())
    for stage in op.stages:
        if stage is not op:
            yield from (*stage.inputs, *stage.outputs, *stage.saves())


@dataclass(frozen=True)
class _Why:
    """Says which answer of the conventions makes a row what it is."""

    conventions: Conventions
    operands: Mapping[tuple[str, str], Operand]

    def of(self, row: Row) -> str:
        """Return the answer, and the source of the conventions."""
        if row.collective is not None:
            move = row.collective
            return f"{move.kind} over {move.group}, charged as {self.conventions.charge.name}"
        if row.quantity is Quantity.FLOP:
            return self._flop(row)
        operand = self.operands.get((row.part, row.tensor))
        if operand is None or row.quantity in (Quantity.PARAMETER, Quantity.CACHED):
            return "one per element"
        size = plain(self.conventions.sizes.of(operand.role))
        times = f", {operand.copies} of them" if operand.copies != 1 else ""
        unit = "byte" if size == "1" else "bytes"
        return f"{operand.role.value}: {size} {unit} per element{times} ({self.conventions.source})"

    def _flop(self, row: Row) -> str:
        rules = self.conventions
        if row.kind in _CONTRACTIONS:
            rule = plain(rules.contraction_of(row.kind)(n))
            return f"{rule} per sum of {plain(n)} products ({rules.source})"
        kinds = {*KINDS, *rules.elementwise.kinds}
        if row.kind not in kinds:
            return f"as {row.kind} counts ({rules.source})"
        answer = rules.elementwise.of(row.kind, rules.name)
        forward = row.phase is Phase.FORWARD
        rule = answer.forward if forward else answer.backward
        reasons = answer.reason.split(" | ")
        reason = f": {reasons[0 if forward else -1]}" if answer.reason else ""
        text = f"{plain(rule(n))} per row of {plain(n)}{reason}"
        return f"{text} ({answer.source or rules.source})"


_CONTRACTIONS = ("einsum", "conv", "recurrent")
