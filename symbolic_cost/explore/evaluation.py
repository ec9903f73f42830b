"""Points evaluated block by block, and what is kept of them: memory stays flat at any size."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbolic_cost.errors import InputError
from symbolic_cost.explore.objectives import LEGAL
from symbolic_cost.explore.plan import Plan
from symbolic_cost.explore.points import Arrays, Floats, Places
from symbolic_cost.explore.results import Result, Rows, concatenated
from symbolic_cost.explore.sweep_question import SweepQuestion, columns_of, needs, plain
from symbolic_cost.parallel.layout import AUTO
from symbolic_cost.program.arrays import evaluated
from symbolic_cost.program.tape import Tape
from symbolic_cost.records import dataclass

BLOCK = 1 << 16
"""Points evaluated together."""

_WORTH_COMPILING = 200_000
"""Points of a sweep from which compiling its programs pays."""


@dataclass(frozen=True, slots=True)
class Rectangle:
    """Outer points of one case, each with a range of the inner ones."""

    case: int
    rows: Places
    first: int
    last: int

    @property
    def width(self) -> int:
        """Inner points of every outer one."""
        return self.last - self.first


class Spread(Mapping[str, Floats]):
    """Columns of outer points, each with all inner ones; made when they are asked for."""

    def __init__(self, outer: Arrays, inner: Arrays, rows: int, width: int) -> None:
        self._outer, self._inner, self._rows, self._width = outer, inner, rows, width
        self._columns: Arrays = {}

    def __getitem__(self, name: str) -> Floats:
        column = self._columns.get(name)
        if column is None:
            if name in self._inner:
                column = np.tile(self._inner[name], self._rows)
            else:
                column = np.repeat(self._outer[name], self._width)
            self._columns[name] = column
        return column

    def __iter__(self) -> Iterator[str]:
        return iter({**self._outer, **self._inner})

    def __len__(self) -> int:
        return len({**self._outer, **self._inner})


@dataclass(frozen=True, slots=True)
class Slab:
    """Points of one structure.

    Args:
        values: numbers by symbol.
        base: first candidate of every outer point.
        width: candidates that follow each.
    """

    case: int
    program: Tape
    values: Mapping[str, Floats]
    base: Places
    width: int

    def place(self, point: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the candidate of a point."""
        return self.base[point // self.width] + point % self.width


class Evaluation:
    """A plan with what is asked of it, ready to run; calls may come from several threads."""

    def __init__(self, plan: Plan, asked: SweepQuestion) -> None:
        self._plan, self._asked = plan, asked
        self._native = plan.size > _WORTH_COMPILING and find_spec("llvmlite") is not None
        self._engines: dict[tuple[int, int], Any] = {}
        self._outer_conditions: dict[int, frozenset[str]] = {}

    def block(self, start: int, stop: int) -> Result:
        """Return what is kept of the candidates of a range."""
        result = Result()
        parts: list[Rows] = []
        for part in self._parts(start, stop):
            for slab in self._slabs(result, part):
                self._evaluate(result, parts, slab)
        if self._asked.mode == "all":
            result.rows = concatenated(parts, self._asked.columns)
        return result

    def rows(self, places: Places) -> Rows:
        """Return the columns of some candidates, in their order."""
        plan = self._plan
        parts, order = [], []
        cases, rest = np.divmod(places, plan.numbers)
        for case in np.unique(cases).tolist():
            own = np.flatnonzero(cases == case)
            outer, inner = np.divmod(rest[own], plan.inner.size)
            known, _ = plan.ranks.filled(plan.outer.arrays(outer), len(own))
            known |= plan.inner.arrays(inner)
            for code, some in self._grouped(case, known, len(own)):
                program = plan.programs[case, code]
                if isinstance(program, str):
                    raise InputError(program)
                part = {name: array[some] for name, array in known.items()}
                outputs = self._outputs(program, part, len(some), self._asked.columns, legal=False)
                parts.append(columns_of(plan, case, self._asked.columns, part, outputs))
                order.append(own[some])
        table = concatenated(
            [_full_columns(part, len(o)) for part, o in zip(parts, order, strict=True)],
            self._asked.columns,
        )
        back = np.argsort(np.concatenate(order)) if order else np.empty(0, dtype=np.int64)
        return {name: column[back] for name, column in table.items()}

    def failures(self, place: int) -> tuple[Rows, list[str]]:
        """Return the columns of a candidate, and what of the question it does not meet."""
        where = self._asked.where
        if where is None:
            return {}, []
        every = tuple(dict.fromkeys((*self._asked.columns, *where.names)))
        asked = SweepQuestion("all", None, (), 0, every, {})
        row = Evaluation(self._plan, asked).rows(np.array([place]))
        one = {name: column[0] for name, column in row.items()}
        return one, where.failures(one)

    def _parts(self, start: int, stop: int) -> Iterator[Rectangle]:
        """Yield the rectangles that a range of candidates is."""
        width = self._plan.inner.size
        while start < stop:
            case, place = divmod(start, self._plan.numbers)
            row, first = divmod(place, width)
            left = min(stop, (case + 1) * self._plan.numbers) - start
            if first or left < width or width > BLOCK:
                length = min(width - first, left, BLOCK)
                yield Rectangle(case, np.array([row]), first, first + length)
                start += length
            else:
                rows = min(left // width, max(1, BLOCK // width))
                yield Rectangle(case, np.arange(row, row + rows), 0, width)
                start += rows * width

    def _slabs(self, result: Result, part: Rectangle) -> Iterator[Slab]:
        """Yield what of a rectangle degrees allow, by structure; count the rest."""
        plan, case, rows, width = self._plan, part.case, part.rows, part.width
        outer, legal = plan.ranks.filled(plan.outer.arrays(rows), len(rows))
        result.candidates += len(rows) * width
        lawful = np.ones(len(rows), dtype=bool)
        for label, met in legal.items():
            _rule_out(result, label, lawful, met, width)
        allowed = np.flatnonzero(lawful)
        own = {name: array[allowed] for name, array in outer.items()}
        inner = plan.inner.arrays(np.arange(part.first, part.last))
        for code, group in self._grouped(case, own, len(allowed)):
            program = plan.programs[case, code]
            if isinstance(program, str):
                result.ruled_out[program] += len(group) * width
                continue
            some = group[self._met(result, program, own, group, width)]
            if len(some):
                columns = {name: array[some] for name, array in own.items()}
                base = case * plan.numbers + rows[allowed[some]] * plan.inner.size + part.first
                known = Spread(columns, inner, len(some), width)
                yield Slab(case, program, known, base, width)

    def _met(self, result: Result, program: Tape, own: Arrays, some: Places, width: int) -> Places:
        """Return which outer points meet the conditions that depend on nothing else."""
        lawful = np.ones(len(some), dtype=bool)
        held = [name for name in program.outputs if name in self._conditions(program)]
        if held:
            run, inputs = self._engine(program, tuple(held), native=False)
            values = {name: own[name][some] for name in inputs}
            for name, met in run(values, len(some)).items():
                _rule_out(result, name.removeprefix(LEGAL), lawful, met != 0, width)
        return np.flatnonzero(lawful)

    def _conditions(self, program: Tape) -> frozenset[str]:
        """Return the conditions that depend on outer points alone."""
        known = self._outer_conditions.get(id(program))
        if known is None:
            inner = {axis.symbol for axis in self._plan.inner.axes}
            bits = 0
            for place, name in enumerate(program.inputs):
                bits |= (name in inner) << place
            known = self._outer_conditions[id(program)] = frozenset(
                name
                for name, place in program.outputs.items()
                if name.startswith(LEGAL) and not program.masks[place] & bits
            )
        return known

    def _grouped(self, case: int, known: Arrays, size: int) -> Iterator[tuple[int, Places]]:
        """Yield every structure, and where it is."""
        own = self._plan.cases[case]
        if not size:
            return
        codes = self._plan.ranks.codes(known, size, own.chunks, auto=own.layout == AUTO)
        if (codes == codes[0]).all():
            yield int(codes[0]), np.arange(size)
            return
        for code in np.unique(codes).tolist():
            yield code, np.flatnonzero(codes == code)

    def _evaluate(self, result: Result, parts: list[Rows], slab: Slab) -> None:
        asked, size = self._asked, len(slab.base) * slab.width
        names = {*asked.names, *(asked.columns if asked.mode == "all" else ())}
        outputs = self._outputs(slab.program, slab.values, size, names, legal=True)
        lawful = np.ones(size, dtype=bool)
        for label, met in outputs.items():
            if label.startswith(LEGAL):
                _rule_out(result, label.removeprefix(LEGAL), lawful, met != 0, 1)
        result.legal += int(np.count_nonzero(lawful))
        columns = columns_of(self._plan, slab.case, names, slab.values, outputs)
        yes = lawful
        if asked.where is not None:
            yes = lawful & asked.where.answers(columns)
        chosen = np.flatnonzero(yes)
        result.counted += len(chosen)
        if asked.where is not None and not result.counted and lawful.any():
            missing = np.where(lawful, asked.where.missing(columns), np.inf)
            least = np.array([np.argmin(missing)])
            near = (float(missing[least[0]]), int(slab.place(least)[0]))
            result.nearest = min(result.nearest, near)
        if asked.mode == "all":
            own = {n: c if isinstance(c, str | int) else c[chosen] for n, c in columns.items()}
            parts.append(_full_columns(own, len(chosen)))
        elif len(chosen):
            keys = [np.broadcast_to(key.values(columns), (size,))[chosen] for key in asked.keys]
            if asked.mode == "histogram":
                result.tally(keys[0])
                return
            result.keep(asked, slab.place(chosen), np.stack(keys))

    def _outputs(
        self,
        program: Tape,
        known: Mapping[str, Floats],
        size: int,
        names: Collection[str],
        *,
        legal: bool,
    ) -> dict[str, Floats]:
        """Return outputs as typed, and with them the conditions."""
        wanted = {*needs(names)}
        conditions = {n for n in program.outputs if n.startswith(LEGAL)} if legal else set()
        conditions -= self._conditions(program) if legal else set()
        held = [n for n in program.outputs if plain(n) in wanted or n in conditions]
        if not held:
            return {}
        run, inputs = self._engine(program, tuple(held))
        varies = self._varies
        values = {n: known[n] if n in varies else known[n][0] for n in inputs}
        outputs: Mapping[str, Floats] = run({n: np.asarray(x) for n, x in values.items()}, size)
        return {name if name.startswith(LEGAL) else plain(name): a for name, a in outputs.items()}

    @property
    def _varies(self) -> set[str]:
        axes = {axis.symbol for axis in (*self._plan.outer.axes, *self._plan.inner.axes)}
        return axes | {"dp", "M", "R"}

    def _engine(
        self, program: Tape, held: tuple[str, ...], *, native: bool = True
    ) -> tuple[Any, tuple[str, ...]]:
        """Return what runs some outputs of a program, and its inputs."""
        key = (id(program), hash(held))
        engine = self._engines.get(key)
        if engine is None:
            chosen = program.only(held)
            engine = self._engines[key] = (self._runner(chosen, native=native), chosen.inputs)
        return engine

    def _runner(self, tape: Tape, *, native: bool) -> Any:  # noqa: ANN401 - a function of arrays and their length
        if native and self._native:
            from symbolic_cost.program.fast import NativeFlat

            return NativeFlat(tape)
        return lambda values, size: evaluated(tape, values, size)


def _rule_out(
    result: Result, label: str, lawful: NDArray[np.bool_], met: NDArray[np.bool_], width: int
) -> None:
    """Count the candidates that a condition is the first to rule out."""
    out = int(np.count_nonzero(lawful & ~met))
    if out:
        result.ruled_out[label] += out * width
        lawful &= met


def _full_columns(columns: Mapping[str, Any], size: int) -> Rows:
    """Return columns of which words are arrays as well."""
    return {
        name: np.full(size, column) if isinstance(column, str | int) else np.asarray(column)
        for name, column in columns.items()
    }
