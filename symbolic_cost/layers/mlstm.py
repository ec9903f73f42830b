"""xLSTM's matrix memory: gates of a token decide what its key and value write, and what stays.

Axes: b sequences, r residual positions, l positions, e embedding, h heads, d key width, v value
width; y whole chunks, i and j positions of one (out, in), n positions after the last of them, one
a single place.

Chunks are products of matrices; what does not fill one runs step by step, and so does decode. Both
divide by a second state, of keys alone, and scale by the largest exponent so far.
"""

from symbolic_cost.layers.attention import Bias
from symbolic_cost.layers.duality import Form
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, cache, einsum, pointwise, scan, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, e hidden, h head, d width, v width, y whole, "
    "i whole, j whole, n whole, one whole"
)

_PARTS = {"q": "h d", "k": "h d", "v": "h v", "gate": "h v"}
"""Axes of what may have a bias."""

_KEPT = {"states": "d v", "counts": "d"}
"""Axes of what a head keeps: of values by keys, and of keys alone."""


@dataclass(frozen=True)
class MatrixMemory:
    """The layer from x[b r e] to y[b r e].

    Args:
        form: in chunks of positions, or one after the other.
        bias: of all but the gates of the memory, which have one.
    """

    form: Form = Form.CHUNKED
    bias: Bias = Bias.NONE

    def ops(self) -> tuple[Op, ...]:
        heads, inner = "[b l h v]", Norm.LAYER_SCALE if self.bias is Bias.NONE else Norm.LAYER
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *(
                einsum(name, f"full[b l e], *w[e {axes}]{self._added(axes)} -> {name}[b l {axes}]")
                for name, axes in _PARTS.items()
            ),
            *(
                op
                for name in ("write", "keep")
                for op in (
                    einsum(f"{name}_gate", f"full[b l e], *w[e h] + *bias[h] -> raw_{name}[b l h]"),
                    pointwise(f"cap_{name}", f"raw_{name}[b l h] -> {name}[b l h]", "softcap"),
                )
            ),
            *(_chunks() if self.form is Form.CHUNKED else _steps("", "l")),
            inner.op("inner_norm", f"read{heads}", f"normed{heads}", row="v", scale="h v"),
            pointwise("open", f"gate{heads} -> opened{heads}", "sigmoid"),
            pointwise("mul", f"normed{heads}, opened{heads} -> gated{heads}", "mul"),
            einsum("out", f"gated{heads}, *w[h v e]{self._added('e')} -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _added(self, axes: str) -> str:
        return "" if self.bias is Bias.NONE else f" + *bias[{axes}]"


def _steps(part: str, place: str, start: str = "") -> tuple[Op, ...]:
    """Declare positions one after the other.

    Args:
        part: before the names of what they take and of what they give.
        place: axis of the positions.
        start: axes before those of a head of the states that they begin with, if of any.
    """
    gates, keys, values = f"[b {place} h]", f"[b {place} h d]", f"[b {place} h v]"
    state = f"[b {place} h d v]"
    top, scaled = f"{part}top{gates}", f"{part}scaled{gates}"
    return (
        pointwise(f"{part}scale", f"{part}write{gates}, {part}keep{gates} -> {top}", "mul"),
        pointwise(f"{part}weigh", f"{part}write{gates}, {top} -> {scaled}", "exp"),
        einsum(f"{part}gain", f"{part}k{keys}, {part}v{values} -> {part}gain{state}"),
        *_kept(part, place, "states", f"{part}gain{state}", start),
        *_kept(part, place, "counts", f"{part}k{keys}", start),
        cache(f"{part}largest", f"{top} -> {part}largest{gates}", kept="b one h"),
        einsum(f"{part}far", f"{part}q{keys}, {part}known_states{state} -> {part}sum{values}"),
        einsum(f"{part}count", f"{part}q{keys}, {part}known_counts{keys} -> {part}count{gates}"),
        pointwise(
            f"{part}divide",
            f"{part}sum{values}, {part}count{gates}, {part}largest{gates} -> {part}read{values}",
            "mul",
        ),
    )


def _kept(part: str, place: str, name: str, source: str, start: str) -> tuple[Op, ...]:
    """Declare the state of a name, which takes `source` at every position."""
    own = _KEPT[name]
    gates, axes = f"[b {place} h]", f"[b {place} h {own}]"
    before = f", {name}[{start} h {own}]" if start else ""
    taken, fade = f"{part}drive_{name}{axes}", f"{part}fade_{name}{axes}"
    return (
        pointwise(
            f"{part}drive_{name}",
            f"{source}, {part}scaled{gates}{before} -> {taken}",
            "mul",
            laid=start.removeprefix("b "),
        ),
        pointwise(f"{part}fade_{name}", f"{part}keep{gates}, {part}top{gates} -> {fade}", "exp"),
        scan(f"{part}{name}", f"{fade}, {taken} -> {part}new_{name}{axes}", along=place),
        cache(
            f"{part}kept_{name}",
            f"{part}new_{name}{axes} -> {part}known_{name}{axes}",
            kept=f"b one h {own}",
        ),
    )


def _chunks() -> tuple[Op, ...]:
    join = "many_read[b y i h v], last_read[b n h v] -> read[b l h v]"
    return (
        *_cut(),
        *_inside(),
        *_between(),
        *_steps("last_", "n", "b y"),
        pointwise("join", join, "copy", laid="y i n"),
    )


def _cut() -> tuple[Op, ...]:
    """Declare whole chunks, and what remains."""
    places = {"q": "i h d", "k": "j h d", "v": "j h v", "write": "j h", "keep": "i h"}
    return tuple(
        pointwise(
            f"cut_{name}",
            f"{name}[b l {axes[2:]}] -> many_{name}[b y {axes}], last_{name}[b n {axes[2:]}]",
            "copy",
            laid="l",
        )
        for name, axes in places.items()
    )


def _inside() -> tuple[Op, ...]:
    """Declare what positions of a chunk read of earlier ones of the same chunk."""
    square = "[b y h i j]"
    return (
        einsum("scores", f"many_q[b y i h d], many_k[b y j h d] -> scores{square}"),
        pointwise("fade", f"many_keep[b y i h], many_write[b y j h] -> fade{square}", "exp"),
        pointwise("fade_scores", f"scores{square}, fade{square} -> near{square}", "mul"),
        einsum("attend", f"near{square}, many_v[b y j h v] -> inner[b y i h v]"),
        pointwise("inner_count", f"near{square} -> inner_count[b y i h]", "sum", sums="j"),
    )


def _between() -> tuple[Op, ...]:
    """Declare what chunks leave, and what they read of the states before them."""
    keys, state = "[b y h d]", "[b y h d v]"
    return (
        pointwise("weigh", "many_write[b y j h] -> weight[b y j h]", "exp"),
        pointwise("weigh_k", "many_k[b y j h d], weight[b y j h] -> keys[b y j h d]", "mul"),
        einsum("gain", f"keys[b y j h d], many_v[b y j h v] -> gain{state}"),
        pointwise("key_sum", f"keys[b y j h d] -> key_sum{keys}", "sum", sums="j"),
        pointwise("fade_states", f"many_keep[b y i h] -> fade_states{state}", "exp", laid="i"),
        pointwise("fade_counts", f"many_keep[b y i h] -> fade_counts{keys}", "exp", laid="i"),
        scan("states", f"fade_states{state}, gain{state} -> states{state}", along="y"),
        scan("counts", f"fade_counts{keys}, key_sum{keys} -> counts{keys}", along="y"),
        pointwise("fade_q", "many_q[b y i h d], many_keep[b y i h] -> queries[b y i h d]", "mul"),
        einsum("far", f"queries[b y i h d], states{state} -> far[b y i h v]"),
        einsum("far_count", f"queries[b y i h d], counts{keys} -> far_count[b y i h]"),
        pointwise(
            "divide",
            "inner[b y i h v], far[b y i h v], inner_count[b y i h], far_count[b y i h] "
            "-> many_read[b y i h v]",
            "mul",
        ),
    )
