"""Registration: a user's own symbols, models, strategies, conventions and machines, by name.

A plugin is a Python file that calls these functions when it is imported: `symbolic-cost --plugin
mine.py table my-model`, or an entry point of the group "symbolic_cost.plugins" of an installed
package. What is registered is found wherever the library's own names are. For example

    import symbolic_cost as sc

    sc.register_model("tiny", lambda: sc.GPT(n_layers=2).model(), {"b": 1, "l": 128, "e": 64})
"""

import importlib.util
import sys
from collections.abc import Callable, Mapping, MutableMapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeVar

from sympy import Symbol

from symbolic_cost import symbols
from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import InputError, SymbolicCostError, quote
from symbolic_cost.models.catalog import CATALOG, Preset
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.catalogue import STRATEGIES, Entry
from symbolic_cost.records import replace
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.records import REGISTERED, machine_names

GROUP = "symbolic_cost.plugins"
"""Group of the entry points that are loaded by the command line."""

_OWN = "registered"
"""Source of what a user's file defines and gives none to."""

ThingT = TypeVar("ThingT")


def register_symbol(
    name: str, meaning: str, latex: str | None = None, *, integer: bool = True
) -> Symbol:
    """Add a symbol to the glossary: a positive integer, or a positive number.

    Raises:
        InputError: the name is taken, or is no name.
    """
    return symbols.register(name, meaning, latex, integer=integer)


def register_model(
    name: str, build: Callable[[], Model], bindings: Mapping[str, int] | None = None
) -> None:
    """Add a model.

    Raises:
        InputError: the name is taken; once it is asked for, that no Model is built.
    """
    own = dict(bindings or {})
    _add("model", CATALOG, name, Preset(name, name, lambda _: build(), own, source=_OWN))


def register_strategy(name: str, entry: Entry) -> None:
    """Add a strategy; its mesh axes are outside of those that are there.

    Raises:
        InputError: the name is taken.
    """
    own = replace(entry, source=_OWN) if entry.source == "definition" else entry
    _add("strategy", STRATEGIES, name, own)


def register_conventions(conventions: Conventions) -> None:
    """Add a preset of conventions under its own name.

    Raises:
        InputError: the name is taken.
    """
    _add("conventions", PRESETS, conventions.name, conventions)


def register_machine(machine: Machine) -> None:
    """Add a machine under its own name.

    Raises:
        InputError: the name is taken.
    """
    if machine.name in machine_names():
        raise InputError(f"machine {quote(machine.name)} exists already: choose another name")
    _add("machine", REGISTERED, machine.name, machine)


def load_plugin(path: str) -> None:
    """Run a plugin: a Python file of the user, which registers what it defines.

    Raises:
        InputError: the file cannot be read or run, or registers a name that is taken.
    """
    file = Path(path)
    if file.suffix != ".py" or not file.is_file():
        raise InputError(f"plugin {quote(path)}: an existing Python file (.py) is accepted")
    spec = importlib.util.spec_from_file_location(f"symbolic_cost_plugin_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InputError(f"plugin {quote(path)} cannot be imported")
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # nothing beside the user's file
    try:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    except SymbolicCostError as error:
        raise InputError(f"plugin {quote(path)}: {error}") from error
    except (Exception, SystemExit) as error:  # a plugin that exits would end the command unheard
        name = type(error).__name__
        raise InputError(f"plugin {quote(path)}: {name}: {quote(str(error))}") from error
    finally:
        sys.dont_write_bytecode = before


def load_installed() -> None:
    """Import the plugins of installed packages."""
    for point in entry_points(group=GROUP):
        try:
            point.load()
        except Exception as error:
            name = type(error).__name__
            raise InputError(f"plugin {quote(point.name)}: {name}: {quote(str(error))}") from error


def _add(kind: str, things: MutableMapping[str, ThingT], name: str, thing: ThingT) -> None:
    if not str(name) or name != str(name).strip():
        raise InputError(f"{kind} {quote(name)}: a name is accepted")
    if name in things:
        raise InputError(f"{kind} {quote(name)} exists already: choose another name")
    things[name] = thing
