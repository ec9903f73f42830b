"""The attention core of heads that are padded to a width that kernels like better.

Axes: as in the core; d_x width of padded heads.
"""

from symbolic_cost.layers.attention_core import FULL, PLAIN, AttentionCore, Heads, Positions
from symbolic_cost.ops.declare import Op, axes, pointwise
from symbolic_cost.records import dataclass, replace

AXES = axes("d_x width")


@dataclass(frozen=True)
class PaddedCore(AttentionCore):
    """Attention from q, keys and values to context, of whose heads some features are zero."""

    def ops(
        self, heads: Heads = PLAIN, at: Positions = FULL, *, value: str = "d"
    ) -> tuple[Op, ...]:
        """Declare the core between a padding and a cut."""
        own = {"q": f"{at.query} {heads.query}", "keys": f"{at.key} {heads.key}"}
        own |= {"values": own["keys"], "context": own["q"]}
        pads = (
            pointwise(
                f"pad_{name}", f"{name}[b {rows} d] -> wide_{name}[b {rows} d_x]", "copy", laid="d"
            )
            for name, rows in own.items()
            if name != "context"
        )
        rows = own["context"]
        cut = f"wide_context[b {rows} d_x] -> context[b {rows} d]"
        return (
            *pads,
            *(_wide(op, tuple(own)) for op in super().ops(heads, at, value=value)),
            pointwise("cut", cut, "copy", laid="d_x"),
        )


def _wide(op: Op, names: tuple[str, ...]) -> Op:

    def axes(old: tuple[str, ...]) -> tuple[str, ...]:
        return tuple("d_x" if axis == "d" else axis for axis in old)

    return op.mapped(
        lambda o: replace(
            o, tensor=f"wide_{o.tensor}" if o.tensor in names else o.tensor, axes=axes(o.axes)
        ),
        axes,
    )
