"""Departures of a publication: named changes of derived rows, declared where their rule stands."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from symbolic_cost.ledger import Row
from symbolic_cost.published.results import Erratum
from symbolic_cost.records import dataclass

Change = Callable[[Row, Any], tuple[Row, ...]]
"""What becomes of a derived row: several rows or none may come of one."""


@dataclass(frozen=True, slots=True)
class Departure:
    """One departure.

    Args:
        meaning: what the publication does instead.
        where: it does: names of strategies or variants.
        change: of a derived row, given how the model runs.
    """

    name: str
    meaning: str
    where: tuple[str, ...]
    change: Change


class Departures(list[Departure]):
    """Departures in the order in which they apply."""

    def of(self, *where: str) -> Callable[[Change], Change]:
        """Declare a departure: its rule's name and docstring are its name and meaning."""

        def declared(change: Change) -> Change:
            name = change.__name__.strip("_").replace("_", " ")
            self.append(Departure(name, change.__doc__ or "", where, change))
            return change

        return declared

    def errata(self, publication: str, shown_by: str) -> list[Erratum]:
        """Return the departures as slips."""
        said = [(one, inspect.cleandoc(one.meaning).partition("\n\n")) for one in self]
        return [
            Erratum(
                publication,
                f"{one.name}, {', '.join(one.where)}",
                what,
                "what the declared ops imply",
                f"{' '.join(why.split())} {shown_by}".strip(),
            )
            for one, (what, _, why) in said
        ]

    def applied(
        self, rows: Iterable[Row], where: str, run: object, repaired: frozenset[str] = frozenset()
    ) -> tuple[Row, ...]:
        """Return the rows that the publication counts.

        Args:
            rows: derived.
            where: the departures are those of this strategy or variant.
            run: what the rules are given beside a row.
            repaired: names of departures that are left out.
        """
        changed = tuple(rows)
        for departure in self:
            if where in departure.where and departure.name not in repaired:
                changed = tuple(new for row in changed for new in departure.change(row, run))
        return changed
