"""Sums, products and extrema in whichever algebra their arguments are of.

Costs are derived in SymPy where a formula is asked for, and in terms where numbers are: a term is
a node of a program's graph, in which equal costs are one node and numbers are folded at once. The
derivation is written once, with the functions of this module, and runs in both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any, Protocol

from sympy import Add, Basic, Expr, Integer, Lambda, Mul

from symbolic_cost.grouping import KeyT, grouped


class Space(Protocol):
    """Where terms live; `program.terms` has the one there is."""

    once: dict[tuple[object, ...], tuple[object, Any]]
    """What was made of objects, by their id and what was made."""

    def term(self, value: object) -> Any:  # noqa: ANN401 - a term, which stands for an expression
        """Return the term of an expression or a number."""

    def symbol(self, name: str) -> Any:  # noqa: ANN401 - as above
        """Return the term of a symbol."""

    def sum(self, terms: Iterable[object]) -> Term:
        """Return a sum of terms, expressions and numbers."""

    def product(self, factors: Iterable[object]) -> Term:
        """Return a product of them."""

    def difference(self, one: object, other: object) -> Term:
        """Return a difference of two of them."""

    def quotient(self, one: object, other: object) -> Term:
        """Return a quotient of two of them."""

    def power(self, one: object, exponent: int) -> Term:
        """Return an integer power of one of them."""

    def call(self, function: type[Basic], arguments: Sequence[object]) -> Term:
        """Return a function of them."""

    def substituted(self, expr: Basic, values: Mapping[Basic, object]) -> Term:
        """Return an expression with some of them for its symbols."""

    def number(self, node: int) -> Any:  # noqa: ANN401 - an exact number, or None
        """Return the number that a node is, if it is one."""

    def is_integer(self, node: int) -> bool:
        """Tell whether a node is a whole number for whatever its symbols count."""

    def node(self, value: object) -> int:
        """Return the node of a term, an expression or a number."""


class Term:
    """A cost as a node; made by its space."""

    __slots__ = ("node", "space")

    _op_priority = 20.0  # SymPy leaves operations with a term to it, and need not try to convert it

    is_Symbol = is_Rational = False
    is_finite = is_extended_nonnegative = None
    free_symbols: frozenset[Any] = frozenset()

    def __init__(self, space: Space, node: int) -> None:
        self.space, self.node = space, node

    def __add__(self, other: object) -> Term:
        return self.space.sum((self, other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Term:
        return self.space.difference(self, other)

    def __rsub__(self, other: object) -> Term:
        return self.space.difference(other, self)

    def __mul__(self, other: object) -> Term:
        return self.space.product((self, other))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Term:
        return self.space.quotient(self, other)

    def __rtruediv__(self, other: object) -> Term:
        return self.space.quotient(other, self)

    def __pow__(self, exponent: int) -> Term:
        return self.space.power(self, exponent)

    def __neg__(self) -> Term:
        return self.space.difference(0, self)

    def __eq__(self, other: object) -> bool:
        if type(other) is Term:
            return self.node == other.node and self.space is other.space
        if type(other) is int:
            return bool(self.space.number(self.node) == other)
        return isinstance(other, Basic) and self.node == self.space.node(other)

    def __hash__(self) -> int:
        return self.node

    def __repr__(self) -> str:
        number = self.space.number(self.node)
        return f"Term({self.node})" if number is None else f"Term({number})"

    @property
    def is_number(self) -> bool:
        """Whether it is a number."""
        return self.space.number(self.node) is not None

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole number, as far as that is certain."""
        return self.space.is_integer(self.node)


def space_of(arguments: Iterable[object]) -> Space | None:
    """Return the space of the first term among some arguments; none where there is none."""
    for one in arguments:
        if type(one) is Term:
            return one.space
    return None


def add(*terms: Expr) -> Expr:
    """Return a sum."""
    space = space_of(terms)
    return Add(*terms) if space is None else space.sum(terms)


def sums(pairs: Iterable[tuple[KeyT, Expr]]) -> dict[KeyT, Expr]:
    """Return the sum of what has one key, by key."""
    return {key: add(*terms) for key, terms in grouped(pairs).items()}


def mul(*factors: Expr) -> Expr:
    """Return a product."""
    space = space_of(factors)
    if space is not None:
        return space.product(factors)
    if all(getattr(one, "is_Integer", False) for one in factors):
        return Integer(prod(one.p for one in factors))  # which Mul finds out in ten times as long
    return Mul(*factors)


def replaced(expr: Basic, values: Mapping[Any, Any]) -> Expr:
    """Return an expression with values for its symbols."""
    space = space_of(values.values())
    return expr.xreplace(values) if space is None else space.substituted(expr, values)


def applied(rule: Lambda, *arguments: Expr) -> Expr:
    """Return a rule of some arguments, as in `applied(Lambda(n, 2 * n - 1), size)`."""
    if all(isinstance(argument, Integer) for argument in arguments):
        return _of_numbers(rule, arguments)
    return replaced(rule.expr, dict(zip(rule.signature, arguments, strict=True)))


@lru_cache(maxsize=4096)
def _of_numbers(rule: Lambda, arguments: tuple[Expr, ...]) -> Expr:
    """Return a rule of numbers; the same sizes come back in every layer."""
    return rule.expr.xreplace(dict(zip(rule.signature, arguments, strict=True)))


def on_terms(function: type[Basic]) -> Callable[..., Any]:
    """Return a function of SymPy that takes terms as well, as in `on_terms(ceiling)(size)`."""

    def called(*arguments: object) -> Any:  # noqa: ANN401 - an expression or a term
        space = space_of(arguments)
        return function(*arguments) if space is None else space.call(function, arguments)

    return called


class OnTerms:
    """A function of SymPy's that gives a term for terms."""

    def __new__(cls, *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - SymPy's signature
        """Return an expression or a term."""
        space = space_of(arguments)
        if space is None:
            return super().__new__(cls, *arguments, **options)
        return space.call(cls, arguments)
