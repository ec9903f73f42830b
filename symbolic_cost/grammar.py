"""The grammar of formulas that people type: text to a tree. Nothing is run.

    sum    = term {("+" | "-") term}
    term   = factor {["*" | "/"] factor}        2sbh is 2*s*b*h where letters are known
    factor = {"-" | "+"} atom [("^" | "**") {"-" | "+"} atom]
    atom   = number | name | function "(" sum {"," sum} ")" | "(" sum ")"

Two things are refused because people read them two ways: a/bc, and a power of a power.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from symbolic_cost.errors import InputError, quote, refuse, unknown

FUNCTIONS: Mapping[str, int] = {
    "sqrt": 1,
    "exp": 1,
    "ln": 1,
    "log2": 1,
    "log10": 1,
    "min": 0,
    "max": 0,
    "ceil": 1,
    "floor": 1,
}
"""Functions by name, each with the number of its arguments; none says several."""

_LONGEST, _MOST_TOKENS, _DEEPEST, _MOST_DIGITS = 2000, 1000, 40, 40
_LARGEST_POWER, _LARGEST_NUMBER = 200, Decimal("1e100")


class Node(NamedTuple):
    """A part of a formula.

    Args:
        kind: "number", "name", one of + - * / ^, "negative", or the name of a function.
        value: of a number or a name.
        parts: what it is made of.
    """

    kind: str
    value: Fraction | str = ""
    parts: tuple[Node, ...] = ()

    def walk(self) -> Iterator[Node]:
        """Yield the node and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+(?![A-Za-z0-9_]))?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>\*\*|[-+*/^(),]))",
    re.ASCII,
)


def parsed(text: str, letters: Container[str] | None = None) -> Node:
    """Return the tree of a formula.

    Args:
        text: as the module says.
        letters: names that are known. Letters that are none stand for their product then, and
            factors may stand side by side; without them every word is one name.

    Raises:
        InputError: where it stops being a formula; else every name, function, number and power
            that is refused.
    """
    if len(text) > _LONGEST:
        raise _wrong(text, f"text of at most {_LONGEST} characters is accepted")
    tree = _Reader(text, _tokens(text, letters), letters).integer()
    refuse(f"formula {quote(text)}: {problem}" for problem in dict.fromkeys(_refused(tree)))
    return tree


def _wrong(text: str, said: str) -> InputError:
    return InputError(f"formula {quote(text)}: {said}")


def _tokens(text: str, letters: Container[str] | None) -> list[_Token]:
    tokens: list[_Token] = []
    strange: dict[str, None] = {}
    place, end = 0, len(text.rstrip())
    while place < end:
        read = _TOKEN.match(text, place)
        if read is None:
            rest = text[place:].lstrip()
            raise _wrong(text, f"{quote(rest, 20)} at {place + 1} is no part of one: {_ACCEPTED}")
        kind, place = str(read.lastgroup), read.end()
        token = _Token(kind, read[kind], read.start(kind))
        words = [token] if kind != "name" or letters is None else _letters(token, letters)
        strange |= dict.fromkeys(word.text for word in words if word.kind == "strange")
        tokens += words
    if strange:
        known = letters if isinstance(letters, Mapping) else ()
        raise InputError([unknown("symbol of the formula", name, known) for name in strange])
    if len(tokens) > _MOST_TOKENS:
        raise _wrong(text, f"is too long: at most {_MOST_TOKENS} names, numbers and signs")
    return [*tokens, _Token("end", "", len(text))]


def _letters(token: _Token, known: Container[str]) -> list[_Token]:
    """Return a name, or the letters that it is the product of."""
    if token.text in known or token.text in FUNCTIONS:
        return [token]
    if not all(letter in known for letter in token.text):
        return [token._replace(kind="strange")]
    return [_Token("name", one, token.place + n) for n, one in enumerate(token.text)]


class _Reader:
    """Recursive descent over the tokens of a formula."""

    def __init__(self, text: str, tokens: list[_Token], letters: Container[str] | None) -> None:
        self._text, self._tokens, self._letters = text, tokens, letters
        self._place = 0

    def integer(self) -> Node:
        tree = self._sum(0)
        if self._now.kind != "end":
            raise self._stopped("an operator or the end")
        return tree

    @property
    def _now(self) -> _Token:
        return self._tokens[self._place]

    def _take(self, *signs: str) -> str:
        token = self._now
        if token.kind != "sign" or token.text not in signs:
            return ""
        self._place += 1
        return token.text

    def _stopped(self, accepted: str) -> InputError:
        token = self._now
        here = "at the end" if token.kind == "end" else f"{quote(token.text)} at {token.place + 1}"
        return _wrong(self._text, f"{here}: {accepted} is accepted")

    def _sum(self, depth: int) -> Node:
        if depth > _DEEPEST:
            raise _wrong(self._text, f"more than {_DEEPEST} levels deep")
        tree = self._term(depth)
        while sign := self._take("+", "-"):
            tree = Node(sign, parts=(tree, self._term(depth)))
        return tree

    def _term(self, depth: int) -> Node:
        tree, below = self._factor(depth), False
        while True:
            sign = self._take("*", "/")
            if not sign and not self._begins():
                return tree
            if not sign and below:
                raise self._stopped("* or a bracket around what stands below /")
            tree = Node(sign or "*", parts=(tree, self._factor(depth)))
            below = sign == "/"

    def _begins(self) -> bool:
        """Tell whether a factor begins here without a sign before it."""
        beside = self._letters is not None and self._now.kind in ("number", "name")
        return beside or (self._letters is not None and self._now.text == "(")

    def _factor(self, depth: int) -> Node:
        if sign := self._take("-", "+"):
            if depth > _DEEPEST:
                raise _wrong(self._text, f"more than {_DEEPEST} levels deep")
            inside = self._factor(depth + 1)
            return Node("negative", parts=(inside,)) if sign == "-" else inside
        base = self._atom(depth)
        if not self._take("^", "**"):
            return base
        negative = self._take("-", "+") == "-"
        exponent = self._atom(depth)
        if self._take("^", "**"):
            raise _wrong(self._text, "a power of a power needs brackets")
        return Node(
            "^", parts=(base, Node("negative", parts=(exponent,)) if negative else exponent)
        )

    def _atom(self, depth: int) -> Node:
        if self._take("("):
            return self._closed(self._sum(depth + 1))
        token = self._now
        if token.kind not in ("number", "name"):
            raise self._stopped("a number, a name or (")
        self._place += 1
        if token.kind == "number":
            return self._number(token)
        if self._letters is None:
            calls = self._now.text == "("
        else:
            calls = token.text in FUNCTIONS and token.text not in self._letters
        return self._function(token, depth) if calls else Node("name", token.text)

    def _closed(self, inside: Node) -> Node:
        if not self._take(")"):
            raise self._stopped(")")
        return inside

    def _number(self, token: _Token) -> Node:
        if len(token.text) > _MOST_DIGITS:
            raise _wrong(self._text, f"a number of over {_MOST_DIGITS} digits")
        number = Decimal(token.text.replace("_", ""))
        if number > _LARGEST_NUMBER:
            raise _wrong(self._text, f"{token.text} is above {_LARGEST_NUMBER}")
        if 0 < number < 1 / _LARGEST_NUMBER:
            raise _wrong(self._text, f"{token.text} is below 1E-100")
        return Node("number", Fraction(number))

    def _function(self, token: _Token, depth: int) -> Node:
        if token.text not in FUNCTIONS:
            raise _wrong(self._text, unknown("function", token.text, FUNCTIONS))
        if not self._take("("):
            raise self._stopped("( after a function")
        parts = [self._sum(depth + 1)]
        while self._take(","):
            parts.append(self._sum(depth + 1))
        count = FUNCTIONS[token.text]
        if (len(parts) == 1) != (count == 1):
            said = "exactly one argument" if count else "two or more arguments"
            raise _wrong(self._text, f"{token.text} takes {said}")
        return self._closed(Node(token.text, parts=tuple(parts)))


_ACCEPTED = f"numbers, names, + - * / ^ **, brackets and {', '.join(FUNCTIONS)} are accepted"


def _refused(tree: Node) -> Iterator[str]:
    """Yield what is refused of numbers and powers."""
    for node in tree.walk():
        if node.kind == "^":
            inside = node.parts[1].parts[0] if node.parts[1].kind == "negative" else node.parts[1]
            if isinstance(inside.value, Fraction) and inside.value > _LARGEST_POWER:
                yield f"power {float(inside.value):.3g} is above {_LARGEST_POWER}"
