"""Which parts of a shell script run, as far as its own variables decide that."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from symbolic_cost.errors import InputError
from symbolic_cost.importers.conditions import (
    Known,
    Truth,
    any_of,
    holds,
    inverse,
    matches,
    text_of,
)
from symbolic_cost.records import dataclass

_QUOTED = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'")
_TOKEN = re.compile(
    r"\\\n|\$\(\([^()]*\)\)|"
    r"(?P<test>\[\[(?=\s)(?s:.*?)\s\]\]|\[(?=\s)(?:\\\n|.)*?\s\]|\(\(.*?\)\)|"
    r"\btest\s[^;&|()\n]*)|"
    r"(?P<stop>\n|;;|;|&&|\|\||&|\||=?\(|\))|(?P<word>(?:(?!=\()[^\s;|&()])+)"
)
_ENDING = ("\n", ";", ";;", "&&", "||", ")")
_PARTS = ("if", "case", "elif", "then", "else", "fi", "esac", "}")
_OPENING = {"if": "test", "case": "word"}
_CLOSING = {"fi": "if", "esac": "case", "}": "{"}
_ENDS = {"true": True, ":": True, "false": False, **dict.fromkeys(("[", "[[", "test"))}
"""How commands end, where that is sure; a test that was not read as one may end either way."""

_ASSIGNS = re.compile(r"\w+\+?=")


class Piece(NamedTuple):
    """A part of a script that runs, and the line on which it begins.

    Args:
        branch: line on which the branch around it begins of which that is not known; 0 without one.
    """

    text: str
    line: int
    branch: int

    def line_of(self, match: re.Match[str]) -> int:
        """Return the line on which something in it begins."""
        return self.line + self.text.count("\n", 0, match.start())


class _List:
    """Commands joined by && and ||, from a place on.

    The next one runs, or not; those before it ended well, or not, which is sure of tests and
    assignments; and an operator stands last, or none.
    """

    def __init__(self, start: int) -> None:
        self.start, self.sure, self.joins = start, False, False
        self.runs: Truth = True
        self.ended: Truth = True

    def join(self, operator: str) -> None:
        """Go on behind an operator; that a command ends well is taken for && alone."""
        other = inverse(self.ended) if self.sure else None
        self.runs, self.joins = (self.ended if operator == "&&" else other), True

    def take(self, said: Truth, *, sure: bool) -> None:
        """Take how a command ends, if it runs."""
        if self.runs is not False:
            self.ended, self.sure = (said if self.runs else None), sure
        self.joins = False


@dataclass
class _Frame:
    """What is open: if, case, a group { or (, or an array =.

    Args:
        outer: the list of commands in which it stands.
        phase: "test" or "body" of if; "word", "patterns" or "body" of case.
        start: where the phase begins.
        runs: whether its present branch does.
        before: whether a branch before that did.
        value: of case.
    """

    kind: str
    outer: _List
    phase: str
    start: int
    runs: Truth = True
    before: Truth = False
    value: str | None = None

    def enter(self, said: Truth) -> None:
        """Begin a branch whose test says so; behind one that runs, none does."""
        self.runs = False if self.before or said is False else None if self.before is None else said
        self.before, self.phase = any_of(self.before, said), "body"

    def ask(self, phase: str, start: int, *, runs: Truth) -> None:
        """Begin a test, or the patterns of a branch, which are no commands."""
        self.phase, self.start, self.runs = phase, start, runs


class _Walk:
    """A way through a script: what is open, and from where on nothing is given out yet."""

    def __init__(self, text: str, known: Known) -> None:
        self.text, self.known = text, known
        self.bare = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
        self.frames: list[_Frame] = []
        self.list, self.begins, self.negated = _List(0), True, False
        self.mark = 0

    def pieces(self) -> Iterator[Piece]:
        """Yield what runs; who takes it sets the variables before the next test is read."""
        for token in _TOKEN.finditer(self.bare):
            word, start, end = token[0], *token.span()
            if self.ends(word):
                yield from self.before(start)
            if token["stop"]:
                self.stop(word, start, end)
            elif token["word"]:
                self.word(word, start, end)
            elif token["test"] and self.begins and not self.top("="):
                said = holds(self.text[start:end], self.known)
                self.list.take(inverse(said) if self.negated else said, sure=True)
                self.begins = False
        yield from self.before(len(self.text))

    def ends(self, word: str) -> bool:
        """Tell whether what stands before a word is given out."""
        return not self.top("=") and (word in _ENDING or (self.begins and word in _PARTS))

    def before(self, place: int) -> Iterator[Piece]:
        """Give out what stands before a place, if it runs."""
        start, self.mark = self.mark, place
        around = [(runs, f.outer.start) for f in self.frames for runs in (f.outer.runs, f.runs)]
        around.append((self.list.runs, self.list.start))
        if all(runs is not False for runs, _ in around):
            unknown = [self.line(begin) for runs, begin in around if runs is None]
            yield Piece(self.text[start:place], self.line(start), unknown[-1] if unknown else 0)

    def line(self, place: int) -> int:
        """Return the line of a place."""
        return self.text.count("\n", 0, place) + 1

    def fresh(self, place: int) -> None:
        """Begin another list of commands."""
        self.list, self.begins, self.negated = _List(place), True, False

    def top(self, kind: str) -> _Frame | None:
        """Return what was opened last, if it is of a kind."""
        return self.frames[-1] if self.frames and self.frames[-1].kind == kind else None

    def open(self, kind: str, phase: str, start: int, end: int) -> None:
        """Open something in the list of commands around it."""
        self.list.start = start
        self.frames.append(_Frame(kind, self.list, phase, end))
        self.fresh(end)

    def close(self, kind: str) -> None:
        """Close what was opened of a kind last, and all that was opened in it."""
        if any(frame.kind == kind for frame in self.frames):
            while self.frames[-1].kind != kind:
                self.frames.pop()
            self.list, self.begins = self.frames.pop().outer, False
            self.list.take(said=True, sure=kind == "=")

    def stop(self, word: str, start: int, end: int) -> None:
        """Take what ends a command, or brackets."""
        case = self.top("case")
        if case and case.phase == "patterns":
            if word == ")":
                case.enter(matches(self.text[case.start : start], case.value, self.known))
                self.fresh(end)
        elif word in ("(", "=("):
            self.open(word[0], "body", start, end)
        elif word == ")":
            self.close("=" if self.top("=") else "(")
        elif self.top("="):
            return
        elif word in ("&&", "||"):
            self.list.join(word)
            self.begins, self.negated = True, False
        elif word == ";;":
            self.next_patterns(end)
        elif word in "|&":
            self.begins = True
        elif not (word == "\n" and (self.list.joins or self.is_quoted(start))):
            self.fresh(end)

    def is_quoted(self, place: int) -> bool:
        """Tell whether quotes stay open in a list that may not run; then it is not read."""
        if self.list.runs is True or not self.bare.count('"', self.list.start, place) % 2:
            return False
        self.list.runs = None
        return True

    def next_patterns(self, end: int) -> None:
        """Go on to the next branch of a case; what was opened in this one ends with it."""
        while self.frames and not self.top("case"):
            self.frames.pop()
        for case in self.frames[-1:]:
            case.ask("patterns", end, runs=False)
        self.fresh(end)

    def word(self, word: str, start: int, end: int) -> None:
        """Take a word: one of the language, or a command's."""
        case = self.top("case")
        if case and case.phase == "word":
            if word == "in":
                case.value = text_of(self.text[case.start : start].strip(), self.known)
                case.ask("patterns", end, runs=False)
                self.fresh(end)
        elif word == "{":
            self.open("{", "body", start, end)
        elif self.begins and not self.top("="):
            if case and case.phase == "patterns" and word != "esac":
                self.begins = False
            elif not self.keyword(word, start, end):
                self.command(word)

    def command(self, word: str) -> None:
        """Take the first word of a command: a program is taken to end well, but not for sure."""
        said = _ENDS.get(word, not self.negated or None)
        sure = word in _ENDS or self.negated or _ASSIGNS.match(word) is not None
        self.list.take(inverse(said) if self.negated else said, sure=sure)
        self.begins = False

    def keyword(self, word: str, start: int, end: int) -> bool:
        """Take a word of the language; tell whether it is one."""
        if word == "!":
            self.negated = not self.negated
        elif word in _OPENING:
            self.open(word, _OPENING[word], start, end)
        elif word in _CLOSING:
            self.close(_CLOSING[word])
        elif word in ("then", "elif", "else"):
            self.part(word, start, end)
        elif word in ("do", "while", "until", "time"):
            self.fresh(end)
        else:
            return False
        return True

    def part(self, word: str, start: int, end: int) -> None:
        """Go on to the next part of an if."""
        frame = self.top("if")
        if frame is not None and word == "elif":
            frame.ask("test", end, runs=inverse(frame.before))
        elif frame is not None:
            then = word == "then"
            frame.enter(holds(self.text[frame.start : start], self.known) if then else True)
        self.fresh(end)


def pieces(text: str, where: Callable[[int], str], known: Known) -> Iterator[Piece]:
    """Yield the parts of a script that run, in their order; who takes them sets the variables.

    Args:
        text: of the script, without comments.
        where: names a line of it.
        known: what the script says of a text up to there.

    Raises:
        InputError: a branch without an end.
    """
    walk = _Walk(text, known)
    yield from walk.pieces()
    open_ = [one for one in walk.frames if one.kind in ("if", "case", "=") and one.phase != "test"]
    for frame in open_[:1]:
        what = {"=": "an array"}.get(frame.kind, frame.kind)
        raise InputError(f"{where(walk.line(frame.outer.start))}: {what} without an end")
