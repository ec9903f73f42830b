"""Models whose ops depend on the length of a sequence, which are declared once it is known."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from sympy import Integer

from symbolic_cost.checking import is_count
from symbolic_cost.errors import InputError
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import l


@dataclass(frozen=True)
class Lengths:
    """A model for every length: a value, so that what holds it goes to other processes.

    Args:
        declare: the model, for a `shape`.
    """

    declare: Callable[..., Model]

    def __call__(self, numbers: Mapping[str, int | Fraction]) -> Model:
        """Declare the model for a length."""
        length = int(numbers[l.name])
        own = self.declare(shape=Shape(l=Integer(length)))
        return replace(own, fixed={l.name: length}, at=self)


def of_length(declare: Callable[..., Model], numbers: Mapping[str, int | Fraction]) -> Model:
    """Declare a model with its length as a symbol, or for the number that it needs.

    Args:
        declare: for a `shape`, that of training unless given.
        numbers: by symbol name; that of the length is used where a symbol is refused.

    Raises:
        InputError: every problem of the model.
    """
    try:
        return declare()
    except InputError:
        if not is_count(numbers.get(l.name)):
            raise
    return Lengths(declare)(numbers)


def with_length(
    numbers: Mapping[str, int | Fraction] | None, seq: int | None
) -> dict[str, int | Fraction]:
    """Return numbers with those tokens of a sequence, if any are said.

    Raises:
        InputError: the numbers have another length.
    """
    known = dict(numbers or {})
    if seq is not None and known.setdefault(l.name, seq) != seq:
        raise InputError(f"seq = {seq} and l = {known[l.name]}: give one")
    return known
