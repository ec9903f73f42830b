"""Blocks with an adapter for each language behind the perceptron, as in X-MOD.

Axes: as in an encoder; w_x width of an adapter, n_o other languages, whose adapters a batch in one
language does not meet.

Source: pfeiffer-2022, section 3.
"""

from symbolic_cost.layers.norm import Norm
from symbolic_cost.layers.residual import Outcome, Placing
from symbolic_cost.models.encoders.encoder import Encoder
from symbolic_cost.ops.declare import Op, dropout, einsum, pointwise, scope, stored
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Adapted(Encoder):
    """An encoder whose perceptrons are followed by an adapter.

    Args:
        entry: norm of what the adapter takes; LAYER_BARE where the perceptron's is used again.
        added: what the result is added to: what the adapter has "taken", once normalised, or what
            the perceptron has "summed".
        others: axis of other languages; empty without any.
    """

    entry: Norm | None = Norm.LAYER_BARE
    added: str = "taken"
    others: str = ""

    def block(self, *, bare: bool = False, windowed: bool = False) -> tuple[Op, ...]:  # noqa: ARG002
        """Declare one block from x[b r e] to y[b r e]; the last norm follows the adapter."""
        branch, post = self.branch, self.branch.placing is Placing.POST
        perceptron = replace(branch, placing=Placing.NONE if post else Placing.PRE)
        taken = "summed" if self.entry is None else "taken"
        norm = () if self.entry is None else (self.entry.op("norm", "x[b r e]", "y[b r e]"),)
        result = "adapted" if post else "y"
        return (
            *branch.around("attention", self.attention.ops(), "x", "middle"),
            *perceptron.around("mlp", self.perceptron.ops(), "middle", "summed"),
            *scope("adapter", norm, x="summed", y=taken),
            *scope(
                "adapter",
                self._adapter(),
                x=taken,
                residual=taken if self.added == "taken" else "summed",
                y=result,
            ),
            *(scope("mlp", (branch.normed("norm"),), x=result, y="y") if post else ()),
        )

    def _adapter(self) -> tuple[Op, ...]:
        drops = Outcome.DROP in self.branch.outcome
        drop = (dropout("dropout", "wide[b r e] -> dropped[b r e]"),) if drops else ()
        weights = {"down": "e w_x", "low": "w_x", "up": "w_x e", "high": "e"}
        kept = {name: f"{self.others} {axes}" for name, axes in weights.items()}
        added = "dropped" if drops else "wide"
        return (
            einsum("down", "x[b r e], *w[e w_x] + *bias[w_x] -> u[b r w_x]"),
            pointwise("act", "u[b r w_x] -> a[b r w_x]", self.perceptron.function),
            einsum("up", "a[b r w_x], *w[w_x e] + *bias[e] -> wide[b r e]"),
            *drop,
            pointwise("residual", f"{added}[b r e], residual[b r e] -> y[b r e]", "add"),
            *((stored("others", **kept),) if self.others else ()),
        )
