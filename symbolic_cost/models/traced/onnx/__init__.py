"""ONNX files: wire format -> file -> plain nodes, folds -> sizes -> the graph of a .pt2 file.

The wire format is read here, not by the package onnx: that one parses weights into memory before a
bound can be checked, and of a file only names, shapes and a few integers are wanted.
"""

from collections import Counter
from pathlib import Path

from symbolic_cost.models.traced.graph import Graph
from symbolic_cost.models.traced.onnx import (  # noqa: F401 - they register operators
    composed,
    fused,
    pointwise,
    products,
    quantized,
    recurrent,
    views,
)
from symbolic_cost.models.traced.onnx.file import read_onnx
from symbolic_cost.models.traced.onnx.folds import folded
from symbolic_cost.models.traced.onnx.reading import Reading
from symbolic_cost.models.traced.onnx.rewriting import Rewriting


def onnx_graph(source: str | Path | bytes, name: str = "") -> tuple[Graph, Counter[str]]:
    """Return the graph of an ONNX file, and what was assumed.

    Raises:
        InputError: no model, damaged, too large; operators and sizes that are not understood.
    """
    plain = Rewriting(read_onnx(source, name))
    reading = Reading(folded(plain.file()))
    return reading.graph(), plain.notes + reading.notes
