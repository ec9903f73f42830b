"""Typed formulas: "E + A/N**alpha" of a law, "sbh(34 + 5as/h)" of a paper; see `grammar`.

A formula is a number for numbers, a SymPy expression for symbols, an array for arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from fractions import Fraction
from functools import cache, cached_property
from operator import add, mul, sub, truediv
from typing import Any

import sympy
from sympy import Expr, Symbol

from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.extrema import Max, Min
from symbolic_cost.grammar import FUNCTIONS, Node, parsed
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import GLOSSARY, WORDS, exact, symbol

_LARGEST_WHOLE, _MOST_BITS = 200, 10**4
_GREATEST_EXPONENT = 16

_OPERATORS: Mapping[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul, "/": truediv}


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """One kind of numbers: how a literal, a power and each function come out."""

    literal: Callable[[Fraction], Any]
    power: Callable[[Any, Any], Any]
    functions: Mapping[str, Callable[..., Any]]

    def value(self, node: Node, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of its kind
        """Return what a tree comes to."""
        if node.kind == "number":
            return self.literal(Fraction(node.value))
        if node.kind == "name":
            return values[str(node.value)]
        parts = [self.value(part, values) for part in node.parts]
        if node.kind == "negative":
            return -parts[0]
        if node.kind == "^":
            return self.power(*parts)
        return {**_OPERATORS, **self.functions}[node.kind](*parts)


def _power(base: Any, exponent: Any) -> Any:  # noqa: ANN401 - exact numbers or floats
    """Raise exactly where the exponent is a whole number and the result is no monster."""
    whole = Fraction(exponent).denominator == 1 and abs(exponent) <= _LARGEST_WHOLE
    if whole and not isinstance(base, float):
        base = Fraction(base)
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits * abs(exponent) <= _MOST_BITS:
            return base ** int(exponent)
    return math.pow(base, exponent)


def _symbolic_power(base: Expr, exponent: Expr) -> Expr:
    """Raise what is no monster: a number of too many digits is refused."""
    if base.is_Rational and exponent.is_Rational:
        bits = max(int(base.p).bit_length(), int(base.q).bit_length())
        if bits * abs(Fraction(int(exponent.p), int(exponent.q))) > _MOST_BITS:
            raise ValueError("a power of too many digits")
        if base == 0 and not exponent.is_positive:
            raise ZeroDivisionError
    return base**exponent


def _plain_power(base: Expr, exponent: Expr) -> Expr:
    """Raise to a number, as costs are: s**2, h**(1/2)."""
    if not exponent.is_Rational or abs(Fraction(int(exponent.p), int(exponent.q))) > (
        _GREATEST_EXPONENT
    ):
        said = f"exponent {quote(str(exponent))}: a number up to {_GREATEST_EXPONENT} is accepted"
        raise ValueError(said)
    return _symbolic_power(base, exponent)


def _quotient(above: Expr, below: Expr) -> Expr:
    if below == 0:
        raise ZeroDivisionError
    return above / below


NUMBERS = Arithmetic(
    literal=lambda number: number,
    power=_power,
    functions={
        **{name: getattr(math, name) for name in ("sqrt", "exp", "log2", "log10", "ceil", "floor")},
        "ln": math.log,
        "min": min,
        "max": max,
    },
)
"""Fractions while they last, then floats."""

_SYMPY: Mapping[str, Callable[..., Expr]] = {
    "sqrt": sympy.sqrt,
    "exp": sympy.exp,
    "ln": sympy.log,
    "log2": lambda x: sympy.log(x) / sympy.log(2),
    "log10": lambda x: sympy.log(x) / sympy.log(10),
    "min": Min,
    "max": Max,
    "ceil": sympy.ceiling,
    "floor": sympy.floor,
}
FORMULAS = Arithmetic(exact, _symbolic_power, {**_SYMPY, "/": _quotient})
"""SymPy's expressions."""

_COSTS = Arithmetic(exact, _plain_power, {**_SYMPY, "/": _quotient})
"""SymPy's expressions whose powers are numbers."""


@cache
def arrays() -> Arithmetic:
    """Return the arithmetic of NumPy's float64."""
    import numpy as np

    other = {"ln": "log", "min": "minimum", "max": "maximum"}
    functions = {name: getattr(np, other.get(name, name)) for name in FUNCTIONS}
    return Arithmetic(float, np.power, functions)


@dataclass(frozen=True)
class Formula:
    """A formula as it was typed.

    Args:
        text: of it.
        letters: names that are known, whose letters may stand side by side; None where every
            word is a name.

    >>> law = Formula("E + A/N**alpha")
    >>> sorted(law.names)
    ['A', 'E', 'N', 'alpha']
    >>> law.number({"E": 1, "A": 8, "N": 4, "alpha": 2})
    Fraction(3, 2)

    Raises:
        InputError: where the text stops being one, and what is accepted.
    """

    text: str
    letters: Container[str] | None = None

    def __post_init__(self) -> None:
        self.tree  # noqa: B018 - refuses what is no formula

    @cached_property
    def tree(self) -> Node:
        """The tree of the text."""
        return parsed(self.text, self.letters)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that need a value."""
        return frozenset(str(node.value) for node in self.tree.walk() if node.kind == "name")

    def number(self, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a Fraction or a float
        """Return the number for a value of every name, exact as long as its parts are.

        Raises:
            InputError: a name has no value, or the number cannot be had (a division by zero).
        """
        return self.valued(values, NUMBERS)

    def expr(self, values: Mapping[str, Expr] | None = None) -> Expr:
        """Return it as a SymPy expression; names without a value are positive symbols."""
        known = values or {}
        every = {name: known.get(name, Symbol(name, positive=True)) for name in self.names}
        return exact(self.valued(every, FORMULAS))

    def array(self, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - NumPy's
        """Return it for arrays [float64]."""
        return self.valued(values, arrays())

    def valued(self, values: Mapping[str, Any], kind: Arithmetic) -> Any:  # noqa: ANN401
        """Return it in one kind of numbers."""
        refuse(unknown("name", name, values) for name in sorted(self.names - values.keys()))
        try:
            return kind.value(self.tree, values)
        except ZeroDivisionError:
            raise InputError(f"formula {quote(self.text)}: a division by zero") from None
        except (ArithmeticError, ValueError, TypeError) as error:
            raise InputError(f"formula {quote(self.text)}: {error}") from None


def own_names() -> dict[str, Expr]:
    """Return the library's symbols by name, and by other words of the field."""
    words = {word: symbol(name) for word, name in WORDS.items()}
    return {**words, **{name: entry.symbol for name, entry in GLOSSARY.items()}}


def formula(text: str, names: Mapping[str, Expr] | None = None) -> Expr:
    """Read a formula of costs.

    Args:
        text: of it; powers are numbers up to 16.
        names: meaning of every name, as of a paper's letters; the library's unless given.

    Raises:
        InputError: where it stops being a formula, every unknown name, and a value that is never
            real.

    >>> formula("be(34 + 5 h l/e)"), formula("max(b, 2)^2")
    (b*e*(34 + 5*h*l/e), Max(2, b)**2)
    """
    known = own_names() if names is None else names
    read = exact(Formula(text, known).valued(known, _COSTS))
    if read.has(sympy.I):
        raise InputError(f"formula {quote(text)}: no real number is its value")
    return read


def chain(definitions: Mapping[str, Formula], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the number of every definition, each in terms of the values and of earlier ones.

    Raises:
        InputError: a name has no value.
    """
    known = dict(values)
    for name, formula in definitions.items():
        known[name] = formula.number(known)
    return known
