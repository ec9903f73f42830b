"""What the ranks of one stage do for the tokens of one shape, and what they keep of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property
from itertools import groupby

from symbolic_cost import symbols
from symbolic_cost.ledger import Phase, Quantity, Row
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.part import Part
from symbolic_cost.parallel.table import Divided
from symbolic_cost.records import dataclass

_LENGTHS = frozenset({symbols.l, symbols.c, symbols.c_p})


def is_state(row: Row) -> bool:
    """Return whether what is kept has the same size after any number of tokens."""
    return not row.expr.free_symbols & _LENGTHS


@dataclass(frozen=True)
class Share:
    """What the ranks of one stage do for the tokens of one shape."""

    shape: Shape
    parts: tuple[Part, ...]
    rows: tuple[Row, ...]
    divided: Divided

    @cached_property
    def forward(self) -> tuple[Row, ...]:
        """Rows of the pass."""
        return tuple(r for r in self.rows if r.phase is Phase.FORWARD and not r.per_step)

    def cache_rows(self, part: str, *, states: bool) -> list[Row]:
        """Return what a part keeps: its states, or its keys and values."""
        rows = (r for r in self.rows if r.quantity is Quantity.CACHE and r.part == part)
        return [row for row in rows if is_state(row) is states]

    def cached(self, part: str) -> frozenset[str]:
        """Return the keys and values that a part keeps, by tensor."""
        return frozenset(row.tensor for row in self.cache_rows(part, states=False))

    def read_rows(self, part: str) -> list[Row]:
        """Return what a part lays out of its cache for attention; that alone is read."""
        cached = self.cached(part)
        rows = sorted((r for r in self.forward if r.part == part), key=lambda row: row.path)
        groups = (tuple(own) for _, own in groupby(rows, key=lambda row: row.path))
        alone = (row for own in groups if reads_alone(own, cached) for row in own)
        return [row for row in alone if row.quantity is Quantity.WRITE]

    @cached_property
    def weights(self) -> frozenset[str]:
        """Tensors that are weights."""
        return frozenset(row.tensor for row in self.rows if row.quantity is Quantity.WEIGHT)


def reads_alone(rows: Iterable[Row], cached: Collection[str]) -> bool:
    """Return whether an op lays parts of the cache side by side, as the cache holds them."""
    listed = tuple(rows)
    read = {row.tensor for row in listed if row.quantity is Quantity.READ}
    return bool(read) and read <= set(cached) and all(r.quantity in _MOVES for r in listed)


_MOVES = (Quantity.READ, Quantity.WRITE)
