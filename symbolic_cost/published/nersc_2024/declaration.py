"""One transformer block as a chain of ops, and where each strategy places it.

Axes: b sequences, r residual and l inner positions, t key/value positions, e embedding, f MLP
width, h heads, d head width, c the three of query, key and value. Norms stand at the end of each
half; biases are ops of their own.
"""

from dataclasses import replace
from functools import cache

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.axes import axes, glossary
from symbolic_cost.conventions.answers import MATMUL_ALONE, MULTIPLY_ADD_PAIR, elementwise_flop
from symbolic_cost.conventions.presets import TRANSFORMER_TABLES_AS_PRINTED
from symbolic_cost.conventions.questions import BackwardTraffic, Conventions, Elementwise, Saved
from symbolic_cost.layers import attention, mlp
from symbolic_cost.ledger import CollectiveKind, CostTable, Phase, Quantity, Row
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import dropout, norm, pointwise, softmax
from symbolic_cost.ops.fused import Fused, fused
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.placement import STORED, Placement
from symbolic_cost.ops.view import split, view
from symbolic_cost.parallel.rules import two_dimensions
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import m1, m2, n, s

CONVENTIONS = replace(
    TRANSFORMER_TABLES_AS_PRINTED,
    name="nersc-2024",
    meaning="2k-1 FLOP, whole messages, traffic of every product, gathered inputs kept",
    source="subramanian-2024-head",
    elementwise=Elementwise(
        {
            "softmax": elementwise_flop(3 * n - 1, 4 * n - 1),
            "layer_norm": elementwise_flop(9 * n, 12 * n - 4),
            "gelu": elementwise_flop(8 * n, 13 * n),
            "dropout": elementwise_flop(n, n),
            "add": elementwise_flop(n, n),
        }
    ),
    backward_traffic=BackwardTraffic.PER_PRODUCT,
    reread={},
    sizes=replace(TRANSFORMER_TABLES_AS_PRINTED.sizes, statistic=s, moment=s),
)
"""How the model counts; SUMMA keeps the shards of its inputs."""

STRATEGIES = {
    "1d": Strategy({"tp": (m1,), "sp": ()}),
    "2d": Strategy({"2d": (m1, m2)}),
    "2d-seqp": Strategy({"tp": (m1,), "sp": (), "cp": (m2,)}),
}
"""Placements by the name of the strategy."""

MESHES = {"tp": "m1", "cp": "m2", "m1": "m1", "m2": "m2"}
"""Degree of a mesh axis."""

LINEARS = ("fc1", "fc2", "qkv", "vproj")
BIASES = ("fc1-bias", "fc2-bias", "vproj-bias")
NORMS = ("ln1", "ln2")
FUSED = "fusedla"
PRODUCTS = ("logits", "attend")

_MLP = ("fc1", "fc1-bias", "act1", "dpr1", "fc2", "fc2-bias", "dpr2", "ln1")


@dataclass(frozen=True, slots=True)
class Scheme:
    """How a block runs."""

    strategy: str
    flash: bool = True
    recompute: bool = False

    @property
    def rows(self) -> dict[str, tuple[str, ...]]:
        """Rows of both halves, in printed order."""
        core = (FUSED,) if self.flash else ("logits", "softmax", "dpr_at", "attend")
        return {"mlp": _MLP, "sa": ("qkv", *core, "vproj", "vproj-bias", "dpr_v", "ln2")}

    @property
    def in_squares(self) -> bool:
        """Whether the attention is in panels too, and splits no heads."""
        return self.strategy == "2d" and not self.flash

    @property
    def in_panels(self) -> tuple[str, ...]:
        """Rows that run in panels."""
        if self.strategy != "2d":
            return ()
        return LINEARS if self.flash else LINEARS + PRODUCTS

    @property
    def conventions(self) -> Conventions:
        """How it counts."""
        return replace(CONVENTIONS, saved=Saved.SHARD) if self.strategy == "2d" else CONVENTIONS


_AXES = glossary(attention.AXES, mlp.AXES, axes("w key-token square"))

_SIZES: dict[str, Expr] = {
    "b": symbols.b,
    **dict.fromkeys(("r", "l", "t", "w"), symbols.l),
    "e": symbols.e,
    "f": symbols.f,
    "h": symbols.h,
    "d": symbols.e / symbols.h,
    "c": Integer(3),
}


@cache
def derived(scheme: Scheme) -> CostTable:
    """Derive every cost of one rank, block and microbatch."""
    conventions = scheme.conventions
    table = _table(scheme, conventions)
    if scheme.strategy != "2d":
        return table
    # Panels are added to the result, so that no first term goes without an addition.
    added = _table(scheme, replace(conventions, contraction=MULTIPLY_ADD_PAIR))
    in_panels = {f"block.{name}" for name in scheme.in_panels if name != "logits"}
    rows = (
        other if row.path in in_panels and row.phase is Phase.FORWARD else row
        for row, other in zip(table, added, strict=True)
    )
    return replace(table, rows=tuple(rows))


@cache
def core_products(scheme: Scheme) -> frozenset[Expr]:
    """Return the FLOP of the matrix products that the fused attention runs."""
    table = _table(scheme, replace(scheme.conventions, elementwise=MATMUL_ALONE))
    return frozenset(row.expr for row in table.select(Quantity.FLOP, path=f"block.{FUSED}"))


def _table(scheme: Scheme, conventions: Conventions) -> CostTable:
    core = (_fused(),) if scheme.flash else _squares() if scheme.in_squares else _core()
    model = Model("nersc-2024", (Part("block", _attention(core) + _mlp()),), _SIZES, axes=_AXES)
    if scheme.in_squares:
        return _in_squares(model, conventions)
    table = strategy_table(model, STRATEGIES[scheme.strategy], conventions)
    return table.select(where=lambda row: not row.per_step)


_SQUARES = Placement(
    {"m1": m1, "m2": m2},
    {**dict.fromkeys(("e", "f", "d", "w"), ("m1",)), **dict.fromkeys(("r", "l"), ("m2",))},
    dict.fromkeys(STORED, ("m2",)),
)
_PANELS = {
    CollectiveKind.ALL_GATHER: CollectiveKind.BROADCAST,
    CollectiveKind.REDUCE_SCATTER: CollectiveKind.REDUCE,
}


def _in_squares(model: Model, conventions: Conventions) -> CostTable:
    """Derive SUMMA throughout: the core splits head width and key positions over m1."""
    table = cost(two_dimensions(model), conventions, _SQUARES)

    def in_panels(row: Row) -> Row:
        move = row.collective
        if move is None:
            return row
        return replace(row, collective=replace(move, kind=_PANELS.get(move.kind, move.kind)))

    per_pass = table.select(where=lambda row: not row.per_step)
    return replace(per_pass, rows=tuple(map(in_panels, per_pass)))


def _attention(core: tuple[Op, ...]) -> tuple[Op, ...]:
    return (
        view("gather_1", "x[b r e] -> full[b l e]"),
        einsum("qkv", "full[b l e], *w[c e h d] -> qkv[c b l h d]"),
        split("split", "qkv[c b l h d] -> q[b l h d], k[b l h d], v[b l h d]"),
        *(
            replace(view(result, f"{taken}[b l h d] -> {result}[b t h d]"), saved=Saved.SHARD)
            for taken, result in (("k", "keys"), ("v", "values"))
        ),
        *core,
        einsum("vproj", "context[b l h d], *w[h d e] -> projected[b l e]"),
        view("scatter_1", "projected[b l e] -> attended[b r e]"),
        _bias("vproj-bias", "attended", "shifted", "b r e"),
        dropout("dpr_v", "shifted[b r e] -> middle[b r e]"),
        norm("ln2", "middle[b r e], *scale[e], *shift[e] -> normed[b r e]", "layer_norm", "e"),
    )


def _core() -> tuple[Op, ...]:
    return (
        einsum("logits", "q[b l h d], keys[b t h d] -> scores[b h l t]"),
        softmax("softmax", "scores[b h l t] -> p[b h l t]", row="t"),
        dropout("dpr_at", "p[b h l t] -> masked[b h l t]"),
        einsum("attend", "masked[b h l t], values[b t h d] -> context[b l h d]"),
    )


def _squares() -> tuple[Op, ...]:
    return (
        einsum("logits", "q[b l h d], keys[b t h d] -> whole_scores[b h l t]"),
        view("spread", "whole_scores[b h l t] -> scores[b h l w]"),
        softmax("softmax", "scores[b h l w] -> p[b h l w]", row="w"),
        dropout("dpr_at", "p[b h l w] -> masked[b h l w]"),
        view("gather", "masked[b h l w] -> whole_masked[b h l t]"),
        einsum("attend", "whole_masked[b h l t], values[b t h d] -> context[b l h d]"),
    )


def _fused() -> Fused:
    border = "q[b l h d], keys[b t h d], values[b t h d]"
    return fused(
        FUSED,
        f"{border} -> context[b l h d]",
        _core(),
        saves=f"{border}, context[b l h d], logsumexp[b l h], seeds[b l h]",
        recompute=("logits", "softmax", "dpr_at"),
    )


def _mlp() -> tuple[Op, ...]:
    return (
        view("gather_2", "normed[b r e] -> wide[b l e]"),
        einsum("fc1", "wide[b l e], *w[e f] -> u[b l f]"),
        _bias("fc1-bias", "u", "biased", "b l f"),
        pointwise("act1", "biased[b l f] -> a[b l f]", "gelu"),
        dropout("dpr1", "a[b l f] -> kept[b l f]"),
        einsum("fc2", "kept[b l f], *w[f e] -> summed[b l e]"),
        view("scatter_2", "summed[b l e] -> branch[b r e]"),
        _bias("fc2-bias", "branch", "moved", "b r e"),
        dropout("dpr2", "moved[b r e] -> last[b r e]"),
        norm("ln1", "last[b r e], *scale[e], *shift[e] -> y[b r e]", "layer_norm", "e"),
    )


def _bias(name: str, taken: str, result: str, axes: str) -> Op:
    width = axes.rsplit(maxsplit=1)[-1]
    return pointwise(name, f"{taken}[{axes}], *bias[{width}] -> {result}[{axes}]", "add")
