"""Definitions of a step as they are made: by name, or as terms of numbers at once."""

from collections.abc import Callable
from typing import Any, TypeVar

from sympy import Expr

from symbolic_cost.algebra import Space
from symbolic_cost.symbols import named
from symbolic_cost.systems.network import Hop, Hops

ResultT = TypeVar("ResultT")


class Definitions:
    """Collects the definitions of a chain."""

    def __init__(self) -> None:
        self.definitions: dict[str, Expr] = {}
        self._once: dict[tuple[object, ...], tuple[object, Any]] = {}

    def add(self, name: str, expr: Expr) -> Expr:
        """Define a name and return its symbol; numbers and symbols need no name."""
        if expr.is_number or expr.is_Symbol:
            return expr
        return self.keep(name, expr)

    def keep(self, name: str, expr: Expr) -> Expr:
        """Define a name whatever it stands for, and return its symbol.

        Raises:
            RuntimeError: the name stands for something else already.
        """
        if self.definitions.setdefault(name, expr) != expr:
            raise RuntimeError(f"{name!r} is defined twice")
        return named(name)

    def __getitem__(self, name: str) -> Expr:
        return named(name)

    def once(self, what: tuple[object, ...], of: object, make: Callable[[], ResultT]) -> ResultT:
        """Return what is made of an object, once for all stages that have it."""
        key = (id(of), *what)
        if key not in self._once:
            self._once[key] = of, make()  # the object lives as long, and nobody else has its id
        return self._once[key][1]

    def hops(self, name: str, hops: Hops) -> Hops:
        """Define how many members of a group each link joins."""
        return tuple(
            Hop(hop.link, self.add(f"{name}.{hop.link.name}.ranks", hop.ranks)) for hop in hops
        )


class Reckoned(Definitions):
    """Definitions that are terms at once, and need no names for each other."""

    def __init__(self, space: Space) -> None:
        super().__init__()
        self._space, self._once = space, space.once

    def add(self, name: str, expr: Expr) -> Expr:  # noqa: ARG002 - the signature is that of names
        """Return the term of an expression."""
        return self._space.term(expr)

    def keep(self, name: str, expr: Expr) -> Expr:
        """Define a name, and return the term that it stands for."""
        self.definitions[name] = self._space.term(expr)
        return self.definitions[name]

    def __getitem__(self, name: str) -> Expr:
        return self.definitions[name]
