"""Attention whose queries may be fewer than its keys, with scores by distance and by segment.

Axes: as in attention; r_b, l_b and t_b the positions before they are pooled, s_d distances between
queries and keys, two the same segment and another, w features of waves.

Source: dai-2020, section 2.3 and appendix A.2.
"""

from enum import Flag, auto

from symbolic_cost.axes import axes
from symbolic_cost.layers.attention import Attention, Bias, output
from symbolic_cost.layers.attention_core import Step
from symbolic_cost.ops.declare import Op, einsum, pointwise, scope, softmax, view
from symbolic_cost.ops.einsum import Call
from symbolic_cost.records import dataclass, replace

AXES = axes(
    "r_b token residual, l_b token query, t_b key-token, s_d whole, two whole, e hidden, w hidden, "
    "h head, d width, l token query, t key-token"
)

BARE = Call.BARE


class Way(Flag):
    """How queries meet keys."""

    NONE = 0
    FACTORIZED = auto()
    """Waves of queries meet those of keys, and not keys of every distance."""
    BEYOND = auto()
    """Keys and values are those of the positions before pooling."""


@dataclass(frozen=True)
class PooledAttention(Attention):
    """Self-attention from x[b r e], or of it to memory[b r_b e], to y[b r e].

    Args:
        way: how queries meet keys.
    """

    way: Way = Way.NONE

    def ops(self) -> tuple[Op, ...]:
        keys = "t_b" if self._beyond else "t"
        taken = ("q_content", "keys", "values", "context", *self._near_names)
        core = scope("core", self._scored(keys), **{name: name for name in taken})
        return (
            view("gather", "x[b r e] -> full[b l e]"),
            einsum("q", "full[b l e], *w[e h d] -> q[b l h d]"),
            *self._memory(keys),
            *(
                pointwise(f"q_{name}", f"q[b l h d], *bias[h d] -> q_{name}[b l h d]", "add")
                for name in ("content", "place", "segment")
            ),
            *self._placed(keys),
            einsum(
                "segments", "q_segment[b l h d], *table[two h d] -> segments[b h l two]", call=BARE
            ),
            *(replace(op, core="core") for op in core),
            *output(self.at, "h", bias=Bias.OUTPUT),
        )

    def _memory(self, keys: str) -> tuple[Op, ...]:
        """Declare keys and values."""
        at, read = ("l_b", "read") if self._beyond else ("l", "full")
        gather = view("memory", "memory[b r_b e] -> read[b l_b e]")
        return (
            *((gather,) if self._beyond else ()),
            *(
                einsum(name, f"{read}[b {at} e], *w[e h d] + *bias[h d] -> {name}[b {at} h d]")
                for name in "kv"
            ),
            view("keys", f"k[b {at} h d] -> keys[b {keys} h d]"),
            view("values", f"v[b {at} h d] -> values[b {keys} h d]"),
        )

    @property
    def _factorized(self) -> bool:
        return Way.FACTORIZED in self.way

    @property
    def _beyond(self) -> bool:
        return Way.BEYOND in self.way

    @property
    def _near_names(self) -> tuple[str, ...]:
        places = ("sines", "cosines") if self._factorized else ("places",)
        return (*places, "segments")

    def _placed(self, keys: str) -> tuple[Op, ...]:
        """Declare scores of queries by distance."""
        if not self._factorized:
            return (
                pointwise("waves", "!distances[s_d]:buffer -> waves[s_d e]", "angles"),
                einsum("rel_k", "!waves[s_d e], *w[e h d] -> rel_k[s_d h d]", call=BARE),
                einsum("places", "q_place[b l h d], rel_k[s_d h d] -> places[b h l s_d]"),
            )
        ops: list[Op] = [
            einsum("rel_q", "q_place[b l h d], *w[w h d] -> rel_q[b l h w]", call=BARE)
        ]
        for name in ("sines", "cosines"):
            turned = f"turned_{name}[b l h w]"
            ops += [
                pointwise(f"of_{name}", f"!distances[l]:buffer -> of_{name}[l w]", "angles"),
                pointwise(f"to_{name}", f"!places[{keys}]:buffer -> to_{name}[{keys} w]", "angles"),
                pointwise(f"turn_{name}", f"rel_q[b l h w], !of_{name}[l w] -> {turned}", "mul"),
                einsum(name, f"{turned}, !to_{name}[{keys} w] -> {name}[b h l {keys}]"),
            ]
        return tuple(ops)

    def _scored(self, keys: str) -> tuple[Op, ...]:
        square, pairs = f"[b h l {keys}]", f"l {keys}"
        axes = {"segments": "[b h l two]", "places": "[b h l s_d]"}
        near = ", ".join(f"{name}{axes.get(name, square)}" for name in self._near_names)
        laid = "two" if self._factorized else "s_d two"
        drops = Step.DROP in self.core.steps
        drop = pointwise("dropout", f"p{square} -> dropped{square}", "dropout")
        scores, values = f"keys[b {keys} h d] -> scores{square}", f"values[b {keys} h d]"
        return (
            einsum("scores", f"q_content[b l h d], {scores}", pairs, masked=False),
            pointwise("bias", f"scores{square}, {near} -> biased{square}", "add", laid=laid),
            softmax("softmax", f"biased{square} -> p{square}", row=keys),
            *((drop,) if drops else ()),
            einsum(
                "attend",
                f"{'dropped' if drops else 'p'}{square}, {values} -> context[b l h d]",
                pairs,
                masked=False,
            ),
        )
