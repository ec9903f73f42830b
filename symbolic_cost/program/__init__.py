"""Programs: costs as one graph of shared operations, evaluated exactly, in floats and in arrays.

`program.lowered(...)` makes one of expressions, `program.Evaluator(...)` is a function of arrays
and grids, `program.cached(...)` keeps a tape in the folder of the cache. All are loaded when first
used.
"""

from __future__ import annotations

from symbolic_cost.lazy import lazily

_HOMES = {
    "arrays": ("evaluated",),
    "evaluator": ("Evaluator",),
    "fast": ("Kernel", "NativeFlat", "NativeTop"),
    "graph": ("Graph",),
    "grids": ("Top", "reduced"),
    "intervals": ("Certified", "Intervals", "certified"),
    "lowering": ("lowered",),
    "native_formulas": ("LANES",),
    "native_text": ("Plan",),
    "nest": ("gridded",),
    "program": ("Program", "included", "of_graph"),
    "scalars": ("function",),
    "layered": ("cached",),
    "stored": ("read", "written"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOMES)
