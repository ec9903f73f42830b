"""Embeddings of encoders: a token table, further tables that are added, a norm, a projection.

Axes: b sequences, l and r positions, v vocabulary, p learned positions, types token types, e
embedding, w_t width of the tables where it is not the embedding's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from types import MappingProxyType

from symbolic_cost.axes import axes
from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import dropout, pointwise
from symbolic_cost.ops.lookup import lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.view import view

AXES = axes(
    "b batch, r token residual, l token query, v vocabulary, p whole, types whole, e hidden, "
    "w_t latent"
)

TYPES = "types"
PLACES = "p"
COMPUTED = "computed"
"""What is added by name of the table's rows; COMPUTED positions are a constant table."""

BERT_TABLES: Mapping[str, str] = MappingProxyType({"type": TYPES, "position": PLACES})


class Change(Flag):
    """What happens to embeddings."""

    NONE = 0
    SCALE = auto()
    """Those of tokens are multiplied by a constant."""
    DROP = auto()
    """The sum is dropped out."""


@dataclass(frozen=True)
class Words:
    """Embedding from ids to x[b r e].

    Args:
        width: axis of the width of the tables; any but "e" is projected to e, biased, at the end.
        tables: rows of the tables that are added, by name; COMPUTED for constant positions.
        norm: of the sum, or None.
        changes: what happens to them.
        at: axes of residual and query positions.
        token: name of the token table.
        late: whether tables are added after the projection, as positions of the full width.
    """

    width: str = "e"
    tables: Mapping[str, str] = field(default_factory=lambda: BERT_TABLES)
    norm: Norm | None = Norm.LAYER
    changes: Change = Change.DROP
    at: tuple[str, str] = ("r", "l")
    token: str = "@token"  # noqa: S105 - a table of tokens, no secret

    def having(self, change: Change, *, on: bool) -> Words:
        """Return the embedding with or without a change."""
        return replace(self, changes=self.changes | change if on else self.changes & ~change)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; the token table is shared with a tied output head."""
        residual, width = self.at[0], self.width
        rows_of_tables = tuple(self._rows(name, rows) for name, rows in self.tables.items())
        token, *rest = chain("ids", self._steps(f"[b {residual} {width}]"), "x")
        return (token, *rows_of_tables, *rest)

    def _rows(self, name: str, rows: str) -> Op:
        residual, width = self.at[0], self.width
        if rows == COMPUTED:
            pattern = f"!places[{residual}]:buffer -> {name}[{residual} {width}]"
            return pointwise(name, pattern, "angles")
        ids = "!kinds" if rows == TYPES else f"!{name}_ids"
        role = "index" if rows == TYPES else "buffer"
        pattern = f"{ids}[{residual}]:{role}, *table[{rows} {width}] -> {name}[{residual} {width}]"
        return lookup(name, pattern)

    def _steps(self, axes: str) -> list[Step]:
        residual, query = self.at
        width = self.width
        ids, tokens = f"[b {query}]:index", f"[b {query} {width}]"
        steps: list[Step] = [
            lambda x, y: lookup("token", f"!{x}{ids}, *{self.token}[v {width}] -> {y}{tokens}"),
            lambda x, y: view("scatter", f"{x}{tokens} -> {y}{axes}"),
        ]
        if Change.SCALE in self.changes:
            steps.append(lambda x, y: pointwise("scale", f"{x}{axes} -> {y}{axes}", "scale"))
        steps += [self._added(name, axes) for name in self.tables]
        if self.norm is not None:
            norm = self.norm
            steps.append(lambda x, y: norm.op("norm", f"{x}{axes}", f"{y}{axes}", row=width))
        if Change.DROP in self.changes:
            steps.append(lambda x, y: dropout("dropout", f"{x}{axes} -> {y}{axes}"))
        if width != "e":
            out = f"[b {residual} e]"
            weights = f"*w[{width} e] + *bias[e]"
            steps.append(lambda x, y: einsum("project", f"{x}{axes}, {weights} -> {y}{out}"))
        return steps

    def _added(self, name: str, axes: str) -> Step:
        table = f"{name}[{self.at[0]} {self.width}]"
        return lambda x, y: pointwise(f"add_{name}", f"{x}{axes}, {table} -> {y}{axes}", "add")
