"""Tokens with their boxes on a page: where each stands, how wide and how high it is.

Axes: as in an encoder; n_page places along a page, w_c width of the tables of places and w_s of
those of widths and heights, n_2d buckets of distances on a page; e_y, d_y and f_y widths of a
stream of boxes beside that of the tokens.

Sources: huang-2022, section 3.2; wang-2022, section 3.2.
"""

from symbolic_cost.axes import axes
from symbolic_cost.layers.attention import Attention
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.chain import chain
from symbolic_cost.layers.embeddings import Change, Words
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, dropout, einsum, lookup, pointwise, softmax, unread, view
from symbolic_cost.records import dataclass, replace

AXES = axes("w_b latent, d_y width, f_y inner, e_y hidden")

_RESULTS = {"": "y", "_y": "y_near"}
_SIDES = {"left": "@page_x", "upper": "@page_y", "right": "@page_x", "lower": "@page_y"}


def boxes() -> tuple[Op, ...]:
    """Declare what four sides, a height and a width give side by side, boxes[b r e]."""
    tables = {name: (table, "w_c") for name, table in _SIDES.items()}
    tables |= dict.fromkeys(("height", "width"), ("table", "w_s"))
    rows = [f"box.{name}[b r {width}]" for name, (_, width) in tables.items()]
    return (
        *(
            lookup(f"box.{name}", f"!{name}_ids[b r]:index, *{table}[n_page {width}] -> {row}")
            for (name, (table, width)), row in zip(tables.items(), rows, strict=True)
        ),
        pointwise("box", f"{', '.join(rows)} -> boxes[b r e]", "copy", laid="w_c w_s"),
    )


@dataclass(frozen=True)
class Page(Words):
    """Embedding to which that of the boxes is added."""

    def ops(self) -> tuple[Op, ...]:
        added = self._added("boxes", "b r e", "[b r e]")
        steps = [*self._tokens("[b r e]"), added, *self._sums("[b r e]")]
        token, *rest = chain("ids", steps, "x")
        return (token, *self.further(), *boxes(), *rest)


@dataclass(frozen=True)
class Beside(Words):
    """Embedding to x[b r e], and one of the boxes to near[b r e_y]."""

    def ops(self) -> tuple[Op, ...]:
        dropped = Change.DROP in self.changes
        fine = "fine[b r e_y]" if dropped else "near[b r e_y]"
        drop = (dropout("near.dropout", f"{fine} -> near[b r e_y]"),) if dropped else ()
        places = "!box_ids[r]:buffer, *table[p e_y] -> box.place[r e_y]"
        return (
            *super().ops(),
            *boxes(),
            einsum("box.project", "boxes[b r e], *w[e e_y] + *bias[e_y] -> narrow[b r e_y]"),
            lookup("box.place", places),
            pointwise("box.add", "narrow[b r e_y], box.place[r e_y] -> placed[b r e_y]", "add"),
            Norm.LAYER.op("box.norm", "placed[b r e_y]", fine, row="e_y"),
            *drop,
        )


@dataclass(frozen=True)
class OnPage(Attention):
    """Self-attention from x[b r e] to y[b r e] whose scores have biases by distance on the page."""

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer; biases differ by sequence."""
        square = "[b h l t]"
        added = f"core.scores{square}, !position[b l t h] -> core.biased{square}"
        bias = replace(pointwise("core.bias", added, "add"), core="core")
        return tuple(bias if op.path == bias.path else op for op in super().ops())

    def biases(self) -> tuple[Op, ...]:
        """Declare position[b l t h]: of distances in the text, across the page and down.

        Their tables are not trained: Transformers reads them without gradients.
        """
        pair = "[b l t h]"
        across = (
            lookup(n, f"!{n}_ids[b l t]:index, *table[n_2d h] -> {n}{pair}")
            for n in ("across", "down")
        )
        return unread(
            (
                lookup("text", "!buckets[l t]:buffer, *table[n_rel h] -> text[l t h]"),
                *across,
                pointwise("sum", f"across{pair}, down{pair}, text[l t h] -> position{pair}", "add"),
            )
        )


@dataclass(frozen=True)
class Boxed(OnPage):
    """The same, where queries meet features of the distances between boxes.

    As in BROS (Hong and others, 2022). Axes: w_b waves of a distance.
    """

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""
        square = "[b h l t]"
        added = f"core.scores{square}, boxes{square} -> core.biased{square}"
        bias = replace(pointwise("core.bias", added, "add"), core="core")
        meet = einsum("boxes", f"q[b l h d], position[b l t d] -> boxes{square}")
        meet = replace(meet, core="core")
        return tuple(
            one for op in super().ops() for one in ((meet, bias) if op.path == bias.path else (op,))
        )

    def biases(self) -> tuple[Op, ...]:
        """Declare position[b l t d], learned features of distances."""
        return (einsum("project", "!waves[b l t w_b], *w[w_b d] -> position[b l t d]"),)


@dataclass(frozen=True)
class Pair(Attention):
    """Attention of tokens x[b r e] and of their boxes near[b r e_y], whose scores are added."""

    def both(self, *, last: bool) -> tuple[Op, ...]:
        """Declare both, to y[b r e] and y_near[b r e_y]; nothing reads the boxes' if `last`."""
        square = "[b h l t]"
        streams = {"": ("full", "e", "d"), "_y": ("page", "e_y", "d_y")}
        ops: list[Op] = [
            view("gather", "x[b r e] -> full[b l e]"),
            view("gather_near", "near[b r e_y] -> page[b l e_y]"),
        ]
        for end, (stream, e, d) in streams.items():
            ops += [self._product(name + end, stream, e, d) for name in "qk"]
            ops.append(view(f"keys{end}", f"k{end}[b l h {d}] -> keys{end}[b t h {d}]"))
            pair = f"q{end}[b l h {d}], keys{end}[b t h {d}]"
            ops.append(einsum(f"scores{end}", f"{pair} -> scores{end}{square}"))
        scores = f"scores{square}, scores_y{square} -> "
        for end, (stream, e, d) in streams.items():
            p = f"p{end}{square}"
            own = [
                self._product(f"v{end}", stream, e, d),
                view(f"values{end}", f"v{end}[b l h {d}] -> values{end}[b t h {d}]"),
                pointwise(f"sum{end}", f"{scores}both{end}{square}", "add"),
                softmax(f"softmax{end}", f"both{end}{square} -> {p}", row="t"),
            ]
            if Step.DROP in self.core.steps:
                own.append(dropout(f"drop{end}", f"{p} -> dropped{end}{square}"))
                p = f"dropped{end}{square}"
            seen = f"{p}, values{end}[b t h {d}] -> context{end}[b l h {d}]"
            own.append(einsum(f"attend{end}", seen))
            own += [
                einsum(
                    f"proj{end}",
                    f"context{end}[b l h {d}], *w[h {d} {e}] + *bias[{e}] -> summed{end}[b l {e}]",
                ),
                view(f"scatter{end}", f"summed{end}[b l {e}] -> {_RESULTS[end]}[b r {e}]"),
            ]
            ops += unread(own) if end and last else own
        return tuple(ops)

    @staticmethod
    def _product(name: str, stream: str, e: str, d: str) -> Op:
        return einsum(name, f"{stream}[b l {e}], *w[{e} h {d}] + *bias[h {d}] -> {name}[b l h {d}]")
