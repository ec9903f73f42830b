"""Encoders of characters, which a convolution makes fewer for most of the blocks.

    characters -> a block of chunks -> fewer positions -> blocks -> characters -> a block -> a head

Axes: as in an encoder, where r, l and t are the fewer positions; r_c, l_c and t_c those of
characters, t_n the mean of what one sees in its chunk, l_m what the convolution makes, l_p
characters with padding, s_m and s_u its kernels, e_o features that it makes, n_h hashes of a
character in tables of n_b rows and width w_h, p_c rows of that of positions.

Source: clark-2021, section 3.
"""

from sympy import Expr, Integer, floor

from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.embeddings import TYPES, Words
from symbolic_cost.layers.norm import Norm
from symbolic_cost.models.encoders.encoder import SPAN, TOKENS, TRUNK, Encoder, Habit
from symbolic_cost.ops.declare import Op, Part, Place, axes, conv, lookup, unread, view
from symbolic_cost.ops.elementwise import dropout, pointwise
from symbolic_cost.ops.part import retitled
from symbolic_cost.records import dataclass

AXES = axes(
    "r_c token residual, l_c token query, t_c key-token, t_n key-token, l_m whole, l_p whole, "
    "s_m whole, s_u whole, e_o inner, n_h whole, n_b vocabulary, w_h hidden, p_c whole, two whole"
)

_CHARACTERS = {"r": "r_c", "l": "l_c", "t": "t_c"}


@dataclass(frozen=True)
class Hashed(Words):
    """Embedding of characters by the rows of several tables, side by side."""

    def ops(self) -> tuple[Op, ...]:
        narrow, axes = "[b l n_h w_h]", "[b r e]"
        steps: list[Step] = [
            lambda x, y: lookup("hash", f"!{x}[b l n_h]:index, *table[n_h n_b w_h] -> {y}{narrow}"),
            lambda x, y: pointwise("join", f"{x}{narrow} -> {y}[b l e]", "copy", laid="n_h w_h"),
            lambda x, y: view("scatter", f"{x}[b l e] -> {y}{axes}"),
            *self._sums(axes),
        ]
        token, *rest = chain("ids", steps, "x")
        return (token, *self.further(), *rest)


@dataclass(frozen=True)
class Characters(Encoder):
    """An encoder whose first and last block see characters."""

    def parts(self, layers: Expr, head: str = TRUNK, groups: int = 1) -> tuple[Part, ...]:  # noqa: ARG002
        """Return the parts of the model; a head of sequences reads the fewer positions alone."""
        near = retitled(self.block(), {**_CHARACTERS, "t": "t_n"})
        wide, last = self._widened(), retitled(self.block(), _CHARACTERS)
        each = head in (TOKENS, SPAN)
        if not each and head != TRUNK:
            wide, last = unread(wide), unread(last)
        tail = [
            Part(part.path, retitled(part.ops, _CHARACTERS), takes={"x": "last.block"})
            if each and part.path == "head"
            else Part(part.path, part.ops, takes={"x": "block"})
            for part in self._tail(head)
        ]
        return (
            Part("embedding", retitled(self.words.ops(), _CHARACTERS)),
            Part("first.block", near, takes={"x": "embedding"}),
            Part("molecules", self._narrowed(), takes={"x": "first.block"}),
            Part("block", self.block(), layers, {"x": "molecules"}, Place.BLOCK),
            Part("widened", wide, takes={"x": "first.block", "deep": "block"}),
            Part("last.block", last, takes={"x": "widened"}),
            *tail,
        )

    def _narrowed(self) -> tuple[Op, ...]:
        act = self.perceptron.function
        return (
            view("first", "x[b r_c e] -> first[b one e]"),
            view("gather", "x[b r_c e] -> full[b l_c e]"),
            conv("down", "full[b l_c e], *w[e e_o s_m] + *bias[e_o] -> u[b l_m e_o]"),
            pointwise("act", "u[b l_m e_o] -> a[b l_m e_o]", act),
            view("features", "a[b l_m e_o] -> fewer[b l_m e]"),
            pointwise(
                "join", "first[b one e], fewer[b l_m e] -> joined[b r e]", "copy", laid="one l_m"
            ),
            Norm.LAYER.op("norm", "joined[b r e]", "y[b r e]"),
        )

    def _widened(self) -> tuple[Op, ...]:
        """Declare characters beside the position that stands for them, from x and deep[b r e]."""
        drop = (dropout("dropout", "normed[b r_c e] -> y[b r_c e]"),) if self.branch.drops else ()
        both, act = "both[b l_p two e]", self.perceptron.function
        return (
            view("gather", "x[b r_c e] -> full[b l_c e]"),
            view("gather_deep", "deep[b r e] -> fewer[b l e]"),
            pointwise("repeat", "fewer[b l e] -> repeated[b l_c e]", "copy", laid="l"),
            pointwise("join", f"full[b l_c e], repeated[b l_c e] -> {both}", "copy", laid="l_c"),
            conv("up", f"{both}, *w[two e e_o s_u] + *bias[e_o] -> u[b l_c e_o]"),
            pointwise("act", "u[b l_c e_o] -> a[b l_c e_o]", act),
            view("features", "a[b l_c e_o] -> whole[b l_c e]"),
            view("scatter", "whole[b l_c e] -> rows[b r_c e]"),
            Norm.LAYER.op("norm", "rows[b r_c e]", f"{'normed' if drop else 'y'}[b r_c e]"),
            *drop,
        )


def lengths(tokens: Expr, chunk: int, rate: int, kernel: int) -> dict[str, Expr | int]:
    """Return the sizes of the axes of positions.

    Of 300 characters in chunks of 128, two see 128 and 44 see each other: (2 128^2 + 44^2)/300.
    """
    whole = floor(tokens / chunk)
    rest = tokens - whole * chunk
    return {
        **dict.fromkeys(("r_c", "l_c", "t_c"), tokens),
        "t_n": (whole * chunk**2 + rest**2) / tokens,
        "l_m": floor(tokens / rate),
        "l_p": tokens + kernel - 1,
        "s_m": rate,
        "s_u": kernel,
        "two": Integer(2),
    }


CANINE = Characters(
    words=Hashed(tables={"position": "p_c", "type": TYPES}), habits=Habit.POOL, source="clark-2021"
)
