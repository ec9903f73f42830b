"""The attention core of grouped heads: scores, softmax, weighted sum.

Axes: b sequences, l query positions, `keys` key/value positions, k key/value heads, g query heads
of one key/value head, d head width of queries and keys, `value` head width of values.
"""

from __future__ import annotations

from dataclasses import dataclass

from symbolic_cost.axes import axes
from symbolic_cost.layers.attention import Core
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise, softmax
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.graph import scope
from symbolic_cost.ops.op import Op

AXES = axes(
    "b batch, l token query, t key-token, near key-token, window whole, k head, g group, d whole, "
    "d_v whole, r_kv latent"
)


@dataclass(frozen=True)
class GroupedCore:
    """Attention from q, keys and values to context[b l k g value].

    Args:
        core: how it runs.
        heads: axis of the key/value heads; empty where all heads share keys and values.
        repeated: whether keys and values are copied to every query head first.
        shared: whether keys and values have no group axis otherwise; else they have one already.
        sinks: whether every query head has a learned logit besides the keys'.
        single: whether the softmax runs in single precision.
        dropout: whether the probabilities are dropped out.
        precise: whether all of an eager core runs in single precision, dropout's noise included.
        keys: axis of the key positions.
        window: axis of the window of a sliding layer, if any.
        value: axis of the width of values.
    """

    core: Core = Core.EAGER
    heads: str = "k"
    repeated: bool = True
    shared: bool = True
    sinks: bool = False
    single: bool = True
    dropout: bool = False
    precise: bool = False
    keys: str = "t"
    window: str = ""
    value: str = "d"

    def ops(self) -> tuple[Op, ...]:
        """Declare the core from q[b l k g d], keys[b t k d] and values[b t k value]."""
        copied = self.repeated and self.shared and self.core is Core.EAGER
        heads = "k g" if copied or not self.shared else self.heads
        keys, values = ("many_keys", "many_values") if copied else ("keys", "values")
        context = f"context[b l k g {self.value}]"
        operands = (
            "q[b l k g d]",
            f"{keys}[b {self.keys} {heads} d]",
            f"{values}[b {self.keys} {heads} {self.value}]",
        )
        if self.core is Core.EAGER:
            ops = self._precise(operands, context) if self.precise else self._ops(operands, context)
            names = {name: name for name in ("q", keys, values, "context")}
            return (*(self._copies() if copied else ()), *scope("core", ops, **names))
        border = ", ".join(operands)
        sinks = ", *sinks[k g]" if self.sinks else ""
        ops = self._ops(operands, context)
        return (
            fused(
                "core",
                f"{border}{sinks} -> {context}",
                ops,
                saves=f"{border}, {context}, logsumexp[b l k g]:statistic",
                recompute=tuple(op.path for op in ops if op.path != "attend"),
            ),
        )

    def _copies(self) -> tuple[Op, ...]:
        t, value = self.keys, self.value
        return (
            pointwise("copy_keys", f"keys[b {t} k d] -> many_keys[b {t} k g d]", "copy"),
            pointwise(
                "copy_values", f"values[b {t} k {value}] -> many_values[b {t} k g {value}]", "copy"
            ),
        )

    def _precise(self, operands: tuple[str, ...], context: str) -> tuple[Op, ...]:
        """Declare the core between a cast to single precision and one back."""
        wide = tuple(f"single_{operand}:single" for operand in operands)
        return (
            *(
                pointwise(f"cast_{operand.partition('[')[0]}", f"{operand} -> {cast}", "copy")
                for operand, cast in zip(operands, wide, strict=True)
            ),
            *self._ops(wide, f"single_{context}:single"),
            pointwise("cast", f"single_{context}:single -> {context}", "copy"),
        )

    def _ops(self, operands: tuple[str, ...], context: str) -> tuple[Op, ...]:
        q, keys, values = operands
        square = f"[b k g l {self.keys}]" + (":single" if self.precise else "")
        pairs = f"l {self.keys}"
        sinks = ", *sinks[k g]" if self.sinks else ""
        single = self.single and not self.precise
        kept = "dropped" if self.dropout else "p"
        function = "dropout_noise" if self.precise else "dropout"
        drop = pointwise("dropout", f"p{square} -> dropped{square}", function)
        return (
            einsum("scores", f"{q}, {keys} -> scores{square}", pairs=pairs, window=self.window),
            softmax("softmax", f"scores{square}{sinks} -> p{square}", row=self.keys, single=single),
            *((drop,) if self.dropout else ()),
            einsum(
                "attend", f"{kept}{square}, {values} -> {context}", pairs=pairs, window=self.window
            ),
        )
