"""Programs as source code of other languages: one file without dependencies, its tests inside.

The steps are those that floats take in this library (`program.tape`), so that results differ from
it by the last bits of a language's logarithm and power of two alone, where these occur.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from symbolic_cost.errors import looked_up, refuse
from symbolic_cost.program.scalars import rounded
from symbolic_cost.program.tape import Tape
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass

Example = tuple[tuple[float, ...], tuple[float, ...]]
"""Arguments and results."""


@dataclass(frozen=True)
class Source:
    """What is written.

    Args:
        about: lines for the head: what it is of, conventions, version.
        meanings: of the inputs, by name.
        units: of the outputs, by name.
        tests: inputs and exact results rounded once, in the order of inputs and outputs.
    """

    name: str
    tape: Tape
    about: Sequence[str]
    meanings: Mapping[str, str]
    units: Mapping[str, str]
    tests: Sequence[Example]

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the arguments, as identifiers."""
        return tuple(map(identifier, self.tape.inputs))

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results, as identifiers."""
        return tuple(map(identifier, self.tape.outputs))


def source(what: Source, language: str) -> str:
    """Return a program as the text of one file.

    Raises:
        UnknownNameError: no such language.
        InputError: two names that are one identifier, or a name that the language keeps for itself.
    """
    chosen = looked_up("language", language, LANGUAGES)
    names = (what.name, *what.inputs, *what.outputs)
    problems = [
        f"{name!r} is two names of the function" for name in set(names) if names.count(name) > 1
    ]
    words = chosen["words"].split()
    problems += [f"{name!r} is a word of {language}" for name in names if name in words]
    refuse(problems)
    head = "\n".join(f"{chosen['comment']} {line}".rstrip() for line in _head(what))
    body = "\n".join(_steps(what, {**_COMMON, **chosen["steps"]}, chosen["define"]))
    return _written(what, chosen, head, body)


def identifier(name: str) -> str:
    """Return a name that all languages take.

    >>> identifier("bubble fraction"), identifier("d step/d m1")
    ('bubble_fraction', 'd_step_d_m1')
    """
    plain = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_")
    return plain if plain[:1].isalpha() else f"x{plain}"


def _head(what: Source) -> Iterator[str]:
    yield from what.about
    yield ""
    yield "Arguments, numbers above zero:"
    yield from (f"  {identifier(name)}: {what.meanings[name]}" for name in what.tape.inputs)
    yield "Results:"
    yield from (f"  {identifier(name)} [{what.units[name]}]" for name in what.tape.outputs)


def _registers(what: Source) -> list[str]:
    constants = (f"({number!r})" for number in map(rounded, what.tape.constants))
    return [*what.inputs, *constants]


def _steps(what: Source, patterns: Mapping[str, str], define: str) -> Iterator[str]:
    names = _registers(what)
    for place, (kind, taken) in enumerate(what.tape.steps):
        own = f"t{place}"
        expression = patterns[kind].format(*(names[one] for one in taken))
        yield define.format(own, expression)
        names.append(own)


def _results(what: Source) -> list[tuple[str, str]]:
    names = _registers(what)
    names += [f"t{place}" for place in range(len(what.tape.steps))]
    return [(identifier(name), names[place]) for name, place in what.tape.outputs.items()]


def _written(what: Source, language: Mapping[str, Any], head: str, body: str) -> str:
    outputs = [(name,) for name in what.outputs]
    items: dict[str, Sequence[tuple[str, ...]]] = {
        "INPUTS": [(name,) for name in what.inputs],
        "PASSED": [(str(place),) for place in range(len(what.inputs))],
        "RESULTS": _results(what),
        **dict.fromkeys(("NAMED", "FIELDS", "MEMBERS"), outputs),
    }
    parts = {
        "HEAD": head,
        "BODY": body,
        "NAME": what.name,
        "KIND": "".join(part.capitalize() for part in what.name.split("_")),
        "IN": str(len(what.inputs)),
        "OUT": str(len(outputs)),
        "WIDTH": str(len(what.inputs) + len(outputs)),
        "TESTS": "\n".join(
            language["test"].format(*(", ".join(map(repr, map(float, own))) for own in one))
            for one in what.tests
        ),
    }
    for name, (pattern, between) in language["lists"].items():
        parts[name] = between.join(pattern.format(*one) for one in items[name])
    return re.sub(r"%([A-Z]+)%", lambda part: parts[part[1]], language["template"])


LANGUAGES: dict[str, Mapping[str, Any]] = package_data("emit/code.toml")
"""How every language writes a program, by name."""

_COMMON = LANGUAGES.pop("common")
"""Steps that languages write alike."""
