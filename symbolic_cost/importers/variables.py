"""Variables of a shell script: what they are where they are read, nothing executed."""

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping
from operator import add, floordiv, mod, mul, sub

_START = r"(?:^|;|&&|\|\||\)|\b(?:then|else|do)\b)\s*"
_ASSIGNMENT = re.compile(
    _START + r"(?:(?:export|local|readonly|declare|typeset)\s+(?:-\w+\s+)*)?(?P<name>[A-Za-z_]\w*)"
    r"(?P<more>\+?)=(?P<value>(?:\"[^\"\n]*\"|'[^'\n]*'|\$\(\(.*\)\)|[^\s;#(\"'])+|"
    r"(?=[\s;]|$))",
    re.MULTILINE,
)
_DEFAULTED = re.compile(r"\$\{(?P<name>\w{1,100}):?=(?P<value>[^{}]{0,200})\}")
"""What sets a variable that has no value yet."""

_PART = re.compile(r"\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)'|[^\"']+")
_REPEATS = re.compile(
    r"(?:^|[;&|{]|\b(?:do|then|else)\b)\s*(?:for|while|until|select|function|eval|trap)\b|\w\s*\(\)",
    re.MULTILINE,
)
"""What runs several times, or later than it stands."""

_OTHERWISE = re.compile(
    r"\b(?:for|select|unset|let)\s+(\w+)|\b(?:read|mapfile|getopts)\s([^;|&<\n]*)|"
    r"\(\(\s*(\w+)\s*(?:[-+*/%]?=(?!=)|\+\+|--)|\bprintf\s+-v\s+(\w+)"
)
"""What gives variables a value and is no assignment."""

_ARITHMETIC = re.compile(r"\$\(\(([^()]*)\)\)")
_VARIABLE = re.compile(
    r"\$\{(\w{1,100})(?:(?P<colon>:?)[-=](?P<default>[^{}]{0,200}))?\}|\$(\w{1,100})"
)
_OPEN = re.compile(r"<\w+: (?:set in|several)|[$`]")
_DEEPEST = 10
_LONGEST = 200


class Variables:
    """Values by name, in the order in which a script gives them.

    Where nothing runs twice, or later than it stands, a value holds until the next one. Elsewhere a
    variable that gets several has none, and decides no test. One that is set in a branch that is
    not decided has none either: what needs it is refused.
    """

    def __init__(self, text: str) -> None:
        self._values: dict[str, str] = {}
        self._unsaid: set[str] = set()  # of these, something else decides
        self.in_order = _REPEATS.search(text) is None
        others = (name for match in _OTHERWISE.finditer(text) for name in match.groups() if name)
        self._others = {one for names in others for one in re.findall(r"\w+", names)}
        times = Counter(match["name"] for match in _ASSIGNMENT.finditer(text))
        self._several = {name for name, number in times.items() if number > 1}

    def read(self, text: str, branch: int) -> None:
        """Take what a part of the script assigns.

        Args:
            text: of the part.
            branch: line of the branch around it that is not decided, or 0.
        """
        for match in _DEFAULTED.finditer(text):
            name, value = match["name"], match["value"]
            if self._values.get(name, "") == "":
                open_ = f"<{name}: set in the branch of line {branch}>"
                self._values[name] = open_ if branch else self._assigned(value)
                if branch or self.known(value) is None:
                    self._unsaid.add(name)
        for match in _ASSIGNMENT.finditer(text):
            name, word, before = match["name"], match["value"], self._values.get(match["name"])
            value, unsure = self._assigned(word), bool(branch) or not self.in_order
            if before is None and branch:
                value = f"<{name}: set in the branch of line {branch}>"
            elif unsure and (match["more"] or before not in (None, value)):
                value = f"<{name}: several values>"
            elif match["more"]:
                value = f"{before or ''}{value}"
            said = self.known(word) is not None and not ("'" in word and "$" in word)
            if said and not match["more"]:
                self._unsaid.discard(name)
            elif not said:
                self._unsaid.add(name)
            self._values[name] = value

    def _assigned(self, word: str) -> str:
        """Return the value of a word: its pieces joined, what is in single quotes as it stands."""
        pieces = []
        for match in _PART.finditer(word):
            own = match["double"] if match["double"] is not None else match[0]
            pieces.append(match["single"] if match["single"] is not None else self.put_in(own))
        return "".join(pieces)

    def known(self, text: str) -> str | None:
        """Return a text with its variables put in; None where the script does not say them."""
        names = [(m[1] or m[4], m["default"]) for m in _VARIABLE.finditer(self._named(text))]
        for name, default in names:
            unsure = not self.in_order and name in self._several
            if unsure or name in self._unsaid or (name not in self._values and not default):
                return None
        value = self.put_in(text)
        return None if _OPEN.search(value) else value

    def put_in(self, text: str) -> str:
        """Put the values of variables in, and of variables in those."""
        if len(text) > _LONGEST:  # no number is: nothing that doubles with every variable grows
            return text
        for _ in range(_DEEPEST):
            replaced = _VARIABLE.sub(self._replaced, text)
            if replaced == text or len(replaced) > _LONGEST:
                break
            text = replaced
        return self.calculated(text) if "$((" in text else text

    def _replaced(self, match: re.Match[str]) -> str:
        """Return a value; with a colon, the default stands for an empty one as well."""
        name = match[1] or match[4]
        value = f"<{name}: several values>" if name in self._others else self._values.get(name)
        default = (match["default"] or "").strip("\"'")
        return default if value is None or (match["colon"] and not value) else value

    def calculated(self, text: str) -> str:
        """Replace arithmetic of integers by its value."""

        def result(match: re.Match[str]) -> str:
            number = _number(self.put_in(_dollars(match[1])))
            return match[0] if number is None else str(number)

        return _ARITHMETIC.sub(result, text)

    @staticmethod
    def _named(text: str) -> str:
        """Return a text in which variables of arithmetic have their sign."""
        return _ARITHMETIC.sub(lambda match: _dollars(match[1]), text)


def _dollars(text: str) -> str:
    return re.sub(r"\$?\{?\b([A-Za-z_]\w*)\b\}?", r"$\1", text)


def _number(text: str) -> int | None:
    """Return the integer that a sum or product of integers is, or None if it is anything else."""
    if len(text) > _LONGEST:
        return None
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None
    return _evaluated(tree)


_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: add,
    ast.Sub: sub,
    ast.Mult: mul,
    ast.Div: floordiv,
    ast.FloorDiv: floordiv,
    ast.Mod: mod,
}


def _evaluated(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            first, second = _evaluated(left), _evaluated(right)
            if first is None or second is None or (second == 0 and not isinstance(op, ast.Mult)):
                return None
            return _OPERATIONS[type(op)](first, second)
    return None
