"""Kinds of weights as conventions on the FLOP of a token name them: by ops and roles of axes."""

from collections.abc import Iterable

from symbolic_cost.conventions.token_questions import Weights
from symbolic_cost.models.count import ROUTED
from symbolic_cost.models.token_flop.states import Held, last
from symbolic_cost.ops.conv import Conv
from symbolic_cost.ops.declare import Model, Operand, Role
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.elementwise import Elementwise
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.op import Op, Use


def weight_kind(model: Model, states: tuple[Held, ...], op: Op, weight: Operand) -> Weights:
    """Return the kind of a weight.

    Args:
        model: whose axes have roles.
        states: of the part that the op is in.
        op: that the weight is of.
        weight: one of its weights.
    """
    if isinstance(op, Lookup):
        vocabulary = Role.VOCABULARY in _roles(model, weight.axes)
        return Weights.TABLE if vocabulary else Weights.POSITIONS
    if weight in op.pattern.biases:
        return Weights.BIASES
    if isinstance(op, Einsum):
        return _product(model, op, weight)
    beside = op.path.startswith(tuple(one.path.rpartition(".")[0] + "." for one in states))
    if isinstance(op, Elementwise):
        inside = beside and Role.HIDDEN not in _roles(model, op.row)
        return Weights.OTHER if inside else _elementwise(model, op)
    if isinstance(op, Conv) and beside:
        return Weights.CONVOLUTIONS
    return Weights.PRODUCTS if op.use is Use.PRODUCT else Weights.OTHER


def is_perceptron(model: Model, op: Op) -> bool:
    """Tell whether an op is a product of a feed-forward layer."""
    axes = (name for weight in op.weights for name in weight.axes)
    return isinstance(op, Einsum) and _roles(model, axes) == {Role.HIDDEN, Role.INNER}


def _roles(model: Model, axes: Iterable[str]) -> set[Role]:
    return {model.axes[name].role for name in axes}


def _product(model: Model, op: Op, weight: Operand) -> Weights:
    roles = _roles(model, weight.axes)
    if Role.VOCABULARY in roles:
        return Weights.HEAD
    if Role.EXPERT in roles:
        routed = any(axis.name in weight.axes for axis in model.placed(ROUTED))
        return Weights.EXPERTS if routed else Weights.ROUTER
    if roles == {Role.HIDDEN} and len(op.weights) == 1:
        return Weights.SHARED_GATES
    if roles == {Role.HIDDEN, Role.INNER} and ".shared." in f".{op.path}":
        return Weights.SHARED
    gates = last(op) == "gate" and {Role.HEAD, Role.WIDTH} <= roles
    return Weights.GATES if gates else Weights.PRODUCTS


def _elementwise(model: Model, op: Elementwise) -> Weights:
    if op.kind == "softmax":
        return Weights.SINKS
    if not op.kind.endswith("norm") and "norm_" not in op.kind:
        return Weights.OTHER
    rows = _roles(model, op.row)
    if rows & {Role.WIDTH, Role.HEAD, Role.GROUP}:
        return Weights.HEAD_NORMS
    return Weights.LATENT_NORMS if Role.LATENT in rows else Weights.NORMS
