"""Settings of a shell script: its variables put in, its long options read, nothing executed."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from symbolic_cost.errors import InputError
from symbolic_cost.importers.branches import Piece, pieces
from symbolic_cost.importers.recipe import Entry
from symbolic_cost.importers.sources import Lines, sourced
from symbolic_cost.importers.variables import Variables

_HOLDING = re.compile(
    r"^[ \t]*(?P<name>[A-Za-z_]\w*)\+?=(?:\((?:[^()$]|\$\([^()]*\)|\$(?!\())*\)|\"[^\"]*\")",
    re.MULTILINE,
)
_LAUNCHED = re.compile(r"\b(?:torchrun|python3?|srun|deepspeed)\b.*(?:\.py|\\$)", re.MULTILINE)
_OPTION = re.compile(
    r"(?<![\w-])--(?P<name>[a-z][a-z0-9_-]*)(?:(?:[ \t=]|\\\n)+(?:"
    r"\"(?P<double>[^\"\s=]+(?: [^\"\s=;-][^\"\s=;]*)*)\"|"
    r"'(?P<single>[^'\s=]+(?: [^'\s=;-][^'\s=;]*)*)'|"
    r"(?P<value>(?!-{1,2}[a-z])[^\s\"'\\)]+))(?P<glued>[^\s\"'\\)(;|&<>]*))?"
)
_ENVIRONMENT = re.compile(
    r"(?<![\w$-])(?P<name>CUDA_LAUNCH_BLOCKING)=(?P<quote>[\"']?)(?P<value>[\w${}]+)(?P=quote)"
)
"""What a script tells the software that it starts, beside its options."""

_MORE = re.compile(r"(?:[ \t]+(?!-)[\w+]+)+")
_LISTS = ("recompute-modules", "cp-comm-type")
"""Options that take several words."""

_PROGRAM = re.compile(r"\b(?P<name>(?:pretrain|train|finetune)_(?P<kind>\w+)\.py)\b")
_OTHERS = ("bert", "t5", "mamba", "hybrid", "retro", "ict", "vision", "vlm", "biencoder", "dino")


def _check_used(text: str, lines: Lines) -> None:
    """Refuse variables that hold options and are used nowhere."""
    own = [match for match in _HOLDING.finditer(text) if _OPTION.search(match[0])]
    unused = [
        f"{lines.where(text.count(chr(10), 0, match.start('name')) + 1)}: {match['name']} holds "
        "options and is used nowhere: use it, or leave it out"
        for match in own
        if not _is_used(match["name"], text, own)
    ]
    if unused and _LAUNCHED.search(text):
        raise InputError(unused)


def _check_program(part: Piece, lines: Lines) -> None:
    """Refuse a script that trains another model than GPT."""
    for match in _PROGRAM.finditer(part.text):
        if match["kind"].startswith(_OTHERS):
            where = lines.where(part.line_of(match))
            raise InputError(f"{where}: {match['name']} is not read: GPT of pretrain_gpt.py is")


def _is_used(name: str, text: str, held: Sequence[re.Match[str]]) -> bool:
    """Tell whether a script puts a variable in elsewhere than where it adds to it."""
    for match in reversed([one for one in held if one["name"] == name]):
        text = text[: match.start()] + text[match.end() :]
    return re.search(rf"\$\{{?!?{name}\b", text) is not None


def entries(text: str, path: Path) -> tuple[Entry, ...]:
    """Return every long option of a script that runs; options without a value are true.

    Branches are taken or left out as the script's own variables decide. What these do not decide is
    read, and bears the line on which its branch begins. Files that it sources are read in their
    place if they lie beside it; others are settings that nobody reads.

    Args:
        text: of the script.
        path: of its file.

    Raises:
        InputError: a program that is not read, options that are used nowhere, open branches.
    """
    lines = sourced(text, path)
    bare = lines.text
    _check_used(bare, lines)
    variables, parts, read = Variables(bare), list[Piece](), [*lines.unread]
    for part in pieces(bare, lines.where, variables.known):
        _check_program(part, lines)
        variables.read(part.text, part.branch)
        parts.append(part)
        if variables.in_order:
            read += _options(parts.pop(), variables, lines)
    return (*read, *(one for part in parts for one in _options(part, variables, lines)))


def _options(part: Piece, variables: Variables, lines: Lines) -> Iterator[Entry]:
    """Yield the options of a part of a script, with values that variables have now."""
    begins = lines.quoted(part.branch) if part.branch else ""
    part = part._replace(text=variables.calculated(part.text))
    for match in _OPTION.finditer(part.text):
        written = match["double"] or match["single"] or match["value"]
        more = _MORE.match(part.text, match.end()) if match["name"] in _LISTS else None
        words = filter(None, (written, match["glued"], more and more[0]))
        value = written is None or _typed("".join(map(variables.put_in, words)))
        name = f"--{match['name'].replace('_', '-')}"
        file, line = lines.place(part.line_of(match))
        yield Entry(name, value, line, file, begins)
    for match in _ENVIRONMENT.finditer(part.text):
        file, line = lines.place(part.line_of(match))
        said = _typed(variables.put_in(match["value"]))
        yield Entry(match["name"], said, line, file, begins)


def _typed(text: str) -> Any:  # noqa: ANN401 - a setting
    return int(text) if re.fullmatch(r"-?[0-9]{1,30}", text) else _fraction(text)


def _fraction(text: str) -> float | str:
    return float(text) if re.fullmatch(r"-?[0-9]*\.?[0-9]+(e-?[0-9]{1,3})?", text) else text
