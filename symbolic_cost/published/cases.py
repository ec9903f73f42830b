"""A publication as data: cases of named inputs, formulas, and what was printed.

A file of cases is TOML, one table per case:

    [dp]
    where = "chapter 5, Data Parallelism"
    inputs = { C = 459e12, W = 180e9 }
    steps = { alpha = "C/W" }
    results = [["alpha", "alpha", "2550", "exact"], ["three_axes", "alpha/3", "850", "exact"]]

Steps are definitions in terms of inputs, of what the module derives from the library, and of
earlier steps. A result is [name, formula, printed, how, note]: how it is compared is "digits",
"trunc" (cut, not rounded), "rel:0.01", "exact", "slip" (the print contradicts its own inputs, and
the note proves it), "rounded" (the text rounded on the way) or "none" (not printed). A case of many
alike rows has columns, rows, and results once, in which {column} and =column are a row's; a column
"said" has [how, note] by result where a row differs. A case that is "like" another shares what it
does not say itself, and says what was "printed" by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import Any

from sympy import Expr

from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.published.contract import Comparison, printed_data
from symbolic_cost.published.results import SLIP, Erratum, Result, result_of
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact, symbol
from symbolic_cost.typed import Formula, chain

Values = Mapping[str, Any]
Derived = Callable[[Values], Values]
"""What the library derives for the inputs of a case (and a row of it), by name."""

_LARGEST = 1e40


def numbered(fields: str, of: Callable[[str], Any]) -> dict[Expr, Expr]:
    """Return exact numbers by symbol; what is None has none.

    Args:
        fields: names of symbols, or "symbol=field" where a publication calls it otherwise.
        of: gives the number of a field.
    """
    pairs = [(pair.split("=")[0], pair.split("=")[-1]) for pair in fields.split()]
    numbers = {symbol(name): of(field) for name, field in pairs}
    return {name: exact(number) for name, number in numbers.items() if number is not None}


@dataclass(frozen=True)
class Case:
    """Some numbers of one place of a publication, from the same inputs."""

    name: str
    where: str
    inputs: Values
    steps: Mapping[str, Formula]
    results: tuple[Result, ...]
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    derive: Derived | None = None

    def evaluated(self, inputs: Values) -> dict[str, Any]:
        """Return every result by name, for some inputs in place of the published ones.

        Raises:
            InputError: every input that the case does not have, and every number that is refused.
        """
        own = {**self.inputs, **inputs}
        rows = own.pop("rows", self.rows)
        problems = [
            unknown(f"input of {self.name}", name, [*self.inputs, *(["rows"] if self.rows else [])])
            for name in own
            if name not in self.inputs
        ]
        problems += [
            f"input {name} of {self.name} is {quote(value)}: a finite number is accepted"
            for name, value in own.items()
            if not (_number(value) or (isinstance(value, str) and value == self.inputs.get(name)))
        ]
        problems += [
            f"row {quote(row)} of {self.name}: {', '.join(self.columns)} are accepted"
            for row in rows
            if not isinstance(row, list | tuple) or len(row) != len(self.columns)
        ]
        refuse(problems)
        values: dict[str, Any] = {}
        for row in rows or ((),):
            cells = dict(zip(self.columns, row, strict=bool(self.columns)))
            known = {name: _exact(value) for name, value in {**own, **cells}.items()}
            known |= self._derived(known)
            known = chain(self.steps, known)
            for each in self.results:
                values[each.name.format_map(cells)] = each.formula.number(known)
        return values

    def _derived(self, known: Values) -> Values:
        if self.derive is None:
            return {}
        try:
            return self.derive(known)
        except (ArithmeticError, ValueError) as error:
            zero = isinstance(error, ZeroDivisionError)
            said = "a division by zero" if zero else str(error)
            raise InputError(f"{self.name}: {said}") from None

    def printed(self) -> Iterator[Result]:
        """Yield every result with the print of its row."""
        for row in self.rows or ((),):
            cells = dict(zip(self.columns, row, strict=bool(self.columns)))
            for each in self.results:
                text = each.printed
                if text is not None and text.startswith("="):
                    text = str(cells[text[1:]]) or None
                said = cells.get("said", {}).get(each.name.rpartition("}.")[2])
                how, note = said or (each.how, each.note)
                name = each.name.format_map(cells)
                yield Result(name, each.formula, text, how, note)


def _number(value: object) -> bool:
    number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    return number and -_LARGEST < value < _LARGEST  # type: ignore[operator]


def _exact(value: Any) -> Any:  # noqa: ANN401 - a number or a label
    """Return a number as the decimal that it prints as; labels pass."""
    return Fraction(str(value)) if isinstance(value, int | float) else value


@dataclass(frozen=True)
class Work:
    """A publication of cases, which its module has under the name `work`."""

    name: str
    derived: Mapping[str, Derived] = field(default_factory=dict)

    @cached_property
    def cases(self) -> Mapping[str, Case]:
        """Every case by name."""
        data = printed_data(f"{self.name.replace('-', '_')}.toml")
        return {name: self._case(name, entry, data) for name, entry in data.items()}

    def _case(self, name: str, own: Mapping[str, Any], data: Mapping[str, Any]) -> Case:
        entry = {**data.get(own.get("like", ""), {}), **own}
        results = tuple(result_of(each, entry.get("printed", {})) for each in entry["results"])
        return Case(
            name,
            entry.get("where", ""),
            entry.get("inputs", {}),
            {key: Formula(text) for key, text in entry.get("steps", {}).items()},
            results,
            tuple(entry.get("columns", ())),
            tuple(tuple(row) for row in entry.get("rows", ())),
            self.derived.get(name),
        )

    @property
    def PUBLISHED_INPUTS(self) -> Mapping[str, Values]:  # noqa: N802 - as of modules
        """Published inputs by case; a case of rows has them as "rows"."""
        return {
            name: {
                **case.inputs,
                **({"rows": [list(row) for row in case.rows]} if case.rows else {}),
            }
            for name, case in self.cases.items()
        }

    def evaluate(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Compute the numbers of cases for any inputs.

        Args:
            inputs: by case; what a case is not given is as published. {"dp": {"C": 989e12}}.

        Returns:
            By case, numbers by name.

        Raises:
            InputError: every case, input and number that is refused.
        """
        problems = [
            unknown(f"case of {self.name}", name, self.cases)
            for name in inputs
            if name not in self.cases
        ]
        problems += [
            f"case {name} is {quote(numbers)}: inputs by name are accepted"
            for name, numbers in inputs.items()
            if not isinstance(numbers, Mapping)
        ]
        refuse(problems)
        return {name: self.cases[name].evaluated(numbers) for name, numbers in inputs.items()}

    def reproduce(self) -> Sequence[Comparison]:
        """Compare every printed number with its value at the published inputs."""
        comparisons = []
        for name, case in self.cases.items():
            values = case.evaluated({})
            comparisons += [
                each.compared(f"{name}.{each.name}", values[each.name]) for each in case.printed()
            ]
        return comparisons

    def formulas(self) -> dict[str, Expr]:
        """Return the formula of every number by its key, in the names of inputs and steps."""
        return {
            f"{name}.{each.name}": each.formula.expr()
            for name, case in self.cases.items()
            for each in case.printed()
        }

    def errata(self) -> list[Erratum]:
        """Return every slip with its proof."""
        errata = []
        for case in self.cases.values():
            slips = [each for each in case.printed() if each.how == SLIP and each.printed]
            values = case.evaluated({}) if slips else {}
            for each in slips:
                if each.printed is not None:
                    computed = f"{float(values[each.name]):.5g}"
                    place = f"{case.where}: {each.name}"
                    errata.append(Erratum(self.name, place, each.printed, computed, each.note))
        return errata
