"""Strategies that give some ops axes of their own, with views between them and all others.

What an algorithm gathers, scatters or exchanges before an op follows from the names: an axis that
is whole inside an op gets a name of its own, of the same size, which no mesh axis splits.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from sympy import Expr

from symbolic_cost.axes import At, Axis, Glossary, Role, of_role
from symbolic_cost.conventions.questions import Saved
from symbolic_cost.errors import PlacementError
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op, Use
from symbolic_cost.ops.part import Part, retitled
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
        raise PlacementError(
            f"{op.path}: a {op.kind} runs under its declared axes alone, and here it would need "
            f"others for {' and '.join(names)}"
        )
    (moved,) = retitled((op,), names)
    return moved


def _axes(axes: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(axis, axis) for axis in axes)


_INSIDE = (Role.HEAD, Role.INNER, Role.VOCABULARY)
"""Features inside a layer; the residual stream has hidden ones."""

SUMMED = "summed"
"""Copy of the axes over which a product sums all at once."""


def exchange_heads(model: Model) -> Model:
    """Give the attention core all positions of some heads (Ulysses)."""
    return relabel(model, _exchanged)


def two_dimensions(model: Model) -> Model:
    """Let products with weights sum over whole axes, and look tables up in one piece (SUMMA).

    Of x[b l e] w[e f] over m1, e and f are both split where they are kept; panels bring every rank
    all of e, so that it makes its own f of the result and nothing is left to be summed.
    """
    return relabel(model, _whole_inputs)


def three_dimensions(model: Model) -> Model:
    """Let products take the rows of a plane, and split rows inside layers in another way.

    Sequences b are over m1 and m3 on the residual stream and over m2 and m3 inside a layer; a
    product gathers those of its plane, so that they are over m3 alone while it runs.
    """
    return relabel(model, _planes, _between_planes)


def keep_key_shards(model: Model) -> Model:
    """Save shards of the keys and values that come round, and no copies (ring attention)."""
    parts = tuple(
        replace(
            part, ops=tuple(_in_shards(op, model.axes) for op in _uncopied(part.ops, model.axes))
        )
        for part in model.parts
    )
    return replace(model, parts=parts)


def whole_experts(model: Model) -> Model:
    """Let ranks that hold a part of the positions send their tokens to whole experts.

    An expert's width is that of one rank, and what is sent to it is not gathered again:
    posted[u z_r x e] is sent[u z x e], with x over the tensor-parallel ranks as well.
    """
    routed = model.placed(At(Role.TOKEN, ("routed",)))

    def rule(op: Op, known: Glossary) -> Names:
        if not any(known[name] in _ROUTED for name in op.axes if name in known):
            return {}
        posted = (name for name in op.axes if known[name] in _POSTED)
        inner = {n: _copy(known[n], "whole") for n in of_role(known, op.axes, Role.INNER)}
        return {**inner, **{name: axis for name in posted for axis in routed}}

    return relabel(model, rule)


_ROUTED = At(Role.EXPERT, ("",))
_POSTED = At(Role.TOKEN, ("posted",))


def undivided(axis: str) -> Axis:
    """Return the copy of an axis that no mesh axis splits."""
    return Axis(f"{axis}_whole", Role.WHOLE, SUMMED)


def _copy(axis: Axis, copy: str) -> Axis:
    return replace(axis, name=f"{axis.name}_{copy}", copy=copy)


def _attends(op: Op, known: Glossary) -> bool:
    """Return whether an op gives keys or values; weights that nothing reads give nothing."""
    return bool(op.outputs) and any(of_role(known, op.outputs[0].axes, Role.KEY_TOKEN))


def _uncopied(ops: tuple[Op, ...], known: Glossary) -> Iterator[Op]:
    """Yield ops that take keys and values themselves where they took copies."""
    sources: dict[str, Operand] = {}
    for op in ops:
        if op.repeats and _attends(op, known):
            sources[op.outputs[0].tensor] = op.inputs[0]
            continue
        yield op.retaken(sources)


def _in_shards(op: Op, known: Glossary) -> Op:
    return op.regathering() if _attends(op, known) else op


def _exchanged(op: Op, known: Glossary) -> Names:
    """Rename heads and positions of the core; biases that all heads share keep their positions."""
    keyed = any(of_role(known, op.axes, Role.KEY_TOKEN))
    if not op.core and not (keyed and any(of_role(known, op.axes, Role.HEAD))):
        return {}
    exchanged = [
        *(known[name] for name in of_role(known, op.axes, Role.HEAD)),
        *(known[name] for name in of_role(known, op.axes, Role.TOKEN)),
    ]
    return {axis.name: _copy(axis, "core") for axis in exchanged}


def _whole_inputs(op: Op, known: Glossary) -> Names:
    if op.use is Use.ROWS:
        return {name: undivided(name) for name in of_role(known, op.axes, Role.VOCABULARY)}
    if op.use is not Use.PRODUCT or not op.movable:
        return {}
    return {axis: undivided(axis) for axis in op.axes if axis not in op.outputs[0].axes}


def _planes(op: Op, known: Glossary) -> Names:
    if op.use is Use.ROWS:
        return {name: undivided(name) for name in of_role(known, op.axes, Role.VOCABULARY)}
    if op.use is Use.PRODUCT and op.movable:
        copy = "plane"
    elif any(of_role(known, op.axes, *_INSIDE)):
        copy = "inner"
    else:
        return {}
    return {name: _copy(known[name], copy) for name in of_role(known, op.axes, Role.BATCH)}


def _between_planes(result: Operand, known: Glossary) -> Names:
    inside = any(of_role(known, result.axes, *_INSIDE))
    waiting = {}
    for name in of_role(known, result.axes, Role.BATCH):
        if known[name].copy == "plane":
            plain = replace(known[name], name=name.removesuffix("_plane"), copy="")
            waiting[name] = _copy(plain, "inner") if inside else plain
    return waiting
