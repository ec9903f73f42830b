"""What running a machine costs: dollars, energy and carbon, from facts with source and date.

Facts are in prices.toml; a number of the user's takes the place of one that is missing or old.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from symbolic_cost.errors import looked_up, quote, refuse
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass

HOUR = 3600
_LARGEST = 1e9


@dataclass(frozen=True, slots=True)
class Fact:
    """One number.

    Args:
        source: key of a reference, or title.
        date: of the source: year, or year and month.
        includes: what it stands for, with its unit.
    """

    value: float
    source: str
    date: str
    includes: str = ""

    @property
    def given(self) -> bool:
        """Whether it is a number of the user's."""
        return self.source == "given"

    def __str__(self) -> str:
        return f"{self.value:g}: {self.includes} ({self.source}, {self.date})"


@dataclass(frozen=True, slots=True)
class Rates:
    """What one device costs to run.

    Args:
        price: of an hour [USD]; None where nothing is known.
        power: of the device [W]; None where nothing is known.
        pue: energy of the building over that of the devices [1].
        intensity: of electricity [kg CO2e/kWh].
    """

    price: Fact | None
    power: Fact | None
    pue: Fact
    intensity: Fact

    def told(self, *kinds: str) -> str:
        """Say which facts costs rest on, but for those that were given; empty of none."""
        own = (self.price, self.power, self.pue, self.intensity)
        named = dict(zip(("price", "power", "PUE", "carbon"), own, strict=True))
        facts = {kind: named[kind] for kind in kinds}
        return "; ".join(f"{kind} {one}" for kind, one in facts.items() if one and not one.given)

    def costs(self, device_seconds: float) -> Costs:
        """Return what so many seconds of a device cost."""
        hours = device_seconds / HOUR
        usd = None if self.price is None else hours * self.price.value
        energy = None if self.power is None else hours * self.power.value * self.pue.value / 1000
        carbon = None if energy is None else energy * self.intensity.value
        return Costs(usd, energy, carbon)

    def hours_of(self, usd: float | None = None, kwh: float | None = None) -> float:
        """Return how many hours of a device a budget buys: the fewer of dollars and energy.

        Raises:
            InputError: the price or the power that this needs is not known.
        """
        problems = []
        if usd is not None and self.price is None:
            problems.append("no price is on record for this machine: give one in USD per hour")
        if kwh is not None and self.power is None:
            problems.append("no power is on record for this machine: give one in W")
        refuse(problems)
        hours = []
        if usd is not None and self.price is not None:
            hours.append(usd / self.price.value)
        if kwh is not None and self.power is not None:
            hours.append(kwh * 1000 / (self.power.value * self.pue.value))
        return min(hours, default=float("inf"))


@dataclass(frozen=True, slots=True)
class Costs:
    """Dollars, energy [kWh] and carbon [kg CO2e]; None where a fact is missing."""

    usd: float | None
    kwh: float | None
    kg_co2e: float | None


@cache
def facts() -> Mapping[str, Mapping[str, Any]]:
    """Return every fact: by machine, of data centers ("pue") and of grids ("grid")."""
    data = package_data("systems/prices.toml")
    machines = {
        name: {kind: Fact(**entry) for kind, entry in own.items()}
        for name, own in data["machines"].items()
    }
    rest = {
        kind: {name: Fact(**entry) for name, entry in data[kind].items()}
        for kind in ("pue", "grid")
    }
    return {"machines": machines, **rest}


def rates(
    machine: str,
    *,
    price: float | None = None,
    power: float | None = None,
    pue: float | str = "usual",
    grid: float | str = "us",
) -> Rates:
    """Return what one device of a machine costs to run.

    Args:
        machine: its name.
        price: of an hour [USD], in place of the one on record.
        power: of the device [W], in place of the one on record.
        pue: name of a data center on record, or a number.
        grid: name of a grid on record, or its carbon [kg CO2e/kWh].

    Raises:
        InputError: every number that is refused and every name that is not on record.
    """
    known = facts()["machines"].get(machine, {})
    own = {"price": price, "power": power}
    problems = [
        f"{name} = {quote(value)}: a positive number is accepted"
        for name, value in (*own.items(), ("pue", pue), ("grid", grid))
        if value is not None and not isinstance(value, str) and not 0 < value < _LARGEST
    ]
    if isinstance(pue, int | float) and 0 < pue < 1:
        problems.append(f"pue = {quote(pue)}: 1 or more is accepted, the building's own included")
    refuse(problems)

    def one(name: str) -> Fact | None:
        value = own[name]
        return known.get(name) if value is None else Fact(value, "given", "now", name)

    def named(kind: str, value: float | str) -> Fact:
        if isinstance(value, str):
            return looked_up(kind, value, facts()[kind])
        return Fact(value, "given", "now", kind)

    return Rates(one("price"), one("power"), named("pue", pue), named("grid", grid))
