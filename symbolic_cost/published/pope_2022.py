"""Pope et al.: longest contexts of multihead and multiquery attention, and partitionings.

Cached bytes per token are those of the library's block.

Source: pope-2022, section 3.2, Table 1 and Appendix A; the table's multihead variant has heads of
128.
"""

from sympy import Integer

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.ops.derive import cost
from symbolic_cost.published.cases import Values, Work, numbered
from symbolic_cost.symbols import b, k, l


def _cached(inputs: Values) -> Values:
    """Return bytes per token of one chip: heads split over chips, or one head on each."""
    table = cost(model("llama"), MODEL_FLOP).total(Quantity.CACHE) / (b * l)
    many = numbered("n_layers=layers k=heads q=d_multihead", inputs.get)
    one = numbered("n_layers=layers q=d_head", inputs.get) | {k: Integer(1)}
    per_chip = float(table.xreplace(many)) / float(inputs["n"])
    return {"head": per_chip, "query": float(table.xreplace(one))}


work = Work("pope-2022", {"pope-multiquery": _cached})
