"""Graphs: values with shapes, nodes in order, weights by name."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

from sympy import Expr, Integer

from symbolic_cost.errors import refuse
from symbolic_cost.records import dataclass, field

Size: TypeAlias = Expr | int

DETACH = "aten.detach"
"""The operator through which no gradient flows: so does nothing that gradients off have made."""

_FLOATS = frozenset({6, 7, 8, 9, 10, 11, 13, 29, 30, 31, 32, 33})
"""Dtypes of floating-point and complex numbers, by their numbers in the schema."""


@dataclass(frozen=True, slots=True)
class Name:
    """A value that a node takes."""

    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of the graph.

    Args:
        sizes: of its dimensions.
        dtype: by its number in the schema.
    """

    sizes: tuple[Size, ...]
    dtype: int

    @property
    def floating(self) -> bool:
        """Whether it holds numbers that may have a gradient."""
        return self.dtype in _FLOATS


@dataclass(frozen=True, slots=True)
class Node:
    """A call of an operator.

    Args:
        target: "aten.linear"; the overload is apart.
        args: by name of the argument; those without a name by their number.
        outputs: names of tensors, "" for what is no tensor.
        path: of the module that calls it.
        kind: class of that module.
    """

    index: int
    target: str
    overload: str
    args: Mapping[str, Any]
    outputs: tuple[str, ...]
    path: str
    kind: str

    @property
    def changes(self) -> str:
        """The value that it changes in place, if it does."""
        own = self.args.get("self")
        in_place = self.target.endswith("_") and not self.target.endswith("__")
        return own.text if in_place and isinstance(own, Name) else ""


@dataclass(frozen=True)
class Graph:
    """A graph whose sizes are read.

    Args:
        weights: parameter by value; the name in the state dict, one for tied ones.
        parameters: every parameter once, with the value that holds it.
        constants: values that are buffers and constants.
        inputs: values that the user gives.
        outputs: values that the user gets.
        dims: what the dynamic dimensions are, as told.
        frozen: parameters that get no gradient, where others do.
        notes: what was assumed on reading, and how often.
    """

    place: str
    values: Mapping[str, Value]
    nodes: tuple[Node, ...]
    weights: Mapping[str, str]
    parameters: Mapping[str, str]
    constants: frozenset[str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    dims: Mapping[str, str] = field(default_factory=dict)
    frozen: frozenset[str] = frozenset()
    notes: Mapping[str, int] = field(default_factory=dict)


def refuse_unknown(
    place: str, operators: Counter[str], modules: Mapping[str, str] | None = None
) -> None:
    """Refuse operators that are not known, each with how many there are.

    Args:
        place: the file.
        operators: by what is written of them.
        modules: where the first of each stands.
    """
    where = {name: f" (the first in {path})" for name, path in (modules or {}).items() if path}
    refuse(
        f"{place}: operator {name} is not known, {times} of it{where.get(name, '')}: its cost "
        "would be missing"
        for name, times in operators.items()
    )


def number(size: Size) -> Expr:
    """Return a size as an expression."""
    return size if isinstance(size, Expr) else Integer(size)
