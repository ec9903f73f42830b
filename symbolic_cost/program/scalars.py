"""One configuration: the steps of a tape on exact numbers, and on floats."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from types import FunctionType
from typing import Any

from symbolic_cost.program import exact
from symbolic_cost.program.exact import Number, undefined
from symbolic_cost.program.tape import Tape

Function = Callable[..., tuple[Any, ...]]


def exact_results(tape: Tape, values: Sequence[Number]) -> dict[str, Number]:
    """Return exact numbers of the outputs; what divides by zero is undefined, and not a number.

    Args:
        tape: to run.
        values: exact numbers of its inputs.
    """
    return _run(tape, [*values, *tape.constants], _EXACT)


def float_results(tape: Tape, values: Sequence[float]) -> dict[str, float]:
    """Return floats of the outputs, without the wait for compiling; equal to `function`'s."""
    return _run(tape, [*values, *map(rounded, tape.constants)], FLOAT)


def function(tape: Tape) -> Function:
    """Return straight-line Python of a tape, from floats to floats in the order of the outputs."""
    names = [f"v{place}" for place in range(len(tape.inputs))]
    names += [f"({rounded(one)!r})" for one in tape.constants]
    lines = [f"def program({', '.join(names[: len(tape.inputs)])}):"]
    for kind, registers in tape.steps:
        own = f"v{len(names)}"
        lines.append(f" {own}={_PRINTED[kind].format(*(names[one] for one in registers))}")
        names.append(own)
    lines.append(f" return ({''.join(f'{names[one]},' for one in tape.outputs.values())})")
    space: dict[str, Any] = {f"_{kind}": FLOAT[kind] for kind in _CALLED}
    space |= {"inf": math.inf, "nan": math.nan}
    # Made of registers, of numbers and of the patterns below: no name of a symbol is in it.
    module = compile("\n".join(lines), "<program>", "exec")
    return FunctionType(module.co_consts[0], space)


def rounded(value: Number) -> float:
    """Return the float that is nearest to an exact number.

    >>> rounded(Fraction(1, 3)), rounded(10**400)
    (0.3333333333333333, inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _run(tape: Tape, registers: list[Any], table: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    append = registers.append
    for kind, taken in tape.steps:
        append(table[kind](*[registers[one] for one in taken]))
    return {name: registers[place] for name, place in tape.outputs.items()}


def _greatest(one: Any, other: Any) -> Any:  # noqa: ANN401 - exact or float
    return one if one >= other or one != one else other  # noqa: PLR0124 - not a number


def _least(one: Any, other: Any) -> Any:  # noqa: ANN401 - exact or float
    return one if one <= other or one != one else other  # noqa: PLR0124 - not a number


def _select(bracket: Any, one: Any, other: Any) -> Any:  # noqa: ANN401 - exact or float
    return one if bracket else other


def _defined(evaluate: Callable[[Any], Number]) -> Callable[[Any], Number]:
    """Let what is undefined stay so."""
    return lambda value: exact.UNDEFINED if undefined(value) else exact.as_integer(evaluate(value))


def _bracket(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Number]:
    """Let a comparison with what is undefined be so, too."""

    def of(one: Number, other: Number) -> Number:
        return exact.UNDEFINED if undefined(one) or undefined(other) else int(compare(one, other))

    return of


def _quotient(above: Number, below: Number) -> Number:
    return (
        exact.as_integer(Fraction(above) / below)
        if below and not undefined(above)
        else exact.UNDEFINED
    )


_COMMON: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "max": _greatest,
    "min": _least,
    "select": _select,
}
_EXACT = _COMMON | {
    "inv": lambda value: _quotient(1, value),
    "div": _quotient,
    "ge": _bracket(operator.ge),
    "gt": _bracket(operator.gt),
    "select": lambda bracket, *both: bracket if undefined(bracket) else _select(bracket, *both),
    "ceil": _defined(math.ceil),
    "floor": _defined(math.floor),
    "sqrt": _defined(exact.root),
    "log2": _defined(exact.log2),
    "exp2": _defined(exact.exp2),
}


def _divided(above: float, below: float) -> float:
    if below:
        return above / below
    return above * math.copysign(math.inf, below)


def _ceiling(value: float) -> float:
    """Round up as IEEE 754 does: zero keeps the sign."""
    return (float(math.ceil(value)) or 0.0 * value) if math.isfinite(value) else value


def _floor(value: float) -> float:
    return (float(math.floor(value)) or 0.0 * value) if math.isfinite(value) else value


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


LOG2_TERMS = tuple(2 / math.log(2) / (2 * term + 1) for term in range(11))
"""Of log2((1 + s) / (1 - s)) = 2/ln 2 (s + s^3/3 + s^5/5 + ...)."""
EXP2_TERMS = tuple(math.log(2) ** term / math.factorial(term) for term in range(15))
HALF_ROOT = math.sqrt(0.5)


def _log2(value: float) -> float:
    """Take a logarithm by steps that arrays and native code take too; libraries' last bits differ.

    Exact for powers of two; within four units in the last place else.
    """
    if not 0 < value < math.inf:
        return math.inf if value == math.inf else math.nan
    part, exponent = math.frexp(value)
    if part < HALF_ROOT:
        part, exponent = 2 * part, exponent - 1
    ratio = (part - 1.0) / (part + 1.0)
    square = ratio * ratio
    series = LOG2_TERMS[-1]
    for term in LOG2_TERMS[-2::-1]:
        series = series * square + term
    return exponent + ratio * series


def _exp2(value: float) -> float:
    """Take a power of 2 by steps that arrays and native code take too; exact for integers."""
    if not abs(value) < LARGEST_POWER:
        return math.nan if math.isnan(value) else (math.inf if value > 0 else 0.0)
    exponent = math.floor(value + 0.5)
    rest = value - exponent
    series = EXP2_TERMS[-1]
    for term in EXP2_TERMS[-2::-1]:
        series = series * rest + term
    return math.ldexp(series, exponent)


LARGEST_POWER = 1000.0
FLOAT = _COMMON | {
    "inv": lambda value: _divided(1.0, value),
    "div": _divided,
    "ge": lambda one, other: 1.0 if one >= other else 0.0,
    "gt": lambda one, other: 1.0 if one > other else 0.0,
    "ceil": _ceiling,
    "floor": _floor,
    "sqrt": _root,
    "log2": _log2,
    "exp2": _exp2,
}
_CALLED = ("inv", "div", "ceil", "floor", "sqrt", "log2", "exp2")
_PRINTED = {
    "add": "{}+{}",
    "sub": "{}-{}",
    "mul": "{}*{}",
    "inv": "1.0/{0} if {0} else _inv({0})",
    "div": "{0}/{1} if {1} else _div({0},{1})",
    "max": "{0} if {0}>={1} or {0}!={0} else {1}",
    "min": "{0} if {0}<={1} or {0}!={0} else {1}",
    "ge": "1.0 if {}>={} else 0.0",
    "gt": "1.0 if {}>{} else 0.0",
    "select": "{1} if {0} else {2}",
} | {kind: f"_{kind}({{}})" for kind in _CALLED[2:]}
