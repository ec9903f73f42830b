"""What the placement says of results, acted out with arrays on every rank."""

import numpy as np
from hypothesis import given

from symbolic_cost.ops.placement import Partial, Replicate, Shard
from tests.laws.simulator import array, contract, places, ranks_of, taken
from tests.strategies import placed_contractions


def assembled(axes, sizes, placement, states, local):
    """Put the ranks' results together as their states say: concatenate, add, or take any."""
    whole = np.zeros(tuple(sizes[axis] for axis in axes), dtype=np.int64)
    for rank in ranks_of(placement):
        first = {
            mesh: 0 if isinstance(states[mesh], Replicate) else place
            for mesh, place in rank.items()
        }
        values = local(rank)
        if first != rank:
            np.testing.assert_array_equal(values, local(first))
            continue
        kept = tuple(
            mine if any(state == Shard(axis) for state in states.values()) else range(sizes[axis])
            for axis, mine in zip(axes, places(axes, sizes, placement, rank), strict=True)
        )
        whole[np.ix_(*kept)] += values
    return whole


def local_factors(operands, drawn, arrays, rank):
    return [
        (o.axes, taken(arrays[o.tensor], places(o.axes, drawn.sizes, drawn.placement, rank)))
        for o in operands
    ]


def states_of(drawn, operand):
    return drawn.placement.states(operand.axes, drawn.op.summing_space(operand))


@given(placed_contractions())
def test_forward_of_all_ranks_is_forward_of_one(drawn):
    op, sizes = drawn.op, drawn.sizes
    operands = op.pattern.inputs + op.pattern.biases
    arrays = {o.tensor: array(o.axes, sizes, i) for i, o in enumerate(operands)}
    states = states_of(drawn, op.result)

    def with_biases(products, biases):
        for axes, values in biases:
            ones = (op.result.axes, np.ones_like(products))
            products = products + contract(op.result.axes, [ones, (axes, values)])
        return products

    def local(rank):
        products = contract(op.result.axes, local_factors(op.pattern.inputs, drawn, arrays, rank))
        # A partial result gets its bias on the first rank only.
        first = all(rank[m] == 0 for m, state in states.items() if isinstance(state, Partial))
        biases = local_factors(op.pattern.biases, drawn, arrays, rank) if first else []
        return with_biases(products, biases)

    whole = with_biases(
        contract(op.result.axes, [(o.axes, arrays[o.tensor]) for o in op.pattern.inputs]),
        [(bias.axes, arrays[bias.tensor]) for bias in op.pattern.biases],
    )
    found = assembled(op.result.axes, sizes, drawn.placement, states, local)
    np.testing.assert_array_equal(found, whole)


@given(placed_contractions())
def test_gradients_of_all_ranks_are_gradients_of_one(drawn):
    op, sizes = drawn.op, drawn.sizes
    operands = (op.result, *op.pattern.inputs)
    arrays = {o.tensor: array(o.axes, sizes, i) for i, o in enumerate(operands)}
    jobs = [
        (operand, [o for o in operands if o is not operand])
        for operand in op.pattern.inputs
        if operand.needs_gradient
    ]
    jobs += [(bias, [op.result]) for bias in op.pattern.biases]
    for operand, factors in jobs:
        whole = contract(operand.axes, [(o.axes, arrays[o.tensor]) for o in factors])

        def local(rank, operand=operand, factors=factors):
            return contract(operand.axes, local_factors(factors, drawn, arrays, rank))

        states = states_of(drawn, operand)
        found = assembled(operand.axes, sizes, drawn.placement, states, local)
        np.testing.assert_array_equal(found, whole)
