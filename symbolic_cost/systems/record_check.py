"""The check of a user's own record of a machine; all that is wrong with it is said at once."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    field_validator,
)

from symbolic_cost.errors import InputError, brief, quote, refuse, unknown, visible
from symbolic_cost.references import REFERENCES
from symbolic_cost.systems.machines import NOTHING, ONE, PRECISIONS, Machine

_SMALLEST, _LARGEST = Decimal("1e-30"), Decimal("1e30")


def check_record(data: Mapping[str, Any], place: str) -> None:
    """Refuse what is no record.

    Raises:
        InputError: every table, name and number that is refused.
    """
    try:
        _Machine.model_validate(data)
    except ValidationError as error:
        raise InputError([_problem_text(place, problem) for problem in error.errors()]) from None


def check_machine(machine: Machine, place: str) -> None:
    """Refuse numbers that contradict each other.

    Raises:
        InputError: every contradiction.
    """
    problems = [f"{place}: {problem}" for problem in _contradictions(machine)]
    refuse(problems)


class _Record(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )


class _Figure(_Record):
    value: int | Decimal
    source: str
    includes: str = ""

    @field_validator("value", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | Decimal):
            said = f"{quote(value)} is not a number"
            raise ValueError(said)  # noqa: TRY004 - pydantic collects these
        if isinstance(value, Decimal) and not value.is_finite():
            raise ValueError(f"{value} is not finite")
        if not (value == 0 or _SMALLEST <= value <= _LARGEST):
            raise ValueError(f"{value}: 0 or a number from {_SMALLEST} to {_LARGEST} is accepted")
        return value


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


class _Host(_Record):
    name: str
    bandwidth: _Positive
    latency: _Figure | None = None
    efficiency: _Share | None = None
    dimensions: _Positive | None = None


class _Link(_Host):
    latency: _Figure
    ranks: _Positive | None = None


class _Product(_Record):
    flop: _Positive
    share: _Share


class _Efficiencies(_Record):
    matrix: _Share | None = None
    half: _Figure | None = None
    vector: _Share | None = None
    memory: _Share | None = None
    launch: _Figure | None = None
    clock: _Share | None = None
    host: _Figure | None = None
    computing: _Positive | None = None
    moving: _Positive | None = None
    issuing: _Positive | None = None
    products: list[_Product] = Field(default_factory=list)


_Rates = dict[str, PositiveFloat]


class _Kernels(_Record):
    products: dict[str, _Rates] | None = None
    attention: _Rates | None = None
    passes: _Rates | None = None
    collectives: _Rates | None = None
    errors: dict[str, tuple[NonNegativeFloat, int]] | None = None


_WIDEST = 10  # a factor of 22,000: further apart no steps tell of one machine
_Part = Annotated[float, Field(ge=-_WIDEST, le=_WIDEST)]
_Parts = tuple[_Part, _Part, _Part]


class _Open(_Record):
    computing: _Parts
    moving: _Parts
    issuing: _Parts


class _Cluster(_Record):
    runs: PositiveInt
    step: Annotated[float, Field(gt=0, le=_WIDEST)]
    software: list[str]
    open: _Open


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
    host: _Host | None = None
    kernels: _Kernels = Field(default_factory=_Kernels)
    cluster: _Cluster | None = None


def _problem_text(place: str, problem: Mapping[str, Any]) -> str:
    where = visible(brief(".".join(str(step) for step in problem["loc"]), 100))
    if problem["type"] in ("model_type", "dict_type", "list_type"):
        accepted = _TABLES[problem["type"]]
        given = problem["input"]
        said = brief(str(given), 60) if isinstance(given, Decimal) else quote(given)
        return f"{place}: {where} is {said}: {accepted} is accepted"
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


def _contradictions(machine: Machine) -> list[str]:
    problems = [
        f"{units}: {unknown('precision', name, PRECISIONS)}"
        for units in ("matrix", "vector")
        for name in getattr(machine, units)
        if name not in PRECISIONS
    ]
    for table, named in (("links", machine.links), ("caches", machine.caches)):
        if len({one.name for one in named}) < len(named):
            problems.append(f"{table}: two have one name")
    if not machine.name:
        problems.append("name is empty")
    if "fp32" not in machine.vector:
        problems.append("vector.fp32 is missing")
    problems += [
        f"{where}: source {figure.source!r} is neither in [sources] nor a reference"
        for where, figure in machine.figures()
        if figure.source not in machine.sources and figure.source not in REFERENCES
    ]
    if machine.usable.value > machine.capacity.value:
        problems.append("memory.usable is more than memory.capacity")
    reached = machine.efficiencies
    if reached.products and (reached.matrix, reached.half) != (ONE, NOTHING):
        problems.append("efficiencies: give products, or matrix and half")
    sizes_of_products = [flop.value for flop, _ in reached.products]
    if sizes_of_products != sorted(set(sizes_of_products)):
        problems.append("efficiencies.products: sizes grow from one to the next")
    *inner, outer = machine.links
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
