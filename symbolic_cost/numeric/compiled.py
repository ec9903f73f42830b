"""Many configurations at once: expressions compiled to float64 arrays.

Never int64, in which 12288**6 is silently 0. Results agree with exact evaluation to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sympy import (
    Add,
    Expr,
    Function,
    Heaviside,
    Max,
    Min,
    Mul,
    Number,
    Piecewise,
    Pow,
    Symbol,
    ceiling,
    exp,
    floor,
    fraction,
    lambdify,
    log,
    preorder_traversal,
    together,
)
from sympy.core.relational import Relational
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from symbolic_cost.errors import InputError, unknown
from symbolic_cost.extrema import AtLeast, Choice
from symbolic_cost.symbols import GLOSSARY, Active, in_glossary_order

Floats = NDArray[np.float64]

CHUNK = 8192
"""Configurations evaluated at a time, so that intermediate results stay in the cache."""

_COMPILED_NODES = (
    *(Number, Add, Mul, Pow, log, exp, Active, AtLeast, Choice),
    *(Max, Min, ceiling, floor, Heaviside, Piecewise, ExprCondPair),
    *(Relational, BooleanFunction, BooleanAtom),
)
"""What is printed as code besides symbols of the glossary; nothing here carries a user's text."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """Expressions as one function of arrays; made by `compiled`.

    Args:
        outputs: names of the expressions.
        inputs: names of the symbols that they need.
        function: from float64 arrays in the order of `inputs` to values in that of `outputs`.
    """

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    function: Callable[..., tuple[Any, ...]]

    def __call__(self, values: Mapping[str, ArrayLike]) -> dict[str, Floats]:
        """Evaluate every expression.

        Args:
            values: numbers or arrays by symbol name, broadcast against each other.

        Returns:
            A float64 array of the broadcast shape by name, in the expression's unit.

        Raises:
            InputError: every missing, unneeded or unknown name, every array with a number that
                its symbol does not accept, and shapes that do not go together.
        """
        arrays = self._arrays(values)
        shape = _common_shape(arrays)
        flat = [_flat(arrays[name], shape) for name in self.inputs]
        found = {name: np.empty(shape) for name in self.outputs}
        targets = [array.reshape(-1) for array in found.values()]
        with np.errstate(divide="ignore", invalid="ignore"):  # branches that are not chosen
            for start in range(0, int(np.prod(shape)), CHUNK):
                part = slice(start, start + CHUNK)
                results = self.function(*(_part(array, part) for array in flat))
                for target, result in zip(targets, results, strict=True):
                    target[part] = result
        return found

    def _arrays(self, values: Mapping[str, ArrayLike]) -> dict[str, Floats]:
        problems = [f"no value for symbol {name!r}" for name in self.inputs if name not in values]
        arrays: dict[str, Floats] = {}
        for name, given in values.items():
            if name not in self.inputs:
                problems.append(unknown("symbol of these expressions", name, self.inputs))
                continue
            try:
                arrays[name] = _floats(name, given)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)
        return arrays


def compiled(expressions: Mapping[str, Expr]) -> Compiled:
    """Compile expressions, sharing what they have in common.

    Args:
        expressions: by name, made of symbols of the glossary.

    Raises:
        InputError: every expression with a symbol or function that is not compiled.
    """
    problems = [problem for name, expr in expressions.items() for problem in _refused(name, expr)]
    if problems:
        raise InputError(problems)
    symbols = in_glossary_order(set().union(*(expr.free_symbols for expr in expressions.values())))
    prepared = tuple(_with_true_division(expr) for expr in expressions.values())
    function = lambdify(symbols, prepared, modules="numpy", cse=True, docstring_limit=0)
    return Compiled(tuple(expressions), tuple(symbol.name for symbol in symbols), function)


# ---------------------------------------------------------------------- expressions


def _refused(name: str, expr: Expr) -> list[str]:
    """Say what in an expression is not compiled."""
    foreign = {
        str(node): None
        for node in preorder_traversal(expr)
        if not (_is_glossary_symbol(node) or isinstance(node, _COMPILED_NODES))
    }
    return [
        f"{name!r} holds {text}: symbols of the glossary, arithmetic, powers, log, Max, Min, "
        "ceiling and Piecewise are compiled"
        for text in foreign
    ]


def _is_glossary_symbol(node: object) -> bool:
    return isinstance(node, Symbol) and node.name in GLOSSARY and GLOSSARY[node.name].symbol == node


class _CeilingOfQuotient(Function):
    """ceiling(above / below), both integers, rounded once before the ceiling."""

    def _numpycode(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        return _quotient_code("ceil", self, printer)


class _FloorOfQuotient(Function):
    """floor(above / below), both integers, rounded once before the floor."""

    def _numpycode(self, printer: Any) -> str:  # noqa: ANN401 - SymPy's printers are untyped
        return _quotient_code("floor", self, printer)


def _quotient_code(name: str, node: Function, printer: Any) -> str:  # noqa: ANN401 - as above
    above, below = (printer._print(argument) for argument in node.args)  # noqa: SLF001 - protocol
    return f"{printer._module_format(f'numpy.{name}')}(({above})/({below}))"  # noqa: SLF001


def _with_true_division(expr: Expr) -> Expr:
    """Let ceilings divide once.

    A ceiling jumps at integers, where a product with a rounded reciprocal may lie on the wrong
    side: ceil(525 * (1/75)) is 8. SymPy prints that product, and sharing common subexpressions
    makes more of them.
    """
    expr = expr.replace(ceiling, lambda x: _CeilingOfQuotient(*fraction(together(x))))
    return expr.replace(floor, lambda x: _FloorOfQuotient(*fraction(together(x))))


# ---------------------------------------------------------------------- arrays


def _floats(name: str, given: ArrayLike) -> Floats:
    """Return the numbers of one symbol as float64, or say which it accepts."""
    array = np.asarray(given)
    entry = GLOSSARY[name]
    accepted = "positive integers" if entry.integer else "positive finite numbers"
    problem = f"{name}: {accepted} are accepted ({entry.meaning})"
    numeric = array.dtype.kind in "iuf" or (array.dtype.kind == "O" and _all_real(array.flat))
    if not numeric:
        raise InputError(f"{problem}, not {array.dtype.name} values")
    floats = array.astype(np.float64)
    wrong = ~(np.isfinite(floats) & (floats > 0))
    if entry.integer:
        wrong |= floats != np.floor(floats)
    if wrong.any():
        raise InputError(f"{problem}, not {floats[wrong].flat[0]:g}")
    return floats


def _all_real(items: Iterable[object]) -> bool:
    return all(isinstance(item, Real) and not isinstance(item, bool) for item in items)


def _common_shape(arrays: Mapping[str, Floats]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(f"shapes do not broadcast to one: {shapes}") from None


def _flat(array: Floats, shape: tuple[int, ...]) -> Floats | np.flatiter[Floats]:
    """Return the broadcast array in one dimension, not written out; a number stays a number."""
    if array.ndim == 0:
        return array
    return array.reshape(-1) if array.shape == shape else np.broadcast_to(array, shape).flat


def _part(flat: Floats | np.flatiter[Floats], part: slice) -> Floats:
    return flat if isinstance(flat, np.ndarray) and flat.ndim == 0 else flat[part]
