"""Symbolic cost formulas of neural networks: declare an op once, derive every cost.

Names are loaded when first used, so that `import symbolic_cost` costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing itself would cost more than all of this
if TYPE_CHECKING:
    from typing import Any

_HOMES = {
    "symbolic_cost.conventions.presets": ("preset",),
    "symbolic_cost.conventions.questions": ("Conventions",),
    "symbolic_cost.costs": ("named_cost",),
    "symbolic_cost.ledger": ("CostTable", "Phase", "Quantity", "Row"),
    "symbolic_cost.ops.graph": ("Model",),
    "symbolic_cost.ops.part": ("Part", "Place", "fragment", "scope"),
    "symbolic_cost.ops.placement": ("Placement",),
    "symbolic_cost.ops.recompute": ("recompute_policy",),
    "symbolic_cost.ops.einsum": ("einsum",),
    "symbolic_cost.ops.elementwise": ("cross_entropy", "dropout", "norm", "pointwise", "softmax"),
    "symbolic_cost.ops.fused": ("fused",),
    "symbolic_cost.ops.lookup": ("lookup",),
    "symbolic_cost.ops.view": ("split", "view"),
    "symbolic_cost.models.catalog": ("model",),
    "symbolic_cost.models.config": ("from_config",),
    "symbolic_cost.jobs.counts": ("count",),
    "symbolic_cost.models.traced.export": ("trace",),
    "symbolic_cost.models.decoders.gpt": ("GPT",),
    "symbolic_cost.models.token_flop.per_token": ("flops_per_token",),
    "symbolic_cost.conventions.per_token": ("TokenConventions", "token_conventions"),
    "symbolic_cost.jobs.mfu": ("mfu",),
    "symbolic_cost.jobs.diff": ("diff",),
    "symbolic_cost.jobs.check": ("check",),
    "symbolic_cost.jobs.derivation": ("derive",),
    "symbolic_cost.analysis.inverse": ("optimum",),
    "symbolic_cost.analysis.dominance": ("dominance",),
    "symbolic_cost.analysis.sensitivity": ("branches", "sensitivity"),
    "symbolic_cost.explore.solve": ("solve",),
    "symbolic_cost.models.inference": (
        "batch_that_fits",
        "cached_bytes",
        "decode",
        "intensity",
        "prefill",
        "weight_only",
    ),
    "symbolic_cost.models.kernels": ("kernel", "running"),
    "symbolic_cost.models.shape": ("Shape",),
    "symbolic_cost.parallel.parsing": ("parse_strategy",),
    "symbolic_cost.parallel.strategy": ("Strategy",),
    "symbolic_cost.parallel.memory": ("Training",),
    "symbolic_cost.parallel.microbatch": ("on_every_rank",),
    "symbolic_cost.published.results": ("errata",),
    "symbolic_cost.published.contract": ("printed_data", "printed_rows", "publication"),
    "symbolic_cost.jobs.job": ("Job", "cost", "job"),
    "symbolic_cost.jobs.explain": ("citations", "explain"),
    "symbolic_cost.display": ("show_versions",),
    "symbolic_cost.analysis.notations": ("notation",),
    "symbolic_cost.emit.naming": ("written_in",),
    "symbolic_cost.jobs.recorded": ("recorded_runs",),
    "symbolic_cost.jobs.steps": ("Steps",),
    "symbolic_cost.jobs.cluster": ("fit_cluster",),
    "symbolic_cost.jobs.workbook": ("workbook",),
    "symbolic_cost.jobs.calculator": ("calculator",),
    "symbolic_cost.jobs.perfetto": ("step_trace",),
    "symbolic_cost.jobs.chakra": ("chakra_traces",),
    "symbolic_cost.explore.ask": ("fit", "prove", "search"),
    "symbolic_cost.explore.report": ("report",),
    "symbolic_cost.explore.sweep": ("pareto", "sweep"),
    "symbolic_cost.serving.plan": ("serve_plan",),
    "symbolic_cost.jobs.registry": (
        "load_plugin",
        "register_conventions",
        "register_machine",
        "register_model",
        "register_strategy",
        "register_symbol",
    ),
    "symbolic_cost.axes": ("At", "Axis", "Role", "glossary", "roles"),
    "symbolic_cost.parallel.catalogue": ("Entry",),
    "symbolic_cost.parallel.coverage": ("Exempt",),
    "symbolic_cost.analysis.forms": ("collected", "equal", "expanded", "factored"),
    "symbolic_cost.analysis.scaling": (
        "crossover",
        "derivative",
        "elasticity",
        "exponent",
        "leading_term",
    ),
    "symbolic_cost.numeric.binding": ("bind", "value"),
    "symbolic_cost.numeric.compiled": ("compile",),
    "symbolic_cost.numeric.frames": ("frame", "pivot"),
    "symbolic_cost.emit.plots": ("write_picture",),
    "symbolic_cost.emit.markdown": ("markdown",),
    "symbolic_cost.emit.formulas": ("latex", "plain", "where_plain"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = {
    "laws": "scaling.laws",
    **{
        name: name
        for name in (
            *("errors", "models", "program", "references"),
            *("serving", "symbols", "systems", "units"),
        )
    },
}

__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604 - the table above is the one list of names


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name in _MODULES:
        return import_module(f"symbolic_cost.{_MODULES[name]}")
    if name not in _HOME:
        raise AttributeError(f"module 'symbolic_cost' has no attribute {name!r}")
    public = getattr(import_module(_HOME[name]), name)
    if not isinstance(public, type):  # public classes check their own arguments
        public = import_module("symbolic_cost.checking").checked(public)
    globals()[name] = public
    return public


def __dir__() -> list[str]:
    return list(__all__)
