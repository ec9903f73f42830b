"""Quotes of a shell script that are opened and never closed."""

import re

from symbolic_cost.errors import InputError

_HERE = re.compile(r"<<(?P<tabs>-?)\s*[\"'\\]?(?P<end>[A-Za-z_]\w*)")
_STEP = re.compile(
    r"\\.|\$'(?:\\.|[^'\\])*'|\$\(|<<<|<<-?\s*[\"'\\]?[A-Za-z_]\w*[\"']?|(?<![^\s;|&()`])#[^\n]*|[\"'`()\n]",
    re.DOTALL,
)
"""What decides: escapes, text of C, commands put in, texts that follow, comments, quotes."""


def check_quotes(text: str, name: str) -> None:
    """Refuse a script whose quotes do not end; what follows them is text, not settings.

    Raises:
        InputError: with the line on which the quotes begin.
    """
    opened: list[tuple[str, int]] = []
    place, ends = 0, list[re.Match[str]]()
    while match := _STEP.search(text, place):
        word, place = match[0], match.end()
        inside = opened[-1][0] if opened else ""
        if word == "'" and inside != '"':
            end = text.find("'", place)
            if end < 0:
                opened.append((word, match.start()))
                break
            place = end + 1
        elif word in ('"', "`", ")"):
            _close_or_open(word, match.start(), opened)
        elif word == "$(" or (word == "(" and inside != '"'):
            opened.append(("(", match.start()))
        elif word.startswith(("#", "$'")) and inside == '"':
            place = match.start() + 1  # neither is one between quotes
        elif word.startswith("<<") and word != "<<<" and inside != '"':
            ends += [read for read in [_HERE.match(text, match.start())] if read]
        elif word == "\n" and ends and inside != '"':
            place = _behind(text, match.start(), ends)
    lines = [text.count("\n", 0, start) + 1 for kind, start in opened if kind in ("'", '"')]
    if lines:
        raise InputError(f"{name}: line {lines[0]}: quotes that begin here never end: close them")


def _close_or_open(word: str, start: int, opened: list[tuple[str, int]]) -> None:
    """Take a sign that ends what was opened last, or begins something."""
    begins = "(" if word == ")" else word
    if opened and opened[-1][0] == begins:
        opened.pop()
    elif word != ")":  # one alone ends the patterns of a case
        opened.append((word, start))


def _behind(text: str, place: int, ends: list[re.Match[str]]) -> int:
    """Return where texts end that follow their line, and forget them."""
    while ends:
        read = ends.pop(0)
        tabs = r"\t*" if read["tabs"] else ""
        end = re.compile(rf"^{tabs}{read['end']}$", re.MULTILINE).search(text, place)
        place = len(text) if end is None else end.end()
    return place
