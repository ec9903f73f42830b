"""The command line: declarations of commands, no arithmetic.

Nothing here imports SymPy until a command runs, so that `--help` answers at once.
"""

import sys
from collections import Counter
from functools import partial
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any

import click

from symbolic_cost.cli import answers, door
from symbolic_cost.errors import SymbolicCostError, shown, unknown

_COMMANDS = {
    "models": "the named models, their sizes and sources",
    "table": "costs per op: formulas and values",
    "formula": "one total as a formula, or a sheet of all formulas",
    "sheet": "a document of all formulas: LaTeX, PDF, Markdown, HTML, with BibTeX",
    "tree": "nested totals with shares",
    "scale": "derivative, elasticity and leading term of a cost",
    "memory": "what one rank holds, and the peak of a step",
    "comm": "collectives of one step, and who talks to whom",
    "schedule": "a pipeline schedule, as formulas and drawn",
    "systems": "machines, with the source of every number",
    "time": "how long a step takes, MFU and HFU",
    "search": "the best strategies on so many GPUs, proven by looking at all of them",
    "sweep": "every combination of values: the best, or a file of all",
    "pareto": "what no other combination beats in memory and time, or cost and time",
    "fit": "whether a model fits, the largest that does, and what binds",
    "serve-plan": "engines that serve a model: throughput, latencies, what binds",
    "crossover": "where two parts or costs are equal: a formula and an integer",
    "optimum": "where a cost, the memory or the step is least in a symbol",
    "sensitivity": "per cent of each cost per per cent of each symbol; derivatives by branch",
    "dominance": "which part takes most, as inequalities and as a map",
    "solve": 'a size from a bound, as in "memory == 80 GiB": formula, integer, what binds',
    "calibrate": "efficiencies of a machine from measured steps",
    "roofline": "ops below the roofs of a machine",
    "laws": "scaling laws: optima, fits, and what a budget buys",
    "count": "exact counts of a config.json",
    "flops-per-token": "the FLOP of a token as every framework counts it",
    "mfu": "a measured throughput as MFU under every convention",
    "diff": "what one of two conventions, strategies, machines or models has more, as formulas",
    "check": "a formula typed from a paper: equal, equal to leading order, or how it differs",
    "derive": "where a formula comes from: each coefficient by op, tensor and convention",
    "import": "model and strategy from launch files, or an exported graph",
    "lift": "a declaration of a new family from exported graphs of several sizes",
    "export": "costs as code: Python, C, JavaScript, Rust or Julia, with tests",
    "workbook": "a job as a workbook with live formulas (.xlsx)",
    "trace": "a step as a timeline for Perfetto, or as traces for ASTRA-sim",
    "calculator": "a family as one offline page that computes in the browser",
    "profile": "a module profile, as profilers print it",
    "compare-conventions": "what one preset counts more than another, as a formula",
    "reproduce": "published numbers beside computed ones",
    "report": "one page for a job: what runs where, what binds, what to change, and why",
    "symbols": "the glossary: every symbol, with its meaning",
    "conventions": "presets of counting conventions, with their sources",
    "strategies": "parallel strategies: what each splits, repeats and needs",
    "precisions": "precisions, optimizers, schedules and recompute policies",
    "publications": "what can be reproduced",
    "prices": "dollars, power, PUE and carbon, with source and date",
    "errata": "slips of publications, with the proof of each",
    "schema": "JSON schema of what --format json writes",
    "serve": "every command that writes nothing as a tool for agents",
}
"""Every command in the order in which a new user meets them; modules load when they are run."""


_LISTS = ("symbols", "conventions", "strategies", "precisions", "publications", "prices", "errata")
"""Commands that list what there is."""


_MODULES = {
    "of_a_model": "table formula tree scale memory comm time roofline count profile",
    "of_the_library": "models systems schedule calibrate import compare-conventions reproduce",
    "questions": "crossover optimum sensitivity dominance solve check derive diff mfu "
    "flops-per-token",
    "searches": "search fit sweep pareto",
    "written": "export workbook trace calculator lift schema",
}
_SHARED = {name: module for module, names in _MODULES.items() for name in names.split()}
"""Module of a command that has none of its own."""


class Refusal(click.ClickException):
    """A refused input: its problems on standard error, exit code 2, no traceback."""

    exit_code = door.REFUSED


class LazyGroup(click.Group):
    """Commands imported from their modules when they are named."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """List the commands."""
        return list(_COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a command."""
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name in _LISTS:
            from symbolic_cost.cli import lists

            return lists.command(cmd_name, _COMMANDS[cmd_name])
        name = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        module = import_module(f"symbolic_cost.cli.{_SHARED.get(cmd_name, name)}")
        command: click.Command = getattr(module, name if cmd_name in _SHARED else "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or offer the closest."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            raise Refusal(unknown("command", args[0], _COMMANDS))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            check_repeated(command, ctx, rest)
        return name, command, rest

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
        return sys.exit(door.ended(partial(answers.kept, line, run, _are_installed)))


def check_repeated(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Refuse an option that is given twice, of which click would take the last.

    Raises:
        Refusal: every such option.
    """
    try:
        parser = command.make_parser(ctx)
        parser.allow_interspersed_args = True  # the group's own context has it switched off
        _, _, order = parser.parse_args(list(args))
    except click.UsageError:
        return  # told when the command parses them itself
    options = [one for one in order if isinstance(one, click.Option) and not one.multiple]
    twice = [one.opts[-1] for one, times in Counter(options).items() if times > 1]
    if twice:
        raise Refusal("\n".join(f"option {shown(one)} is given more than once" for one in twice))


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
