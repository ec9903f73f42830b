"""What acts are made of: tensors, references to them under other dimensions, and their uses.

A reference is a tensor as a node sees it: transposing or reshaping makes another reference to the
same tensor. An act says under which dimensions it wants each tensor; where these are not its own,
a view stands between, once names are known.
"""

from collections.abc import Mapping
from enum import Flag, auto
from typing import Any

from symbolic_cost.models.traced.forest import Dim, Dims
from symbolic_cost.models.traced.graph import Name
from symbolic_cost.records import dataclass, field, replace

PART = "#"
"""Between the name of a weight and the number of a part of it."""


class Nature(Flag):
    """What a tensor is besides numbers with a gradient."""

    PLAIN = 0
    CONSTANT = auto()
    """No gradient flows into it."""
    GIVEN = auto()
    """The user gives it."""
    INDICES = auto()
    """It holds indices or truth values."""
    FROZEN = auto()
    """A weight that is not trained."""


CHOSEN = Nature.CONSTANT | Nature.INDICES
"""Indices that no op makes."""


@dataclass(eq=False, slots=True)
class Tensor:
    """What an act makes, or a weight, an input or a constant.

    Args:
        dims: its dimensions where it is made.
        weight: its name in the state dict, if it is one.
        units: axes of size 1 that it has besides: one position taken of many.
        shared: its name, if all layers share it.
    """

    dims: Dims
    weight: str = ""
    nature: Nature = Nature.PLAIN
    units: Dim = ()
    shared: str = ""

    @property
    def constant(self) -> bool:
        """Whether no gradient flows into it."""
        return Nature.CONSTANT in self.nature

    @property
    def is_input(self) -> bool:
        """Whether the user gives it."""
        return Nature.GIVEN in self.nature

    @property
    def floating(self) -> bool:
        """Whether it holds numbers."""
        return Nature.INDICES not in self.nature


@dataclass(frozen=True, slots=True)
class Ref:
    """A tensor under other dimensions; axes that it lacks are those it is repeated along."""

    tensor: Tensor
    dims: Dims


@dataclass(frozen=True, slots=True)
class Use:
    """A reference and the dimensions under which an act takes it."""

    ref: Ref
    want: Dims


@dataclass(eq=False, slots=True)
class Act:
    """One op to be.

    Args:
        kind: "einsum", "pointwise", "lookup", "conv", "view", "detach", "split" or "pool".
        path: module and name of the op.
        function: elementwise kind, or what the kind needs to know.
        row: dimensions of rows.
        pairs: query and key dimensions of a product of attention.
        core: path of the attention core that it belongs to.
    """

    kind: str
    path: str
    uses: tuple[Use, ...]
    outs: tuple[Tensor, ...]
    function: str = ""
    row: Dim = ()
    pairs: tuple[Dim, Dim] | None = None
    core: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def put(dims: Dims, place: int, *instead: Dim) -> Dims:
    """Return dimensions with others in the place of one."""
    return (*dims[:place], *instead, *dims[place + 1 :])


def names_in(arg: object) -> list[Name]:
    """Return the names of tensors in an argument."""
    if isinstance(arg, Name):
        return [arg]
    return [item for item in arg if isinstance(item, Name)] if isinstance(arg, list) else []


def under(ref: Ref, dims: Dims) -> Ref:
    """Return the same tensor under other dimensions."""
    return replace(ref, dims=dims)
