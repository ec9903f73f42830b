"""Which weights are hidden matrices, which low precisions and some optimizers treat apart."""

from dataclasses import replace

from sympy import Expr

from symbolic_cost.axes import Glossary, Role, of_role
from symbolic_cost.conventions.questions import Role as Element
from symbolic_cost.lazy import Recent
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op, Use
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.pattern import Operand
from symbolic_cost.ops.stored import Stored

OTHERS = "others"
"""Format of weights that are no hidden matrices, where it is not that of all weights."""


def is_hidden_matrix(axes: Glossary, op: Op, weight: Operand) -> bool:
    """Tell whether a weight is a hidden matrix: no bias, norm, table or output head."""
    words = of_role(axes, weight.axes, Role.VOCABULARY)
    product = op.use is Use.PRODUCT and op.movable
    return product and weight in op.pattern.inputs and not any(words)


def with_others_in(model: Model, size: Expr) -> Model:
    """Return a model whose weights, hidden matrices aside, have elements of a size.

    For example under fp8 the matrices of a block have copies of 8 bits; its norms, the embedding
    and the head stay in 16 bits.

    Args:
        model: a weight that has a format of its own keeps it.
        size: of an element [byte].
    """
    held = _HELD.of((id(model.parts), size), lambda: _Held(model, size))
    if held.of is not model.parts:
        held = _Held(model, size)
    return replace(model, parts=held.parts)


class _Held:
    """Parts with the sizes of their weights, beside those that they were made of."""

    def __init__(self, model: Model, size: Expr) -> None:
        self.of, self.form = model.parts, Stored(OTHERS, size)
        self.parts = tuple(self._marked(model, part) for part in model.parts)

    def _marked(self, model: Model, part: Part) -> Part:
        matrices = {
            weight.tensor
            for op in part.ops
            for stage in (op, *op.stages)
            for weight in stage.weights
            if is_hidden_matrix(model.axes, stage, weight)
            and not _scores_experts(model.axes, stage, weight)
        }

        def mark(operand: Operand) -> Operand:
            other = operand.role is Element.WEIGHT and operand.tensor not in matrices
            plain = other and operand.stored is None
            return replace(operand, stored=self.form) if plain else operand

        return replace(part, ops=tuple(op.mapped(mark) for op in part.ops))


def _scores_experts(axes: Glossary, op: Op, weight: Operand) -> bool:
    """Tell whether a product has a score for every expert as its result: routers stay wide."""
    taken = {axis for one in op.inputs if not one.is_weight for axis in one.axes}
    return any(of_role(axes, set(weight.axes) - taken, Role.EXPERT))


_HELD: Recent[_Held] = Recent(16)
"""A search asks for it again and again."""
