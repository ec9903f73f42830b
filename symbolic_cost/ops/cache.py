"""Caches: what generation keeps of a tensor from one step to the next.

A cache joins the new positions of a tensor to the kept ones, so it is a view to a longer axis.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from symbolic_cost.errors import PatternError
from symbolic_cost.ops.op import AxesMap, Op, OperandMap
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.view import View, view
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Cache(View):
    """A view whose result is kept for the next step; see `cache`."""

    kept: tuple[str, ...] = ()

    def mapped_fields(self, operand: OperandMap, axes: AxesMap) -> dict[str, Any]:  # noqa: ARG002
        """Return what is kept under other axes."""
        return {"kept": axes(self.kept)}

    def caches(self) -> tuple[Operand, ...]:
        """Return the positions that are kept after the step."""
        return (replace(self.outputs[0], axes=self.kept),)


def uncached(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Return the ops of a model that takes no further step, for which it would keep anything."""
    return tuple(View(op.path, op.pattern) if isinstance(op, Cache) else op for op in ops)


def cache(name: str, pattern: str, kept: str) -> Cache:
    """Declare a cache: `cache("keys", "k[b l k d] -> keys[b t k d]", kept="b m k d")`.

    Args:
        name: of the op.
        pattern: of a view, from new positions to all positions that are used.
        kept: axes of what is kept afterwards, place by place as in the result.

    Raises:
        PatternError: not a view, or `kept` has another number of axes.
    """
    shared = view(name, pattern)
    axes = tuple(kept.split())
    if len(axes) != len(shared.outputs[0].axes):
        raise PatternError(f"pattern {pattern!r}: kept axes [{kept}] are not those of the result")
    return Cache(name, shared.pattern, kept=axes)
