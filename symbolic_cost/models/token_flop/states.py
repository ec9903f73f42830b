"""States of recurrent layers and kinds of weights, and what conventions charge a token for them.

A state is what a layer keeps of all earlier tokens, of a size that no length changes: Mamba-2 keeps
h d N elements, the gated delta rule h k v. Frameworks charge so many FLOP per element and pass:

    7 h d N (Megatron-LM), 2 h d N (NeMo), 6 h k v (torchtitan)
"""

from collections.abc import Iterable, Iterator, Mapping

from sympy import Expr, Integer, Mul

from symbolic_cost.conventions.per_token import TokenConventions
from symbolic_cost.conventions.token_questions import Between, Inner, State, Unknown, Weights
from symbolic_cost.errors import InputError
from symbolic_cost.models.count import ROUTED
from symbolic_cost.ops.conv import Conv
from symbolic_cost.ops.declare import Model, Op, Operand, Part, Role
from symbolic_cost.ops.einsum import Einsum
from symbolic_cost.ops.elementwise import Elementwise
from symbolic_cost.ops.lookup import Lookup
from symbolic_cost.ops.op import Use
from symbolic_cost.ops.scan import Scan
from symbolic_cost.ops.view import Cache
from symbolic_cost.records import dataclass, replace

_KINDS = {
    (Role.INNER, Role.LATENT): State.SELECTIVE,
    (Role.HEAD, Role.LATENT, Role.WIDTH): State.DUAL,
    (Role.GROUP, Role.HEAD, Role.WIDTH, Role.WIDTH): State.DELTA,
    (Role.HEAD, Role.WIDTH, Role.WIDTH): State.LINEAR,
}
"""Kind of a state by the roles of its axes, sorted."""


@dataclass(frozen=True, slots=True)
class Held:
    """A state that a layer keeps.

    Args:
        kind: of it; None if it is none that conventions have rules for.
        path: of the op that keeps it.
        axes: of the state, without sequences.
        paths: of the products of states beside it.
    """

    kind: State | None
    path: str
    axes: tuple[str, ...]
    paths: tuple[str, ...]


def states_of(model: Model) -> Mapping[str, tuple[Held, ...]]:
    """Return the states of every part that has some, by its path."""
    every = {part.path: tuple(_part_states(model, part)) for part in model.parts}
    return {path: states for path, states in every.items() if states}


def _part_states(model: Model, part: Part) -> Iterator[Held]:
    ops = [stage for whole in part.ops for stage in whole.stages]
    paths = tuple(f"{part.path}.{op.path}" for op in ops if _of_states(op))
    states = [op for op in ops if isinstance(op, Cache) and last(op) == _STATE]
    for op in states:
        axes = tuple(a for a in op.kept if model.axes[a].role is not Role.BATCH)
        yield Held(_kind(model, axes, ops), op.path, axes, paths)
    if paths and not states:
        yield Held(None, paths[0].removeprefix(f"{part.path}."), (), paths)


_STATE = "state"


def last(op: Op) -> str:
    """Return the name of an op in its layer: "state" of "mixer.state"."""
    return op.path.rpartition(".")[2]


def _of_states(op: Op) -> bool:
    """Tell whether an op multiplies activations that are no pairs of positions."""
    product = isinstance(op, Einsum) and not op.weights and not op.pairs
    return product or isinstance(op, Scan)


def _kind(model: Model, axes: tuple[str, ...], ops: list[Op]) -> State | None:
    roles = (model.axes[name].role for name in axes)
    kind = _KINDS.get(tuple(sorted(role for role in roles if role is not Role.WHOLE)))
    if kind is not State.DELTA:
        return kind
    own = (w.axes for op in ops if not isinstance(op, Einsum) for w in op.weights)
    decays = {tuple(sorted(model.axes[a].role for a in weight)) for weight in own}
    by_channel = (Role.GROUP, Role.HEAD, Role.WIDTH) in decays
    return State.CHANNEL_DELTA if by_channel else kind


def as_wide(model: Model, answers: TokenConventions) -> Model:
    """Return the model whose states are as wide as the conventions take them to be."""
    widths: dict[str, Expr] = {}
    hidden = next((a for a in model.axis_names if model.axes[a].role is Role.HIDDEN), None)
    for one in (state for states in states_of(model).values() for state in states):
        rule = answers.states.get(one.kind) if one.kind else None
        if hidden and rule and rule.inner is Inner.TWICE:
            heads = Mul(*(model.sizes[a] for a in one.axes if model.axes[a].role is Role.HEAD))
            wide = 2 * model.sizes[hidden] / heads
            widths |= {a: wide for a in one.axes if model.axes[a].role is Role.WIDTH}
    return replace(model, sizes={**model.sizes, **widths}) if widths else model


def state_flop(model: Model, state: Held, answers: TokenConventions) -> tuple[Expr, str]:
    """Return the FLOP of a state per token and pass, and the answer that makes it so.

    Raises:
        InputError: the conventions have formulas for states, and none for this kind.
    """
    rule = answers.states.get(state.kind) if state.kind else None
    if rule is not None:
        return Mul(rule.flop, _elements(model, state, rule.between)), (
            f"{rule.flop} per element of a {state.kind} state and pass"
        )
    if answers.recurrence is Unknown.NONE:
        return Integer(0), "not counted: products of states"
    kind = f"a {state.kind} state ({state.kind.meaning})" if state.kind else "a state"
    known = " and ".join(f"{one} states" for one in answers.states) or "attention alone"
    raise InputError(
        f"model {model.name!r} keeps {kind} in {state.path}: {answers.name} has formulas for "
        f"{known} in models of family {model.family}; conventions that leave states out are "
        "accepted, such as palm or 6nd"
    )


def _elements(model: Model, state: Held, between: Between) -> Expr:
    sizes = {name: model.sizes[name] for name in state.axes}
    widths = [name for name in state.axes if model.axes[name].role is Role.WIDTH]
    if between is Between.VALUES and len(widths) > 1:
        sizes[widths[0]] = sizes[widths[-1]]
    return Mul(*sizes.values())


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
