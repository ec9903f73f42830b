"""A law: a formula with parameters, apart from the constants that fits gave it.

`declared` reads laws from text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from fractions import Fraction
from typing import Any

from sympy import Expr, Symbol

from symbolic_cost.display import NotebookTable
from symbolic_cost.errors import InputError, looked_up, quote, refuse, unknown
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.typed import Formula, chain

Number = int | float | Fraction
"""Of a variable or a constant."""

FLOP = "C"
"""Name of the compute [FLOP], which is no variable of its own."""


@dataclass(frozen=True, slots=True)
class Constants:
    """One fit of a law.

    Args:
        values: by parameter.
        source: of the fit: reference and place inside it.
        ranges: between which numbers of each variable it was fitted.
        errors: standard errors by parameter, where they are published.
        note: what to know before it is used.
    """

    name: str
    values: Mapping[str, Number]
    source: str
    ranges: Mapping[str, tuple[Number, Number]] = field(default_factory=dict)
    errors: Mapping[str, Number] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, eq=False)
class Law(NotebookTable):
    """A scaling law.

    Args:
        variables: meaning with unit by name; N and D where it has them.
        parameters: least and largest value of each.
        where: definitions by name, each in terms of variables, parameters and earlier ones.
        value: what the law gives, of variables, parameters and definitions.
        compute: of variables [FLOP]; empty where the law is not about compute.
        sets: constants by name.
        then: definitions in terms of what the law gives, too.
        gives: name of what the law gives.
        unit: of what it gives.
        fixed: usual values of variables that no optimum chooses.
        counts: which parameters N counts.
    """

    name: str
    meaning: str
    variables: Mapping[str, str]
    parameters: Mapping[str, tuple[Number, Number]]
    value: Formula
    where: Mapping[str, Formula] = field(default_factory=dict)
    then: Mapping[str, Formula] = field(default_factory=dict)
    compute: Formula | None = None
    sets: Mapping[str, Constants] = field(default_factory=dict)
    fixed: Mapping[str, Number] = field(default_factory=dict)
    gives: str = "loss"
    unit: str = "nat/token"
    counts: str = "all"

    def constants(self, name: str | None = None) -> Constants:
        """Return a set of constants; one need not be named where there is only one.

        Raises:
            InputError: several, and none is named; or no such set.
        """
        if name is None and len(self.sets) == 1:
            return next(iter(self.sets.values()))
        if name is None:
            raise InputError(
                f"law {self.name} has several sets of constants: name one of {', '.join(self.sets)}"
            )
        return looked_up(f"set of law {self.name}", name, self.sets)

    def with_constants(self, constants: Constants) -> Law:
        """Return the law with one set of constants only, such as a fit's."""
        return replace(self, sets={constants.name: constants})

    def at(self, values: Mapping[str, Number], constants: str | None = None) -> dict[str, Any]:
        """Return what the law gives, and every definition, of numbers for the variables.

        Raises:
            InputError: a variable without a number, or one that is not there.
        """
        fixed = {**self.fixed, **values}
        self.check(values)
        known = {**self.constants(constants).values, **fixed}
        return self.of(known)

    def of(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the same of numbers for variables and parameters alike, none of them checked."""
        steps = {**self.where, self.gives: self.value, **self.then}
        values = chain(steps, known)
        return {name: values[name] for name in steps}

    def check(self, values: Mapping[str, Number]) -> None:
        """Refuse numbers for variables.

        Raises:
            InputError: a variable without a number, one that is not there, or a bad number.
        """
        problems = [
            unknown(f"variable of {self.name}", name, self.variables)
            for name in values
            if name not in self.variables
        ]
        problems += [
            f"{name} is missing: {meaning}"
            for name, meaning in self.variables.items()
            if name not in values and name not in self.fixed
        ]
        problems += [
            f"{name} = {quote(value)}: a positive number is accepted"
            for name, value in values.items()
            if name in self.variables and not _accepted(value, name in self.fixed)
        ]
        refuse(problems)

    def warnings(
        self, values: Mapping[str, Number], constants: str | None = None
    ) -> tuple[str, ...]:
        """Say which numbers lie outside of what the law was fitted to."""
        ranges = self.constants(constants).ranges
        return tuple(
            f"{name} = {float(values[name]):.3g} is outside of {float(low):.3g} to "
            f"{float(high):.3g}, to which law {self.name} was fitted: an extrapolation"
            for name, (low, high) in ranges.items()
            if name in values and not low <= values[name] <= high
        )

    def expr(self, constants: str | None = None, *, symbolic: bool = False) -> Expr:
        """Return the value as a formula of variables; of parameters too, if they stay symbols."""
        values = {} if symbolic else self.constants(constants).values
        known: dict[str, Expr] = {name: exact(value) for name, value in values.items()}
        fixed = {} if symbolic else self.fixed
        known |= {name: exact(value) for name, value in fixed.items()}
        for name, formula in self.where.items():
            known[name] = formula.expr(known)
        return self.value.expr(known)

    def flop(self) -> Formula:
        """Return the compute [FLOP].

        Raises:
            InputError: the law is not about compute.
        """
        if self.compute is None:
            raise InputError(
                f"law {self.name} says nothing about compute: give its variables, "
                f"{', '.join(self.variables)}"
            )
        return self.compute

    @property
    def chosen(self) -> tuple[str, ...]:
        """The variables that an optimum chooses: those of the compute that are not fixed."""
        names = self.flop().names
        return tuple(name for name in self.variables if name in names and name not in self.fixed)


def _accepted(value: object, zero: object) -> bool:
    number = isinstance(value, int | float | Fraction) and not isinstance(value, bool)
    if not number:
        return False
    size = float(value)  # type: ignore[arg-type]  # a number, as seen above
    return 0 < size < float("inf") or bool(zero and size == 0)


def variable(name: str) -> Symbol:
    """Return the symbol of a variable or parameter, as `Law.expr` writes it."""
    return Symbol(name, positive=True)
