"""Embeddings of encoders: a token table, further tables that are added, a norm, a projection.

Axes: b sequences, l and r positions, v vocabulary, p learned positions, types token types, e
embedding, w_t width of the tables where it is not the embedding's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto

from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, dropout, einsum, lookup, pointwise, stored, view
from symbolic_cost.records import dataclass, field, replace

AXES = axes(
    "b batch, r token residual, l token query, v vocabulary, p whole, types whole, e hidden, "
    "w_t latent"
)

TYPES = "types"
PLACES = "p"
COMPUTED = "computed"
"""What is added by name of the table's rows; COMPUTED positions are a constant table."""

BERT_TABLES: Mapping[str, str] = {"type": TYPES, "position": PLACES}


class Change(Flag):
    """What happens to embeddings."""

    NONE = 0
    SCALE = auto()
    """Those of tokens are multiplied by a constant."""
    DROP = auto()
    """The sum is dropped out."""
    LATE = auto()
    """It is dropped out once it is projected."""


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
        axes = f"[b {self.at[0]} {self.width}]"
        steps = [*self._tokens(axes), *self._sums(axes), *self._projected(axes)]
        token, *rest = chain("ids", steps, "x")
        return (token, *self.further(), *rest)

    def further(self) -> tuple[Op, ...]:
        """Declare the rows of the tables that are added."""
        return tuple(self._rows(name, rows) for name, rows in self.tables.items())

    def _rows(self, name: str, rows: str) -> Op:
        residual, width = self.at[0], self.width
        if rows == COMPUTED:
            pattern = f"!places[{residual}]:buffer -> {name}[{residual} {width}]"
            return pointwise(name, pattern, "angles")
        ids = "!kinds" if rows == TYPES else f"!{name}_ids"
        role = "index" if rows == TYPES else "buffer"
        pattern = f"{ids}[{residual}]:{role}, *table[{rows} {width}] -> {name}[{residual} {width}]"
        return lookup(name, pattern)

    def _tokens(self, axes: str) -> list[Step]:
        ids, tokens = f"[b {self.at[1]}]:index", f"[b {self.at[1]} {self.width}]"
        table = f"*{self.token}[v {self.width}]"
        steps: list[Step] = [
            lambda x, y: lookup("token", f"!{x}{ids}, {table} -> {y}{tokens}"),
            lambda x, y: view("scatter", f"{x}{tokens} -> {y}{axes}"),
        ]
        if Change.SCALE in self.changes:
            steps.append(lambda x, y: pointwise("scale", f"{x}{axes} -> {y}{axes}", "scale"))
        return steps

    def _sums(self, axes: str) -> list[Step]:
        width = axes.strip("[]").split()[-1]
        steps = [self._added(name, f"{self.at[0]} {width}", axes) for name in self.tables]
        if self.norm is not None:
            norm = self.norm
            steps.append(lambda x, y: norm.op("norm", f"{x}{axes}", f"{y}{axes}", row=width))
        if Change.DROP in self.changes:
            steps.append(lambda x, y: dropout("dropout", f"{x}{axes} -> {y}{axes}"))
        return steps

    def _projected(self, axes: str) -> list[Step]:
        if self.width == "e":
            return []
        pattern = f"{{}}{axes}, *w[{self.width} e] + *bias[e] -> {{}}[b {self.at[0]} e]"
        late = f"{{}}[b {self.at[0]} e] -> {{}}[b {self.at[0]} e]"
        steps: list[Step] = [
            lambda x, y: einsum("project", pattern.format(x, y)),
            lambda x, y: dropout("dropout_late", late.format(x, y)),
        ]
        return steps if Change.LATE in self.changes else steps[:1]

    def _added(self, name: str, own: str, axes: str) -> Step:
        return lambda x, y: pointwise(
            f"add_{name}", f"{x}{axes}, {name}[{own}] -> {y}{axes}", "add"
        )


@dataclass(frozen=True)
class Mapped(Words):
    """Embedding whose tokens, side by side with other tables, are projected before the sum.

    As RoCBert (Su and others, 2022) puts glyphs and sounds beside tokens.

    Args:
        beside: axes of the rows and the width of further tables, by name.
    """

    width: str = "w"
    beside: Mapping[str, str] = field(default_factory=dict)

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; the product of what is joined is the sum of those of its parts."""
        rows, axes = "b r", "[b r e]"
        pieces: list[Op] = []
        for name, (number, width) in ((n, a.split()) for n, a in self.beside.items()):
            ids = f"!{name}_ids[{rows}]:index, *table[{number} {width}]"
            pieces += [
                lookup(f"{name}.rows", f"{ids} -> {name}.rows[{rows} {width}]"),
                einsum(
                    f"{name}.map", f"{name}.rows[{rows} {width}], *w[{width} e] -> {name}{axes}"
                ),
            ]
        tokens = self._tokens(f"[{rows} {self.width}]")
        steps = [
            *(tokens + self._projected(f"[{rows} {self.width}]")),
            *(self._added(name, f"{rows} e", axes) for name in self.beside),
            *self._sums(axes),
        ]
        token, *rest = chain("ids", steps, "x")
        return (token, *replace(self, width="e").further(), *pieces, *rest)


@dataclass(frozen=True)
class Paths(Words):
    """Embedding with a perceptron of the tags and places on the way to each token in a page.

    As MarkupLM (Li and others, 2022). Axes: n_dep steps of a way, n_tag tags, n_sub places among
    tags that are alike, w_u width of both, f_x of the perceptron.
    """

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; a product of ways is stored and not used."""
        rows, axes = "b r", "[b r e]"
        unit, wide = f"[{rows} n_dep w_u]", f"[{rows} f_x]"
        dropped = Change.DROP in self.changes
        drop = (dropout("path.dropout", f"path.a{wide} -> path.d{wide}"),) if dropped else ()
        pieces = (
            *(
                lookup(
                    f"{name}.rows",
                    f"!{name}_ids[{rows} n_dep]:index, *table[n_dep {number} w_u] -> {name}{unit}",
                )
                for name, number in (("tags", "n_tag"), ("places", "n_sub"))
            ),
            pointwise("path.add", f"tags{unit}, places{unit} -> units{unit}", "add"),
            einsum("path.inner", f"units{unit}, *w[n_dep w_u f_x] + *bias[f_x] -> path.u{wide}"),
            pointwise("path.act", f"path.u{wide} -> path.a{wide}", "relu"),
            *drop,
            einsum(
                "path.outer",
                f"path.{'d' if dropped else 'a'}{wide}, *w[f_x e] + *bias[e] -> path{axes}",
            ),
            stored("path.whole", w="n_dep w_u e", bias="e"),
        )
        path = self._added("path", f"{rows} e", axes)
        token, *rest = chain("ids", [*self._tokens(axes), path, *self._sums(axes)], "x")
        return (token, *self.further(), *pieces, *rest)
