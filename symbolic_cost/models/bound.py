"""Models with the numbers that they carry in place of symbols."""

from dataclasses import replace

from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import exact, symbol


def bound(model: Model) -> Model:
    """Return a model whose sizes and repetitions are the numbers of its bindings.

    Deriving costs from numbers is faster than binding what was derived from symbols.
    """
    numbers = {symbol(name): exact(number) for name, number in model.bindings.items()}
    sizes = {axis: size.xreplace(numbers) for axis, size in model.sizes.items()}
    parts = tuple(replace(part, repeat=part.repeat.xreplace(numbers)) for part in model.parts)
    return replace(model, sizes=sizes, parts=parts)
