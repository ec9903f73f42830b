"""Models whose ops depend on the length of a sequence, which are declared once it is known."""

from collections.abc import Callable, Mapping
from fractions import Fraction

from sympy import Integer

from symbolic_cost.checking import is_count
from symbolic_cost.errors import InputError
from symbolic_cost.models.shape import TRAINING, Shape
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import replace
from symbolic_cost.symbols import l


def of_length(declare: Callable[[Shape], Model], numbers: Mapping[str, int | Fraction]) -> Model:
    """Declare a model with its length as a symbol, or for the number that it needs.

    Args:
        declare: for a shape.
        numbers: by symbol name; that of the length is used where a symbol is refused.

    Raises:
        InputError: every problem of the model.
    """
    try:
        return declare(TRAINING)
    except InputError:
        if not is_count(numbers.get(l.name)):
            raise

    def at(numbers: Mapping[str, int | Fraction]) -> Model:
        length = int(numbers[l.name])
        own = declare(Shape(l=Integer(length)))
        return replace(own, fixed={l.name: length}, at=at)

    return at(numbers)
