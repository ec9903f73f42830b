"""Options that contradict each other, or that a command would not read: refused, not ignored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from symbolic_cost.emit import FORMATS, PICTURES
from symbolic_cost.errors import InputError, shown

if TYPE_CHECKING:
    from symbolic_cost.parallel.strategy import Strategy

ENDINGS = {
    ".txt": "table",
    ".csv": "csv",
    ".json": "json",
    ".md": "markdown",
    ".tex": "latex",
    ".htm": "html",
    ".html": "html",
}
"""Formats by the ending of a file."""

_FOREIGN = (".xlsx", ".xls", ".ods", ".docx", ".ps", ".eps", ".jpg", ".jpeg", ".toml", ".yaml")
_DRAWS = ("roofline", "schedule")


@dataclass(frozen=True)
class Line:
    """A command line as click read it.

    Args:
        command: its name.
        values: of every option and argument, by name.
        typed: names of those that the user wrote.
    """

    command: str
    values: Mapping[str, Any]
    typed: frozenset[str]

    def has(self, *names: str) -> bool:
        """Tell whether the user wrote all of some options."""
        return all(name in self.typed for name in names)


def read_line(ctx: click.Context) -> Line:
    """Return what click read."""
    typed = (n for n in ctx.params if ctx.get_parameter_source(n) is ParameterSource.COMMANDLINE)
    return Line(ctx.info_name or "", ctx.params, frozenset(typed))


def checked_form(line: Line) -> str:
    """Return the format of the output, after a check of the whole line.

    Raises:
        InputError: every contradiction, and every option that would not be read.
    """
    problems = [*_unread(line), *_of_strategy(line), *_twice(line)]
    form: str = line.values["form"]
    try:
        form = _form(line)
    except InputError as error:
        problems += error.problems
    if problems:
        raise InputError(dict.fromkeys(problems))
    return form


# ---------------------------------------------------------------------- formats


def _form(line: Line) -> str:
    """Return the format that was named, or that of the file's ending."""
    form: str = line.values["form"]
    ending = PurePath(line.values["file"] or "").suffix.lower()
    alone = _only_form(line, ending)
    if alone is not None:
        if line.has("form") and form != alone[0]:
            raise InputError(f"--format {shown(form)} is not read: {alone[1]}")
        if ENDINGS.get(ending, alone[0]) != alone[0] or ending in _FOREIGN + PICTURES:
            raise InputError(f"-o {shown(line.values['file'])}: {alone[1]}")
        return alone[0]
    if ending in PICTURES and line.command in _DRAWS:
        if line.has("form"):
            raise InputError(f"--format {shown(form)} is not read: -o draws a picture ({ending})")
        return form
    if ending in _FOREIGN + PICTURES and not (ending == ".toml" and line.command == "calibrate"):
        raise InputError(
            f"-o {shown(line.values['file'])}: {ending} is not written here: "
            f"{', '.join(ENDINGS)} are"
        )
    if form in FORMATS and ending in ENDINGS and line.has("form") and form != ENDINGS[ending]:
        raise InputError(f"--format {form} and -o {shown(line.values['file'])} contradict")
    return form if line.has("form") else ENDINGS.get(ending, form)


def _only_form(line: Line, ending: str) -> tuple[str, str] | None:
    """Return the only format that a command writes, and how a message says so."""
    if line.command == "report":
        return "table", "a report is plain text"
    if line.values.get("sheet"):
        return "latex", "--sheet writes LaTeX"
    if line.command == "calibrate" and ending == ".toml" and line.has("form"):
        raise InputError("--format is not read: -o FILE.toml writes the machine's record")
    return None


# ---------------------------------------------------------------------- options that are not read

_Values = Mapping[str, Any]
_UNREAD: tuple[tuple[str, str, Callable[[_Values], object], str], ...] = (
    ("formula", "path", lambda given: given["sheet"], "--sheet shows all parts"),
    ("formula", "phase", lambda given: given["sheet"], "--sheet shows all phases"),
    ("formula", "model", lambda given: given["sheet"], "--sheet takes a model alone, no cost"),
    ("time", "wrt", lambda given: given["ops"], "--ops lists ops: take one of the two"),
    ("comm", "per_op", lambda given: given["groups"], "--groups lists ranks: take one of the two"),
    ("comm", "node_size", lambda given: not given["groups"], "only --groups knows nodes"),
    ("scale", "point", lambda given: not given["point"], "--at takes a model's name"),
    ("schedule", "chunks", lambda given: given["name"] != "interleaved", "the schedule sets them"),
)


_NAMES = {"per_op": "per-op", "node_size": "node-size", "point": "at"}


def _unread(line: Line) -> Iterator[str]:
    """Say which options a command would not read beside others."""
    for command, name, unread, why in _UNREAD:
        if command == line.command and line.has(name) and unread(line.values):
            value = line.values[name]
            said = "" if isinstance(value, bool) else f" {shown(value)}"
            option = shown(value) if name == "model" else f"--{_NAMES.get(name, name)}{said}"
            yield f"{option} is not read: {why}"
    settings = _settings(line)
    if line.values.get("global_batch") is not None and "M" in settings:
        yield (
            f"--global-batch {line.values['global_batch']} and --set M={settings['M']} contradict: "
            "the batch gives the microbatches"
        )


def _settings(line: Line) -> dict[str, int]:
    """Return what --set binds; nothing where it is refused anyway."""
    if not line.values.get("settings"):
        return {}
    from symbolic_cost.numeric.assignments import parse_assignments

    try:
        return parse_assignments(line.values["settings"])
    except InputError:
        return {}


# ---------------------------------------------------------------------- strategies


def _strategy(line: Line) -> Strategy | None:
    if not isinstance(line.values.get("strategy"), str):
        return None
    from symbolic_cost.parallel.strategy import parse_strategy

    try:
        return parse_strategy(line.values["strategy"])
    except InputError:
        return None


def _of_strategy(line: Line) -> Iterator[str]:
    """Say what does not go with the strategy."""
    if not {"strategy", "stage", "overlap", "scattered"} & line.typed:
        return
    strategy = _strategy(line)
    if strategy is None:
        return
    yield from _of_stage(line, strategy)
    yield from _of_degrees(line, strategy)
    if line.values.get("scattered") and not {"tp", "pp"} <= set(strategy.degrees):
        yield "--scattered is not read: it is about tensor-parallel ranks (tp) of stages (pp)"
    for part in str(line.values.get("overlap") or "").split(","):
        mesh, equals, _ = part.strip().partition("=")
        if equals and mesh in _MESHES and mesh not in strategy.mesh:
            yield f"--overlap {shown(part)} is not read: the strategy has no {mesh}"


_MESHES = ("tp", "cp", "ep", "dp", "pp", "ring", "ulysses", "replicas")


def _of_degrees(line: Line, strategy: Strategy) -> Iterator[str]:
    if strategy.panels != 1 and not {"2d", "2.5d"} & set(strategy.degrees):
        yield f"panels={strategy.panels} is not read: only 2d and 2.5d move operands in panels"
    if line.command == "schedule" and line.has("strategy"):
        others = [name for name in strategy.degrees if name != "pp"]
        if others or "pp" not in strategy.degrees:
            yield (
                f"--strategy {', '.join(others) or shown('')} is not read: a schedule is of pp "
                "alone, and pp needs a number, such as pp=4"
            )


def _of_stage(line: Line, strategy: Strategy) -> Iterator[str]:
    stage = line.values.get("stage")
    if not line.has("stage") or stage not in ("middle", "last"):
        return
    if "pp" not in strategy.degrees:
        yield f"--stage {stage} is not read: the strategy has no pipeline, such as pp=4"
        return
    stages = strategy.degree("pp")
    if stages.is_Integer and int(stages) < (_WITH_MIDDLE if stage == "middle" else 2):
        yield f"--stage {stage} and pp={stages} contradict: there is no such stage"


_WITH_MIDDLE = 3


# ---------------------------------------------------------------------- given twice


def _twice(line: Line) -> Iterator[str]:
    """Say what stands in a list more than once."""
    lists = {name: str(line.values.get(name) or "").split(",") for name in ("columns", "offload")}
    overlaps = str(line.values.get("overlap") or "").split(",")
    lists["overlap"] = [part.partition("=")[0] for part in overlaps]
    lists["rows"] = [*line.values["files"]] if line.command == "calibrate" else []
    for option, items in lists.items():
        for item, times in Counter(item.strip() for item in items).items():
            if item and times > 1:
                yield f"--{option}: {shown(item)} is given more than once"
