"""Ops of the end of a step: what one weight goes through once its gradient is there.

An update runs over the elements of a weight, on the shard of its states that a rank holds. Like any
op it says what it reads, writes and computes; what that costs on a rank follows from the placement.
For example Adam on *w[e f], its states in shards over 8 dp ranks, reads 1/8 of e f gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sympy import Expr

from symbolic_cost.algebra import add, mul
from symbolic_cost.ledger import Phase, Quantity, Row, Units
from symbolic_cost.records import dataclass
from symbolic_cost.units import Unit


@dataclass(frozen=True, slots=True)
class StateTensor:
    """A tensor that belongs to a weight.

    Args:
        size: of all that the ranks with the same shards hold together [byte].
    """

    tensor: str
    size: Expr


@dataclass(frozen=True, slots=True)
class Update:
    """An op over one weight and what belongs to it.

    Args:
        flop: of the whole weight [FLOP].
    """

    name: str
    reads: tuple[StateTensor, ...]
    writes: tuple[StateTensor, ...]
    flop: Expr
    units: Units = Units.VECTOR
    source: str = "definition"

    def rows(self, path: str, count: Expr, shards: Expr) -> Iterator[Row]:
        """Yield what it costs one rank, once per step."""
        work = [(Quantity.FLOP, Unit.FLOP, "", self.flop)]
        work += [(Quantity.READ, Unit.BYTE, held.tensor, held.size) for held in self.reads]
        work += [(Quantity.WRITE, Unit.BYTE, held.tensor, held.size) for held in self.writes]
        for quantity, unit, tensor, size in work:
            if size != 0:
                yield Row(
                    path=path,
                    kind=self.name,
                    phase=Phase.STEP,
                    quantity=quantity,
                    unit=unit,
                    expr=size / shards,
                    count=count,
                    tensor=tensor,
                    source=self.source,
                    per_step=True,
                    units=self.units if quantity is Quantity.FLOP else None,
                )


TRAFFIC = (Quantity.READ, Quantity.WRITE)


@dataclass(frozen=True, slots=True)
class Work:
    """What is computed and moved.

    Args:
        flop: by the units that compute them.
        traffic: read and written [byte].
    """

    flop: Mapping[Units, Expr]
    traffic: Expr

    @staticmethod
    def of(rows: Iterable[Row]) -> Work:
        """Return the work of rows, each once; others than FLOP and bytes are left out."""
        flop: dict[Units, list[Expr]] = {units: [] for units in Units}
        traffic = []
        for row in rows:
            if row.quantity is Quantity.FLOP and row.units is not None:
                flop[row.units].append(row.expr)
            elif row.quantity in TRAFFIC:
                traffic.append(row.expr)
        return Work({units: add(*terms) for units, terms in flop.items()}, add(*traffic))

    @staticmethod
    def together(works: Iterable[tuple[Expr, Work]]) -> Work:
        """Return several works, each a number of times."""
        listed = tuple(works)
        flop = {units: add(*(mul(n, work.flop[units]) for n, work in listed)) for units in Units}
        return Work(flop, add(*(mul(n, work.traffic) for n, work in listed)))
