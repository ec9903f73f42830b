"""Laws as text: those of the library in laws.toml, and a user's file of the same form.

One table is one law:

    [mine]
    meaning = "loss of N parameters and D tokens"
    variables = { N = "parameters", D = "tokens" }
    parameters = { E = [0, 10], A = [0, 1e9], alpha = [0, 2] }
    value = "E + A/N**alpha"
    sets.first = { values = { E = 1.7, A = 400, alpha = 0.34 }, source = "my runs, 2026" }
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any

from symbolic_cost.errors import InputError, looked_up, quote, refuse, unknown
from symbolic_cost.grouping import grouped
from symbolic_cost.reading import package_data, toml_record
from symbolic_cost.scaling.law import Constants, Law
from symbolic_cost.typed import Formula

_MOST_BYTES = 2**17


@cache
def laws() -> Mapping[str, Law]:
    """Return the laws of the library by name."""
    return laws_of(package_data("scaling/laws.toml"), "laws.toml")


def law(name: str) -> Law:
    """Return a law by name, or the one of a user's TOML file.

    Raises:
        InputError: no such law, or every problem of the file.
    """
    if not name.endswith(".toml"):
        return looked_up("law", name, {**_by_source(), **laws()})
    data, place = toml_record(name, _MOST_BYTES, "law")
    declared = laws_of(data, place)
    if len(declared) != 1:
        raise InputError(f"{place}: has {len(declared)} laws; one is accepted")
    return next(iter(declared.values()))


@cache
def _by_source() -> Mapping[str, Law]:
    """Return laws by the first author of their constants, where that names one law alone."""
    named = grouped(
        (author, one)
        for one in laws().values()
        for author in {own_set.source.partition("-")[0] for own_set in one.sets.values()}
    )
    return {author: constants[0] for author, constants in named.items() if len(constants) == 1}


_KEYS = (
    "like",
    "meaning",
    "variables",
    "parameters",
    "where",
    "value",
    "then",
    "compute",
    "sets",
    "fixed",
    "gives",
    "unit",
    "counts",
)


def laws_of(data: Mapping[str, Any], place: str) -> dict[str, Law]:
    """Return the laws of a table of tables; "like" takes what is not said from another law.

    Raises:
        InputError: everything that is wrong with any of them.
    """
    problems: list[str] = []
    declared: dict[str, Law] = {}
    for name, own in data.items():
        if not isinstance(own, Mapping):
            problems.append(f"{place}: {quote(name)} is {quote(own)}: a table of a law is accepted")
            continue
        entry = {**data.get(str(own.get("like", "")), {}), **own}
        told = list(_entry_problems(entry))
        if not told:
            try:
                declared[name] = _law(name, entry)
                told = list(_contradictions(declared[name]))
            except InputError as error:
                told = list(error.problems)
        problems += [f"{place}: {name}: {problem}" for problem in told]
    refuse(problems)
    return declared


_TABLES = ("variables", "parameters", "where", "then", "sets", "fixed")


def _entry_problems(entry: Mapping[str, Any]) -> list[str]:
    told = [unknown("key", key, _KEYS) for key in entry if key not in _KEYS]
    told += [f"{key} is missing" for key in ("meaning", "variables", "value") if key not in entry]
    told += [
        f"{key} is {quote(entry[key])}: a table is accepted"
        for key in _TABLES
        if not isinstance(entry.get(key, {}), Mapping)
    ]
    texts = {key: entry[key] for key in ("value", "compute", "meaning") if key in entry}
    if not told:
        texts |= {
            f"{key}.{name}": text
            for key in ("where", "then")
            for name, text in entry.get(key, {}).items()
        }
    told += [
        f"{key} is {quote(text)}: text is accepted"
        for key, text in texts.items()
        if not isinstance(text, str)
    ]
    if told:
        return told
    for key, bounds in entry.get("parameters", {}).items():
        if not (_pair(bounds) and bounds[0] < bounds[1]):
            told.append(f"parameters.{key} is {quote(bounds)}: [least, largest] is accepted")
    for key, constants in entry.get("sets", {}).items():
        if not (isinstance(constants, Mapping) and isinstance(constants.get("values"), Mapping)):
            told.append(f'sets.{key}: {{ values = {{...}}, source = "..." }} is accepted')
            continue
        told += [
            f"sets.{key}.values.{name} is {quote(value)}: a finite number is accepted"
            for name, value in constants["values"].items()
            if not _finite(value)
        ]
        told += [f"sets.{key}.source is missing"] if not constants.get("source") else []
        told += [
            f"sets.{key}.ranges.{name} is {quote(pair)}: [least, largest] is accepted"
            for name, pair in constants.get("ranges", {}).items()
            if not _pair(pair)
        ]
    return told


def _finite(value: object) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return abs(value) <= sys.float_info.max


def _pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_finite, value))  # noqa: PLR2004


def _law(name: str, entry: Mapping[str, Any]) -> Law:
    return Law(
        name=name,
        meaning=entry["meaning"],
        variables=entry["variables"],
        parameters={key: tuple(pair) for key, pair in entry.get("parameters", {}).items()},
        where={key: Formula(text) for key, text in entry.get("where", {}).items()},
        value=Formula(entry["value"]),
        then={key: Formula(text) for key, text in entry.get("then", {}).items()},
        compute=Formula(entry["compute"]) if entry.get("compute") else None,
        sets={key: _constants(key, constants) for key, constants in entry.get("sets", {}).items()},
        fixed=entry.get("fixed", {}),
        gives=entry.get("gives", "loss"),
        unit=entry.get("unit", "nat/token"),
        counts=entry.get("counts", "all"),
    )


def _constants(name: str, entry: Mapping[str, Any]) -> Constants:
    ranges = {key: (pair[0], pair[1]) for key, pair in entry.get("ranges", {}).items()}
    return Constants(
        name,
        entry["values"],
        entry["source"],
        ranges,
        entry.get("errors", {}),
        entry.get("note", ""),
    )


def _contradictions(own: Law) -> list[str]:
    """Say which names of a law stand for nothing, and which constants it lacks."""
    known = {*own.variables, *own.parameters}
    told: list[str] = []
    for name, formula in {**own.where, own.gives: own.value, **own.then}.items():
        lacking = sorted(formula.names - known)
        told += [f"{name}: {unknown('name', one, known)}" for one in lacking]
        known.add(name)
    if own.compute is not None:
        told += [
            f"compute: {unknown('variable', one, own.variables)}"
            for one in sorted(own.compute.names - own.variables.keys())
        ]
    for key, constants in own.sets.items():
        told += [
            f"sets.{key}: {name} has no value"
            for name in own.parameters
            if name not in constants.values
        ]
        told += [
            f"sets.{key}: {unknown('parameter', name, own.parameters)}"
            for name in constants.values
            if name not in own.parameters
        ]
    return told
