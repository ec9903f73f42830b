"""Views: the same elements under other axes.

A view computes nothing, but where an axis and the axis in its place are split differently, the
elements move: that is where sequence, context and expert parallelism communicate.

A cache is what generation keeps of a tensor from one step to the next. It joins the new positions
to the kept ones, so it is a view to a longer axis.
"""

from collections.abc import Iterable
from typing import Self

from symbolic_cost.conventions.questions import Saved
from symbolic_cost.errors import PatternError
from symbolic_cost.ops.op import Kernel, Op
from symbolic_cost.ops.pattern import Operand, Pattern, parse
from symbolic_cost.ops.placement import Placement
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class View(Op):
    """One tensor under new axes, or its parts; see `view` and `split`.

    Args:
        parts: whether the results are parts along an axis.
        saved: what is saved of what it gathers; None leaves it to the conventions.
    """

    parts: bool = False
    saved: Saved | None = None

    bulk = False  # nothing is computed

    def regathering(self) -> Self:
        """Return the view saving shards alone."""
        return replace(self, saved=Saved.SHARD)

    @property
    def whole_axes(self) -> tuple[str, ...]:
        """Return the axis along which parts are taken: a rank holds all of it or lacks parts."""
        whole, first = self.inputs[0], self.outputs[0]
        return tuple(a for a in whole.axes if a not in first.axes) if self.parts else ()

    @property
    def index_spaces(self) -> tuple[tuple[str, ...], ...]:
        """Those of every tensor: the two sides of a view are split independently."""
        return tuple(operand.axes for operand in (*self.inputs, *self.outputs))

    def misplaced(self, placement: Placement) -> list[str]:
        """Say also where the two sides are split so that no collective joins them.

        Blocks stay together only where inner mesh axes alone are gathered, or scattered.
        """
        problems = super().misplaced(placement)
        if self.parts:
            return problems
        for old, new in zip(self.inputs[0].axes, self.outputs[0].axes, strict=True):
            before, after = placement.meshes(old), placement.meshes(new)
            shorter, longer = sorted((before, after), key=len)
            if longer[len(longer) - len(shorter) :] != shorter:
                problems.append(
                    f"{old!r} is split over {' and '.join(before)}, {new!r} over "
                    f"{' and '.join(after)}, innermost first: a view gathers or scatters inner "
                    "mesh axes and keeps the outer ones"
                )
        return problems

    def kernels(self) -> tuple[Kernel, ...]:
        """Return none: nothing is read or written."""
        return ()

    def saves(self) -> tuple[Operand, ...]:
        """Return none."""
        return ()


def view(name: str, pattern: str) -> View:
    """Declare a change of axes, place by place: `view("gather", "x[b r e] -> y[b l e]")`.

    Raises:
        PatternError: not one tensor to one of as many axes.
    """
    parsed = parse(pattern)
    if not _takes_one_tensor(parsed) or len(parsed.outputs) != 1:
        raise PatternError(f"pattern {pattern!r}: a view takes one tensor to one tensor")
    if len(parsed.inputs[0].axes) != len(parsed.outputs[0].axes):
        raise PatternError(f"pattern {pattern!r}: a view keeps the number of axes")
    return View(name, parsed)


def split(name: str, pattern: str) -> View:
    """Declare the parts of a tensor along an axis that they lack.

    For example `split("split", "qkv[c b l h d] -> q[b l h d], k[b l h d], v[b l h d]")`.

    Raises:
        PatternError: the parts' axes are not those of the tensor less one.
    """
    parsed = parse(pattern)
    whole = set(parsed.inputs[0].axes)
    lost = {frozenset(whole - set(part.axes)) for part in parsed.outputs}
    if (
        not _takes_one_tensor(parsed)
        or any(len(part.axes) != len(whole) - 1 for part in parsed.outputs)
        or [len(axes) for axes in lost] != [1]
    ):
        raise PatternError(
            f"pattern {pattern!r}: a split takes one tensor to parts that lack one of its axes"
        )
    return View(name, parsed, parts=True)


def _takes_one_tensor(parsed: Pattern) -> bool:
    return len(parsed.inputs) == 1 and not parsed.inputs[0].is_weight and not parsed.biases


@dataclass(frozen=True)
class Cache(View):
    """A view whose result is kept for the next step; see `cache`."""

    kept: tuple[str, ...] = ()

    axis_fields = ("kept",)

    def caches(self) -> tuple[Operand, ...]:
        """Return the positions that are kept after the step."""
        return (replace(self.outputs[0], axes=self.kept),)


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


def uncached(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Return the ops of a model that takes no further step, for which it would keep anything."""
    return tuple(View(op.path, op.pattern) if isinstance(op, Cache) else op for op in ops)
