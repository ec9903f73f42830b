"""The command line: declarations of commands, no arithmetic.

Nothing here imports SymPy until a command runs, so that `--help` answers at once.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any

import click

from symbolic_cost.cli import door
from symbolic_cost.cli.declared import table
from symbolic_cost.errors import SymbolicCostError, looked_up, quote


def commands() -> Mapping[str, str]:
    """Return what every command does, in the order in which a new user meets them."""
    meanings: Mapping[str, str] = table("meanings")
    return meanings


class Refusal(click.ClickException):
    """A refused input: its problems on standard error, exit code 2, no traceback."""

    exit_code = door.REFUSED


class Group(click.Group):
    """Commands whose words say something, once; with a kind, names that there are not are told."""

    kind = ""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or offer the closest."""
        if self.kind and args and not args[0].startswith("-"):
            looked_up(self.kind, args[0], dict.fromkeys(self.list_commands(ctx)))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            check_options(command, ctx, rest)
        return name, command, rest


class LazyGroup(Group):
    """Commands imported from their modules when they are named."""

    kind = "command"

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """List the commands."""
        return list(commands())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(commands().items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a command."""
        modules = {name: one for one, names in table("modules").items() for name in names.split()}
        if cmd_name not in modules:
            return None
        module = import_module(f"symbolic_cost.cli.{modules[cmd_name]}")
        if modules[cmd_name] == "lists":
            listing: click.Command = module.command(cmd_name, commands()[cmd_name])
            return listing
        name = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        command: click.Command = getattr(module, name, None) or module.command
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; refusals are shown as one message."""
        try:
            return super().invoke(ctx)
        except SymbolicCostError as error:
            raise Refusal(str(error)) from error

    def main(self, *args: Any, **more: Any) -> Any:
        """Run the command line and exit; output that could not be written is no success."""
        parent: Any = super()
        run = partial(parent.main, *args, **{**more, "standalone_mode": False})
        if not more.get("standalone_mode", True):
            return run()
        words = args[0] if args else more.get("args")
        line = sys.argv[1:] if words is None else list(words)
        return sys.exit(door.ended(partial(door.run_or_repeat, line, run, _are_installed)))


def check_options(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse an option given twice, of which click would take the last, and words that say nothing.

    One rank has no strategy, and a caption may have commas next to each other.
    """
    try:
        parser = command.make_parser(ctx)
        parser.allow_interspersed_args = True  # the group's own context has it switched off
        said, _, order = parser.parse_args(list(args))
    except click.UsageError:
        return  # told when the command parses them itself
    problems = []
    for one, times in Counter(order).items():
        option = isinstance(one, click.Option)
        if times > 1 and option and not getattr(one, "multiple", False):
            problems.append(f"option {quote(_spelled(one))} is given more than once")
        texts = said[one.name or ""]
        repeated = Counter(map(str, texts)) if option and isinstance(texts, list) else {}
        problems += [
            f"{_spelled(one)} {quote(text)} is given more than once"
            for text, count in repeated.items()
            if count > 1
        ]
        for text in texts if isinstance(texts, list | tuple) else [texts]:
            if isinstance(text, str) and one.nargs in (1, -1):
                problems += _says_nothing(one, text, listed=option)
    if problems:
        raise Refusal("\n".join(problems))


def _says_nothing(one: click.Parameter, text: str, *, listed: bool) -> Iterator[str]:
    """Say that a text is empty, or that an item of a list of an option is."""
    items = [bool(item.strip()) for item in text.split(",")]
    if not any(items) and one.name not in _NONE:
        yield f"{_spelled(one)} {quote(text)} says nothing: leave it out"
    elif listed and any(items) and not all(items) and one.name not in _WHOLE:
        yield f"{_spelled(one)} {quote(text)}: something is missing beside a comma"


_WHOLE = ("caption", "label", "columns")
"""Options whose text is no list, or whose reader names what is missing."""

_NONE = ("strategy", "on", "prefill_strategy", "offload", "overlap")
"""Options of which an empty text says something: none, where a launch file says one."""


def _spelled(option: click.Parameter) -> str:
    """Return the spelling that help has first, if it is no letter."""
    if isinstance(option, click.Argument):
        return option.opts[0].upper()
    return next((one for one in option.opts if one.startswith("--")), option.opts[0])


def _context() -> dict[str, Any]:
    """Return click's settings; what a pipe gets does not depend on the width of a terminal."""
    wide = None if sys.stdout is not None and sys.stdout.isatty() else _WIDTH
    return {"help_option_names": ["-h", "--help"], "terminal_width": wide}


_WIDTH = 80
_PLUGINS = "symbolic_cost.plugins"


@click.group(cls=LazyGroup, context_settings=_context())
@click.version_option(package_name="symbolic_cost", prog_name="symbolic-cost")
@click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE.py",
    help="Run a Python file that registers models, strategies, machines and more of yours.",
)
def main(plugins: tuple[str, ...]) -> None:
    """Symbolic cost formulas of neural networks.

    Every cost of a model (FLOP, bytes, memory, communication) is derived from one declaration
    per operation, as a formula, and as a number once its symbols are bound.
    """
    if plugins or _are_installed():
        from symbolic_cost.jobs.registry import load_installed, load_plugin

        load_installed()
        for plugin in plugins:
            load_plugin(plugin)


def _are_installed() -> bool:
    """Tell whether an installed package has plugins; importlib.metadata takes long to load."""
    files = (
        file
        for folder in sys.path
        for kind in ("dist-info", "egg-info")
        for file in Path(folder).glob(f"*.{kind}/entry_points.txt")
    )
    return any(f"[{_PLUGINS}]" in file.read_text(errors="replace") for file in files)
