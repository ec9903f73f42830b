"""Settings of a shell script: its variables put in, its long options read, nothing executed."""

import ast
import re
from collections.abc import Callable, Mapping
from operator import add, floordiv, mod, mul, sub
from typing import Any

from symbolic_cost.importers.recipe import Entry

_ASSIGNMENT = re.compile(
    r"^\s*(?:export\s+|local\s+)?(?P<name>[A-Za-z_]\w*)=(?P<value>\"[^\"\n]*\"|'[^'\n]*'|\$\(\(.*\)\)|[^\s;#(]+)"
)
_OPTION = re.compile(
    r"(?<![\w-])--(?P<name>[a-z][a-z0-9_-]*)(?:[ \t=]+(?P<value>(?!-{1,2}[a-z])[^\s\"'\\)]+))?"
)
_ARITHMETIC = re.compile(r"\$\(\(([^()]*)\)\)")
_VARIABLE = re.compile(r"\$\{(\w{1,100})(?::?-([^{}]{0,200}))?\}|\$(\w{1,100})")
_DEEPEST = 10
_LONGEST = 200


def entries(text: str, file: str) -> tuple[Entry, ...]:
    """Return every long option of a script with its value; options without one are true."""
    lines = [_uncommented(line) for line in text.splitlines()]
    variables: dict[str, str] = {}
    for match in filter(None, map(_ASSIGNMENT.match, lines)):
        variables[match["name"]] = _put_in(match["value"].strip("\"'"), variables)
    return tuple(
        Entry(f"--{match['name'].replace('_', '-')}", _typed(match["value"], variables), line, file)
        for line, content in enumerate(lines, 1)
        for match in _OPTION.finditer(_arithmetic_put_in(content, variables))
    )


def _uncommented(line: str) -> str:
    return re.sub(r"(^|\s)#.*$", "", line)


def _typed(value: str | None, variables: Mapping[str, str]) -> Any:  # noqa: ANN401 - a setting
    if value is None:
        return True
    text = _put_in(value, variables)
    return int(text) if re.fullmatch(r"-?\d{1,30}", text) else _fraction(text)


def _fraction(text: str) -> float | str:
    return float(text) if re.fullmatch(r"-?\d*\.?\d+(e-?\d{1,3})?", text) else text


def _put_in(text: str, variables: Mapping[str, str]) -> str:
    """Put the values of variables in, and of variables in those."""
    if len(text) > _LONGEST:  # no number is: nothing that doubles with every variable grows
        return text
    for _ in range(_DEEPEST):
        replaced = _VARIABLE.sub(
            lambda match: variables.get(match[1] or match[3], match[2] or ""), text
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
