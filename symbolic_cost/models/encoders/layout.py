"""Encoders of tokens and of their boxes on a page, two streams that see each other's scores.

Source: wang-2022, section 3.
"""

from collections.abc import Iterator

from sympy import Expr, Integer

from symbolic_cost.layers.page_layout import Beside, Pair
from symbolic_cost.layers.residual import Branch
from symbolic_cost.models.encoders.encoder import ATTENTION, Encoder
from symbolic_cost.ops.declare import Op, Part, Place, scope, unread
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass, replace

NARROW = {"e": "e_y", "f": "f_y"}


@dataclass(frozen=True)
class TwoStreams(Encoder):
    """An encoder of two streams; the head reads that of the tokens."""

    def pair(self, *, last: bool) -> tuple[Op, ...]:
        """Declare one block; nothing reads what the last gives of the boxes."""
        near, attention = replace(self.branch, axes="b r e_y"), self.attention
        if not isinstance(attention, Pair):
            raise TypeError(attention)
        outcomes = {"y": "attention.outcome", "y_near": "near.attention.outcome"}
        ends = scope("attention", attention.both(last=last), x="x", near="near", **outcomes)
        boxes = (
            *_after(near, "near.attention", "near", "near_middle"),
            *near.around(
                "near.mlp", retitled(self.perceptron.ops(), NARROW), "near_middle", "y_near"
            ),
        )
        return (
            *ends,
            *_after(self.branch, "attention", "x", "middle"),
            *self.branch.around("mlp", self.perceptron.ops(), "middle", "y"),
            *(unread(boxes) if last else boxes),
        )

    def _blocks(self, layers: Expr, groups: int) -> Iterator[Part]:  # noqa: ARG002
        streams = ("x", "near")
        entry = dict.fromkeys(streams, "embedding")
        if layers != 1:
            yield Part("block", self.pair(last=False), layers - 1, entry, Place.BLOCK)
            entry = dict.fromkeys(streams, "block")
        yield Part("last.block", self.pair(last=True), Integer(1), entry, Place.BLOCK)


def _after(branch: Branch, path: str, x: str, y: str) -> tuple[Op, ...]:
    return branch.around(path, (), x, y)


LILT = TwoStreams(words=Beside(), attention=Pair(core=ATTENTION.core))
