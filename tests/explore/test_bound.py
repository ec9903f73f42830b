"""Branch and bound finds what pricing every combination finds, and its bound holds."""

from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.explore.bound import minimum
from symbolic_cost.explore.boxes import Axis, Piece, Wish
from symbolic_cost.program.arrays import evaluated
from tests.program.recipes import SYMBOLS, graphs


def brute(pieces, axes):
    """The least value of all combinations, and how many meet the conditions."""
    best, meeting = np.inf, 0
    for piece in pieces:
        grid = list(product(range(piece.count), *(axis.values for axis in axes)))
        columns = {
            n: np.array([values[int(p[0])] for p in grid]) for n, values in piece.rows.items()
        }
        columns |= {axis.symbol: np.array([p[1 + k] for p in grid]) for k, axis in enumerate(axes)}
        found = evaluated(piece.tape, {n: columns[n] for n in piece.tape.inputs}, len(grid))
        for wish in piece.wishes:
            value = wish.sign * found[wish.objective]
            meets = np.isfinite(value)
            for name in wish.conditions:
                meets &= found[name] != 0
            for name, most in wish.most.items():
                meets &= found[name] <= most
            meeting += int(meets.sum())
            best = min(best, float(np.min(np.where(meets, value, np.inf))))
    return best, meeting


def same(pieces, axes):
    found = minimum(pieces, axes)
    value, meeting = brute(pieces, axes)
    assert not found.open
    assert found.value == value
    assert found.bound <= value
    assert (found.piece < 0) == (meeting == 0)
    rows = sum(piece.count * len(piece.wishes) for piece in pieces)
    assert found.combinations == rows * prod(len(axis.values) for axis in axes)
    return found


def drawn(draw, name):
    if SYMBOLS[name]:
        return np.array(sorted(draw(st.sets(st.integers(1, 4096), min_size=1, max_size=7))), float)
    rates = st.floats(1 / 64, 1000, allow_subnormal=False)
    return np.array(sorted(draw(st.sets(rates, min_size=1, max_size=7))))


@pytest.mark.slow
@settings(max_examples=200)
@given(graphs(), st.data())
def test_random_tapes(program, data):
    sign = data.draw(st.sampled_from((1, -1)))
    most = {"last": data.draw(st.floats(0.1, 1e4))} if data.draw(st.booleans()) else {}
    axes = [Axis(name, drawn(data.draw, name)) for name in ("b", "m1", "beta")]
    rows = data.draw(st.integers(1, 4))
    numbers = {"V": st.integers(1, 4096), "alpha": st.floats(1, 10)}
    columns = {
        name: np.array([float(data.draw(one)) for _ in range(rows)])
        for name, one in numbers.items()
    }
    inputs = program.tape.inputs
    kept = {name: column for name, column in columns.items() if name in inputs}
    wishes = Wish("out", sign, (), most), Wish("last", -sign)
    same([Piece(program.tape, wishes[: data.draw(st.integers(1, 2))], kept, rows)], axes)
