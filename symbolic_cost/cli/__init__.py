"""The command line: one module per command, no arithmetic.

Nothing here imports SymPy until a command runs, so that `--help` answers at once.
"""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword

import click

from symbolic_cost.errors import SymbolicCostError

_COMMANDS = (
    "models",
    "table",
    "formula",
    "tree",
    "memory",
    "comm",
    "count",
    "import",
    "compare-conventions",
    "profile",
    "scale",
    "systems",
    "time",
    "roofline",
    "reproduce",
    "schedule",
    "report",
)


class Refusal(click.ClickException):
    """A refused input: its problems on standard error, exit code 2, no traceback."""

    exit_code = 2


class LazyGroup(click.Group):
    """Commands imported from their modules when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """List the commands in the order in which a new user meets them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a command."""
        if cmd_name not in _COMMANDS:
            return None
        name = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        module = import_module(f"symbolic_cost.cli.{name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or offer the closest."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from symbolic_cost.errors import unknown

            raise Refusal(unknown("command", args[0], _COMMANDS))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; refusals are shown as one message."""
        try:
            return super().invoke(ctx)
        except SymbolicCostError as error:
            raise Refusal(str(error)) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="symbolic_cost", prog_name="symbolic-cost")
def main() -> None:
    """Symbolic cost formulas of neural networks.

    Every cost of a model (FLOP, bytes, memory, communication) is derived from one declaration
    per operation, as a formula, and as a number once its symbols are bound.
    """
