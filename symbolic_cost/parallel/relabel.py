"""Other axes for some ops of a model, with views where a tensor passes from one to the other.

What an algorithm gathers, scatters or exchanges before an op follows from the names: an axis that
is whole inside an op gets a name of its own, of the same size, which no mesh axis splits.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sympy import Expr

from symbolic_cost.axes import Axis, Glossary
from symbolic_cost.conventions.questions import Saved
from symbolic_cost.errors import PlacementError
from symbolic_cost.ops.graph import Model, Part
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand, Pattern
from symbolic_cost.ops.view import View

Names = Mapping[str, Axis]
Rule = Callable[[Op, Glossary], Names]
Rest = Callable[[Operand, Glossary], Names]


class _Axes:
    """Sizes and roles of a model's axes, and of the copies that ops are given."""

    def __init__(self, model: Model) -> None:
        self.sizes: dict[str, Expr] = dict(model.sizes)
        self.known: dict[str, Axis] = dict(model.axes)

    def copied(self, names: Names, used: tuple[str, ...]) -> dict[str, str]:
        """Return new names by old ones, of those that are used; the copies are of one size."""
        renamed = {old: axis for old, axis in names.items() if old in used}
        for old, axis in renamed.items():
            self.sizes[axis.name] = self.sizes[old]
            self.known[axis.name] = axis
        return {old: axis.name for old, axis in renamed.items()}


def relabel(model: Model, rule: Rule, rest: Rest = lambda _, __: {}) -> Model:
    """Return a model of which every op runs under the axes that a rule gives it.

    Raises:
        PlacementError: an op that cannot run under other axes.
    """
    axes = _Axes(model)
    parts = tuple(replace(part, ops=_relabel_ops(part, rule, rest, axes)) for part in model.parts)
    return replace(model, parts=parts, sizes=axes.sizes, axes=axes.known)


def _relabel_ops(part: Part, rule: Rule, rest: Rest, axes: _Axes) -> tuple[Op, ...]:
    written: dict[str, tuple[str, ...]] = {}
    ops: list[Op] = []
    for op in part.ops:
        names = axes.copied(rule(op, axes.known), op.axes)
        moved = with_axes(op, names) if names else op
        for declared, operand in zip(op.inputs, moved.inputs, strict=True):
            # What comes from outside arrives as declared; constants are wherever they are needed.
            outside = operand.axes if declared.constant else declared.axes
            before = written.setdefault(operand.tensor, outside)
            if before != operand.axes:
                moved = _viewed(moved, operand, before, written, ops)
        moved, rested = _rested(moved, rest, axes)
        ops += [moved, *rested]
        written |= {
            operand.tensor: operand.axes for op in (moved, *rested) for operand in op.outputs
        }
    return tuple(ops)


def _rested(op: Op, rest: Rest, axes: _Axes) -> tuple[Op, tuple[View, ...]]:
    """Return an op whose results wait under other axes, and the views to those."""
    sources, views = {}, []
    for operand in op.outputs:
        names = axes.copied(rest(operand, axes.known), operand.axes)
        if names:
            source = sources[operand.tensor] = operand.renamed(f"{operand.tensor}.made")
            waiting = replace(operand, axes=_axes(operand.axes, names))
            pattern = Pattern(operand.tensor, (source,), (), (waiting,))
            views.append(View(f"{operand.tensor}.view", pattern, saved=Saved.SHARD))
    return op.retaken(sources), tuple(views)


def _viewed(
    op: Op,
    operand: Operand,
    before: tuple[str, ...],
    written: dict[str, tuple[str, ...]],
    ops: list[Op],
) -> Op:
    """Return an op that takes an operand from a view, declared before it unless it is there."""
    name = f"{operand.tensor}.{'_'.join(operand.axes)}"
    if name not in written:
        written[name] = operand.axes
        source, path = replace(operand, axes=before), f"{operand.tensor}.view"
        pattern = Pattern(name, (source,), (), (operand.renamed(name),))
        taken = any(other.path == path for other in ops)  # a tensor may be seen in several ways
        ops.append(View(f"{name}.view" if taken else path, pattern, saved=Saved.SHARD))
    return op.retaken({operand.tensor: operand.renamed(name)})


def with_axes(op: Op, names: Mapping[str, str]) -> Op:
    """Return an op under new axes.

    Raises:
        PlacementError: it cannot run under other axes.
    """
    if not op.movable:
        raise PlacementError(f"{op.path}: a {op.kind} keeps its axes {', '.join(names)}")
    return op.mapped(
        lambda operand: replace(operand, axes=_axes(operand.axes, names)),
        lambda axes: _axes(axes, names),
    )


def _axes(axes: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(axis, axis) for axis in axes)
