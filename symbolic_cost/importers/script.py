"""Settings of a shell script: its variables put in, its long options read, nothing executed."""

import ast
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import add, floordiv, mod, mul, sub
from typing import Any

from symbolic_cost.errors import InputError
from symbolic_cost.importers.recipe import Entry

_START = r"(?:^|;|&&|\|\||\)|\b(?:then|else|do)\b)\s*"
_ASSIGNMENT = re.compile(
    _START + r"(?:(?:export|local|readonly|declare|typeset)\s+(?:-\w+\s+)*)?(?P<name>[A-Za-z_]\w*)="
    r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|\$\(\(.*\)\)|[^\s;#(]+)"
)
_BRANCHING = re.compile(
    _START + r"(?:(?P<opens>if|case)|fi|esac)\b|"
    r"(?:^|;)\s*(?P<test>\[.*?\]|\(\(.*?\)\)|test\s[^;&|]*)\s*(?:&&|\|\|)"
)
_HOLDING = re.compile(
    r"^[ \t]*(?P<name>[A-Za-z_]\w*)\+?=(?:\((?:[^()$]|\$\([^()]*\)|\$(?!\())*\)|\"[^\"]*\")",
    re.MULTILINE,
)
_LAUNCHED = re.compile(r"\b(?:torchrun|python3?|srun|deepspeed)\b.*(?:\.py|\\$)", re.MULTILINE)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_OPTION = re.compile(
    r"(?<![\w-])--(?P<name>[a-z][a-z0-9_-]*)(?:[ \t=]+(?:"
    r"\"(?P<double>[^\"\s=]+(?: [^\"\s=;-][^\"\s=;]*)*)\"|"
    r"'(?P<single>[^'\s=]+(?: [^'\s=;-][^'\s=;]*)*)'|"
    r"(?P<value>(?!-{1,2}[a-z])[^\s\"'\\)]+)))?"
)
_BELOW = re.compile(r"\s*[\"']?(?P<value>[^\s\"'\\)-][^\s\"'\\)]*)")
"""The value of an option on the line before."""

_MORE = re.compile(r"(?:[ \t]+(?!-)[\w+]+)+")
_LISTS = ("recompute-modules", "cp-comm-type")
"""Options that take several words."""

_PROGRAM = re.compile(r"\b(?P<name>(?:pretrain|train|finetune)_(?P<kind>\w+)\.py)\b")
_OTHERS = ("bert", "t5", "mamba", "hybrid", "retro", "ict", "vision", "vlm", "biencoder", "dino")
_ARITHMETIC = re.compile(r"\$\(\(([^()]*)\)\)")
_VARIABLE = re.compile(r"\$\{(\w{1,100})(?::?[-=]([^{}]{0,200}))?\}|\$(\w{1,100})")
_DEEPEST = 10
_LONGEST = 200


def check_program(text: str, file: str) -> None:
    """Refuse a script that trains another model than GPT, and options that it does not use.

    Raises:
        InputError: its line; every variable that holds options and is used nowhere.
    """
    bare = "\n".join(map(_uncommented, text.splitlines()))
    own = [match for match in _HOLDING.finditer(bare) if _OPTION.search(match[0])]
    unused = [
        f"{file}: line {bare.count(chr(10), 0, match.start('name')) + 1}: {match['name']} holds "
        "options and is used nowhere: use it, or leave it out"
        for match in own
        if not _is_used(match["name"], bare, own)
    ]
    if unused and _LAUNCHED.search(bare):
        raise InputError(unused)
    for number, line in enumerate(map(_uncommented, text.splitlines()), 1):
        for match in _PROGRAM.finditer(line):
            if match["kind"].startswith(_OTHERS):
                raise InputError(
                    f"{file}: line {number}: {match['name']} is not read: GPT of pretrain_gpt.py is"
                )


def _is_used(name: str, text: str, held: Sequence[re.Match[str]]) -> bool:
    """Tell whether a script puts a variable in elsewhere than where it adds to it."""
    for match in reversed([one for one in held if one["name"] == name]):
        text = text[: match.start()] + text[match.end() :]
    return re.search(rf"\$\{{?!?{name}\b", text) is not None


def entries(text: str, file: str) -> tuple[Entry, ...]:
    """Return every long option of a script with its value; options without one are true.

    A variable that gets several values, or one in a branch, has none: what needs it is refused.
    An option in a branch bears the line on which that begins.
    """
    lines = [_uncommented(line) for line in text.splitlines()]
    variables: dict[str, str] = {}
    for _, branch, match in _in_branches(_ASSIGNMENT, lines):
        name, value = match["name"], _put_in(match["value"].strip("\"'"), variables)
        if name not in variables:
            variables[name] = f"<{name}: set in the branch of line {branch}>" if branch else value
        elif variables[name] != value:
            variables[name] = f"<{name}: several values>"
    read = []
    contents = [_arithmetic_put_in(line, variables) for line in lines]
    for number, branch, match in _in_branches(_OPTION, contents):
        written = match["double"] or match["single"] or match["value"]
        content = match.string
        if not written and content[match.end() :].strip() == "\\":
            below = _BELOW.match(contents[number]) if number < len(contents) else None
            written = below and below["value"]
        more = _MORE.match(content, match.end()) if match["name"] in _LISTS else None
        value = _typed((written or "") + more[0] if more else written, variables)
        read.append(Entry(f"--{match['name'].replace('_', '-')}", value, number, file, branch))
    return tuple(read)


def _in_branches(
    pattern: re.Pattern[str], lines: Sequence[str]
) -> Iterator[tuple[int, int, re.Match[str]]]:
    """Yield what matches, its line, and that on which the branch around it begins; 0 without one.

    Branches are those of if and case, and what follows a test and && or || on its line.
    """
    around: list[int] = []
    for number, line in enumerate(lines, 1):
        bare = _QUOTED.sub(lambda match: " " * len(match[0]), line)
        marks = deque((mark.end(), mark) for mark in _BRANCHING.finditer(bare))
        tested = 0
        for match in pattern.finditer(line):
            while marks and marks[0][0] <= match.end():
                tested = _enter(around, marks.popleft()[1], number) or tested
            yield number, around[-1] if around else tested, match
        for _, mark in marks:
            _enter(around, mark, number)


def _enter(around: list[int], mark: re.Match[str], number: int) -> int:
    """Enter or leave a branch; return the line of a test that is a branch to its end."""
    if mark["test"]:
        return number
    if mark["opens"]:
        around.append(number)
    elif around:
        around.pop()
    return 0


def _uncommented(line: str) -> str:
    return re.sub(r"(^|\s)#.*$", "", line)


def _typed(value: str | None, variables: Mapping[str, str]) -> Any:  # noqa: ANN401 - a setting
    if value is None:
        return True
    text = _put_in(value, variables)
    return int(text) if re.fullmatch(r"-?[0-9]{1,30}", text) else _fraction(text)


def _fraction(text: str) -> float | str:
    return float(text) if re.fullmatch(r"-?[0-9]*\.?[0-9]+(e-?[0-9]{1,3})?", text) else text


def _put_in(text: str, variables: Mapping[str, str]) -> str:
    """Put the values of variables in, and of variables in those."""
    if len(text) > _LONGEST:  # no number is: nothing that doubles with every variable grows
        return text
    for _ in range(_DEEPEST):
        replaced = _VARIABLE.sub(
            lambda match: variables.get(match[1] or match[3], (match[2] or "").strip("\"'")), text
        )
        if replaced == text or len(replaced) > _LONGEST:
            break
        text = replaced
    return _arithmetic_put_in(text, variables) if "$((" in text else text


def _arithmetic_put_in(text: str, variables: Mapping[str, str]) -> str:
    def result(match: re.Match[str]) -> str:
        names = re.sub(r"\$?\{?\b([A-Za-z_]\w*)\b\}?", r"$\1", match[1])
        number = _number(_put_in(names, variables))
        return match[0] if number is None else str(number)

    return _ARITHMETIC.sub(result, text)


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
