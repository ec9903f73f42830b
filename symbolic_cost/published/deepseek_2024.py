"""DeepSeek LLM: compute by FLOP per token instead of parameters, and its power laws.

M is what the library counts per token of a GPT without embeddings and head, all pairs of attention.

Source: bi-2024, formulas 1, 2 and 4, Table 3.
"""

from functools import cache

from sympy import Expr, Integer

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.derive import cost
from symbolic_cost.published.cases import Values, Work, numbered
from symbolic_cost.scaling.declared import law
from symbolic_cost.symbols import b, e, l


@cache
def flop_per_token(path: str) -> Expr:
    """Return FLOP of training per token of one part of a GPT of width e [FLOP]."""
    table = cost(GPT(f=4 * e).model(), MODEL_FLOP)
    return (table.total(Quantity.FLOP, path=path) / (b * l)).expand()


def _scale(inputs: Values) -> Values:
    numbers = numbered("n_layers=n e=d V l", inputs.get)
    blocks = flop_per_token("block")
    products = blocks.xreplace({l: Integer(0)})  # without the pairs of attention
    flop = {"M": blocks, "n_1": products / 6, "n_2": (products + flop_per_token("head")) / 6}
    return {name: int(expr.xreplace(numbers)) for name, expr in flop.items()}


def _best(inputs: Values) -> Values:
    best = law("deepseek").at({"C": float(inputs["C"])})
    return {**best, "D_opt": best["tokens"]}


work = Work("deepseek-2024", {"deepseek-llm-table3": _scale, "formula-4": _best})
