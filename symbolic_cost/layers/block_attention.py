"""Attention of every block of positions to itself and its neighbours, perhaps to sums of blocks.

Axes as in attention, and: n_k blocks, x_k queries of one, y_l keys of it, the one before and
the one behind, g_k sums of positions that all see, y_k keys that a block sees, sums included.

For example blocks of 16 divide 100 tokens into 7, padded to 112, whose queries see 48 keys each; of
sums over 16 tokens there are 6.

Source: guo-2021, section 3.
"""

from symbolic_cost.layers.attention import Attention, output
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, axes, dropout, einsum, lookup, pointwise, softmax, view
from symbolic_cost.records import dataclass

AXES = axes("n_k whole, x_k whole, y_l whole, g_k whole, y_k whole")


@dataclass(frozen=True)
class Blocks(Attention):
    """Self-attention from x[b r e] to y[b r e], with biases by distance.

    Args:
        sums: axis of the sums of positions; none if empty.
    """

    sums: str = ""

    def ops(self) -> tuple[Op, ...]:
        return (
            view("gather", f"x[b {self.at.residual} e] -> full[b l e]"),
            *self._projections(),
            *self._summed(),
            pointwise("q_blocks", "q[b l h d] -> blocks_q[b n_k x_k h d]", "copy", laid="l"),
            *(self._blocks(name) for name in "kv"),
            *self._scored(),
            pointwise("join", "seen[b n_k x_k h d] -> context[b l h d]", "copy", laid="n_k x_k"),
            *output(self.at, "h", bias=self.bias),
        )

    def biases(self) -> tuple[Op, ...]:
        """Declare the biases of all blocks, position[n_k x_k y_k h]."""
        near = "!buckets[x_k y_l]:buffer, *table[n_rel h] -> near[x_k y_l h]"
        far = f"!far_ids[l {self.sums}]:buffer, *table[n_rel h] -> far[l {self.sums} h]"
        parts = "near[x_k y_l h]" + (f", far[l {self.sums} h]" if self.sums else "")
        laid = f"y_l l {self.sums}" if self.sums else "y_l"
        return (
            lookup("near", near),
            *((lookup("far", far),) if self.sums else ()),
            pointwise("bias", f"{parts} -> position[n_k x_k y_k h]", "copy", laid=laid),
        )

    def _summed(self) -> tuple[Op, ...]:
        """Declare the sums, and their keys and values by the weights of those of positions."""
        if not self.sums:
            return ()
        rows = f"b {self.sums}"
        return (
            einsum("sums", f"full[b l e], !member[b l {self.sums}]:buffer -> sums[{rows} e]"),
            Norm.RMS.op("norm_sums", f"sums[{rows} e]", f"fine[{rows} e]"),
            *(
                einsum(f"sum_{n}", f"fine[{rows} e], *w[e h d] -> sum_{n}[{rows} h d]").mapped(
                    lambda o: o.renamed(o.tensor.replace("sum_k.", "k.").replace("sum_v.", "v."))
                )
                for n in "kv"
            ),
        )

    def _blocks(self, name: str) -> Op:
        beside, laid = (f", sum_{name}[b {self.sums} h d]", f"l {self.sums}")
        pair = f"{name}[b l h d]{beside if self.sums else ''}"
        return pointwise(
            f"{name}_blocks",
            f"{pair} -> blocks_{name}[b n_k y_k h d]",
            "copy",
            laid=laid if self.sums else "l",
        )

    def _scored(self) -> tuple[Op, ...]:
        square = "[b n_k h x_k y_k]"
        drop = Step.DROP in self.core.steps
        last = "dropped" if drop else "p"
        return (
            einsum("scores", f"blocks_q[b n_k x_k h d], blocks_k[b n_k y_k h d] -> scores{square}"),
            pointwise("bias", f"scores{square}, !position[n_k x_k y_k h] -> biased{square}", "add"),
            softmax("softmax", f"biased{square} -> p{square}", row="y_k", single=True),
            *((dropout("drop_scores", f"p{square} -> dropped{square}"),) if drop else ()),
            einsum("attend", f"{last}{square}, blocks_v[b n_k y_k h d] -> seen[b n_k x_k h d]"),
        )
