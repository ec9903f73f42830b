"""Options that commands share: how a model is costed, and how the result leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from symbolic_cost.emit import FORMATS

if TYPE_CHECKING:
    from symbolic_cost.emit.sheet import Sheet

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Choices:
    """How a model is costed, as typed."""

    settings: tuple[str, ...]
    strategy: str
    conventions: str
    recompute: str
    stage: str
    layout: str = "even"


@dataclass(frozen=True, slots=True)
class Output:
    """Where a result goes, and in which format."""

    form: str
    file: str | None

    def sheet(self, sheet: Sheet) -> None:
        """Print a sheet, or write it to the file.

        Raises:
            InputError: unknown format, or a file that cannot be written.
        """
        from symbolic_cost.emit.sheet import render

        self.text(render(sheet, self.form))

    def text(self, text: str) -> None:
        """Print a text, or write it to the file, whole or not at all."""
        if self.file is None:
            click.echo(text.rstrip("\n"))
            return
        from symbolic_cost.emit.files import write_whole

        write_whole(self.file, text if text.endswith("\n") else text + "\n")


def costing(command: Command) -> Command:
    """Add the options of `Choices`, which the command takes as `choices`."""

    @wraps(command)
    def bundled(
        *,
        settings: tuple[str, ...],
        strategy: str,
        conventions: str,
        recompute: str,
        stage: str,
        layout: str,
        **rest: object,
    ) -> object:
        choices = Choices(settings, strategy, conventions, recompute, stage, layout)
        return command(choices=choices, **rest)

    return _with_options(
        bundled,
        click.option(
            "--set", "settings", multiple=True, metavar="NAME=INTEGER", help="Bind a symbol."
        ),
        click.option("--strategy", default="", help="Parallel strategy, e.g. tp=8,sp,dp."),
        click.option(
            "--conventions", default="standard", show_default=True, help="Counting conventions."
        ),
        click.option("--recompute", default="none", show_default=True, help="Recompute policy."),
        click.option("--stage", default="first", show_default=True, help="Pipeline stage."),
        click.option(
            "--layout",
            default="even",
            show_default=True,
            help="Blocks of the stages: even, uneven, ends=1, ends=0/3 (fewer in first/last).",
        ),
    )


def output(command: Command) -> Command:
    """Add --format and -o, which the command takes as `out`."""

    @wraps(command)
    def bundled(form: str, file: str | None, **rest: object) -> object:
        return command(out=Output(form, file), **rest)

    return _with_options(
        bundled,
        click.option(
            "--format",
            "form",
            default="table",
            show_default=True,
            metavar="|".join(FORMATS),
            help="How the result is written.",
        ),
        click.option(
            "-o", "--output", "file", metavar="FILE", help="Write to FILE, whole or not at all."
        ),
    )


def _with_options(command: Command, *options: Callable[[Command], Command]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
