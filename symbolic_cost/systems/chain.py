"""Chains: long formulas as named definitions, each in terms of symbols and of earlier names.

One nested expression of the same mathematics outgrows SymPy's recursion; a chain is evaluated,
differentiated and compiled definition by definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sympy import Add, Dummy, Expr, Function, Integer, Symbol, ceiling, floor, fraction, lambdify
from sympy import together as over_one_denominator

from symbolic_cost.conditions import check
from symbolic_cost.errors import InputError, unknown
from symbolic_cost.extrema import AtLeast
from symbolic_cost.ledger import Condition
from symbolic_cost.symbols import GLOSSARY, Active, exact, in_glossary_order, named, symbol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


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
        """Check the order."""
        problems, known = [], set(_GLOSSARY_SYMBOLS)
        for name, expr in self.definitions.items():
            strange = in_glossary_order(expr.free_symbols - known)
            problems += [
                f"definition {name!r} uses {s.name!r} before it is defined" for s in strange
            ]
            if name in GLOSSARY:
                problems.append(f"definition {name!r} has the name of a symbol")
            known.add(named(name))
        if problems:
            raise InputError(problems)

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """Symbols of the glossary that the definitions need, in its order."""
        found = set().union(*(expr.free_symbols for expr in self.definitions.values()))
        return tuple(in_glossary_order(found & _GLOSSARY_SYMBOLS))

    def needed(self, names: Iterable[str]) -> Chain:
        """Return the definitions that some names rest on.

        Raises:
            InputError: every name that is not defined.
        """
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
        known: dict[Symbol, Expr] = dict(_numbers(values))
        self._refuse_missing(known)
        check(self.conditions, known)
        found: dict[str, Expr] = {}
        for name, expr in self.definitions.items():
            found[name] = expr.xreplace(known)
            known[named(name)] = found[name]
        return found

    def expression(self, name: str) -> Expr:
        """Return a definition in symbols of the glossary alone.

        Raises:
            InputError: the name is not defined.
        """
        (wanted,) = self._checked([name])
        expr = self.definitions[wanted]
        for earlier in reversed(tuple(self.needed([name]).definitions)):
            expr = expr.xreplace({named(earlier): self.definitions[earlier]})
        return expr

    def derivative(self, name: str, by: str) -> Chain:
        """Return the chain with the derivatives of its definitions, the last one that of `name`.

        Ceilings and brackets are flat wherever they do not jump.

        Args:
            name: of a definition.
            by: name of a symbol.

        Returns:
            The definitions needed, each followed by its own derivative "d name/d by" unless zero;
            the wanted one is always there.

        Raises:
            InputError: the name is not defined, or no such symbol.
        """
        variable = symbol(by)
        rates: dict[Symbol, Expr] = {variable: Integer(1)}
        found: dict[str, Expr] = {}
        for earlier, expr in self.needed([name]).definitions.items():
            found[earlier] = expr
            terms = [
                _partial(expr, s) * rates[s]
                for s in in_glossary_order(expr.free_symbols & rates.keys())
            ]
            rate = Add(*terms)
            if rate != 0 or earlier == name:
                own = derivative_name(earlier, by)
                found[own] = rate
                rates[named(earlier)] = rate if rate.is_number else named(own)
        return Chain(found, self.conditions)

    def jumps(self, name: str, by: str) -> tuple[Expr, ...]:
        """Return ceilings, floors and comparisons that `derivative` holds though they depend on it.

        Args:
            name: of a definition.
            by: name of a symbol.

        Raises:
            InputError: as `derivative`.
        """
        moving, held = {symbol(by)}, []
        for earlier, expr in self.needed([name]).definitions.items():
            if expr.free_symbols & moving:
                moving.add(named(earlier))
                steps = expr.atoms(ceiling, floor, AtLeast)
                held += [step for step in steps if step.free_symbols & moving]
        return tuple(dict.fromkeys(sorted(held, key=str)))

    def compiled(self, *names: str) -> CompiledChain:
        """Compile the definitions to one function of float64 arrays.

        Args:
            names: what it returns; everything unless given.

        Raises:
            InputError: every name that is not defined.
        """
        wanted = names or tuple(self.definitions)
        needed = self.needed(wanted)
        places = {
            named(name): Symbol(f"step_{place}") for place, name in enumerate(needed.definitions)
        }
        steps = [
            (places[named(name)], _divided_once(expr.xreplace(places)))
            for name, expr in needed.definitions.items()
        ]
        function = lambdify(
            needed.symbols,
            [places[named(name)] for name in wanted],
            modules="numpy",
            cse=lambda results: (steps, results),
            docstring_limit=0,
        )
        return CompiledChain(wanted, tuple(s.name for s in needed.symbols), function)

    def _checked(self, names: Iterable[str]) -> tuple[str, ...]:
        given = tuple(names)
        problems = [
            unknown("definition", name, self.definitions)
            for name in given
            if name not in self.definitions
        ]
        if problems:
            raise InputError(problems)
        return given

    def _refuse_missing(self, known: Mapping[Symbol, Expr]) -> None:
        missing = [
            f"no value for {s.name} ({GLOSSARY[s.name].meaning})"
            for s in self.symbols
            if s not in known
        ]
        if missing:
            raise InputError(missing)


@dataclass(frozen=True, slots=True)
class CompiledChain:
    """A chain as one function; made by `Chain.compiled`.

    Args:
        outputs: names of the results.
        inputs: names of the symbols that they need.
        function: from float64 arrays in the order of `inputs` to values in that of `outputs`.
    """

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    function: Callable[..., list[Any]]

    def __call__(self, values: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
        """Evaluate.

        Args:
            values: numbers or arrays of one shape by symbol name; others are left out.

        Raises:
            InputError: every symbol without a value.
        """
        missing = [f"no value for symbol {name!r}" for name in self.inputs if name not in values]
        if missing:
            raise InputError(missing)
        import numpy as np

        arrays = [np.asarray(values[name], dtype=np.float64) for name in self.inputs]
        with np.errstate(divide="ignore", invalid="ignore"):  # branches that are not chosen
            results = self.function(*arrays)
        return dict(zip(self.outputs, map(np.asarray, results), strict=True))


def derivative_name(name: str, by: str) -> str:
    """Return the name of the derivative of a definition by a symbol."""
    return f"d {name}/d {by}"


_JUMPS = (ceiling, floor, Active, AtLeast)
"""What is flat but for its jumps."""

_GLOSSARY_SYMBOLS = frozenset(entry.symbol for entry in GLOSSARY.values())


def _numbers(values: Mapping[str, object]) -> dict[Symbol, Expr]:
    problems: list[str] = []
    found: dict[Symbol, Expr] = {}
    for name, given in values.items():
        try:
            found[symbol(name)] = exact(given)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def _partial(expr: Expr, variable: Symbol) -> Expr:
    """Differentiate with ceilings and floors as constants."""
    jumps = {jump: Dummy(nonnegative=True) for jump in expr.atoms(*_JUMPS)}
    held = {constant: jump for jump, constant in jumps.items()}
    return expr.xreplace(jumps).diff(variable).xreplace(held)


class _Rounded(Function):
    """A ceiling or floor of a quotient, which is rounded once and then up or down."""

    def _numpycode(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        above, below, up = self.args
        quotient = f"({printer._print(above)})/({printer._print(below)})"  # noqa: SLF001 - protocol
        name = "ceil" if up == 1 else "floor"
        return f"{printer._module_format(f'numpy.{name}')}({quotient})"  # noqa: SLF001 - protocol


def _divided_once(expr: Expr) -> Expr:
    """Let ceilings divide: a product with a rounded reciprocal may lie beyond an integer."""
    for jump, up in ((ceiling, 1), (floor, 0)):
        expr = expr.replace(
            jump, lambda x, up=up: _Rounded(*fraction(over_one_denominator(x)), Integer(up))
        )
    return expr
