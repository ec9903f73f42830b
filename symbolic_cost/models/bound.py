"""Models with the numbers that they carry in place of symbols."""

from dataclasses import replace

from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import exact, symbol


def bound(model: Model, **numbers: int) -> Model:
    """Return a model whose sizes and repetitions are the numbers of its bindings.

    Deriving costs from numbers is faster than binding what was derived from symbols.

    Args:
        model: with or without bindings.
        numbers: further ones, by symbol.
    """
    bindings = {**model.bindings, **numbers}
    known = {symbol(name): exact(number) for name, number in bindings.items()}
    sizes = {axis: size.xreplace(known) for axis, size in model.sizes.items()}
    parts = tuple(replace(part, repeat=part.repeat.xreplace(known)) for part in model.parts)
    return replace(model, sizes=sizes, parts=parts, bindings=bindings)
