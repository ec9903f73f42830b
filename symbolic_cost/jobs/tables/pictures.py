"""What pictures show: memory and time of jobs as stacked bars, a cost over one of its symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from sympy import Add, Expr

from symbolic_cost.algebra import sums
from symbolic_cost.analysis.forms import expanded, factored, leaves
from symbolic_cost.costs import named_cost
from symbolic_cost.emit.charts import Bars, Curve, Curves
from symbolic_cost.emit.naming import text_of
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.answers import TimeAnswer
from symbolic_cost.jobs.fit import surroundings
from symbolic_cost.jobs.numbers import refuse_absent
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.ledger import Place
from symbolic_cost.parallel.moments import MOMENTS, moments
from symbolic_cost.symbols import GLOSSARY, exact, symbol
from symbolic_cost.units import Unit, human

_POINTS = 41
_SPAN = 16
"""A curve goes from a sixteenth of the symbol's number to sixteen times it."""


def memory_bars(works: Sequence[Setup], labels: Sequence[str] = ()) -> Bars:
    """Return what one rank of each job holds at its peak."""
    stacks = [_peak(work) for work in works]
    names = dict.fromkeys(name for stack in stacks for name in stack)
    parts = {name: [stack.get(name, 0.0) for stack in stacks] for name in names}
    machine = works[0].machine
    limit = 0.0 if machine is None else float(machine.usable.value)
    of = "" if machine is None else f"usable memory of {machine.name}"
    title = f"Memory of one rank of {works[0].model.name}, at its peak"
    names_of = labels or [_label(work) for work in works]
    return Bars(title, names_of, parts, Unit.BYTE, limit, of)


def _peak(work: Setup) -> dict[str, float]:
    table = work.memory_rows
    held = {name: _exact_total(work, total) for name, total in moments(table).items()}
    at = max(held, key=held.__getitem__)
    stack: dict[str, float] = {}
    for quantity in MOMENTS[at][0]:
        rows = table.select(quantity, where=lambda row: row.place is Place.DEVICE)
        size = _exact_total(work, rows.total()) if len(rows) else Fraction(0)
        stack[quantity.value.replace("_", " ")] = float(size)
    rest = float(held[at]) - sum(stack.values())
    beside = float(_exact_total(work, surroundings(work)))
    around = {"beside tensors": beside} if beside else {}
    return {**stack, "workspace": max(0.0, rest), **around}


def _exact_total(work: Setup, total: Expr) -> Fraction:
    bound = work.value(total)
    if bound.free_symbols:
        names = ", ".join(sorted(one.name for one in bound.free_symbols))
        raise InputError(f"a picture needs numbers for {names}: bind them, as in --set M=8")
    return Fraction(int(bound.p), int(bound.q)) if bound.is_Rational else Fraction(float(bound))


def _label(work: Setup) -> str:
    return str(work.strategy) or "one rank"


def time_bars(answers: Sequence[TimeAnswer]) -> Bars:
    """Return the parts of a step of each job: what adds up to it."""
    stacks = [_step(answer) for answer in answers]
    names = dict.fromkeys(name for stack in stacks for name in stack)
    parts = {name: [stack.get(name, 0.0) for stack in stacks] for name in names}
    labels = [f"{_label(a.setup)} (MFU {human(a.mfu, Unit.RATIO, 2)})" for a in answers]
    return Bars(answers[0].timed.title, labels, parts, Unit.SECOND)


def _step(answer: TimeAnswer) -> dict[str, float]:
    known = answer.timed.numbers
    waits = float(known["microbatches.exposed"])
    parts = {"compute and memory": float(known["microbatches"]) - waits, "waiting for ranks": waits}
    for name in ("bubble", "gradients", "clipping", "optimizer", "weights"):
        parts[name] = float(known[name])
    return parts


def scaling_curves(work: Setup, name: str, by: str) -> Curves:
    """Return a cost over one of its symbols: the whole, and its terms by power of the symbol."""
    cost, variable = named_cost(name), symbol(by)
    refuse_absent(work.model, work.strategy, variable.name)
    total = cost.total(work.rows)
    if variable not in total.free_symbols:
        raise InputError(f"{name} of {work.model.name} does not depend on {by}")
    here = work.values.get(variable.name)
    if here is None:
        raise InputError(f"a curve needs a number to go around: --set {by}=4096")
    across = [float(here) * _SPAN ** (2 * n / (_POINTS - 1) - 1) for n in range(_POINTS)]
    powers = _powers(total, variable)
    terms = [(None, total), *(powers.items() if len(powers) > 1 else ())]
    curves = []
    for power, term in terms:
        up = _values(work, term, variable, across)
        curves.append(Curve(_written(term, variable, power, across[-1], up[-1]), across, up))
    shown = [curve for curve in curves if min(curve.up) > 0]
    title = f"{cost.meaning[:1].upper()}{cost.meaning[1:]} of {work.share.name}, {_label(work)}"
    meaning = f"{text_of(variable.name)}: {GLOSSARY[variable.name].meaning}"
    return Curves(title, meaning, f"{cost.name} [{cost.unit}]", shown)


_LONG = 40
"""Symbols and numbers of the longest formula that a legend has room for."""


def _written(term: Expr, variable: Expr, power: Expr | None, x: float, y: float) -> Expr | str:
    """Return what a legend calls terms of one power: a formula, or 3.21e+07 l^2 for a long one."""
    formula = factored(term)
    if leaves(formula) <= _LONG:
        return formula
    name = text_of(variable.name)
    if power is None:
        return f"the whole, of all powers of {name}"
    if power == 0:
        return f"what is no power of {name}"
    return f"{y / round(x) ** float(power):.3g} {name}{'' if power == 1 else f'^{power}'}"


def _powers(total: Expr, variable: Expr) -> Mapping[Expr, Expr]:
    """Return the terms of each power of a symbol; those that are no power of it together."""

    def power_of(term: Expr) -> Expr:
        coefficient, power = term.as_coeff_exponent(variable)
        return exact(0) if coefficient.has(variable) else power

    return sums((power_of(term), term) for term in Add.make_args(expanded(total)))


def _values(work: Setup, term: Expr, variable: Expr, across: Sequence[float]) -> list[float]:
    others = {n: v for n, v in work.values.items() if n != variable.name}
    known = term.xreplace({symbol(n): exact(v) for n, v in others.items()})
    missing = sorted(s.name for s in known.free_symbols if s != variable)
    if missing:
        raise InputError(f"a curve needs numbers for {', '.join(missing)}: bind them with --set")
    return [float(known.xreplace({variable: exact(round(x))})) for x in across]
