"""Records of machines: TOML files, those of the library and a user's own.

A number is a table {value, source, includes}; its source is a key of the record's [sources] or of
the library's references. All that is wrong with a record is said at once.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from sympy import Expr

from symbolic_cost.errors import InputError, brief, looked_up, shown, unknown, visible
from symbolic_cost.reading import read_text
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import exact
from symbolic_cost.systems.machines import (
    NOTHING,
    ONE,
    PRECISIONS,
    SYMBOLIC,
    Cache,
    Efficiencies,
    Figure,
    Machine,
    MachineLink,
)

MOST_BYTES = 2**17
"""A record is a page of text; a larger file is another one."""

_DEEP_KEY = re.compile(r"(?:\.[^.\n]{1,40}){40}")
_SMALLEST, _LARGEST = Decimal("1e-30"), Decimal("1e30")
_DATA = files("symbolic_cost.systems") / "data"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class _Figure(_Record):
    value: int | Decimal
    source: str
    includes: str = ""

    @field_validator("value", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            said = f"{shown(value)} is not a number"
            raise ValueError(said)  # noqa: TRY004 - pydantic collects these
        if isinstance(value, Decimal) and not value.is_finite():
            raise ValueError(f"{value} is not finite")
        if not (value == 0 or _SMALLEST <= value <= _LARGEST):
            raise ValueError(f"{value}: 0 or a number from {_SMALLEST} to {_LARGEST} is accepted")
        return value

    def figure(self) -> Figure:
        return Figure(self.exact, self.source, self.includes)

    @property
    def exact(self) -> Expr:
        return exact(self.value)


class _Positive(_Figure):
    @field_validator("value")
    @classmethod
    def _above_zero(cls, value: Decimal) -> Decimal:
        if value == 0:
            raise ValueError("is 0: a positive number is accepted")
        return value


class _Share(_Positive):
    @field_validator("value")
    @classmethod
    def _at_most_one(cls, value: Decimal) -> Decimal:
        if value > 1:
            raise ValueError(f"{value} is above 1: a share of the rate is accepted")
        return value


class _Memory(_Record):
    bandwidth: _Positive
    capacity: _Positive
    usable: _Positive
    latency: _Figure | None = None


class _Cache(_Record):
    name: str
    capacity: _Positive
    bandwidth: _Positive | None = None


class _Link(_Record):
    name: str
    bandwidth: _Positive
    latency: _Figure
    ranks: _Positive | None = None
    efficiency: _Share | None = None


class _Product(_Record):
    flop: _Positive
    share: _Share


class _Efficiencies(_Record):
    matrix: _Share | None = None
    half: _Figure | None = None
    vector: _Share | None = None
    memory: _Share | None = None
    launch: _Figure | None = None
    host: _Figure | None = None
    products: list[_Product] = Field(default_factory=list)


class _Machine(_Record):
    name: str
    meaning: str
    sources: dict[str, str] = Field(default_factory=dict)
    matrix: dict[str, _Positive] = Field(min_length=1)
    vector: dict[str, _Positive]
    memory: _Memory
    links: list[_Link] = Field(min_length=1)
    caches: list[_Cache] = Field(default_factory=list)
    efficiencies: _Efficiencies = Field(default_factory=_Efficiencies)

    def machine(self) -> Machine:
        reached = self.efficiencies
        return Machine(
            name=self.name,
            meaning=self.meaning,
            sources=self.sources,
            matrix={name: figure.figure() for name, figure in self.matrix.items()},
            vector={name: figure.figure() for name, figure in self.vector.items()},
            bandwidth=self.memory.bandwidth.figure(),
            capacity=self.memory.capacity.figure(),
            usable=self.memory.usable.figure(),
            latency=_given(self.memory.latency, NOTHING),
            links=tuple(map(_link, self.links)),
            caches=tuple(map(_cache, self.caches)),
            efficiencies=Efficiencies(
                matrix=_given(reached.matrix, ONE),
                half=_given(reached.half, NOTHING),
                vector=_given(reached.vector, ONE),
                memory=_given(reached.memory, ONE),
                launch=_given(reached.launch, NOTHING),
                host=_given(reached.host, NOTHING),
                products=tuple((p.flop.figure(), p.share.figure()) for p in reached.products),
            ),
        )


def _given(figure: _Figure | None, otherwise: Figure) -> Figure:
    return otherwise if figure is None else figure.figure()


def _link(record: _Link) -> MachineLink:
    return MachineLink(
        record.name,
        record.bandwidth.figure(),
        record.latency.figure(),
        None if record.ranks is None else record.ranks.figure(),
        _given(record.efficiency, ONE),
    )


def _cache(record: _Cache) -> Cache:
    bandwidth = None if record.bandwidth is None else record.bandwidth.figure()
    return Cache(record.name, record.capacity.figure(), bandwidth)


def find_machine(name: str) -> Machine:
    """Return a machine by name ("symbolic" has symbols for rates), or from a TOML file.

    Raises:
        InputError: no such machine, or every problem of the file.
    """
    return load_machine(name) if name.endswith(".toml") else machine(name)


REGISTERED: dict[str, Machine] = {}
"""Machines of users, by name."""


def machine_names() -> tuple[str, ...]:
    """Return the names of the library's machines, and of registered ones."""
    files = (entry.name for entry in _DATA.iterdir())
    records = (name.removesuffix(".toml") for name in files if name.endswith(".toml"))
    return tuple(sorted([*records, *REGISTERED]))


def machine(name: str) -> Machine:
    """Return a machine of the library by name; "symbolic" has symbols for its rates.

    Raises:
        UnknownNameError: no such machine; the closest are offered.
    """
    known: dict[str, Machine | None] = {
        SYMBOLIC.name: SYMBOLIC,
        **dict.fromkeys(machine_names()),
        **REGISTERED,
    }
    return looked_up("machine", name, known) or _record(name)


@cache
def _record(name: str) -> Machine:
    return machine_of((_DATA / f"{name}.toml").read_text(encoding="utf-8"), name)


def load_machine(path: str | Path) -> Machine:
    """Read a machine from a TOML file.

    Raises:
        InputError: the file cannot be read or is too large, or everything that is wrong with it.
    """
    place = f"machine file {shown(str(path), 200)}"
    return machine_of(read_text(path, MOST_BYTES, place), place)


def machine_of(text: str, place: str = "machine") -> Machine:
    """Read a machine from TOML.

    Args:
        text: of the record.
        place: that its problems name.

    Raises:
        InputError: everything that is wrong with it.
    """
    if _DEEP_KEY.search(text):  # each part of a key goes through all before it
        raise InputError(f"{place}: is not TOML of a record: a key has more than 40 parts")
    try:
        data = tomllib.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        said = brief(visible(str(error)), 200)
        raise InputError(f"{place}: is not TOML: {said}") from None
    try:
        record = _Machine.model_validate(data)
    except ValidationError as error:
        raise InputError([_said(place, problem) for problem in error.errors()]) from None
    made = record.machine()
    problems = [f"{place}: {problem}" for problem in _contradictions(made)]
    if problems:
        raise InputError(problems)
    return made


def _said(place: str, problem: Mapping[str, Any]) -> str:
    where = visible(brief(".".join(str(step) for step in problem["loc"]), 100))
    if problem["type"] in ("model_type", "dict_type", "list_type"):
        accepted = _TABLES[problem["type"]]
        return f"{place}: {where} is {shown(problem['input'])}: {accepted} is accepted"
    if problem["type"] == "extra_forbidden":
        return f"{place}: {where} is not part of a record"
    if problem["type"] == "missing":
        return f"{place}: {where} is missing"
    message = problem["msg"]
    own = message.removeprefix("Value error, ")
    return f"{place}: {where}: {own if own != message else message[0].lower() + message[1:]}"


_TABLES = {
    "model_type": 'a table such as { value = 312e12, source = "a key of [sources]" }',
    "dict_type": "a table of names",
    "list_type": "a list of tables, [[like this]],",
}


def _contradictions(made: Machine) -> list[str]:
    problems = [
        f"{units}: {unknown('precision', name, PRECISIONS)}"
        for units in ("matrix", "vector")
        for name in getattr(made, units)
        if name not in PRECISIONS
    ]
    if "fp32" not in made.vector:
        problems.append("vector.fp32 is missing")
    problems += [
        f"{where}: source {figure.source!r} is neither in [sources] nor a reference"
        for where, figure in made.figures()
        if figure.source not in made.sources and figure.source not in REFERENCES
    ]
    if made.usable.value > made.capacity.value:
        problems.append("memory.usable is more than memory.capacity")
    reached = made.efficiencies
    if reached.products and (reached.matrix, reached.half) != (ONE, NOTHING):
        problems.append("efficiencies: give products, or matrix and half")
    sizes_of_products = [flop.value for flop, _ in reached.products]
    if sizes_of_products != sorted(set(sizes_of_products)):
        problems.append("efficiencies.products: sizes grow from one to the next")
    *inner, outer = made.links
    if outer.ranks is not None:
        problems.append(f"links.{outer.name}.ranks: the last link joins all ranks; leave it out")
    sizes = [link.ranks for link in inner]
    problems += [
        f"links.{link.name}.ranks is missing: only the last link joins all ranks"
        for link in inner
        if link.ranks is None
    ]
    domains = [figure.value for figure in sizes if figure is not None]
    if any(not size.is_Integer for size in domains) or domains != sorted(set(domains)):
        problems.append("links: ranks are integers that grow from the innermost link on")
    return problems
