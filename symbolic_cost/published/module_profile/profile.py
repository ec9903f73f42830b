"""Profiles: what every module of a model counts and, where latencies are given, how long it takes.

A module's total is what it runs itself and the totals of its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from sympy import Expr

from symbolic_cost.conventions.profilers import (
    FLOPS_PROFILER,
    FLOPS_PROFILER_2021,
    FLOPS_PROFILER_2021_MACS,
    FLOPS_PROFILER_MACS,
)
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.op import Op
from symbolic_cost.published.module_profile.latencies import Latencies, Run
from symbolic_cost.published.module_profile.modules import Module, declared_modules
from symbolic_cost.published.module_profile.numbers import Span


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
class Profiled:
    """One module with its totals.

    Args:
        name: inside its parent.
        path: dotted names from the top; empty for the top.
        cls: its class.
        extra: its own description.
        macs: multiply-accumulates of one forward pass.
        flop: of one forward pass.
        latency: of one forward pass [s], if known.
        together: latency of all its occurrences, if known.
        children: the modules inside; of repeated groups the first.
        repeat: how often the children occur.
        own_params: parameters that no other module shares [element].
        shared_params: the others [element], by name.
    """

    name: str
    path: str
    cls: str
    extra: str
    macs: int
    flop: int
    latency: Span | None
    together: Span | None
    children: tuple[Profiled, ...]
    repeat: int
    own_params: int
    shared_params: Mapping[str, int]

    @property
    def params(self) -> int:
        """Parameters [element]; one that is shared inside counts once."""
        return self.own_params + sum(self.shared_params.values())

    def walk(self, depth: int = 0, times: int = 1) -> Iterator[tuple[int, int, Profiled]]:
        """Go through the module and those inside: depth, occurrences, module."""
        yield depth, times, self
        for child in self.children:
            yield from child.walk(depth + 1, times * self.repeat)


@dataclass(frozen=True)
class Profile:
    """A profiled model.

    Args:
        top: the model.
        version: of the profiler.
        run: what was measured of a whole step.
        classes: latencies of all modules of a class at a depth together, by (depth, class).
    """

    top: Profiled
    version: Version
    run: Run = field(default_factory=Run)
    classes: Mapping[tuple[int, str], Span] = field(default_factory=dict)


def profile(
    model: Model,
    values: Mapping[str, object] | None = None,
    *,
    modules: Module | None = None,
    version: Version = VERSION_2023,
    latencies: Mapping[str, Any] | None = None,
    run: Run | None = None,
    partitioned: bool = False,
) -> Profile:
    """Profile a model.

    Args:
        model: declared.
        values: number of every symbol left in it, besides those of its preset.
        modules: its tree; the paths of its declaration unless given.
        version: of the profiler.
        latencies: as `Latencies` reads them.
        run: further facts of the run.
        partitioned: whether tables and factors of products are partitioned over ranks and each
            shows one element (ZeRO-3).

    Raises:
        InputError: a symbol without a number, or every latency that is refused.
    """
    numbers = {**model.bindings, **(values or {})}
    tree = modules or declared_modules(model)
    counts = _Counts(model, version, numbers, tree, partitioned=partitioned)
    given = Latencies.read(latencies or {})
    top = _profiled(tree, "", counts, given, occurs_once=True)
    given.check(module.path for _, _, module in top.walk())
    return Profile(top, version, given.joined(run or Run()), given.classes)


@dataclass
class _Own:
    """What a module runs itself."""

    macs: int = 0
    flop: int = 0
    params: int = 0
    shared: dict[str, int] = field(default_factory=dict)


class _Counts:
    """What every module runs itself, by the paths of ops that it names."""

    def __init__(
        self,
        model: Model,
        version: Version,
        numbers: Mapping[str, object],
        tree: Module,
        *,
        partitioned: bool,
    ) -> None:
        self._numbers = numbers
        sizes = bind(model.sizes, numbers)
        self.sizes = {axis: value(size) for axis, size in sizes.items()}
        self._own = {path: _Own() for path in (*tree.paths(), "")}
        bound = replace(model, sizes=sizes)
        for row in cost(bound, version.macs).select(Quantity.FLOP, phase=Phase.FORWARD):
            self._owner(row.path).macs += int(value(row.expr))
        for row in cost(bound, version.flop).select(Quantity.FLOP, phase=Phase.FORWARD):
            self._owner(row.path).flop += int(value(row.expr))
        for part in model.parts:
            for op in part.ops:
                self._book_weights(f"{part.path}.{op.path}", op, partitioned=partitioned)

    def of(self, module: Module, *, top: bool) -> _Own:
        """Return what a module runs itself; the top also what no module names."""
        total = _Own()
        for path in (*module.ops, *(("",) if top else ())):
            own = self._own[path]
            total.macs += own.macs
            total.flop += own.flop
            total.params += own.params
            total.shared |= own.shared
        return total

    def number(self, expr: Expr) -> int:
        """Return the number of a repetition."""
        return int(value(bind(expr, self._numbers)))

    def _owner(self, path: str) -> _Own:
        """Return the entry of the longest named path that a path starts with."""
        while path and path not in self._own:
            path = path.rpartition(".")[0]
        return self._own[path]

    def _book_weights(self, path: str, op: Op, *, partitioned: bool) -> None:
        own = self._owner(path)
        for weight in op.weights:
            factor = isinstance(op, Einsum | Lookup) and weight in op.pattern.inputs
            whole = prod(int(self.sizes[axis]) for axis in weight.axes)
            elements = 1 if partitioned and factor else whole
            if weight.tensor.startswith("@"):
                own.shared[weight.tensor] = elements
            else:
                own.params += elements


def _profiled(
    module: Module, path: str, counts: _Counts, given: Latencies, *, occurs_once: bool
) -> Profiled:
    """Sum over a module and those inside."""
    repeat = counts.number(module.repeat)
    children = tuple(
        _profiled(
            replace(child, name=child.name or str(place)),
            f"{path}.{child.name or place}".lstrip("."),
            counts,
            given,
            occurs_once=occurs_once and repeat == 1,
        )
        for place, child in enumerate(module.children)
    )
    own = counts.of(module, top=not path)
    latency = given.modules.get(path)
    together = latency if occurs_once else None
    if together is not None and repeat > 1 and len(children) == 1:
        # A list is never called: its latency is that of what it holds.
        children = (replace(children[0], together=together),)
    shared = dict(own.shared)
    for child in children:
        shared |= child.shared_params
    return Profiled(
        module.name,
        path,
        module.cls,
        module.extra.format_map(counts.sizes),
        own.macs + repeat * sum(child.macs for child in children),
        own.flop + repeat * sum(child.flop for child in children),
        latency,
        together,
        children,
        repeat,
        own.params + repeat * sum(child.own_params for child in children),
        shared,
    )
