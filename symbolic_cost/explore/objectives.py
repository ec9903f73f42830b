"""What a search looks for: seconds, bytes, shares of the peak, and what they cost.

The names of other outputs of a structure's program stand here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from symbolic_cost.errors import InputError
from symbolic_cost.records import dataclass
from symbolic_cost.systems.results import THROUGHPUTS

MEMORY = "memory"
"""Output: the most that one rank of any stage holds at any moment [byte]."""

NEEDED = "needed"
"""Output: the same with what a device holds beside tensors [byte], which fits or does not."""

HELD, SHARE = "held ", "share "
"""Outputs that begin so say what a stage holds at a moment, or of a quantity [byte]."""

LEGAL = "legal: "
"""Outputs that begin so are one where a condition is met; the rest of the name says which."""


@dataclass(frozen=True)
class Objective:
    """What is looked for.

    Args:
        meaning: one line, with the unit.
        outputs: of the programs, of which one has the first that it has.
        sign: 1 where the output is to be small, -1 where large.
        figure: of the output, given what a second of all GPUs costs; the output itself unless
            given.
        resource: what of a second is asked for: "usd" or "kwh".
    """

    name: str
    meaning: str
    outputs: tuple[str, ...]
    sign: int = 1
    figure: Callable[[Any, float], Any] = lambda output, _: output
    resource: str = ""
    second: float = 0.0
    source: str = ""

    @property
    def is_small(self) -> bool:
        """Whether a smaller figure is better."""
        return (self.sign > 0) is (self.figure(1.0, 1.0) < self.figure(2.0, 1.0))

    def of(self, names: Collection[str]) -> str:
        """Return the output that is asked for, among those of a program."""
        return next(name for name in self.outputs if name in names)

    def read(self, at: Mapping[str, Any]) -> Any:  # noqa: ANN401 - array or number
        """Return the objective, of outputs by name."""
        return self.figure(at[self.of(at)], self.second)

    def value(self, at: Mapping[str, Any]) -> Any:  # noqa: ANN401 - array or number
        """Return what is to be small."""
        return self.sign * at[self.of(at)]

    def priced(self, machine: str, gpus: int) -> Objective:
        """Return the objective with what so many GPUs of a machine cost.

        Raises:
            InputError: no price or no power of the machine is on record.
        """
        if not self.resource:
            return self
        from symbolic_cost.systems.prices import rates

        known = rates(machine)
        cost, fact = getattr(known.costs(1.0), self.resource), getattr(known, _FACTS[self.resource])
        if cost is None:
            raise InputError(
                f"objective {self.name}: no {_FACTS[self.resource]} of {machine} is on "
                "record; throughput is accepted"
            )
        return replace(self, second=cost * gpus, source=f"{_FACTS[self.resource]} {fact}")


_FACTS = {"usd": "price", "kwh": "power"}
_JOULE = 3.6e6


OBJECTIVES = {
    one.name: one
    for one in (
        Objective("step", "the shortest step [s]", ("step",)),
        Objective("memory", "the least memory of a rank [byte]", (MEMORY,)),
        Objective("mfu", "the highest MFU", ("mfu",), -1),
        Objective("throughput", "the most tokens or samples per second [1/s]", THROUGHPUTS, -1),
        Objective(
            "tokens-per-dollar",
            "the most tokens or samples per dollar [1/USD]",
            THROUGHPUTS,
            -1,
            lambda rate, second: rate / second,
            "usd",
        ),
        Objective(
            "energy",
            "the least energy of a token or sample [J]",
            THROUGHPUTS,
            -1,
            lambda rate, second: _JOULE * second / rate,
            "kwh",
        ),
    )
}
"""Every objective by name."""
