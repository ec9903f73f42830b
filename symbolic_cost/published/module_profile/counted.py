"""Formulas of every module: parameters, multiply-accumulates and FLOP of one forward pass.

A module's total is what it runs itself and the totals of its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from sympy import Add, Expr, Integer, Mul

from symbolic_cost.conventions.profilers import (
    FLOPS_PROFILER,
    FLOPS_PROFILER_2021,
    FLOPS_PROFILER_2021_MACS,
    FLOPS_PROFILER_MACS,
)
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.published.module_profile.modules import Module


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the profiler.

    Args:
        title: of its report.
        flop: what it counts as FLOP.
        macs: what it counts as multiply-accumulates.
        device: what it calls the device in the line of parameters.
        top: how many modules it lists per depth.
    """

    title: str
    flop: Conventions
    macs: Conventions
    device: str
    top: int


VERSION_2023 = Version(
    "DeepSpeed Flops Profiler", FLOPS_PROFILER, FLOPS_PROFILER_MACS, "device", 10
)
VERSION_2021 = Version("Flops Profiler", FLOPS_PROFILER_2021, FLOPS_PROFILER_2021_MACS, "gpu", 1)


@dataclass(frozen=True)
class Counted:
    """One module with its totals.

    Args:
        module: as declared; its name is the one inside its parent.
        path: dotted names from the top; empty for the top.
        macs: multiply-accumulates.
        flop: FLOP.
        own_params: parameters that no other module shares [element].
        shared_params: the others [element], by name.
        children: the modules inside; of repeated groups the first.
    """

    module: Module
    path: str
    macs: Expr
    flop: Expr
    own_params: Expr
    shared_params: Mapping[str, Expr]
    children: tuple[Counted, ...]

    @property
    def params(self) -> Expr:
        """Parameters [element]; one that is shared inside counts once."""
        return Add(self.own_params, *self.shared_params.values())

    def walk(self) -> Iterator[Counted]:
        """Go through the module and those inside."""
        yield self
        for child in self.children:
            yield from child.walk()


def counted(model: Model, tree: Module, version: Version, *, partitioned: bool = False) -> Counted:
    """Count the modules of a model.

    Args:
        model: declared.
        tree: its modules.
        version: of the profiler.
        partitioned: whether tables and factors of products are partitioned over ranks and each
            shows one element (ZeRO-3).
    """
    own = {path: _Own() for path in (*tree.paths(), "")}
    for kind, rules in (("macs", version.macs), ("flop", version.flop)):
        for row in cost(model, rules).select(Quantity.FLOP, phase=Phase.FORWARD):
            getattr(_owner(own, row.path), kind).append(row.expr)
    for part in model.parts:
        for op in part.ops:
            place = _owner(own, f"{part.path}.{op.path}")
            _add_weights(place, op, model.sizes, partitioned=partitioned)
    return _summed(tree, "", own)


@dataclass
class _Own:
    """Terms of what runs below a path that a module names."""

    macs: list[Expr] = field(default_factory=list)
    flop: list[Expr] = field(default_factory=list)
    params: list[Expr] = field(default_factory=list)
    shared: dict[str, Expr] = field(default_factory=dict)


def _owner(own: Mapping[str, _Own], path: str) -> _Own:
    """Return the entry of the longest named path that a path starts with."""
    while path and path not in own:
        path = path.rpartition(".")[0]
    return own[path]


def _add_weights(own: _Own, op: Op, sizes: Mapping[str, Expr], *, partitioned: bool) -> None:
    for weight in op.weights:
        factor = isinstance(op, Einsum | Lookup) and weight in op.pattern.inputs
        elements = Mul(*(sizes[axis] for axis in weight.axes))
        if partitioned and factor:
            elements = Integer(1)
        if weight.tensor.startswith("@"):
            own.shared[weight.tensor] = elements
        else:
            own.params.append(elements)


def _summed(module: Module, path: str, own: Mapping[str, _Own]) -> Counted:
    """Sum over a module and those inside; the top runs what no module names."""
    children = tuple(
        _summed(
            replace(child, name=child.name or str(place)),
            f"{path}.{child.name or place}".lstrip("."),
            own,
        )
        for place, child in enumerate(module.children)
    )
    terms = [own[named] for named in (*module.ops, *(() if path else ("",)))]
    shared: dict[str, Expr] = {}
    for found in (*(term.shared for term in terms), *(c.shared_params for c in children)):
        shared |= found

    def total(mine: list[list[Expr]], inside: list[Expr]) -> Expr:
        return Add(*(expr for term in mine for expr in term), Mul(module.repeat, Add(*inside)))

    return Counted(
        module,
        path,
        total([term.macs for term in terms], [child.macs for child in children]),
        total([term.flop for term in terms], [child.flop for child in children]),
        total([term.params for term in terms], [child.own_params for child in children]),
        shared,
        children,
    )
