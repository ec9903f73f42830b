"""Lightning attention: linear attention in blocks, with a fixed decay for every head.

Axes: b sequences, r residual positions, l positions, e embedding, h heads, d key width, v value
width (as wide); y whole blocks, all but the last block; w and u whether there is a block before
the last one, or none; x whole blocks after the first; i and j positions of a whole block (out, in),
o and m those of the last block, one a single place.

Nothing reads the state that the last block leaves in training, and the first meets an empty one, so
neither has a gradient.
"""

from symbolic_cost.layers.duality import Form
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, cache, einsum, pointwise, scan, view
from symbolic_cost.records import dataclass

AXES = axes(
    "b batch, r token residual, l token query, e hidden, h head, d width, v width, y whole, "
    "w whole, u whole, x whole, i whole, j whole, o whole, m whole, one whole"
)


@dataclass(frozen=True)
class Lightning:
    """The layer from x[b r e] to y[b r e].

    Args:
        form: in blocks of positions, or one after the other.
        function: of queries, keys and values.
    """

    form: Form = Form.CHUNKED
    function: str = "silu"

    def ops(self) -> tuple[Op, ...]:
        heads = "[b l h v]"
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            *(
                op
                for name, width in (("q", "d"), ("k", "d"), ("v", "v"))
                for op in self._part(name, width)
            ),
            *(_blocks() if self.form is Form.CHUNKED else _steps()),
            Norm.RMS.op("inner_norm", f"read{heads}", f"normed{heads}", row="h v"),
            einsum("gate", f"full[b l e], *w[e h v] -> gate{heads}"),
            pointwise("open", f"gate{heads} -> opened{heads}", "sigmoid"),
            pointwise("mul", f"normed{heads}, opened{heads} -> gated{heads}", "mul"),
            einsum("out", f"gated{heads}, *w[h v e] -> summed[b l e]"),
            view("scatter", "summed[b l e] -> y[b r e]"),
        )

    def _part(self, name: str, width: str) -> tuple[Op, ...]:
        axes = f"[b l h {width}]"
        return (
            einsum(name, f"full[b l e], *w[e h {width}] -> plain_{name}{axes}"),
            pointwise(f"act_{name}", f"plain_{name}{axes} -> {name}{axes}", self.function),
        )


def _steps() -> tuple[Op, ...]:
    state = "[b l h d v]"
    return (
        einsum("gain", f"k[b l h d], v[b l h v] -> gain{state}"),
        scan("scan", f"!fade{state}, gain{state} -> states{state}", along="l"),
        cache("state", f"states{state} -> known{state}", kept="b one h d v"),
        einsum("far", f"q[b l h d], known{state} -> read[b l h v]"),
    )


def _blocks() -> tuple[Op, ...]:
    return (*_cut(), *_inside(), *_states(), *_reads())


def _cut() -> tuple[Op, ...]:
    """Declare whole blocks, and what remains for the last one."""
    places = {"q": ("i", "o", "d"), "k": ("j", "m", "d"), "v": ("j", "m", "v")}
    return tuple(
        pointwise(
            f"cut_{name}",
            f"{name}[b l h {width}] -> many_{name}[b y {whole} h {width}], "
            f"last_{name}[b one {last} h {width}]",
            "copy",
            laid="l",
        )
        for name, (whole, last, width) in places.items()
    )


def _inside() -> tuple[Op, ...]:
    """Declare what positions of a block read of earlier ones of the same block."""
    return tuple(
        op
        for name, block, out, place in (("many", "y", "i", "j"), ("last", "one", "o", "m"))
        for op in (
            einsum(
                f"{name}_scores",
                f"{name}_q[b {block} {out} h d], {name}_k[b {block} {place} h d] "
                f"-> {name}_scores[b {block} h {out} {place}]",
            ),
            pointwise(
                f"{name}_fade",
                f"{name}_scores[b {block} h {out} {place}] "
                f"-> {name}_near[b {block} h {out} {place}]",
                "scale",
            ),
            einsum(
                f"{name}_attend",
                f"{name}_near[b {block} h {out} {place}], {name}_v[b {block} {place} h v] "
                f"-> {name}_inner[b {block} {out} h v]",
            ),
        )
    )


def _states() -> tuple[Op, ...]:
    state = "h d v"
    return (
        einsum("gain", f"many_k[b y j h d], many_v[b y j h v] -> gain[b y {state}]"),
        scan("scan", f"!fade[b y {state}], gain[b y {state}] -> states[b y {state}]", along="y"),
        einsum(
            "last_gain",
            f"!last_k[b one m h d], !last_v[b one m h v] -> last_gain[b one {state}]",
            frozen=True,
        ),
        pointwise(
            "last_state",
            f"states[b y {state}], last_gain[b one {state}] -> left[b one {state}]",
            "add",
            laid="y",
        ),
        cache("state", f"left[b one {state}] -> known[b one {state}]", kept=f"b one {state}"),
    )


def _reads() -> tuple[Op, ...]:
    """Declare what blocks read of the states before them: the first of an empty one."""
    state = "h d v"
    cases = {
        "first": ("many_q[b y i h d]", "w i", "!empty"),
        "later": ("many_q[b y i h d]", "x i", "states"),
        "end": ("last_q[b one o h d]", "w o", "states"),
        "only": ("last_q[b one o h d]", "u o", "!nothing"),
    }
    reads: list[Op] = []
    for name, (queries, places, source) in cases.items():
        block, place = places.split()
        laid = "y" if queries.startswith("many") else "one"
        reads.append(
            pointwise(
                f"{name}_q", f"{queries} -> {name}_q[b {block} {place} h d]", "copy", laid=laid
            )
        )
        start = f"{source}[b {block} {state}]"
        if source == "states":
            start = f"{name}_start[b {block} {state}]"
            reads.append(
                pointwise(f"{name}_start", f"states[b y {state}] -> {start}", "copy", laid="y")
            )
        reads.append(
            einsum(
                f"{name}_read",
                f"{name}_q[b {block} {place} h d], {start} -> {name}_far[b {block} {place} h v]",
            )
        )
    parts = "many_inner[b y i h v], last_inner[b one o h v], " + ", ".join(
        f"{name}_far[b {places} h v]" for name, (_, places, _) in cases.items()
    )
    joined = pointwise(
        "join", f"{parts}, known[b one {state}] -> read[b l h v]", "add", laid="y i one o w x u d"
    )
    return (*reads, joined)
