"""How to Scale Your Model: rooflines, sharding, transformers, training, serving, by chapter.

Parameters, caches and the bounds of data and tensor parallelism are derived: parameters from the
rows of the declared models, the bounds from what strategies move and compute.

Source: austin-2025, chapters 1 to 8 and 12; editions differ, and a case says which is meant.
"""

from functools import cache

from sympy import Expr, Integer, cancel

from symbolic_cost.analysis.scaling import leading_term
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.derive import cost
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.published.cases import Values, Work, numbered
from symbolic_cost.symbols import b, dp, e, f, l, m1, n

_SIZES = "n_layers=L e=D f=F h=N k=K q=H V"
_BYTES = 2


@cache
def _parameters(path: str) -> Expr:
    """Return parameters of the matrices of a Llama below a path, norms left out [1]."""
    rows = cost(model("llama"), MODEL_FLOP).select(Quantity.PARAMETER, path=path).rows
    return sum((row.total for row in rows if not row.path.endswith("norm")), Integer(0))


def _llama(inputs: Values) -> Values:
    paths = {"ffw": "block.mlp", "attention": "block.attention"}
    totals = {name: _parameters(path) for name, path in paths.items()}
    totals["vocab"] = _parameters("embedding") + _parameters("head")
    numbers = numbered(_SIZES, inputs.get)
    return {name: int(expr.xreplace(numbers)) for name, expr in totals.items()}


def _tied(inputs: Values) -> Values:
    whole = _parameters("block") + _parameters("embedding")
    return {"parameters": int(whole.xreplace(numbered(_SIZES, inputs.get)))}


def _cache(inputs: Values) -> Values:
    bytes_ = cost(model("llama"), MODEL_FLOP).total(Quantity.CACHE)
    bound = numbered("n_layers=L k=K q=H l=T", inputs.get) | {b: Integer(1)}
    return {"cache": int(bytes_.xreplace(bound))}


@cache
def _forward(strategy: str) -> tuple[Expr, Expr]:
    """Return what a feed-forward layer moves [byte] and computes [FLOP] on one rank, forward."""
    table = strategy_table(GPT().model(), parse_strategy(strategy), MODEL_FLOP)
    forward = table.select(phase=Phase.FORWARD, path="block.mlp").once()
    moved = forward.total(Quantity.COMMUNICATION)
    return moved, forward.total(Quantity.FLOP, kind="einsum")


@cache
def tokens_bound() -> Expr:
    """Return tokens per rank above which FSDP is bound by compute, over C/W [1].

    Matrices are gathered once while every token of the rank passes through them.
    """
    moved, flop = _forward("dp,zero=3")
    matrices = leading_term(cancel(moved * dp / (dp - 1)), {e: 1, f: 1})
    return cancel(matrices / flop * b * l / dp)


@cache
def ranks_bound() -> Expr:
    """Return tensor-parallel ranks below which a layer is bound by compute, over W/C [1]."""
    moved, flop = _forward("tp,sp")
    return cancel(flop * m1 / cancel(moved * m1 / (m1 - 1)))


def intensity(flop: Expr, read_and_written: Expr) -> Expr:
    """Return the limit of FLOP per byte as all sizes grow."""
    grown = dict.fromkeys(flop.free_symbols, 1)
    return leading_term(flop, grown) / leading_term(read_and_written, grown)


def _data_parallel(inputs: Values) -> Values:
    return {"alpha": int(tokens_bound()) * inputs["C"] / inputs["W"]}


def _tensor_parallel(inputs: Values) -> Values:
    """Return C/W as the features that each tensor-parallel rank needs."""
    return {"alpha": inputs["C"] / inputs["W"] / int(cancel(ranks_bound() / f))}


def _dot(_: Values) -> Values:
    return {"intensity": value(intensity(2 * n - 1, _BYTES * (2 * n + 1)))}


def _batched(_: Values) -> Values:
    """A product whose matrix differs per row: b rows, e by f."""
    moved = b * e + b * e * f + b * f
    return {"intensity": value(intensity(2 * b * e * f, moved))}


_MODELS = ("book-4-q1", "book-5-q1", "book-6-params", "book-6-q2", "book-7-memory")
"""Cases whose parameters are those of the declared Llama."""

work = Work(
    "how-to-scale-your-model",
    {
        "book-1-dot": _dot,
        "book-1-q4": _batched,
        "book-5-dp": _data_parallel,
        "book-5-tp": _tensor_parallel,
        **dict.fromkeys(_MODELS, _llama),
        "book-7-kv13b": _cache,
        "book-7-q1-q3": _tied,
    },
)
