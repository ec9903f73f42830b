"""USP: what a block moves under Ulysses, ring, tensor and sequence parallelism, and when.

Messages are those of a Llama block under each strategy, in units of b l e elements, for many ranks.
The paper lets ring's backward move as much as its forward; this library's moves keys and values
again and their gradients too: 2 k/h b l e elements more.

Source: fang-2024, Table 2 and section 4.
"""

from functools import cache

from sympy import Expr, Integer, cancel

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.published.cases import Values, Work
from symbolic_cost.symbols import b, cp, e, exact, h, k, l, m1, n_layers, q, s1

_BYTES = 2
RANKS = {"ulysses": s1, "ring": cp, "cp": cp, "tp": m1, "tp,sp": m1}
"""Symbol of the ranks by strategy."""


@cache
def moved(strategy: str, phase: Phase | None = None) -> Expr:
    """Return what one rank of many moves of a block's activations, in b l e elements [1].

    The share (p - 1)/p of many ranks p is one; messages of q, k, v are a share of e = h q.
    """
    table = strategy_table(model("llama"), parse_strategy(strategy), MODEL_FLOP)
    rows = table.select(Quantity.COMMUNICATION, phase=phase, path="block")
    sent = sum((row.expr for row in rows.rows if row.expr.has(l)), Integer(0))
    ranks = RANKS[strategy]
    share = cancel(sent * ranks / ((ranks - 1) * _BYTES * b * l * e))
    return cancel(share.xreplace({q: e / h, n_layers: Integer(1)}))


def _table(inputs: Values) -> Values:
    ranks, group = exact(inputs["N"]), exact(inputs["G"])
    alike, grouped = {k: h}, {k: h / group}

    def number(share: Expr, heads: dict[Expr, Expr], name: str) -> float:
        return float(cancel(share.xreplace(heads)).xreplace({RANKS[name]: ranks}))

    ring = 2 * moved("ring", Phase.FORWARD)
    return {
        "ulysses": number(moved("ulysses"), alike, "ulysses"),
        "ulysses_gqa": number(moved("ulysses"), grouped, "ulysses"),
        "ring": number(ring, alike, "ring"),
        "ring_gqa": number(ring, grouped, "ring"),
        "tensor": number(moved("tp"), alike, "tp"),
        "tensor_sequence": number(moved("tp,sp"), alike, "tp,sp"),
    }


work = Work("usp-2024", {"usp-table2": _table})
