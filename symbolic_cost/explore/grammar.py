"""Questions about configurations, as typed: "memory < 80 GiB and tp*pp <= 64". Nothing is run.

question   = every {"or" every}
every      = single {"and" single}
single     = "not" single | comparison
comparison = sum {("<" | "<=" | ">" | ">=" | "==" | "!=") sum}
sum        = term {("+" | "-") term}
term       = factor {("*" | "/") factor}
factor     = "-" factor | number [unit] | name | 'word' | "(" question ")"
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from symbolic_cost.errors import InputError, quote, unknown
from symbolic_cost.records import dataclass
from symbolic_cost.units import IEC, SI

_LONGEST, _MOST_TOKENS, _DEEPEST = 2000, 300, 40

Dimension: TypeAlias = tuple[int, int, int]
"""Powers of byte, second and FLOP."""

COUNT, BYTE, SECOND, FLOP = (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)

UNITS: dict[str, tuple[float, Dimension | None]] = {
    "%": (0.01, COUNT),
    "B": (1.0, BYTE),
    "byte": (1.0, BYTE),
    **{f"{prefix}B": (float(size), BYTE) for prefix, size in {**SI, **IEC}.items()},
    "s": (1.0, SECOND),
    "ms": (1e-3, SECOND),
    "us": (1e-6, SECOND),
    "ns": (1e-9, SECOND),
    "min": (60.0, SECOND),
    "h": (3600.0, SECOND),
    "d": (86400.0, SECOND),
    "FLOP": (1.0, FLOP),
    "FLOP/s": (1.0, (0, -1, 1)),
    **{f"{prefix}FLOP": (float(size), FLOP) for prefix, size in SI.items()},
    **{f"{prefix}FLOP/s": (float(size), (0, -1, 1)) for prefix, size in SI.items()},
    "/s": (1.0, (0, -1, 0)),
    **{f"{prefix}/s": (float(size), (0, -1, 0)) for prefix, size in SI.items()},
    **{prefix: (float(size), None) for prefix, size in SI.items()},
}
"""Factor and dimension by unit; a prefix alone is of the unit that it is compared with."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in its base unit; without a dimension it goes with any."""

    value: float
    dimension: Dimension | None
    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """An output or a varied name."""

    name: str


@dataclass(frozen=True, slots=True)
class Word:
    """A quoted word, such as 'bf16-mixed'."""

    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation: - of one; + - * / and or, and comparisons, of two; not of one."""

    operation: str
    operands: tuple[Tree, ...]


Tree: TypeAlias = Number | Name | Word | Operation

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:[0-9][0-9_]*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+(?![A-Za-z0-9_]))?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\""
    r"|(?P<sign><=|>=|==|!=|[-+*/()<>=%]))",
    re.ASCII,
)
_UNIT = re.compile(r"\s*(%|[A-Za-z]+(?:/s\b)?|/s\b)", re.ASCII)
_KEYWORDS = ("and", "or", "not")


def parsed(text: str) -> Tree:
    """Return the tree of a question or an expression.

    Raises:
        InputError: where it stops being one, and what is accepted there.
    """
    if len(text) > _LONGEST:
        raise InputError(f"{quote(text)}: at most {_LONGEST} characters are accepted")
    reader = _Reader(text)
    tree = reader.question(0)
    reader.end()
    return tree


class _Reader:
    """Recursive descent over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._place = 0

    @property
    def _next(self) -> str:
        """The sign or keyword that comes; empty for all else."""
        kind, token = self._tokens[self._place][:2]
        return token if kind == "sign" or token in _KEYWORDS else ""

    def _take(self, *signs: str) -> str:
        token = self._next
        if token not in signs or not token:
            return ""
        self._place += 1
        return token

    def _refuse(self, accepted: str) -> InputError:
        kind, token, start, _ = self._tokens[self._place]
        here = "the end" if kind == "end" else f"{quote(token)} at {start + 1}"
        return InputError(f"{quote(self._text)}: {here}: {accepted} is accepted")

    def end(self) -> None:
        if self._tokens[self._place][0] != "end":
            raise self._refuse("an operator (< <= > >= == != and or + - * /)")

    def question(self, depth: int) -> Tree:
        if depth > _DEEPEST:
            raise InputError(f"{quote(self._text)}: more than {_DEEPEST} parentheses")
        return self._chain(lambda: self._chain(lambda: self._single(depth), "and"), "or")

    def _single(self, depth: int) -> Tree:
        if depth > _DEEPEST:
            raise InputError(f"{quote(self._text)}: too deeply nested")
        if self._take("not"):
            return Operation("not", (self._single(depth + 1),))
        first = self._sum(depth)
        tree: Tree | None = None
        while sign := self._take(*COMPARISONS):
            second = self._sum(depth)
            one = Operation(sign, (first, second))
            tree = one if tree is None else Operation("and", (tree, one))
            first = second
        if self._next == "=":
            raise self._refuse("==")
        return first if tree is None else tree

    def _sum(self, depth: int) -> Tree:
        return self._chain(lambda: self._chain(lambda: self._factor(depth), "*", "/"), "+", "-")

    def _chain(self, part: Callable[[], Tree], *signs: str) -> Tree:
        tree = part()
        while sign := self._take(*signs):
            tree = Operation(sign, (tree, part()))
        return tree

    def _factor(self, depth: int) -> Tree:
        if depth > _DEEPEST:
            raise InputError(f"{quote(self._text)}: too deeply nested")
        if self._take("-"):
            return Operation("-", (self._factor(depth + 1),))
        if self._take("("):
            inside = self.question(depth + 1)
            if not self._take(")"):
                raise self._refuse(")")
            return inside
        kind, token, _, value = self._tokens[self._place]
        if kind in ("sign", "end") or token in _KEYWORDS:
            raise self._refuse("a number, a name or (")
        self._place += 1
        return value


def _tokens(text: str) -> list[tuple[str, str, int, Tree]]:
    """Return kind, text, place and leaf of every token; the last is the end."""
    tokens: list[tuple[str, str, int, Tree]] = []
    place = 0
    while place < len(text.rstrip()):
        read = _TOKEN.match(text, place)
        if read is None:
            rest = text[place:].lstrip()
            raise InputError(f"{quote(text)}: {quote(rest, 20)} is neither number, name nor sign")
        kind = str(read.lastgroup)
        token, start, place = str(read[kind]), read.start(kind), read.end()
        leaf: Tree = Word(token)
        if kind == "number":
            leaf, place = _number(text, token, place)
        elif kind == "name":
            leaf = Name(token)
        tokens.append((kind, token, start, leaf))
    if len(tokens) > _MOST_TOKENS:
        raise InputError(f"{quote(text)}: at most {_MOST_TOKENS} names, numbers and signs")
    tokens.append(("end", "", len(text), Word("")))
    return tokens


def _number(text: str, token: str, place: int) -> tuple[Number, int]:
    """Return a number with the unit that follows it, and where that ends."""
    value = float(token.replace("_", ""))
    if value > _GREATEST:
        raise InputError(f"{quote(text)}: {quote(token)} is too large")
    read = _UNIT.match(text, place)
    unit = "" if read is None else read[1]
    if unit not in UNITS and "/" in unit:
        unit = unit.partition("/")[0]
    if not unit or unit in _KEYWORDS:
        return Number(value, None if value == 0 else COUNT, token), place
    if unit not in UNITS:
        raise InputError(f"{quote(text)}: {unknown('unit', unit, UNITS)}")
    factor, dimension = UNITS[unit]
    end = place if read is None else read.start(1) + len(unit)
    return Number(value * factor, dimension, f"{token} {unit}".replace(" /", "/")), end


_GREATEST = 1e100
