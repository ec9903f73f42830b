"""What commands take: the arguments and options of options.toml, where @ is a group of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click
from click.types import FloatParamType, IntParamType

_HEADING = re.compile(r'^\["?(.*?)"?\]$', re.MULTILINE)


class _Integer(IntParamType):
    def convert(self, value: Any, *about: Any) -> Any:
        return super().convert(_ascii_digits(value), *about)


class _Float(FloatParamType):
    def convert(self, value: Any, *about: Any) -> Any:
        return super().convert(_ascii_digits(value), *about)


def _ascii_digits(value: Any) -> Any:
    """Return a text with digits of other scripts, which Python reads too, by name: no number."""
    return value.encode("ascii", "namereplace").decode() if isinstance(value, str) else value


_KINDS = {"int": _Integer(), "float": _Float()}


@cache
def _texts() -> Mapping[str, str]:
    """The text of every table: to parse all of them takes longer than most commands."""
    text = Path(__file__).with_name("options.toml").read_text(encoding="utf-8")
    _, *pieces = _HEADING.split(text)
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return what a command or a group takes; of "accepted", what options accept."""
    import tomllib

    return tomllib.loads(_texts()[name])


def parameters(name: str) -> Iterator[tuple[str, click.Parameter]]:
    """Yield what a command takes in the order of its help, each with its group, if it is of one."""
    for names, said in table(name).items():
        if names.startswith("@"):
            yield from ((names[1:], one) for _, one in parameters(names))
        else:
            yield "", _parameter(names, said)


def _parameter(names: str, said: Mapping[str, Any]) -> click.Parameter:
    """Return an argument, or an option: names as click takes them, the argument's own last."""
    own = dict(said)
    kind = own.pop("type", type(own.get("default")).__name__)
    if kind in _KINDS:
        own["type"] = _KINDS[kind]
    if "choices" in own:
        own["type"] = click.Choice(own.pop("choices"))
    if not names.startswith("-"):
        return click.Argument([names], **own)
    own.setdefault("show_default", own.get("default", "") != "")
    if "/" in names:  # on, off, or neither
        own["default"] = None
    if "accepted" in own:
        listed = ", ".join(table("accepted")[own.pop("accepted")])
        own["help"] = f"{own.get('help', '')} Accepted: {listed}.".strip()
    return click.Option(names.split(), **own)
