"""A server for agents: commands as tools, over standard input and output."""

import subprocess
import sys
from collections.abc import Mapping
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from symbolic_cost.cli import options
from symbolic_cost.errors import InputError, quote

SECONDS = 300
"""Longest run of one call."""

_NOT_TAKEN = {"-o", "--format", "--plugin", "--help", "--tests"}
"""Options that a call does not take: they write, run code, or are set by the server."""

_LEFT_OUT = {"serve", "schema", "calibrate", "report", "workbook", "calculator", "trace"}
"""Commands that are no tools: what they make is a file or a page of text."""


def schema(parameter: click.Parameter) -> dict[str, Any]:
    """Return the JSON schema of an option or argument."""
    kind = parameter.type
    if isinstance(parameter, click.Option) and parameter.is_flag:
        one: dict[str, Any] = {"type": "boolean"}
    elif isinstance(kind, click.Choice):
        one = {"type": "string", "enum": list(kind.choices)}
    elif isinstance(kind, click.types.IntParamType):
        one = {"type": "integer"}
    elif isinstance(kind, click.types.FloatParamType):
        one = {"type": "number"}
    else:
        one = {"type": "string"}
    many = parameter.nargs != 1 or parameter.multiple
    accepts = parameter.metavar or ""
    described = " ".join(filter(None, (getattr(parameter, "help", None), accepts)))
    whole = {"type": "array", "items": one} if many else one
    return {**whole, "description": described} if described else whole


def accepted(command: click.Command) -> dict[str, click.Parameter]:
    """Return what a call may give: arguments and long options by their names."""
    return {
        max(one.opts, key=len).lstrip("-"): one
        for one in command.params
        if not _NOT_TAKEN & set(one.opts)
    }


@cache
def tools() -> dict[str, tuple[click.Command, dict[str, Any]]]:
    """Return each command with the schema of its input."""
    from symbolic_cost.cli import main

    context = click.Context(main)
    table = {}
    for name in main.list_commands(context):
        command = None if name in _LEFT_OUT else main.get_command(context, name)
        if command is None or isinstance(command, click.Group):
            continue
        parameters = accepted(command)
        table[name] = (
            command,
            {
                "type": "object",
                "properties": {argument: schema(one) for argument, one in parameters.items()},
                "required": [argument for argument, one in parameters.items() if one.required],
                "additionalProperties": False,
            },
        )
    return table


def words(command: click.Command, named: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the command line of a call.

    Raises:
        InputError: an argument is unknown, or a path leaves the working folder.
    """
    known = accepted(command)
    strange = sorted(set(named) - set(known))
    if strange:
        raise InputError(f"unknown argument {quote(strange[0])}: accepted are {', '.join(known)}")
    options: list[str] = []
    arguments: list[str] = []
    for name, parameter in known.items():
        values = named.get(name)
        if values is None:
            continue
        for value in values if isinstance(values, list) else [values]:
            _inside(str(value), folder)
            if isinstance(parameter, click.Argument):
                arguments.append(str(value))
            elif isinstance(value, bool):
                off = parameter.secondary_opts
                options += [f"--{name}"] if value else off[:1]
            else:
                options.append(f"--{name}={value}")
    formats = any("--format" in one.opts for one in command.params)
    return [*options, *(["--format=json"] if formats else []), "--", *arguments]


def _inside(value: str, folder: Path) -> None:
    """Refuse a path that is not below the folder; `a=b` and `a:b` may hold one."""
    for text in (value, value.partition("=")[2], value.partition(":")[2]):
        path = Path(text)
        leaves = path.is_absolute() or ".." in path.parts or text.startswith("~")
        if leaves or not (folder / path).resolve().is_relative_to(folder):
            raise InputError(f"{quote(value)}: paths below the working folder are accepted")


def run_call(name: str, named: Mapping[str, Any], folder: Path) -> tuple[str, bool]:
    """Run one call in a process of its own; return what it prints, and whether it was refused."""
    if name not in tools():
        return f"unknown tool {quote(name)}", True
    try:
        line = words(tools()[name][0], named, folder)
    except InputError as error:
        return str(error), True
    try:
        run = subprocess.run(  # noqa: S603 - this program, with arguments that were checked
            [sys.executable, "-m", "symbolic_cost", name, *line],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"{name} took longer than {SECONDS} s", True
    return (run.stdout, False) if run.returncode in (0, 1) else (run.stderr.strip(), True)


@options.command("serve")
def command(*, mcp: bool) -> None:  # noqa: ARG001 - the one protocol that there is
    """Serve every command that writes nothing as a tool, reading below the working folder alone.

    For example: symbolic-cost serve --mcp
    """
    try:
        import anyio
        from mcp import types
        from mcp.server.lowlevel import Server
        from mcp.server.stdio import stdio_server
    except ImportError:
        raise InputError("serve needs mcp: pip install 'symbolic_cost[mcp]'") from None

    folder = Path.cwd().resolve()

    async def listed(*_: object) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=one.help or "", input_schema=taken)
                for name, (one, taken) in tools().items()
            ]
        )

    async def answered(_: object, call: types.CallToolRequestParams) -> types.CallToolResult:
        run = partial(run_call, call.name, call.arguments or {}, folder)
        text, refused = await anyio.to_thread.run_sync(run)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], is_error=refused
        )

    async def served() -> None:
        own = version("symbolic-cost")
        server = Server("symbolic-cost", version=own, on_list_tools=listed, on_call_tool=answered)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(served)
