"""Which steps of a tape may have no value: a division by what may be zero, and what rests on it.

Symbols are positive. The rest follows by signs: a sum of positive values is positive.
"""

from __future__ import annotations

from symbolic_cost.program.exact import undefined
from symbolic_cost.program.tape import Tape

_ANY, _NOT_NEGATIVE, _POSITIVE = range(3)


def doubtful(tape: Tape) -> list[bool]:
    """Tell of every register whether its value may be undefined."""
    signs = [_POSITIVE] * len(tape.inputs)
    signs += [_ANY if one < 0 else 1 + (one > 0) for one in tape.constants]
    doubts = [False] * len(tape.inputs) + [undefined(one) for one in tape.constants]
    for kind, taken in tape.steps:
        own = [signs[one] for one in taken]
        unsafe = kind in ("inv", "div", "log2", "sqrt") and own[-1] < _POSITIVE
        doubt = unsafe or any(doubts[one] for one in taken)
        doubts.append(doubt and kind not in ("ge", "gt"))
        signs.append(_sign(kind, own))
    return doubts


def _sign(kind: str, own: list[int]) -> int:
    if kind in ("add", "max"):
        return max(own) if min(own) > _ANY or kind == "max" else _ANY
    if kind in ("mul", "div", "min", "inv", "ceil", "sqrt"):
        return min(own)
    if kind in ("ge", "gt"):
        return _NOT_NEGATIVE
    if kind == "floor":
        return min(own[0], _NOT_NEGATIVE)
    if kind == "select":
        return min(own[1:])
    return _POSITIVE if kind == "exp2" else _ANY
