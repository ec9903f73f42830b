"""Chains: long formulas as named definitions, each in terms of symbols and of earlier names.

One nested expression of the same mathematics outgrows SymPy's recursion. Numbers, arrays and
derivatives are those of the program that a chain becomes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from sympy import Expr, Symbol, ceiling, floor

from symbolic_cost.conditions import Condition, check
from symbolic_cost.errors import Problems, refuse, unknown
from symbolic_cost.extrema import AtLeast
from symbolic_cost.program.lowering import lowered
from symbolic_cost.program.program import Program
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY, exact, in_glossary_order, named, symbol

if TYPE_CHECKING:
    from symbolic_cost.program.evaluator import Evaluator


@dataclass(frozen=True)
class Chain:
    """Definitions in order.

    Args:
        definitions: expression by name, in symbols of the glossary and `named` earlier names.
        conditions: what numbers must meet when they are bound.

    Raises:
        InputError: every definition that uses a later name or an unknown symbol, or that takes
            the name of a symbol.
    """

    definitions: Mapping[str, Expr] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        problems, known = [], set(_GLOSSARY_SYMBOLS)
        for name, expr in self.definitions.items():
            strange = in_glossary_order(expr.free_symbols - known)
            problems += [
                f"definition {name!r} uses {s.name!r} before it is defined" for s in strange
            ]
            if name in GLOSSARY:
                problems.append(f"definition {name!r} has the name of a symbol")
            known.add(named(name))
        refuse(problems)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """Symbols of the glossary that the definitions need, in its order."""
        symbols = set().union(*(expr.free_symbols for expr in self.definitions.values()))
        return tuple(in_glossary_order(symbols & _GLOSSARY_SYMBOLS))

    def dependencies(self, names: Iterable[str]) -> Chain:
        """Return the definitions that some names rest on."""
        wanted = set(self._checked(names))
        for name in reversed(tuple(self.definitions)):
            if name in wanted:
                wanted |= {s.name for s in self.definitions[name].free_symbols}
        left = {name: e for name, e in self.definitions.items() if name in wanted}
        return Chain(left, self.conditions)

    def bound(self, values: Mapping[str, object]) -> Chain:
        """Return the chain with exact numbers for some symbols.

        Raises:
            InputError: every unknown symbol, every value that is not a number, and every
                condition that the numbers break.
        """
        numbers = _numbers(values)
        check(self.conditions, numbers)
        bound = {name: e.xreplace(numbers) for name, e in self.definitions.items()}
        return Chain(bound, self.conditions)

    def evaluate(self, values: Mapping[str, object]) -> dict[str, Expr]:
        """Return the exact number of every definition.

        Args:
            values: number by symbol name; a float stands for the decimal that it prints as.

        Raises:
            InputError: every symbol without a number, every unknown symbol and refused number, and
                every condition that the numbers break.
        """
        known = _numbers(values)
        missing = [
            f"no value for {s.name} ({GLOSSARY[s.name].meaning})"
            for s in self.symbols
            if s not in known
        ]
        refuse(missing)
        check(self.conditions, known)
        return _evaluated(self.program, known)

    def settled(self, values: Mapping[str, object]) -> dict[str, Expr]:
        """Return the exact numbers of the definitions that need no symbol without a number.

        Args:
            values: as of `evaluate`.

        Raises:
            InputError: every unknown symbol, every refused number, every condition that they break.
        """
        open_ = set(self.symbols) - set(_numbers(values))
        for name, expr in self.definitions.items():
            if not open_.isdisjoint(expr.free_symbols):
                open_.add(named(name))
        left = {name: e for name, e in self.definitions.items() if named(name) not in open_}
        settled = Chain(left, self.conditions)
        return settled.evaluate({s.name: values[s.name] for s in settled.symbols})

    @cached_property
    def program(self) -> Program:
        """The definitions as a program that gives them all."""
        return lowered(self.definitions)

    def expression(self, name: str) -> Expr:
        """Return a definition in symbols of the glossary alone."""
        (wanted,) = self._checked([name])
        expr = self.definitions[wanted]
        for earlier in reversed(tuple(self.dependencies([name]).definitions)):
            expr = expr.xreplace({named(earlier): self.definitions[earlier]})
        return expr

    def derivative(self, name: str, by: str) -> Slope:
        """Return a definition beside its derivative.

        Ceilings and brackets are flat wherever they do not jump; `jumps` lists them.

        Raises:
            InputError: the name is not defined, or no such symbol.
        """
        self._checked([name])
        variable = symbol(by).name
        return Slope(self.dependencies([name]), name, variable)

    def jumps(self, name: str, by: str) -> tuple[Expr, ...]:
        """Return ceilings, floors and comparisons that `derivative` holds though they move."""
        moving, held = {symbol(by)}, []
        for earlier, expr in self.dependencies([name]).definitions.items():
            if expr.free_symbols & moving:
                moving.add(named(earlier))
                steps = expr.atoms(ceiling, floor, AtLeast)
                held += [step for step in steps if step.free_symbols & moving]
        return tuple(dict.fromkeys(sorted(held, key=str)))

    def compiled(self, *names: str) -> Evaluator:
        """Return one function of numbers and float64 arrays."""
        from symbolic_cost.program.evaluator import Evaluator

        wanted = self._checked(names or self.definitions)
        return Evaluator(lowered(self.dependencies(wanted).definitions, wanted))

    def _checked(self, names: Iterable[str]) -> tuple[str, ...]:
        wanted = tuple(names)
        problems = [
            unknown("definition", name, self.definitions)
            for name in wanted
            if name not in self.definitions
        ]
        refuse(problems)
        return wanted


@dataclass(frozen=True)
class Slope:
    """A definition and its derivative by a symbol; made by `Chain.derivative`."""

    chain: Chain
    name: str
    by: str

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """Symbols that the definition needs."""
        return self.chain.symbols

    @cached_property
    def program(self) -> Program:
        """The derivative as a program."""
        return self.chain.program.derivative(self.by, [self.name])

    def evaluate(self, values: Mapping[str, object]) -> dict[str, Expr]:
        """Return the exact numbers of the definitions and of "d name/d by"; as Chain.evaluate."""
        results = self.chain.evaluate(values)
        return results | _evaluated(self.program, _numbers(values))


def derivative_name(name: str, by: str) -> str:
    """Return the name of the derivative of a definition by a symbol."""
    return f"d {name}/d {by}"


_GLOSSARY_SYMBOLS = frozenset(entry.symbol for entry in GLOSSARY.values())


def _numbers(values: Mapping[str, object]) -> dict[Symbol, Expr]:
    problems = Problems()
    pairs = [problems.attempt(_bound, name, value) for name, value in values.items()]
    problems.refuse()
    return dict(pairs)


def _bound(name: str, value: object) -> tuple[Symbol, Expr]:
    return symbol(name), exact(value)


def _evaluated(program: Program, numbers: Mapping[Symbol, Expr]) -> dict[str, Expr]:
    values = {s.name: Fraction(int(n.p), int(n.q)) for s, n in numbers.items() if n.is_Rational}
    return {name: exact(value) for name, value in program.exact(values).items()}
