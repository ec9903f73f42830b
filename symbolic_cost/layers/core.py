"""The attention core of grouped heads: scores, softmax, weighted sum.

Axes: b sequences, l query positions, `keys` key/value positions, k key/value heads, g query heads
of one key/value head, d head width of queries and keys, `value` head width of values.
"""

from __future__ import annotations

from dataclasses import dataclass

from symbolic_cost.layers.attention import Core
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import dropout, pointwise, softmax
from symbolic_cost.ops.fused import fused
from symbolic_cost.ops.graph import scope
from symbolic_cost.ops.op import Op


@dataclass(frozen=True)
class GroupedCore:
    """Attention from q, keys and values to context[b l k g value].

    Args:
        core: how it runs.
        repeated: whether keys and values are copied to every query head first.
        shared: whether keys and values have no group axis otherwise; else they have one already.
        sinks: whether every query head has a learned logit besides the keys'.
        single: whether the softmax runs in single precision.
        dropout: whether the probabilities are dropped out.
        keys: axis of the key positions.
        window: axis of the window of a sliding layer, if any.
        value: axis of the width of values.
    """

    core: Core = Core.EAGER
    repeated: bool = True
    shared: bool = True
    sinks: bool = False
    single: bool = True
    dropout: bool = False
    keys: str = "t"
    window: str = ""
    value: str = "d"

    def ops(self) -> tuple[Op, ...]:
        """Declare the core from q[b l k g d], keys[b t k d] and values[b t k value]."""
        copied = self.repeated and self.shared and self.core is Core.EAGER
        heads = "k g" if copied or not self.shared else "k"
        keys, values = ("many_keys", "many_values") if copied else ("keys", "values")
        operands = {
            "q": "q[b l k g d]",
            "keys": f"{keys}[b {self.keys} {heads} d]",
            "values": f"{values}[b {self.keys} {heads} {self.value}]",
        }
        ops = self._ops(operands)
        names = {name: name for name in ("q", keys, values, "context")}
        if self.core is Core.EAGER:
            return (*(self._copies() if copied else ()), *scope("core", ops, **names))
        border = ", ".join(operands.values())
        sinks = ", *sinks[k g]" if self.sinks else ""
        return (
            fused(
                "core",
                f"{border}{sinks} -> context[b l k g {self.value}]",
                ops,
                saves=f"{border}, context[b l k g {self.value}], logsumexp[b l k g]:statistic",
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

    def _ops(self, operands: dict[str, str]) -> tuple[Op, ...]:
        square = f"[b k g l {self.keys}]"
        pairs = f"l {self.keys}"
        sinks = ", *sinks[k g]" if self.sinks else ""
        kept = "dropped" if self.dropout else "p"
        made = f"p{square}"
        drop = (dropout("dropout", f"{made} -> dropped{square}"),) if self.dropout else ()
        return (
            einsum(
                "scores",
                f"{operands['q']}, {operands['keys']} -> scores{square}",
                pairs=pairs,
                window=self.window,
            ),
            softmax(
                "softmax", f"scores{square}{sinks} -> {made}", row=self.keys, single=self.single
            ),
            *drop,
            einsum(
                "attend",
                f"{kept}{square}, {operands['values']} -> context[b l k g {self.value}]",
                pairs=pairs,
                window=self.window,
            ),
        )
