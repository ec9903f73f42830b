"""A job's costs as code: what is written, and tests on legal configurations drawn by chance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from importlib.metadata import version
from random import Random

from sympy import Expr

from symbolic_cost.conditions import Condition, Least, check
from symbolic_cost.costs import COSTS, named_cost
from symbolic_cost.emit.code import Example, Source
from symbolic_cost.errors import InputError, Problems, SymbolicCostError, refuse, unknown
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.numbers import twice
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.jobs.timed import Timed
from symbolic_cost.parallel.moments import peak
from symbolic_cost.program.exact import Number
from symbolic_cost.program.lowering import lowered
from symbolic_cost.program.program import Program
from symbolic_cost.program.scalars import rounded
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY, exact
from symbolic_cost.systems.results import unit_of
from symbolic_cost.systems.step import RESULTS, STEP_PARTS
from symbolic_cost.units import Unit

STEP, PEAK = "step_time", "peak_memory"
"""What is exported besides named costs: the step with its parts [s], and the fullest moment of a
rank [byte]."""

EXPORTED = (STEP, PEAK, *COSTS)

FREE = ("b", "l")
"""Sizes that stay arguments although a model has numbers for them."""

MOST_TESTS, _MOST_STEPS = 100_000, 5_000_000
"""Tests, and steps of the program in all of them: some ten seconds."""

_TRIES = 200
_LARGEST_POWER = 6


def source_of(
    job: Setup, costs: Iterable[str], *, free: Iterable[str] = FREE, tests: int = 100, seed: int = 0
) -> Source:
    """Return what is written of a job: a function of the symbols that have no number, and of some.

    Args:
        job: model, strategy, machine; degrees without a number are arguments.
        costs: names of `EXPORTED`; one function gives them all.
        free: names of symbols that are arguments whatever number they have.
        tests: configurations to write beside it.
        seed: of these.

    Raises:
        InputError: every name that is unknown, or a number of tests that is none.
    """
    names, open_names = tuple(costs), tuple(free)
    problems = Problems()
    problems.texts += [*twice("costs", names), *twice("free", open_names)]
    problems.texts += [unknown("cost", name, EXPORTED) for name in names if name not in EXPORTED]
    problems.texts += [
        unknown("symbol", name, GLOSSARY) for name in open_names if name not in GLOSSARY
    ]
    if not names:
        problems.texts.append(f"no cost is named: {', '.join(EXPORTED)} are accepted")
    if not 1 <= tests <= MOST_TESTS:
        problems.texts.append(f"{tests} tests: 1 to {MOST_TESTS} are accepted")
    problems.refuse()
    definitions, outputs, units, conditions = _definitions(job, names)
    known = {name: n for name, n in job.values.items() if name not in open_names}
    program = lowered(definitions, outputs.values(), {n: Fraction(v) for n, v in known.items()})
    program = _renamed(program, {old: new for new, old in outputs.items()})
    unread = [name for name in open_names if name not in program.inputs and open_names != FREE]
    refuse(f"free {name}: nothing of {', '.join(names)} depends on it" for name in unread)
    if not program.inputs:
        raise InputError("no symbol is left: name some with --free, as in --free b,l")
    steps = len(program.tape.steps)
    if tests * steps > _MOST_STEPS:
        most = max(1, _MOST_STEPS // steps)
        raise InputError(f"{tests} tests of {steps} steps each: 1 to {most} are accepted")
    legal = _Legal(program, conditions, job.values, known)
    by = f"written by symbolic_cost {version('symbolic_cost')}"
    holds = [
        f"holds where {said}" for said in dict.fromkeys(map(_condition_text, conditions)) if said
    ]
    about = (f"{', '.join(names)} of {job.model.name}, {by}", *header(job), *holds)
    meanings = {name: GLOSSARY[name].meaning for name in program.inputs}
    drawn = legal.samples(tests, Random(seed))  # noqa: S311 - no secret
    title = "cost" if len(names) == 1 else "costs"
    return Source(title, program.tape, about, meanings, units, drawn)


def _definitions(
    job: Setup, names: Sequence[str]
) -> tuple[dict[str, Expr], dict[str, str], dict[str, str], tuple[Condition, ...]]:
    """Return definitions, the definition and the unit of every output, and conditions."""
    definitions: dict[str, Expr] = {}
    outputs: dict[str, str] = {}
    units: dict[str, str] = {}
    conditions: list[Condition] = []
    if STEP in names:
        chain = Timed(job).step.chain
        definitions |= chain.definitions
        conditions += chain.conditions
        for name in (*STEP_PARTS, *RESULTS):
            if name in chain.definitions:
                outputs[name] = name
                units[name] = unit_of(name)
    if PEAK in names:
        table = job.memory_rows
        definitions[PEAK], outputs[PEAK] = peak(table), PEAK
        units[PEAK] = Unit.BYTE.value
        conditions += table.conditions
    for name in names:
        if name in COSTS:
            definitions[name], outputs[name] = named_cost(name).total(job.rows), name
            units[name] = COSTS[name].unit.value
            conditions += job.rows.conditions
    return definitions, outputs, units, tuple(dict.fromkeys(conditions))


def _renamed(program: Program, names: Mapping[str, str]) -> Program:
    outputs = {names[name]: node for name, node in program.outputs.items()}
    return replace(program, outputs=outputs, _made=None)


@dataclass(frozen=True)
class _Legal:
    """Configurations that meet the conditions.

    Args:
        usual: numbers of the job; a size is drawn around its own, others are powers of two.
    """

    program: Program
    conditions: Sequence[Condition]
    usual: Mapping[str, Number]
    bindings: Mapping[str, Number]

    def samples(self, count: int, chance: Random) -> list[Example]:
        """Return so many, with exact results that are rounded once."""
        examples: list[Example] = []
        for _ in range(_TRIES * count):
            inputs = self.program.inputs
            numbers = {name: _drawn(name, self.usual.get(name), chance) for name in inputs}
            if self._meets(numbers):
                results = self.program.exact(numbers)
                outputs = (rounded(results[name]) for name in self.program.outputs)
                examples.append((tuple(map(float, numbers.values())), tuple(outputs)))
            if len(examples) == count:
                return examples
        raise InputError(
            f"{len(examples)} legal configurations in {_TRIES * count} draws: ask for fewer tests, "
            "or bind some degrees"
        )

    def _meets(self, numbers: Mapping[str, Number]) -> bool:
        every = {**self.bindings, **numbers}
        bound = {GLOSSARY[name].symbol: exact(value) for name, value in every.items()}
        try:
            check(self.conditions, bound)
        except SymbolicCostError:
            return False
        return True


def _drawn(name: str, usual: Number | None, chance: Random) -> Number:
    power = 2 ** chance.randrange(_LARGEST_POWER)
    if not GLOSSARY[name].integer:
        return Fraction(chance.randrange(1, 10**6), 10 ** chance.randrange(3))
    return int(usual) * power if usual is not None and usual > 1 else power


def _condition_text(condition: Condition) -> str:
    """Say a condition; nothing where its numbers are known, which were checked."""
    if isinstance(condition, Least):
        return f"{condition.size} >= {condition.least}" if condition.size.free_symbols else ""
    degrees = [str(degree) for _, degree in condition.degrees if degree.free_symbols]
    return f"{condition.size} is a multiple of {' '.join(degrees)}" if degrees else ""
