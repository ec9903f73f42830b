"""Attention of the positions of a map inside of windows, as hierarchical networks have it.

Axes: as the trail makes them; n windows, l and t positions of one, p rows of a table of distances.
"""

from math import prod

from symbolic_cost.errors import InputError
from symbolic_cost.layers.conv import Maps, Trail
from symbolic_cost.ops.declare import Op, einsum, lookup, norm, pointwise, softmax, view
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Windowed:
    """Attention inside of windows, with a learned bias per distance.

    Args:
        side: of a window, where the map is larger.
        least: side of a window at least, to which smaller maps are padded.
        channels: that come out; as many as come in if zero.
        bias: whether query, key and value have one.
        computed: width of the perceptron that makes the biases of distances and goes with
            scores of cosines and keys without a bias; a table holds them if zero.
    """

    heads: int
    side: int
    bias: bool = True
    computed: int = 0
    least: int = 0
    channels: int = 0

    def declare(self, name: str, trail: Trail) -> None:
        """Declare the layer; maps that windows do not divide are padded.

        Raises:
            InputError: there are no two axes of positions.
        """
        start = trail.at
        batch, channel, *sides = start.axes
        if len(sides) != len("yx"):
            raise InputError(f"{name}: windows lie on maps, of two axes and not {len(sides)}")
        lengths = [trail.length(axis) for axis in sides]
        side = max(min(self.side, *lengths), self.least)
        n = trail.new_axis("n", prod(-(-length // side) for length in lengths))
        l, t = trail.new_axis("l", side**2), trail.new_axis("t", side**2)
        h, d = trail.heads(self.heads, trail.length(channel))
        axes, to = (batch, n, l, channel), f"{name}.part"
        part = trail.made(f"{name}.windows", "copy", start, axes=axes, laid=sides, to=to)
        rows, there = (f"{batch} {n} {x} {h} {d}" for x in (l, t))
        for letter in "qkv":
            self._projected(name, letter, part, (batch, n, l, h, d), trail)
        trail.ops += [
            *(view(f"{name}.{x}", f"{name}.{x[0]}[{rows}] -> {name}.{x}[{there}]") for x in _SEEN),
            *self._distances(name, trail, h, f"{l} {t}"),
            *self._core(name, rows, there),
        ]
        context = Maps(f"{name}.c", (batch, n, l, h, d))
        new = trail.new_axis("c", self.channels or trail.length(channel))
        done = (batch, n, l, new)
        trail.at = trail.product(f"{name}.proj", context, done, to=f"{name}.done")
        trail.pointwise(f"{name}.back", "copy", axes=(batch, new, *sides), laid=(n, l), to=name)

    def _projected(
        self, name: str, letter: str, part: Maps, rows: tuple[str, ...], trail: Trail
    ) -> None:
        """Declare queries, keys or values; for cosines the first two are of length one."""
        cosine = self.computed and letter != "v"
        bias = self.bias and not (cosine and letter == "k")
        own, to = f"{name}.{letter}", f"{name}.plain_{letter}" if cosine else ""
        plain = trail.product(own, part, rows, to=to, bias=bias)
        if cosine:
            unit = norm(
                f"{name}.unit_{letter}", f"{plain} -> {Maps(own, rows)}", "rms_norm_bare", rows[-1]
            )
            trail.ops.append(unit)

    def _distances(self, name: str, trail: Trail, h: str, pairs: str) -> tuple[Op, ...]:
        rows = trail.new_axis("p", (2 * self.side - 1) ** 2)
        bias = f"{name}.bias[{h} {pairs}]"
        if not self.computed:
            pattern = f"!{name}.buckets[{pairs}]:buffer, *table[{rows} {h}] -> {bias}"
            return (lookup(f"{name}.table", pattern),)
        two, wide = trail.new_axis("m", 2), trail.new_axis("f", self.computed)
        first = f"!{name}.distances[{rows} {two}]:buffer, *w[{two} {wide}] + *bias[{wide}]"
        u, a = (f"{name}.of_{x}[{rows} {wide}]" for x in "ua")
        of_all = f"{name}.of_all[{rows} {h}]"
        return (
            einsum(f"{name}.fc1", f"{first} -> {u}"),
            pointwise(f"{name}.relu", f"{u} -> {a}", "relu"),
            einsum(f"{name}.fc2", f"{a}, *w[{wide} {h}] -> {of_all}"),
            pointwise(f"{name}.spread", f"{of_all} -> {bias}", "sigmoid", laid=rows),
        )

    def _core(self, name: str, rows: str, there: str) -> tuple[Op, ...]:
        batch, n, l, h, _ = rows.split()
        t = there.split()[2]
        square = f"[{batch} {n} {h} {l} {t}]"
        plain = f"{name}.{'plain' if self.computed else 'scores'}{square}"
        scores, biased, p = (f"{name}.{x}{square}" for x in ("scores", "biased", "p"))
        scaled = pointwise(f"{name}.scale", f"{plain}, *scale[{h}] -> {scores}", "mul")
        return (
            einsum(f"{name}.scored", f"{name}.q[{rows}], {name}.keys[{there}] -> {plain}"),
            *((scaled,) if self.computed else ()),
            pointwise(f"{name}.add", f"{scores}, {name}.bias[{h} {l} {t}] -> {biased}", "add"),
            softmax(f"{name}.softmax", f"{biased} -> {p}", row=t),
            einsum(f"{name}.attend", f"{p}, {name}.values[{there}] -> {name}.c[{rows}]"),
        )


@dataclass(frozen=True)
class Looked(Windowed):
    """Attention inside of windows whose biases are looked up by products with ones and zeros."""

    def _distances(self, name: str, trail: Trail, h: str, pairs: str) -> tuple[Op, ...]:
        far = [trail.new_axis("p", 2 * self.side - 1) for _ in "yx"]
        y, x, y_seen, x_seen = (trail.new_axis("w", self.side) for _ in range(4))
        rows = f"{name}.rows[{h} {y} {y_seen} {far[1]}]"
        table = f"*table[{h} {' '.join(far)}], !{name}.ones_y[{y} {y_seen} {far[0]}]:buffer"
        ones = f"!{name}.ones_x[{x} {x_seen} {far[1]}]:buffer"
        four = f"{name}.four[{h} {y} {x} {y_seen} {x_seen}]"
        laid = f"{y} {x} {y_seen} {x_seen}"
        return (
            einsum(f"{name}.along_y", f"{table} -> {rows}"),
            einsum(f"{name}.along_x", f"{rows}, {ones} -> {four}"),
            pointwise(f"{name}.bias", f"{four} -> {name}.bias[{h} {pairs}]", "copy", laid=laid),
        )


_SEEN = ("keys", "values")
