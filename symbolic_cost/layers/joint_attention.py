"""Attention of streams that see each other: text and image of a diffusion transformer.

Axes: b samples, e width of the streams, h heads or k groups of g, d head width; of every stream its
residual and its query positions; j query and t_j key positions of all of them, one stream after the
other.
"""

from collections.abc import Iterator

from symbolic_cost.layers.attention import Bias, Rotated, output
from symbolic_cost.layers.attention_core import PLAIN, AttentionCore, Heads, Positions, Step
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, einsum, joined, pointwise, scope, view
from symbolic_cost.records import dataclass, field

AXES = axes(
    "b batch, e hidden, h head, k head, g group, d width, r token residual, l token query, "
    "r_x token residual, l_x token query, r_j token residual, j token query, t key-token, "
    "t_x key-token, t_j key-token, r_v token residual, l_v token query, t_v key-token"
)


@dataclass(frozen=True)
class Stream:
    """A stream: its name, and its residual, query and key positions."""

    name: str
    residual: str
    query: str
    key: str

    @property
    def axes(self) -> tuple[str, str, str]:
        """Its positions."""
        return self.residual, self.query, self.key


IMAGE = Stream("image", "r", "l", "t")
TEXT = Stream("text", "r_x", "l_x", "t_x")
SHOWN = Stream("shown", "r_v", "l_v", "t_v")
"""An image that conditions, beside the text."""
JOINED = Stream("joined", "r_j", "j", "t_j")
"""Text and image as one."""


@dataclass(frozen=True)
class Joint:
    """Attention from a stream's x_image[b r e] to y_image[b r e], of all streams at once.

    Args:
        streams: in the order in which they stand.
        results: those of them that go on; the context of a single one is left as it is if none.
        norm: of the queries and keys, or None.
        row: axes along which it normalises: of every head, or of all.
        bias: which projections have one.
        rotated: how much of queries and keys is.
        heads: axes of those of queries, and of keys and values.
    """

    streams: tuple[Stream, ...]
    results: tuple[Stream, ...]
    norm: Norm | None = None
    bias: Bias = Bias.BOTH
    rotated: Rotated = Rotated.NOTHING
    row: str = "d"
    core: AttentionCore = field(default_factory=lambda: AttentionCore(steps=Step.NONE))
    heads: Heads = PLAIN

    def _of(self, name: str) -> str:
        """Return the axes of the heads of queries, or of keys and values."""
        return self.heads.query if name == "q" else self.heads.key

    @property
    def all_streams(self) -> Stream:
        """All streams."""
        return JOINED if len(self.streams) > 1 else self.streams[0]

    def ops(self) -> tuple[Op, ...]:
        whole = self.all_streams
        query, key, own = whole.query, whole.key, self.heads.key
        return (
            *(op for stream in self.streams for op in self._projected(stream)),
            *self._joined(),
            *(
                view(name, f"{name[0]}[b {query} {own} d] -> {name}[b {key} {own} d]")
                for name in ("keys", "values")
            ),
            *self.core.ops(self.heads, Positions(query=query, key=key)),
            *self._results(),
        )

    def _projected(self, stream: Stream) -> Iterator[Op]:
        own, rows = stream.name, f"b {stream.query}"
        yield view(f"{own}.gather", f"x_{own}[b {stream.residual} e] -> {own}.full[{rows} e]")
        for name in "qkv":
            h = self._of(name)
            bias = f" + *bias[{h} d]" if Bias.INNER in self.bias else ""
            normed = self.norm is not None and name != "v"
            plain = f"{own}.plain_{name}" if normed else f"{own}.{name}"
            yield einsum(
                f"{own}.{name}", f"{own}.full[{rows} e], *w[e {h} d]{bias} -> {plain}[{rows} {h} d]"
            )
            if normed and self.norm is not None:
                result = f"{own}.{name}[{rows} {h} d]"
                yield self.norm.op(
                    f"{own}.norm_{name}", f"{plain}[{rows} {h} d]", result, row=self.row
                )

    def _joined(self) -> Iterator[Op]:
        for name in "qkv":
            turned = self.rotated is not Rotated.NOTHING and name != "v"
            result = f"plain_{name}" if turned else name
            h = self._of(name)
            axes = f"[b {self.all_streams.query} {h} d]"
            parts = ", ".join(f"{s.name}.{name}[b {s.query} {h} d]" for s in self.streams)
            join = joined if len(self.streams) > 1 else view
            yield join(f"join_{name}", f"{parts} -> {result}{axes}")
            if turned:
                angles = f"!@cos[{self.all_streams.query} d], !@sin[{self.all_streams.query} d]"
                pattern = f"{result}{axes}, {angles} -> {name}{axes}"
                yield pointwise(f"rotate_{name}", pattern, "rotary")

    def _results(self) -> Iterator[Op]:
        if not self.results:
            return
        h = self.heads.query
        if len(self.streams) > 1:
            parts = ", ".join(f"{s.name}.context[b {s.query} {h} d]" for s in self.results)
            yield joined("part", f"context[b {self.all_streams.query} {h} d] -> {parts}")
        else:
            (own,) = self.results
            yield view(
                "part", f"context[b {own.query} {h} d] -> {own.name}.context[b {own.query} {h} d]"
            )
        for stream in self.results:
            at = Positions(stream.residual, stream.query)
            yield from scope(stream.name, output(at, h, bias=self.bias), y=f"y_{stream.name}")
