"""Expressions as one function: exact of integers, and float64 of floats, arrays and grids.

Never int64, in which 12288**6 is silently 0. Results agree with exact evaluation to rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Overflow
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sympy import Expr

from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.program.evaluator import Evaluator
from symbolic_cost.program.grids import Top
from symbolic_cost.program.lowering import lowered
from symbolic_cost.symbols import GLOSSARY

Floats = NDArray[np.float64]


class Compiled:
    """Expressions as one function; made by `compile`.

    Attributes:
        outputs: names of the expressions.
        inputs: names of the symbols that they need.
    """

    def __init__(self, expressions: Mapping[str, Expr]) -> None:
        self._evaluator = Evaluator(lowered(expressions))
        self.outputs, self.inputs = self._evaluator.outputs, self._evaluator.inputs

    def __call__(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Evaluate every expression.

        Args:
            values: numbers or arrays by symbol name, broadcast against each other. Arrays that
                vary along one dimension each span a grid.

        Returns:
            By name, in the expression's unit: an exact number where all values are integers and
            Fractions, a float where they are numbers, else a float64 array of the broadcast shape.

        Raises:
            InputError: every missing, unneeded or unknown name, every array with a number that
                its symbol does not accept, and shapes that do not go together.
        """
        arrays = self._checked(values)
        if all(type(value) in (int, Fraction) for value in values.values()):
            try:
                return dict(self._evaluator.program.exact(values))
            except Overflow as error:
                raise InputError("a power is too large for an exact number") from error
        return self._evaluator(arrays)

    def best(
        self, values: Mapping[str, ArrayLike], objective: str, where: str = "", most: int = 1
    ) -> Top:
        """Return the points of a grid with the least objective; it is never held as a whole.

        Args:
            values: as of a call; each array varies along one dimension.
            objective: name of an expression.
            where: name of one that is not zero where a point counts; all count unless given.
            most: points to return.

        Raises:
            InputError: as of a call, and every name that is no expression's.
        """
        names = [name for name in (objective, where) if name]
        refuse(
            unknown("expression", name, self.outputs) for name in names if name not in self.outputs
        )
        return self._evaluator.best(self._checked(values), objective, where, most)

    def _checked(self, values: Mapping[str, Any]) -> dict[str, Floats]:
        if not isinstance(values, Mapping):
            raise InputError(f"values = {quote(values)}: a mapping of numbers by name is accepted")
        problems = [f"no value for symbol {name!r}" for name in self.inputs if name not in values]
        arrays: dict[str, Floats] = {}
        for name, value in values.items():
            if name not in self.inputs:
                problems.append(unknown("symbol of these expressions", name, self.inputs))
                continue
            try:
                arrays[name] = _floats(name, value)
            except InputError as error:
                problems += error.problems
        refuse(problems)
        return arrays


def compile(expressions: Mapping[str, Expr]) -> Compiled:  # noqa: A001 - `sc.compile`
    """Compile expressions, sharing what they have in common.

    Args:
        expressions: by name, made of symbols of the glossary.

    Raises:
        InputError: every expression with a symbol or function that is not compiled.

    >>> from symbolic_cost.symbols import V, m1
    >>> rows = compile({"rows": V / m1})
    >>> rows({"V": 525, "m1": 2}), rows({"V": [2, 6], "m1": 2.0})["rows"].tolist()
    ({'rows': Fraction(525, 2)}, [1.0, 3.0])
    """
    return Compiled(expressions)


def _floats(name: str, value: ArrayLike) -> Floats:
    """Return the numbers of one symbol as float64, or say which it accepts."""
    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        text = f"{name} = {quote(value)}: numbers in rows of one length are accepted"
        raise InputError(text) from error
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
