"""Programs as spreadsheet formulas: one cell per named step, none longer than a spreadsheet takes.

Excel takes 8,192 characters and 64 levels of nesting, and fifteen digits of a number: what is
longer gets a cell of its own, and a longer number is written as a sum of two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

from symbolic_cost.program.arithmetic import Node
from symbolic_cost.program.exact import Number, undefined
from symbolic_cost.program.scalars import rounded

_LONG, _DEEP = 1000, 20
"""Characters and levels of a part from which on it gets a cell of its own."""

_DIGITS = 15
"""Digits of a number that a spreadsheet reads."""

_SUM, _PRODUCT, _ATOM = 0, 1, 2

Text = tuple[str, int, int]
"""A part of a formula, how firmly it binds, and its levels of nesting."""


class Formulas:
    """Formulas of the nodes of a program.

    Args:
        nodes: of the program, arguments first.
        names: of the cells of inputs, by symbol.
        place: puts a formula into a cell of its own, and returns the cell.
    """

    def __init__(
        self, nodes: tuple[Node, ...], names: Mapping[str, str], place: Callable[[str], str]
    ) -> None:
        self._nodes, self._names, self._place = nodes, names, place
        self.cells: dict[int, str] = {}
        self._parts: dict[int, Text] = {}

    def formula(self, node: int) -> str:
        """Return the formula of a node, in cells of other nodes and of inputs."""
        if node in self.cells:
            return f"={self.cells[node]}"
        return f"={self._written(node)[0]}"

    def _part(self, node: int) -> Text:
        if node in self.cells:
            return self.cells[node], _ATOM, 0
        known = self._parts.get(node)
        if known is None:
            known = self._parts[node] = self._short(node, self._written(node))
        return known

    def _short(self, node: int, text: Text) -> Text:
        if len(text[0]) <= _LONG and text[2] <= _DEEP:
            return text
        self.cells[node] = self._place(f"={text[0]}")
        return self.cells[node], _ATOM, 0

    def _written(self, node: int) -> Text:
        kind, *rest = own = self._nodes[node]
        if kind == "num":
            return number(rest[0]), _PRODUCT, 0
        if kind == "sym":
            return self._names[rest[0]], _ATOM, 0
        if kind == "add":
            return self._sum(own)
        if kind == "mul":
            return self._product(rest[0], rest[1])
        if kind == "div":
            return self._product(1, ((rest[0], 1), (rest[1], -1)))
        arguments = rest[0] if kind in {"max", "min"} else rest
        parts = [self._part(one) for one in arguments]
        if kind in {"ceil", "floor"} and self._nodes[rest[0]][0] == "log2":
            parts = [(f"ROUND({parts[0][0]},12)", _ATOM, parts[0][2] + 1)]
        text = _CALLS[kind].format(*(part[0] for part in parts))
        if kind in {"max", "min"}:
            text = f"{kind.upper()}({','.join(part[0] for part in parts)})"
        return text, _ATOM, 1 + max(part[2] for part in parts)

    def _sum(self, own: Node) -> Text:
        terms: list[tuple[str, Text]] = []
        for node, factor in own[2]:
            sign = "-" if factor < 0 else "+"
            size = abs(factor)
            text = self._part(node) if size == 1 else self._product(size, ((node, 1),))
            terms.append((sign, text))
        if own[1]:
            terms.append(("-" if own[1] < 0 else "+", (number(abs(own[1])), _PRODUCT, 0)))
        terms.sort(key=lambda term: term[0] == "-")  # none begins with a sign, if it can be
        return self._joined(terms)

    def _joined(self, terms: list[tuple[str, Text]]) -> Text:
        """Return a sum; what is long already stands in cells of its own."""
        text, depth = "", 0
        for sign, part in terms:
            own = f"({part[0]})" if part[1] == _SUM else part[0]
            if len(text) + len(own) > _LONG:
                text = self._place(f"={text}")
            text += own if not text and sign == "+" else f"{sign}{own}"
            depth = max(depth, part[2] + 1)
        return text, _SUM, depth

    def _product(self, value: Number, factors: Iterable[tuple[int, int]]) -> Text:
        above, below = value.as_integer_ratio()
        parts: list[tuple[str, Text, int]] = []
        depth = 0
        for node, exponent in factors:
            part = self._part(node)
            parts.append(("*" if exponent > 0 else "/", part, abs(exponent)))
            depth = max(depth, part[2] + 1)
        parts.sort(key=lambda part: part[0] == "/")
        text = "" if above == 1 and any(part[0] == "*" for part in parts) else number(above)
        for sign, part, exponent in parts:
            own = part[0] if part[1] == _ATOM else f"({part[0]})"
            power = own if exponent == 1 else f"{own}^{exponent}"
            text += power if not text else f"{sign}{power}"
            if len(text) > _LONG:
                text = self._place(f"={text}")
        if below != 1:
            text += f"/{number(below)}"
        return text, _PRODUCT, depth


_CALLS = {
    "max": "",
    "min": "",
    "ceil": "(-INT(-({0})))",
    "floor": "INT({0})",
    "ge": "IF({0}>={1},1,0)",
    "gt": "IF({0}>{1},1,0)",
    "select": "IF({0}<>0,{1},{2})",
    "sqrt": "SQRT({0})",
    "log2": "LOG({0},2)",
    "exp2": "POWER(2,{0})",
}


def number(value: Number) -> str:
    """Return a number as a factor of a formula, exactly or as the float next to it.

    >>> from fractions import Fraction
    >>> number(31660800000000000), number(Fraction(1, 200000)), number(1234567890123456789)
    ('316608E11', '(1/200000)', '(123456789012345E4+6789)')
    """
    if undefined(value):
        return "NA()"
    above, below = value.as_integer_ratio()
    if below != 1 and max(len(_digits(above)), len(_digits(below))) <= _DIGITS:
        return f"({_integer(above)}/{_integer(below)})"
    if below == 1 and abs(above) < 1 << 63:
        return _integer(above)
    high = Decimal(rounded(value))
    first = Decimal(f"{high:.{_DIGITS - 1}e}")
    rest = Decimal(f"{high - first:.{_DIGITS - 1}e}")
    return f"({first:e}{rest:+e})".upper() if rest else f"({first:e})".upper()


def _digits(value: int) -> str:
    return str(abs(value)).rstrip("0")


def _integer(value: int) -> str:
    """Return an integer, of which a part is given that a spreadsheet reads."""
    sign, text, digits = "-" * (value < 0), str(abs(value)), _digits(value)
    if len(digits) > _DIGITS:
        high, low = text[:_DIGITS], text[_DIGITS:]
        return f"({sign}{high}E{len(low)}{sign or '+'}{int(low)})"
    plain = text if len(text) <= _DIGITS else f"{digits}E{len(text) - len(digits)}"
    return f"({sign}{plain})" if sign else plain
