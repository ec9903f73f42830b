"""Inference: prefill, decode steps, caches, the batch that fits, and quantised weights.

A decode step is the declaration of the model on one new token and c cached ones, so that nothing
here is a formula. `declare` is whatever makes a model for a shape: `models.llama`, or
`partial(from_config, path)`.
"""

from collections.abc import Callable
from dataclasses import replace

from sympy import Add, Expr, Integer, Rational, floor

from symbolic_cost.axes import At, Role
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.costs import forward_pass
from symbolic_cost.errors import InputError, quote, refuse
from symbolic_cost.extrema import Max, Min
from symbolic_cost.ledger import CostTable, Quantity
from symbolic_cost.models.count import QUEUE, ROUTED
from symbolic_cost.models.fields import is_size
from symbolic_cost.models.shape import DECODE, TRAINING, Shape
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model
from symbolic_cost.symbols import exact, size

Declare = Callable[[Shape], Model]


BITS = (2, 3, 4, 5, 6, 8)
"""Widths of quantised weights."""


def prefill(declare: Declare, conventions: Conventions, shape: Shape = TRAINING) -> CostTable:
    """Return the forward pass over a prompt: FLOP, traffic [byte], and the cache it leaves."""
    return forward_pass(cost(_declared(declare, shape), conventions))


def decode(declare: Declare, conventions: Conventions, shape: Shape = DECODE) -> CostTable:
    """Return one decode step: FLOP, traffic [byte], and the cache after it.

    Of the experts, no more are read than the batch chooses.
    """
    return forward_pass(cost(touched(_declared(declare, shape)), conventions))


def _declared(declare: Declare, shape: Shape) -> Model:
    """Return what a function of the user declares."""
    model: object = declare(shape)
    if not isinstance(model, Model):
        raise InputError(f"declare returns {quote(model)}: a Model is accepted")
    return model


def touched(model: Model) -> Model:
    """Return a model whose experts are at most those that its tokens choose."""
    experts, queue = model.placed(ROUTED), model.placed(QUEUE)
    if not experts or not queue:
        return model
    copies = model.work[1] * model.size(At(Role.SLOT))
    chosen = Min(model.size(ROUTED), copies)
    per_expert = copies / (model.size(At(Role.BATCH, ("routed",))) * chosen)
    queues = dict.fromkeys((axis.name for axis in queue), per_expert)
    return replace(model, sizes={**model.sizes, experts[0].name: chosen, **queues})


def cached_bytes(declare: Declare, conventions: Conventions, shape: Shape = TRAINING) -> Expr:
    """Return the bytes that the cache takes after the tokens of a shape [byte]."""
    return cost(_declared(declare, shape), conventions).total(Quantity.CACHE)


def intensity(declare: Declare, conventions: Conventions, shape: Shape = DECODE) -> Expr:
    """Return the arithmetic intensity of a decode step: FLOP per byte read or written [1]."""
    step = decode(declare, conventions, shape)
    flop = step.total(Quantity.FLOP)
    return flop / Add(step.total(Quantity.READ), step.total(Quantity.WRITE))


def batch_that_fits(
    declare: Declare, conventions: Conventions, memory: object, context: object
) -> Expr:
    """Return how many sequences of a context fit beside the weights [sequence].

    Args:
        declare: makes the model.
        conventions: give the size of an element of weights and cache.
        memory: that weights and cache may take [byte].
        context: tokens of each sequence.

    Raises:
        InputError: memory or context is no number and no formula, or the model keeps no cache.
    """
    table = cost(_declared(declare, Shape(Integer(1), size(context, "context"))), conventions)
    left, each = exact(memory) - table.total(Quantity.WEIGHT), table.total(Quantity.CACHE)
    if each == 0:
        raise InputError(f"model {table.name!r} keeps no cache: any number of sequences fits")
    return Max(0, floor(left / each))


def weight_only(conventions: Conventions, bits: int, group: int | None = None) -> Conventions:
    """Return conventions under which weights are quantised and all else stays.

    Args:
        conventions: of everything else.
        bits: of one weight.
        group: weights that share a scale of 16 bits; none if not given.

    Raises:
        InputError: a width that is not used, or a group that is no count.
    """
    problems = []
    if bits not in BITS:
        problems.append(f"bits = {bits!r}: accepted are {', '.join(map(str, BITS))}")
    if group is not None and not is_size(group):
        problems.append(f"group = {group!r}: a positive integer is accepted")
    refuse(problems)
    width = Rational(bits, 8) + (Rational(_SCALE_BYTES, group) if group else 0)
    return replace(
        conventions,
        name=f"{conventions.name}, int{bits} weights",
        sizes=replace(conventions.sizes, weight=width),
    )


_SCALE_BYTES = 2
