"""Serving: prefill, decode, continuous batching in steady state, and plans that meet targets.

`serving.serve_plan(...)` finds engines and sequences; `serving.decode(engine)` derives a pass of
one, `serving.Batching` and `serving.Chunked` are its steady state. All are loaded when first used.
"""

from symbolic_cost.lazy import lazily

_HOMES = {
    "choice": ("Plan",),
    "spread": ("between", "span", "spreads"),
    "engine": ("Engine",),
    "load": ("Load", "Targets", "accepted"),
    "passes": ("Pass", "chunk", "decode", "mixed", "prefill"),
    "precisions": ("Decoding", "Reading"),
    "plan": ("Plans", "serve_plan"),
    "pools": ("Pools", "Prefilling"),
    "engine_numbers": ("Clock", "Sized"),
    "steady": ("Batching", "Chunked"),
}
__getattr__, __dir__, __all__ = lazily(__name__, _HOMES)
