"""A cost of a job as a formula of a paper is about it: one notation, one part, taken once."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TypedDict, Unpack

from sympy import Expr, Symbol

from symbolic_cost.analysis.notations import Notation, notation
from symbolic_cost.costs import NamedCost, named_cost
from symbolic_cost.emit.formulas import plain
from symbolic_cost.errors import Problems
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.job import Job, job
from symbolic_cost.jobs.tied import tied
from symbolic_cost.ledger import CostTable
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import e, h, q, symbol

RUN = ("attention", "stack", "recompute", "train")
"""What of a request says how the model is run, as options of a job."""


class CostRequest(TypedDict, total=False):
    """What may be said of a cost.

    path: part of the model, all of it unless given; one that is repeated is taken once.
    phase: as of the command `formula`.
    strategy: as of `jobs.job.job`.
    notation_name: whose letters, sizes, conventions and kernel hold where none are given: a name,
        a TOML file or a notation.
    ties: sizes that others say, by symbol name, as {f: 4*e}.
    numbers: by symbol name.
    conventions: of counting; those of the notation, or standard.
    attention: kernel; that of the stack if one is named, else of the notation, or flash.
    stack: software that runs.
    recompute: policy.
    train: weights that are trained.
    """

    path: str | None
    phase: str | None
    strategy: str
    notation_name: str | Notation | None
    ties: Mapping[str, Expr]
    numbers: Mapping[str, int | Fraction] | None
    conventions: str | None
    attention: str | None
    stack: str | None
    recompute: str | None
    train: str | None


@dataclass(frozen=True)
class Subject:
    """A named cost of one part of a job, in the letters of a notation."""

    cost: NamedCost
    run: Job
    letters: Notation
    path: str | None

    @property
    def rows(self) -> CostTable:
        """The rows of one occurrence of the part."""
        rows = self.run.rows.select(path=self.path)
        return rows if self.occurrences is None else rows.once()

    @property
    def occurrences(self) -> Expr | None:
        """How often the part occurs, if it is one part and repeated."""
        if self.path is None:
            return None
        first = self.path.partition(".")[0]
        parts = [p.repeat for p in self.run.share.parts if p.path.partition(".")[0] == first]
        return parts[0] if len(parts) == 1 and parts[0] != 1 else None

    @property
    def name(self) -> str:
        """What the cost is of."""
        return self.path or self.run.share.name

    def notes(self, used: Mapping[Symbol, Expr]) -> tuple[str, ...]:
        """Return what is assumed, which part is meant, and the header of the job."""
        tied = ", ".join(f"{plain(one)} = {plain(expr)}" for one, expr in used.items())
        times = self.occurrences
        return (
            *((f"assumed: {tied}",) if tied else ()),
            *((f"one of {plain(times)}, which are alike",) if times is not None else ()),
            *header(self.run),
        )

    def assumed(self, free: set[Symbol]) -> dict[Symbol, Expr]:
        """Return the sizes that the notation ties, of symbols that occur: f = 4 e.

        Where a model has no width of heads of its own, it is that of the embedding over the heads.
        """
        tied = {symbol(name): expr for name, expr in self.letters.assumed.items()}
        sizes = self.run.model.symbols
        if q not in sizes and {e, h} <= sizes:
            tied.setdefault(q, e / h)
        return {one: expr for one, expr in tied.items() if one in free}


def subject(
    model: str, cost: str, letters: Notation, problems: Problems, **asked: Unpack[CostRequest]
) -> Subject:
    """Return what a formula is about."""
    named = problems.attempt(named_cost, cost, asked.get("phase"))
    rules = asked.get("conventions") or letters.conventions or "standard"

    def make() -> Job:
        options = {name: asked.get(name) for name in RUN}
        if not options["stack"]:
            options["attention"] = options["attention"] or letters.attention
        more = {"conventions": rules} | {name: one for name, one in options.items() if one}
        own = tied(model, asked["ties"]) if asked.get("ties") else model
        return job(own, asked.get("strategy") or "", asked.get("numbers"), **more)  # type: ignore[arg-type]

    run = problems.attempt(make)
    problems.refuse()
    return Subject(named, run, letters, asked.get("path"))


def notated(name: str | Notation) -> Notation:
    """Return a notation, or that of a name."""
    return name if isinstance(name, Notation) else notation(name)
