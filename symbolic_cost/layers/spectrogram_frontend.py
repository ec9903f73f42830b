"""Spectrograms thinned out by convolutions over time and frequency.

Axes: b recordings, ch the one channel of a spectrogram, y0 y1 ... frames and x0 x1 ... features
before and after every convolution, c1 c2 ... its channels, s_y and s_x its kernel; r positions of
the residual stream, e embedding.

Source: rekesh-2023, section 2.
"""

from sympy import Expr, floor

from symbolic_cost.ops.declare import Glossary, Op, axes, conv, dropout, einsum, pointwise, view
from symbolic_cost.records import dataclass

Sizes = dict[str, Expr | int]


@dataclass(frozen=True)
class Thinned:
    """Embedding from a spectrogram to x[b r e].

    Args:
        layers: convolutions; all but the first are of single channels, and a product follows.
        steps: what ends it: "dropout", "scale".
    """

    layers: int = 3
    steps: tuple[str, ...] = ()

    def ops(self) -> tuple[Op, ...]:
        ops: list[Op] = []
        x = "!wave[b ch y0 x0]"
        for i in range(1, self.layers + 1):
            maps, old = f"y{i} x{i}", f"c{i - 1}"
            u, a = f"u{i}[b c{i} {maps}]", f"a{i}[b c{i} {maps}]"
            if i == 1:
                ops.append(conv("conv1", f"{x}, *w[ch c1 s_y s_x] + *bias[c1] -> {u}"))
            else:
                own = f"d{i}[b {old} {maps}]"
                ops += [
                    conv(f"conv{i}", f"{x}, *w[{old} s_y s_x] + *bias[{old}] -> {own}"),
                    einsum(f"mix{i}", f"{own}, *w[{old} c{i}] + *bias[c{i}] -> {u}"),
                ]
            ops.append(pointwise(f"act{i}", f"{u} -> {a}", "relu"))
            x = a
        end = self.layers
        last = f"{x}, *w[c{end} x{end} e] + *bias[e] -> frames[b y{end} e]"
        ops += [einsum("project", last), view("stream", f"frames[b y{end} e] -> stream0[b r e]")]
        for i, step in enumerate(self.steps):
            pair = f"stream{i}[b r e] -> stream{i + 1}[b r e]"
            ops.append(dropout(step, pair) if step == "dropout" else pointwise(step, pair, step))
        return (*ops, view("end", f"stream{len(self.steps)}[b r e] -> x[b r e]"))

    def sizes(
        self, kernel: int, stride: int, channels: int, features: int, length: Expr, *, padding: int
    ) -> tuple[Sizes, Glossary, Expr]:
        """Return the sizes of its axes, their roles, and the frames at the end.

        Args:
            kernel: of every convolution, as wide as long.
            stride: of every convolution.
            channels: that the convolutions make.
            features: of a frame of the spectrogram.
            length: of the spectrogram [frames].
            padding: of a convolution, on both sides together.
        """
        sizes: Sizes = {"ch": 1, "s_y": kernel, "s_x": kernel, "y0": length, "x0": features}
        text, wide = "b batch, r token residual, e hidden, ch whole, s_y whole, s_x whole", features
        text += ", y0 token patch, x0 whole"
        around = padding - kernel
        for i in range(1, self.layers + 1):
            length, wide = floor((length + around) / stride) + 1, (wide + around) // stride + 1
            sizes |= {f"c{i}": channels, f"y{i}": length, f"x{i}": wide}
            text += f", c{i} whole, y{i} token patch, x{i} whole"
        return sizes, axes(text), length
