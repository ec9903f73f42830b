"""Options that contradict each other, or that a command would not read: refused, not ignored."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import click
from click.core import ParameterSource

from symbolic_cost.emit import FORMATS, PICTURES
from symbolic_cost.errors import InputError, quote, refuse, unknown
from symbolic_cost.records import dataclass

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
DRAWS = (
    *("memory", "time", "scale", "roofline", "schedule", "pareto", "serve-plan", "dominance"),
    "laws fit",
)
ROWS = (".parquet", ".csv", ".jsonl")
"""Files that take the rows of a sweep."""


@dataclass(frozen=True)
class Line:
    """A command line as click read it."""

    command: str
    values: Mapping[str, Any]
    typed: frozenset[str]

    def has(self, *names: str) -> bool:
        """Tell whether the user wrote all of some options."""
        return all(name in self.typed for name in names)


def read_line(ctx: click.Context) -> Line:
    """Return what click read."""
    typed = (n for n in ctx.params if ctx.get_parameter_source(n) is ParameterSource.COMMANDLINE)
    group = ctx.parent if ctx.parent is not None and ctx.parent.parent is not None else None
    above = "" if group is None else f"{group.info_name} "
    return Line(f"{above}{ctx.info_name}", ctx.params, frozenset(typed))


def checked_form(line: Line) -> str:
    """Return the format of the output, after a check of the whole line."""
    problems = [
        *_unread(line),
        *_of_schedule(line),
        *_sought(line),
        *_of_a_step(line),
        *_twice(line),
    ]
    form: str = line.values["form"]
    try:
        form = _form(line)
    except InputError as error:
        problems += error.problems
    if form not in FORMATS:
        problems.append(unknown("format", form, FORMATS))
    refuse(dict.fromkeys(problems))
    return form


# ---------------------------------------------------------------------- formats


def _form(line: Line) -> str:
    """Return the format that was named, or that of the file's ending."""
    form: str = line.values["form"]
    file = PurePath(line.values["file"] or "printed")
    if file.name == "-" or (not file.suffix and file.name.startswith(".")):
        raise InputError(
            f"-o {quote(line.values['file'])}: the name of a file is accepted; what is printed "
            "needs no -o"
        )
    ending = file.suffix.lower()
    if line.command == "sheet" and ending in (".pdf", ".bib"):
        return _of_ending(line, ending)
    alone = _only_form(line, ending)
    if alone is not None:
        if line.has("form") and form != alone[0]:
            raise InputError(f"--format {quote(form)} is not read: {alone[1]}")
        if ending and ENDINGS.get(ending) != alone[0]:
            raise InputError(f"-o {quote(line.values['file'])}: {alone[1]}")
        return alone[0]
    if line.command == "sweep" and ending:
        if line.has("form") or ending not in ROWS:
            raise InputError(
                f"-o {quote(line.values['file'])}: a file of rows ends in {', '.join(ROWS)}; "
                "--format is of what is printed"
            )
        return form
    if ending in PICTURES and line.command in DRAWS:
        return _of_ending(line, ending)
    _refuse_foreign(line, ending)
    if form in FORMATS and ending in ENDINGS and line.has("form") and form != ENDINGS[ending]:
        raise InputError(f"--format {form} and -o {quote(line.values['file'])} contradict")
    return form if line.has("form") else ENDINGS.get(ending, form)


def _only_form(line: Line, ending: str) -> tuple[str, str] | None:
    """Return the only format that a command writes, and how a message says so."""
    if line.command == "report megatron":
        return "table", "a report is plain text"
    if line.command == "calibrate" and ending == ".toml" and line.has("form"):
        raise InputError("--format is not read: -o FILE.toml writes the machine's record")
    return None


def _refuse_foreign(line: Line, ending: str) -> None:
    """Refuse a file that its command does not write."""
    if ending == ".toml" and line.command == "calibrate":
        return
    unknown = bool(ending) and ending not in ENDINGS and not line.has("form")
    if unknown or ending in _FOREIGN + PICTURES:
        raise InputError(
            f"-o {quote(line.values['file'])}: {ending} is not written here: "
            f"{', '.join(ENDINGS)} are"
        )


def _of_ending(line: Line, ending: str) -> str:
    """Return the format where the file says what is written; no other one is read."""
    if line.has("form"):
        does = "draws a picture" if line.command in DRAWS else "writes a document"
        form = quote(line.values["form"])
        raise InputError(f"--format {form} is not read: -o {does} ({ending})")
    return str(line.values["form"])


# ---------------------------------------------------------------------- options that are not read

_Values = Mapping[str, Any]
_UNREAD: tuple[tuple[str, str, Callable[[_Values], object], str], ...] = (
    ("time", "by", lambda given: given["ops"], "--ops lists ops: take one of the two"),
    (
        "formula",
        "stage",
        lambda given: given["stage"] == "all" and given["form"] == "latex",
        "LaTeX is of one stage",
    ),
    ("time", "stage", lambda given: given["stage"] != "first", "a step is of all stages"),
    ("sweep", "stage", lambda given: given["stage"] != "first", "candidates have all stages"),
    ("pareto", "stage", lambda given: given["stage"] != "first", "candidates have all stages"),
    (
        "memory",
        "stage",
        lambda given: given["view"] and given["stage"] != "first",
        "--as shows the fullest stage",
    ),
    ("comm", "per_op", lambda given: given["groups"], "--groups lists ranks: take one of the two"),
    ("comm", "node_size", lambda given: not given["groups"], "only --groups knows nodes"),
    ("comm", "order", lambda given: not given["groups"], "only --groups lists where ranks lie"),
    ("scale", "point", lambda given: not given["point"], "--at takes a model's name"),
    ("search", "vary", lambda given: not given["proves"], "only --prove varies; sweep prices all"),
    ("search", "top", lambda given: given["proves"], "--prove tells the best alone"),
    ("search", "explain", lambda given: given["proves"], "--prove tells the best alone"),
    ("schedule", "chunks", lambda given: given["name"] != "interleaved", "the schedule sets them"),
    ("laws fit", "delta", lambda given: given["approach"] != 3, "it is of approach 3"),  # noqa: PLR2004 - its name
    ("laws fit", "method", lambda given: given["approach"] != 3, "it is of approach 3"),  # noqa: PLR2004 - its name
    (
        "laws allocate",
        "strategy",
        lambda given: given["mfu"],
        "a share of the peak is assumed (--mfu)",
    ),
)


_NAMES = {"per_op": "per-op", "node_size": "node-size", "point": "at", "by": "in"}


def _unread(line: Line) -> Iterator[str]:
    """Say which options a command would not read beside others."""
    for command, name, unread, why in _UNREAD:
        if command == line.command and line.has(name) and unread(line.values):
            value = line.values[name]
            value = " ".join(value) if isinstance(value, tuple) else value
            said = "" if isinstance(value, bool) else f" {quote(value)}"
            option = quote(value) if name == "model" else f"--{_NAMES.get(name, name)}{said}"
            yield f"{option} is not read: {why}"


# ---------------------------------------------------------------------- strategies


def _of_schedule(line: Line) -> Iterator[str]:
    """Say what of a strategy a schedule would not read."""
    if line.command != "schedule" or not line.has("strategy"):
        return
    from symbolic_cost.parallel.parsing import parse_strategy

    try:
        degrees = parse_strategy(line.values["strategy"]).degrees
    except InputError:
        return  # told by who reads it
    others = [name for name in degrees if name != "pp"]
    if others or "pp" not in degrees:
        yield (
            f"--strategy {', '.join(others) or quote('')} is not read: a schedule is of pp "
            "alone, and pp needs a number, such as pp=4"
        )


# ---------------------------------------------------------------------- numbers

_SEEKS = ("solve", "crossover", "optimum")


def _sought(line: Line) -> Iterator[str]:
    """Say which numbers are given of symbols that are asked for, or vary."""
    varied = (*(line.values.get("vary") or ()), *(line.values.get("more") or ()))
    sought = (line.values["by"],) if line.command in _SEEKS else varied
    varies = {piece.partition("=")[0] for text in sought for piece in text.split()}
    why = "is asked for" if line.command in _SEEKS else "varies"
    for option, key in (("--set", "settings"), ("--strategy", "strategy")):
        texts = line.values.get(key) or ()
        pieces = ",".join((texts,) if isinstance(texts, str) else texts).split(",")
        bound = {piece.partition("=")[0].strip() for piece in pieces if "=" in piece}
        for name in sorted(varies & bound):
            yield f"{option} {name} is not read: {name} {why}"
    for name in sorted(varies & line.typed):
        yield f"--{name.replace('_', '-')} {quote(line.values[name])} is not read: {name} {why}"


_OF_A_MICROBATCH = ("table", "formula", "sheet", "tree", "scale", "roofline", "compare-conventions")
_ASKED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("crossover",), ("left", "right")),
    **dict.fromkeys(("optimum", "sensitivity"), ("of",)),
    "solve": ("question",),
    "derive": ("cost",),
    **dict.fromkeys(("dominance", "check"), ()),
}
"""Arguments that name what is asked for, by command."""

_OF_STEPS = re.compile(r"\b(memory|step|exposed|computing)\b")


def _of_a_step(line: Line) -> Iterator[str]:
    """Say what of a step is given to a question about costs of one microbatch."""
    pieces = ",".join(line.values.get("settings") or ()).split(",")
    bound = {one.partition("=")[0].strip() for one in pieces}
    asked = " ".join(str(line.values[name]) for name in _ASKED.get(line.command, ()))
    of_costs = line.command in _ASKED and not _OF_STEPS.search(asked)
    if "M" in bound and (of_costs or line.command in _OF_A_MICROBATCH):
        yield "--set M is not read: costs are of one microbatch; memory and time have all of a step"
    for name in ("system", "optimizer", "global_batch"):
        if of_costs and line.has(name) and line.command != "derive":  # which says so itself
            option = f"--{name.replace('_', '-')} {quote(line.values[name])}"
            yield f"{option} is not read: it is of memory, step, exposed or computing"


# ---------------------------------------------------------------------- given twice


def _twice(line: Line) -> Iterator[str]:
    """Say what stands in a list more than once."""
    lists = {
        "columns": str(line.values.get("columns") or "").split(","),
        "of": str(line.values.get("of") or "").split(","),
        "in": str(line.values.get("symbols") or "").split(",") if line.command == "fit" else [],
        "rows": [*line.values["files"]] if line.command == "calibrate" else [],
    }
    for option, items in lists.items():
        for item, times in Counter(item.strip() for item in items).items():
            if item and times > 1:
                yield f"--{option}: {quote(item)} is given more than once"
    for names in _COMPARED.get(line.command, ()):
        pair = [line.values[name] for name in names]
        first, second = pair[0] if len(names) == 1 and pair[0] else (*pair, None)[:2]
        if first is not None and first == second:
            yield f"{' and '.join(names)}: {quote(first)} twice; two that differ are accepted"


_COMPARED: Mapping[str, Sequence[tuple[str, ...]]] = {
    "diff": (("model", "other"), ("conventions",), ("strategy",), ("system",)),
    "compare-conventions": (("first", "second"),),
}
"""Arguments of which two are compared, or an option with both."""
