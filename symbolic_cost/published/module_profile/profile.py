"""Profiles: the numbers of every module and, where latencies are given, how long it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sympy import Expr

from symbolic_cost.errors import InputError
from symbolic_cost.numeric.binding import bind, value
from symbolic_cost.ops.graph import Model
from symbolic_cost.published.module_profile.counted import (
    VERSION_2023,
    Counted,
    Version,
    counted,
)
from symbolic_cost.published.module_profile.latencies import Latencies, Run
from symbolic_cost.published.module_profile.modules import Module, declared_modules
from symbolic_cost.published.module_profile.numbers import Span


@dataclass(frozen=True)
class Profiled:
    """One module with its totals.

    Args:
        name: inside its parent.
        path: dotted names from the top; empty for the top.
        cls: its class.
        extra: its own description.
        params: parameters [element].
        macs: multiply-accumulates of one forward pass.
        flop: of one forward pass.
        latency: of one forward pass [s], if known.
        together: latency of all its occurrences, if known.
        children: the modules inside; of repeated groups the first.
        repeat: how often the children occur.
    """

    name: str
    path: str
    cls: str
    extra: str
    params: int
    macs: int
    flop: int
    latency: Span | None
    together: Span | None
    children: tuple[Profiled, ...]
    repeat: int

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
        partitioned: as for `counted`.

    Raises:
        InputError: a symbol without a number, sizes that do not divide, or every latency that is
            refused.
    """
    tree = modules or declared_modules(model)
    formulas = counted(model, tree, version, partitioned=partitioned)
    given = Latencies.read(latencies or {})
    given.check(module.path for module in formulas.walk())
    numbers = _Numbers(model, {**model.bindings, **(values or {})})
    top = _profiled(formulas, numbers, given, occurs_once=True)
    return Profile(top, version, given.joined(run or Run()), given.classes)


class _Numbers:
    """Puts numbers for symbols."""

    def __init__(self, model: Model, values: Mapping[str, object]) -> None:
        self._values = values
        self.sizes = {
            axis: self.whole(model.sizes[axis], f"axis {axis!r}") for axis in model.axis_names
        }

    def whole(self, expr: Expr, what: str = "a count") -> int:
        """Return the integer that a formula stands for.

        Raises:
            InputError: symbols are left, or sizes do not divide.
        """
        number = value(bind(expr, self._values))
        if not isinstance(number, int):
            raise InputError(f"{what} is {number}, not a whole number: sizes do not divide")
        return number


def _profiled(
    found: Counted, numbers: _Numbers, given: Latencies, *, occurs_once: bool
) -> Profiled:
    module = found.module
    repeat = numbers.whole(module.repeat)
    once = occurs_once and repeat == 1
    children = tuple(_profiled(child, numbers, given, occurs_once=once) for child in found.children)
    latency = given.modules.get(found.path)
    together = latency if occurs_once else None
    if together is not None and repeat > 1 and len(children) == 1:
        # A list is never called: its latency is that of what it holds.
        children = (replace(children[0], together=together),)
    return Profiled(
        name=module.name,
        path=found.path,
        cls=module.cls,
        extra=module.extra.format_map(numbers.sizes),
        params=numbers.whole(found.params),
        macs=numbers.whole(found.macs),
        flop=numbers.whole(found.flop),
        latency=latency,
        together=together,
        children=children,
        repeat=repeat,
    )
