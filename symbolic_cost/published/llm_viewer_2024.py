"""LLM-Viewer: operations, bytes, intensity and reached rate of every layer of Llama-2-7B.

Operations of products and all bytes are those of the library's rows; per element of a softmax, norm
and addition the tool counts 5, 7 and 1 operations, and it leaves out an addition's second operand,
weights and statistics of norms.

Source: yuan-2024, Table 1.
"""

from functools import lru_cache

from sympy import Integer

from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.kernels import kernel, running
from symbolic_cost.models.shape import Shape
from symbolic_cost.ops.derive import cost
from symbolic_cost.published.cases import Values, Work, numbered
from symbolic_cost.symbols import e, h, n_layers, q

_LEFT_OUT = ("scale", "statistics", "outcome", "single")
"""Ends of the names of tensors whose bytes the tool leaves out."""

_BYTES = 2


@lru_cache(8)
def _rows(batch: int, length: int, keys: int) -> CostTable:
    """Return what a Llama's forward pass costs, for positions after a cache."""
    shape = Shape(b=Integer(batch), l=Integer(length), c=Integer(keys - length))
    model = running(CATALOG["llama"].model(shape), kernel("eager")).model
    return cost(model, MODEL_FLOP).select(phase=Phase.FORWARD)


def _layer(inputs: Values) -> Values:
    """Return FLOP, bytes and elements written of one op of one block."""
    numbers = numbered("e=d f=ffn h=heads k=kv_heads", inputs.get)
    numbers |= {q: numbers[e] / numbers[h], n_layers: Integer(1)}
    whole = _rows(int(inputs["b"]), int(inputs["s"]), int(inputs["t"]))
    rows = whole.select(path=f"block.{inputs['path']}")

    def total(quantity: Quantity) -> int:
        counted = (row for row in rows.select(quantity).rows if not row.tensor.endswith(_LEFT_OUT))
        return int(sum((row.total.xreplace(numbers) for row in counted), Integer(0)))

    written = total(Quantity.WRITE)
    flop = total(Quantity.FLOP) if inputs["each"] == 0 else 0
    return {"flop": flop, "bytes": total(Quantity.READ) + written, "elements": written // _BYTES}


work = Work(
    "llm-viewer-2024", {"llm-viewer-table1-prefill": _layer, "llm-viewer-table1-decode": _layer}
)
