"""Tapes in layers: every bit of the steps one by one, also of some outputs and read from bytes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.program.arrays import Spread, evaluated
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.layered import layered, read
from symbolic_cost.program.layering import layers_of
from symbolic_cost.program.scalars import function
from symbolic_cost.program.tape import recorded
from tests.program.recipes import configurations, graphs, real, values
from tests.program.test_bits import columns, same


def grouped(tape):
    """The tape with its outputs in groups, every second one in the second."""
    names = {f"{place % 2}|{name}": tape.outputs[name] for place, name in enumerate(tape.outputs)}
    return replace(tape, outputs=names)


def checked(tape, taken, size):
    own = layered(tape)
    for layers in (own, read(layers_of(tape))):
        assert layers.tape == tape
        assert same(layers.run(taken, size), [*evaluated(tape, taken, size).values()])
        for place, name in enumerate(tape.outputs):
            one = layers.only(np.arange(len(tape.outputs)) == place)
            alone = tape.only([name])
            assert one.tape == alone
            assert same(one.run(taken, size)[0], evaluated(alone, taken, size)[name])


@settings(max_examples=30)
@given(graphs(), st.lists(values(), min_size=1, max_size=9))
def test_layers_are_the_steps(program, rows):
    tape = grouped(program.tape)
    checked(tape, columns(program, rows), len(rows))
    run, taken = function(tape), columns(program, rows)
    singly = [run(*(taken[name][row] for name in tape.inputs)) for row in range(len(rows))]
    assert same(layered(tape).run(taken, len(rows)), np.array(singly).T)


def test_layers_of_a_job():
    program = real("gpt3-175b")
    taken = {n: np.asarray(c, float) for n, c in configurations(program, 1200).items()}
    checked(grouped(program.tape), taken, 1200)


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]\n", None])
def test_what_is_no_layers_is_refused(damage):
    data = layers_of(grouped(real("gpt3-175b").tape))
    with pytest.raises((ValueError, KeyError, TypeError)):
        read(data[:-20] if damage is None else damage)


def test_a_product_is_evaluated_over_the_axes_that_steps_depend_on():
    tape, sizes = grouped(real("gpt3-175b").tape), (2, 3, 5)
    names = [tape.inputs[place::3] for place in range(3)]
    rng, pool = np.random.default_rng(0), []
    for _ in range(2):  # the second time in buffers that are bound
        axes = [
            {name: rng.integers(1, 99, size).astype(float) for name in own}
            for own, size in zip(names, sizes, strict=True)
        ]
        flat = {
            name: np.broadcast_to(np.expand_dims(column, axis), sizes).reshape(-1)
            for column_axis, own in enumerate(axes)
            for name, column in own.items()
            for axis in [[other for other in range(3) if other != column_axis]]
        }
        whole = evaluated(tape, flat, 30)
        spread = Spread(tape, names, sizes, pool)
        for _ in range(2):
            for name, array in spread(axes).items():
                assert same(np.broadcast_to(array, sizes).reshape(-1), whole[name])


def test_what_a_thread_runs_first_may_need_no_register():
    nothing = layered(recorded(Graph({}), {}))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(nothing.run, {}, 3).result().shape == (0, 3)
