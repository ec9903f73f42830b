"""What is asked of a sweep: which configurations count, which are kept, which columns they have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

import numpy as np

from symbolic_cost.errors import InputError, Problems, quote, refuse, unknown
from symbolic_cost.explore.grammar import BYTE, COUNT, SECOND, Dimension
from symbolic_cost.explore.objectives import HELD, LEGAL, MEMORY, NEEDED, SHARE
from symbolic_cost.explore.plan import Plan
from symbolic_cost.explore.points import Arrays, Floats
from symbolic_cost.explore.priced import TIMES
from symbolic_cost.explore.question import (
    Columns,
    NameKind,
    Question,
    expression,
    names_in,
    question,
)
from symbolic_cost.explore.sweep_axes import Varied
from symbolic_cost.records import dataclass

Mode = Literal["all", "top", "front", "histogram"]

_RATES = ("mfu", "hfu", "achieved", "tokens_per_second", "samples_per_second")
"""Outputs of which more is better."""

_DIMENSIONS: dict[str, Dimension] = {
    **dict.fromkeys((*_RATES[:2], "bubble_fraction"), COUNT),
    **dict.fromkeys(_RATES[3:], (0, -1, 0)),
    "achieved": (0, -1, 1),
    "memory": BYTE,
    "needed": BYTE,
    "capacity": BYTE,
}
_MADE = {"cost": ("tokens_per_second", "samples_per_second"), "fits": ("needed",)}
"""Columns made of others: device seconds of one token or sample, and whether memory suffices."""

_SHOWN = ("step", "mfu", "tokens_per_second", "samples_per_second", "memory", "fits")

UNITS = {BYTE: "byte", SECOND: "s", (0, -1, 0): "1/s", (0, -1, 1): "FLOP/s", COUNT: "1", (): "bool"}


@dataclass(frozen=True)
class SweepQuestion:
    """What is asked.

    Args:
        mode: all rows, the best ones, those that no other beats in both keys, or how many there
            are by size of the key.
        where: the configurations that count; all legal ones unless given.
        keys: what is made small: none, one, or two for a front; or what is counted by size.
        units: of the columns, by name.
    """

    mode: Mode
    where: Question | None
    keys: tuple[Question, ...]
    most: int
    columns: tuple[str, ...]
    units: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Names that where and keys ask for."""
        held = (*self.keys, *((self.where,) if self.where else ()))
        return tuple(dict.fromkeys(name for one in held for name in one.names))


def sweep_question(
    plan: Plan,
    mode: Mode,
    where: str,
    by: Collection[str],
    *,
    most: int = 0,
    columns: Collection[str] = (),
) -> SweepQuestion:
    """Return what is asked, each name and unit checked.

    Args:
        plan: of the sweep.
        mode: what is kept.
        where: a question, or nothing.
        by: expressions to make small; of a rate alone, such as mfu, more is better.
        most: rows to keep.
        columns: of rows, beside those that vary; step, memory, rates and fits unless given.
    """
    outputs = {plain(n) for n in plan.outputs if not n.startswith((LEGAL, HELD, SHARE))}
    bounded = any(case.capacity is not None for case in plan.cases)
    known = dimensions(plan, outputs, bounded=bounded)
    condition, keys = _read(known, where, by, columns)
    shown = tuple(columns) or tuple(name for name in _SHOWN if name in known)
    varied = [axis.name for axis in (*plan.words.axes, *plan.outer.axes, *plan.inner.axes)]
    follow = [plan.names[symbol] for symbol in ("dp",) if plan.ranks.follows]
    follow += ["M"] if "B" in plan.ranks.numbers or "global_batch" in varied else []
    asks = [name for one in keys for name in one.names if name in known]
    names = tuple(dict.fromkeys((*varied, *follow, *shown, *asks)))
    units = {name: UNITS.get(known[name], "word") for name in names}  # type: ignore[arg-type]
    return SweepQuestion(mode, condition, tuple(keys), most, names, units)


def check_names(own: Varied, where: str, by: Collection[str], columns: Collection[str]) -> None:
    """Refuse names and units before anything is derived: what programs give is known by name."""
    timed = own.job.machine is not None or any(axis.name == "system" for axis in own.words.axes)
    outputs = {plain(name) for name in (MEMORY, NEEDED, *(TIMES if timed else ()))}
    known = dimensions(own, outputs, bounded=timed)
    asked = [name for text in (where, *by) if text.strip() for name in names_in(text)]
    of_machines = {*map(plain, TIMES), "capacity", "fits", "cost"} - known.keys()
    refuse(
        f"{name} needs a machine: --system h100"
        for name in dict.fromkeys((*asked, *columns))
        if name in of_machines
    )
    _read(known, where, by, columns)


def _read(
    known: NameKind, where: str, by: Collection[str], columns: Collection[str]
) -> tuple[Question | None, list[Question]]:
    """Return the condition and the keys, each name and unit checked."""
    problems = Problems()
    condition = problems.attempt(question, where, known) if where.strip() else None
    texts = [f"-{text.strip()}" if text.strip() in _RATES else text for text in by]
    keys = [problems.attempt(expression, text, known) for text in texts]
    problems.texts += [unknown("column", name, known) for name in columns if name not in known]
    problems.texts += [
        f"{quote(one.text)} is the same for every candidate: name what they differ in"
        for one in (condition, *keys)
        if one is not None and not one.names
    ]
    problems.refuse()
    return condition, keys


def dimensions(plan: Plan | Varied, outputs: Collection[str], *, bounded: bool) -> NameKind:
    """Return the dimension of every name that may be asked for, or the words that it may be.

    Args:
        plan: what varies.
        outputs: of its programs, as typed.
        bounded: whether the memory of some machine is.
    """
    known: dict[str, Dimension | tuple[str, ...]] = {
        name: _DIMENSIONS.get(name, SECOND) for name in outputs
    }
    if {*outputs} & set(_MADE["cost"]):
        known["cost"] = SECOND
    if bounded:
        known |= {"fits": (), "capacity": BYTE}
    known |= dict.fromkeys(plan.names.values(), COUNT)
    known |= {axis.name: COUNT for axis in (*plan.outer.axes, *plan.inner.axes)}
    known |= dict.fromkeys(("gpus", "M"), COUNT)
    for axis in plan.words.axes:
        words = all(isinstance(value, str) for value in axis.choices)
        known[axis.name] = tuple(map(str, axis.choices)) if words else COUNT
    return known


def plain(name: str) -> str:
    """Return the name of an output as it is typed: tokens_per_second."""
    return name.replace(" ", "_")


def needs(names: Collection[str]) -> set[str]:
    """Return the outputs that columns are made of, as typed."""
    needed = set(names)
    for name in names:
        needed |= set(_MADE.get(name, ()))
    return needed


def columns_of(
    plan: Plan,
    case: int,
    names: Collection[str],
    known: Mapping[str, Floats],
    outputs: Mapping[str, Arrays | object],
) -> Columns:
    """Return columns by name."""
    words = plan.cases[case].words
    symbols = {name: symbol for symbol, name in plan.names.items()}
    columns: dict[str, object] = {}
    for name in names:
        if name in outputs:
            columns[name] = outputs[name]
        elif name in words:
            columns[name] = words[name]
        elif name in ("cost", "fits", "capacity"):
            columns[name] = _derived(name, plan.cases[case].capacity, known, outputs)
        elif symbols.get(name, name) in known:
            columns[name] = known[symbols.get(name, name)]
        else:
            raise InputError(f"no column {name}")
    return columns


def _derived(
    name: str, capacity: float | None, known: Mapping[str, Floats], outputs: Mapping[str, object]
) -> object:
    room = np.inf if capacity is None else capacity
    if name == "capacity":
        return np.full(len(known["R"]), room)
    if name == "fits":
        return (np.asarray(outputs["needed"]) <= room).astype(np.float64)
    rate = next(outputs[one] for one in _MADE["cost"] if one in outputs)
    return known["R"] / np.asarray(rate)
