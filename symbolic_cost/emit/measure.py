r"""How wide LaTeX comes out, and where TeX may end a line: enough to choose the columns of a table.

Widths are those of Computer Modern at 8 pt, rounded up. What TeX knows and this does not, such as
kerning, makes a text narrower.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

MEASURE = {
    **dict.fromkeys("ijl.,:;'|!", 2.6),
    **dict.fromkeys("()[]{}frst-I/", 3.6),
    **dict.fromkeys("mwMW@%", 7.6),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ&", 6.8),
    **dict.fromkeys("+=<>", 10.4),
}
"""Width of a character [pt]; others are 4.7."""

_OTHER = 4.7
_COMMANDS = {
    **dict.fromkeys(("allowbreak", "left", "right", "mathit", "mathrm", "mathtt", "text"), 0.0),
    **dict.fromkeys(("mbox", "par", "noindent", "cdot", "itshape", "bfseries", "frac"), 0.0),
    **dict.fromkeys(("max", "min", "exp", "log"), 16.0),
    **dict.fromkeys(("lceil", "rceil", "lfloor", "rfloor"), 4.4),
    **dict.fromkeys(("times", "to", "le", "ge"), 10.4),
    **dict.fromkeys(("textbackslash", "textasciitilde", "textasciicircum", "sqrt"), 7.0),
    "quad": 8.0,
}
_TOKEN = re.compile(r"\\([A-Za-z]+)\*?\s*|\\([^A-Za-z])|(.)", re.DOTALL)
_BREAK = re.compile(r"\\allowbreak\s*|(?<=[+<>=])\s+|(?<= -)\s+")
_SAFETY = 1.04


@lru_cache(4096)
def width(tex: str) -> float:
    r"""Return how wide a text or the inside of a formula is at 8 pt [pt].

    >>> width("mlp") < width("mlp mlp") < width(r"\frac{mlp}{mlp} mlp mlp")
    True
    """
    total, math = 0.0, False
    for command, escaped, sign in _TOKEN.findall(tex):
        if command:
            total += _COMMANDS.get(command, 6.0)
        elif escaped:
            total += 1.6 if escaped in ",;:" else 5.4
        elif sign == "$":
            math = not math
        elif sign == "-":
            total += 10.4 if math else 3.2
        elif sign == " ":
            total += 0.0 if math else 2.9
        elif sign not in "{}_^~":
            total += MEASURE.get(sign, _OTHER)
    return _SAFETY * total


def pieces(tex: str) -> list[str]:
    """Return what TeX keeps on one line: words of a text, unbroken runs of its formulas."""
    words: list[str] = []
    for place, part in enumerate(tex.split("$")):
        if place % 2:
            words += [f"${one}$" for one in _BREAK.split(part) if one.strip()]
        else:
            words += part.replace("~", "\u00a0").split(" ")
    return [one for one in words if one]


def least(tex: str) -> float:
    """Return the width of the widest piece that TeX keeps on one line [pt]."""
    if r"\mbox" in tex:
        return width(tex)
    return max(map(width, pieces(tex)), default=0.0)


def lines(tex: str, room: float) -> int:
    """Return over how many lines a text goes in a column."""
    number, used = 1, 0.0
    for piece in pieces(tex):
        wide = width(piece) + 2.9 * (not piece.startswith("$"))
        if used and used + wide > room:
            number, used = number + 1, 0.0
        used += wide
    return number


def shared(wide: Sequence[float], narrow: Sequence[float], room: float) -> list[float] | None:
    """Divide a width among columns: the widest give way first; None where there is no room.

    >>> shared([10, 90, 90], [10, 20, 20], 110)
    [10, 50.0, 50.0]
    """
    if sum(narrow) > room:
        return None
    if sum(wide) <= room:
        return list(wide)
    low, high = 0.0, max(wide)
    for _ in range(40):
        cap = (low + high) / 2
        used = sum(min(w, max(n, cap)) for w, n in zip(wide, narrow, strict=True))
        low, high = (cap, high) if used <= room else (low, cap)
    widths = [min(w, max(n, low)) for w, n in zip(wide, narrow, strict=True)]
    return [round(one, 2) for one in widths]
