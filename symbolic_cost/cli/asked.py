"""Options of what `check` and `derive` ask of a cost."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from symbolic_cost.cli.options import Command, notated, with_options

if TYPE_CHECKING:
    from symbolic_cost.analysis.notations import Notation


def asking(command: Command) -> Command:
    """Add the options; the command gets them as the mapping `asked`, of what was given."""

    @wraps(command)
    def bundled(
        *,
        letters: Notation | None,
        settings: tuple[str, ...],
        **rest: Any,  # noqa: ANN401
    ) -> object:
        from symbolic_cost.jobs.numbers import degree_names
        from symbolic_cost.numeric.assignments import parse_assignments

        asked = {name: rest.pop(name) for name in _NAMES}
        asked["numbers"] = parse_assignments(settings, degree_names())
        asked["notation_name"] = letters
        return command(asked=asked, **rest)

    bundled.__annotations__ = {**command.__annotations__, "letters": "Notation | None"}
    return with_options(
        notated(bundled),
        click.option("--phase", help="fwd, bwd, recompute, train or step."),
        click.option("--path", help="Only this part, e.g. block; a repeated part is taken once."),
        click.option("--strategy", default="", help="Parallel strategy, e.g. tp,sp."),
        click.option("--conventions", help="Of counting; those of the notation, or standard."),
        click.option(
            "--attention", metavar="flash|eager", help="Kernel; that of the notation, or flash."
        ),
        click.option("--recompute", default="none", show_default=True, help="Recompute policy."),
        click.option(
            "--set", "settings", multiple=True, metavar="NAME=NUMBER", help="Bind a symbol."
        ),
    )


_NAMES = ("phase", "path", "strategy", "conventions", "attention", "recompute")
