"""Blocks whose patches attend to the same place over time, then to others of their frame.

As TimeSformer's divided attention (Bertasius and others, 2021); the class token takes part in every
frame, and the mean of what it becomes is its own.

Axes: as in an encoder; n_v patches of all frames, r_c those with a class token for every frame;
u_s places of all videos, r_s, l_s and t_s frames of a place; u_f frames of all videos, r_f, l_f and
t_f positions of a frame; e_i the width of what is projected once more.
"""

from sympy import Expr

from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.ops.declare import Op, axes, dropout, einsum, pointwise, scope, view
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact

AXES = axes(
    "n_v token residual, r_c token residual, u_s batch routed, r_s token residual, "
    "l_s token query, t_s key-token, u_f batch routed, r_f token residual, l_f token query, "
    "t_f key-token, e_i inner"
)


def sizes(batch: Expr | int, frames: int, patches: int, width: int) -> dict[str, Expr | int]:
    """Return the sizes of the axes of videos of so many frames, of so many patches each."""
    own: dict[str, Expr | int] = {"n_v": frames * patches, "r_c": frames * (patches + 1)}
    own |= {"u_s": exact(batch) * patches, "u_f": exact(batch) * frames, "n_time": frames}
    own["e_i"] = width
    own |= dict.fromkeys(("r_s", "l_s", "t_s"), frames)
    return own | dict.fromkeys(("r_f", "l_f", "t_f"), patches + 1)


@dataclass(frozen=True)
class Divided(Encoder):
    """An encoder of videos whose attention is divided into that over time and that over space."""

    def block(self, *, bare: bool = False, windowed: bool = False) -> tuple[Op, ...]:  # noqa: ARG002
        """Declare one block from x[b r e] to y[b r e]."""
        return (
            pointwise("patches", "x[b r e] -> moving[b n_v e]", "copy", laid="r"),
            *self._attended("time", "moving[b n_v e]", "over_time[b n_v e]", "s"),
            einsum("dense", "over_time[b n_v e], *w[e e_i] + *bias[e_i] -> dense[b n_v e_i]"),
            view("dense_back", "dense[b n_v e_i] -> change[b n_v e]"),
            pointwise("add_time", "moving[b n_v e], change[b n_v e] -> timed[b n_v e]", "add"),
            pointwise(
                "classes", "timed[b n_v e], x[b r e] -> framed[b r_c e]", "copy", laid="n_v r"
            ),
            *self._attended("space", "framed[b r_c e]", "over_space[b r_c e]", "f"),
            pointwise("mean", "over_space[b r_c e] -> seen[b r e]", "copy", laid="r_c"),
            pointwise("class", "timed[b n_v e], x[b r e] -> stream[b r e]", "copy", laid="n_v"),
            pointwise("add_space", "stream[b r e], seen[b r e] -> middle[b r e]", "add"),
            *self.branch.around("mlp", self.perceptron.ops(), "middle", "y"),
        )

    def _attended(self, path: str, taken: str, result: str, letter: str) -> tuple[Op, ...]:
        names = {"b": f"u_{letter}", "r": f"r_{letter}", "l": f"l_{letter}", "t": f"t_{letter}"}
        rows = f"[u_{letter} r_{letter} e]"
        drop = (dropout("dropout", "summed[b r e] -> y[b r e]"),) if self.branch.drops else ()
        inner = (
            Norm.LAYER.op("norm", "x[b r e]", "entry[b r e]"),
            *scope("attention", self.attention.ops(), x="entry", y="summed" if drop else "y"),
            *drop,
        )
        return (
            view(f"{path}.sequences", f"{taken} -> {path}.parts{rows}"),
            *scope(path, retitled(inner, names), x=f"{path}.parts", y=f"{path}.outcome"),
            view(f"{path}.whole", f"{path}.outcome{rows} -> {result}"),
        )
