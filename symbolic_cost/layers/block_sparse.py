"""Attention of blocks of positions to the blocks beside them, some at random, and both ends.

Axes as in attention, and: u_n queries of the first and the last block, who see all keys; n_w the
blocks next to those, of x_n queries that see z_n keys; s_n the blocks between, whose queries see
y_n keys (their own block, the one before and the one behind), w_n of blocks at random, and o_n of
the first and of the last block, g_n together.

For example 12 blocks of 64 with 3 at random: 128 queries of the ends see 768 keys, those of 2
blocks see 448, and those of 8 blocks 192 beside them, 192 at random and 64 of either end.

As BigBird attends (Zaheer and others, 2020).
"""

from symbolic_cost.layers.attention import Attention, output
from symbolic_cost.ops.declare import Op, axes, einsum, pointwise, softmax, view
from symbolic_cost.records import dataclass

AXES = axes(
    "u_n whole, n_w whole, s_n whole, x_n whole, y_n whole, z_n whole, w_n whole, o_n whole, "
    "g_n whole"
)

_KEYS = {"first": "o_n", "band": "s_n y_n", "random": "s_n w_n", "last": "o_n"}
"""Keys that the blocks between see, in their order."""


@dataclass(frozen=True)
class SparseBlocks(Attention):
    """Self-attention from x[b r e] to y[b r e]; nothing is dropped out of its weights."""

    def ops(self) -> tuple[Op, ...]:
        gather = view("gather", f"x[b {self.at.residual} e] -> full[b {self.at.query} e]")
        parts = ", ".join(
            f"{name}[b {places} h d]"
            for name, places in (("ends", "u_n"), ("beside", "n_w x_n"), ("between", "s_n x_n"))
        )
        return (
            gather,
            *self._projections(),
            *(_part(f"{n}_all", f"{n}[b l h d]", "t") for n in "kv"),
            _part("q_ends", "q[b l h d]", "u_n"),
            *_seen("ends", "u_n", "k_all", "v_all", "t"),
            _part("q_beside", "q[b l h d]", "n_w x_n"),
            *(_part(f"{n}_beside", f"{n}[b l h d]", "n_w z_n") for n in "kv"),
            *_seen("beside", "n_w x_n", "k_beside", "v_beside", "n_w z_n"),
            *_between(),
            pointwise("join", f"{parts} -> context[b l h d]", "copy", laid="u_n n_w s_n x_n"),
            *output(self.at, "h", bias=self.bias),
        )


def _part(name: str, tensor: str, places: str) -> Op:
    """Declare what some positions have of queries, keys or values."""
    if places == "t":
        return view(name, f"{tensor} -> {name}[b t h d]")
    return pointwise(name, f"{tensor} -> {name}[b {places} h d]", "copy", laid="l")


def _seen(name: str, queries: str, keys: str, values: str, places: str) -> tuple[Op, ...]:
    """Declare scores, softmax and weighted sum of some queries, who see the same keys."""
    row = places.rsplit(maxsplit=1)[-1]
    pairs = f"[b h {queries} {row}]"
    return (
        einsum(
            f"{name}.scores",
            f"q_{name}[b {queries} h d], {keys}[b {places} h d] -> {name}.scores{pairs}",
        ),
        softmax(f"{name}.softmax", f"{name}.scores{pairs} -> {name}.p{pairs}", row=row),
        einsum(
            f"{name}.attend",
            f"{name}.p{pairs}, {values}[b {places} h d] -> {name}[b {queries} h d]",
        ),
    )


def _between() -> tuple[Op, ...]:
    """Declare the same of the blocks between, a product for every kind of keys."""
    whole, result = "[b h s_n x_n g_n]", "[b s_n x_n h d]"
    pairs = {name: f"[b h s_n x_n {places.split()[-1]}]" for name, places in _KEYS.items()}
    scores = ", ".join(f"{name}.scores{axes}" for name, axes in pairs.items())
    sums = ", ".join(f"{name}.sum{result}" for name in _KEYS)
    return (
        _part("q_between", "q[b l h d]", "s_n x_n"),
        *(
            _part(f"{n}_{name}", f"{n}[b l h d]", places)
            for name, places in _KEYS.items()
            for n in "kv"
        ),
        *(
            einsum(
                f"{name}.scores",
                f"q_between{result}, k_{name}[b {places} h d] -> {name}.scores{pairs[name]}",
            )
            for name, places in _KEYS.items()
        ),
        pointwise("between.join", f"{scores} -> joined{whole}", "copy", laid="o_n y_n w_n"),
        softmax("between.softmax", f"joined{whole} -> p{whole}", row="g_n"),
        *(view(f"{name}.p", f"p{whole} -> {name}.p{axes}") for name, axes in pairs.items()),
        *(
            einsum(
                f"{name}.attend",
                f"{name}.p{pairs[name]}, v_{name}[b {places} h d] -> {name}.sum{result}",
            )
            for name, places in _KEYS.items()
        ),
        pointwise("between.add", f"{sums} -> between{result}", "add"),
    )
