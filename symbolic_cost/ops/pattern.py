"""The pattern language: named tensors over named axes, the only declaration of an op.

    x[b l e], *w[e f] + *bias[f] -> u[b l f]

* `name[axes]` is a tensor; axes are separated by blanks, a scalar has none.
* `*` marks a weight, `!` a constant (no gradient flows into it).
* `+ *bias[...]` adds a weight to the result.
* A weight named `@name` is shared by all ops of the model that use it (tied embeddings).
* `:role` says what the elements hold when it is not plain values ("index", "mask", "single").
"""

from __future__ import annotations

import re
from functools import lru_cache

from symbolic_cost.conventions.questions import Role
from symbolic_cost.errors import PatternError, refuse
from symbolic_cost.ops.stored import Stored
from symbolic_cost.records import dataclass, replace

_OPERAND = re.compile(
    r"(?P<mark>[*!]?)\s*(?P<name>@?[A-Za-z_][\w.]*)\s*\[(?P<axes>[^\]\[]*)\](?:\s*:(?P<role>\w+))?"
)
_AXIS = re.compile(r"[a-z][a-z0-9_]*")
_EXAMPLE = "write for example 'x[b l e], *w[e f] + *bias[f] -> u[b l f]'"


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as one op sees it.

    Args:
        role: what its elements hold.
        constant: no gradient flows into it: data, or a weight that is not trained.
        stored: how a weight is kept where not by its role; what is trained never is.
        copies: how many tensors of this shape the name stands for (two saved statistics).
    """

    tensor: str
    axes: tuple[str, ...]
    role: Role = Role.VALUE
    constant: bool = False
    copies: int = 1
    stored: Stored | None = None

    @property
    def is_weight(self) -> bool:
        """Whether it is a parameter."""
        return self.role is Role.WEIGHT

    @property
    def needs_gradient(self) -> bool:
        """Whether backward computes a gradient for it."""
        return not self.constant

    def gradient(self) -> Operand:
        """Return the operand of its gradient: same axes, named "d" and the tensor."""
        return _gradient(self)

    def renamed(self, name: str) -> Operand:
        """Return the same operand under another tensor name."""
        return replace(self, tensor=name)


@lru_cache(1 << 14)  # every pass of every strategy asks for the same ones
def _gradient(operand: Operand) -> Operand:
    role = Role.WEIGHT_GRADIENT if operand.is_weight else operand.role
    return replace(operand, tensor=f"d{operand.tensor}", role=role, stored=None)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern."""

    text: str
    inputs: tuple[Operand, ...]
    biases: tuple[Operand, ...]
    outputs: tuple[Operand, ...]


@lru_cache(1 << 12)  # layers declare the same ones again and again
def parse(text: str) -> Pattern:
    """Parse a pattern.

    Raises:
        PatternError: every mistake found, with the pattern.
    """
    problems: list[str] = []
    left, arrow, right = text.partition("->")
    if not arrow or "->" in right:
        raise PatternError(f"pattern {text!r} needs one '->': {_EXAMPLE}")
    products, *sums = left.split("+")
    inputs = _operands(products, text, problems)
    biases = tuple(operand for part in sums for operand in _operands(part, text, problems))
    outputs = _operands(right, text, problems)
    problems += [
        f"pattern {text!r}: result {operand.tensor!r} cannot be marked as weight or constant"
        for operand in outputs
        if operand.is_weight or operand.constant
    ]
    problems += [
        f"pattern {text!r}: the added {operand.tensor!r} must be a weight (*{operand.tensor})"
        for operand in biases
        if not operand.is_weight
    ]
    refuse(problems, PatternError)
    return Pattern(text, inputs, biases, outputs)


def _operands(text: str, pattern: str, problems: list[str]) -> tuple[Operand, ...]:
    operands = []
    # Split at commas outside brackets.
    for part in [part.strip() for part in re.split(r",(?![^\[]*\])", text)]:
        match = _OPERAND.fullmatch(part)
        if match is None:
            problems.append(f"pattern {pattern!r}: {part!r} is not a tensor: {_EXAMPLE}")
            continue
        axes = tuple(match["axes"].split())
        problems += [
            f"pattern {pattern!r}: {axis!r} is not an axis name (lower case, like l or e)"
            for axis in axes
            if not _AXIS.fullmatch(axis)
        ]
        if len(set(axes)) < len(axes):
            problems.append(f"pattern {pattern!r}: {part!r} names an axis twice")
        role = _role(match["mark"], match["role"], pattern, problems)
        operands.append(Operand(match["name"], axes, role, constant=match["mark"] == "!"))
    return tuple(operands)


def _role(mark: str, name: str | None, pattern: str, problems: list[str]) -> Role:
    if mark == "*":
        return Role.WEIGHT
    if name is None:
        return Role.VALUE
    if name not in set(Role):
        accepted = ", ".join(role.value for role in Role)
        problems.append(f"pattern {pattern!r}: unknown role {name!r}: accepted are {accepted}")
        return Role.VALUE
    return Role(name)


def is_tied(weight: Operand) -> bool:
    """Tell whether the whole model shares a weight."""
    return weight.tensor.startswith("@")
