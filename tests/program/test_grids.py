"""Grids: what is kept of them is what evaluating every point gives, in every engine."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.errors import InputError
from symbolic_cost.numeric.compiled import Compiled
from symbolic_cost.program import arrays, grids
from symbolic_cost.program.evaluator import Evaluator
from symbolic_cost.program.nest import gridded
from symbolic_cost.symbols import V, b, l, m1
from tests.program.recipes import configurations, graphs, real
from tests.program.test_bits import native, same

AXES = (
    {"b": [1, 2, 4]},
    {"l": [1024, 2048, 4096, 8192, 16384]},
    {"m1": [1, 2, 4, 8], "dp": [64, 32, 16, 8]},
    {"n_layers": [24, 96]},
    {"pp": [3, 4, 6]},
    {"M": [8, 16, 24, 48, 64, 96, 128]},
)


def fixed(program):
    numbers = configurations(program, 1)
    varied = {name for axis in AXES for name in axis}
    return {name: one[0] for name, one in numbers.items() if name not in varied}


def every_point(program, grid):
    places = np.stack([one.reshape(-1) for one in np.indices(grid.sizes)], axis=1)
    values = {n: np.float64(number) for n, number in grid.fixed.items()}
    values |= {n: grid.axes[a][n][places[:, a]] for n, a in grid.place.items()}
    return places, arrays.evaluated(program.tape, values, len(places))


@pytest.fixture(scope="module")
def job():
    program = real("gpt3-175b")
    grid = gridded(program.tape, AXES, fixed(program))
    return program, grid, *every_point(program, grid)


@pytest.mark.parametrize("most", [1 << 18, 200, 7, 1])
def test_blocks_are_the_grid(job, most):
    _, grid, _, expected = job
    found = np.full(grid.sizes, np.nan)
    for block in grids.blocks(grid, most):
        part = tuple(slice(a, a + n) for a, n in zip(block.starts, block.shape, strict=True))
        found.transpose(block.order)[part] = block.values["step"]
    assert same(found.reshape(-1), expected["step"])


@pytest.mark.parametrize("most", [1, 10, 5000])
def test_the_best_points(job, most, monkeypatch):
    monkeypatch.setattr(grids, "BLOCK", 500)
    _, grid, places, expected = job
    top = grids.Top("step", most)
    grids.reduced(grid, top)
    order = np.argsort(expected["step"], kind="stable")[:most]
    assert same(top.values, expected["step"][order])
    assert np.array_equal(top.places, places[order])
    assert top.count == grid.size


@native
@pytest.mark.parametrize("most", [1, 10, 3000])
def test_machine_code_finds_the_same(job, most, monkeypatch):
    from symbolic_cost.program import fast

    monkeypatch.setattr(fast, "_BLOCK", 64)
    program, grid, _, _ = job
    expected = grids.Top("step", most, "peak first")
    grids.reduced(grid, expected)
    found = fast.NativeTop(grid, "step", "peak first")(grid, most)
    assert same(found.values, expected.values)
    assert np.array_equal(found.places, expected.places)
    assert found.count == expected.count == grid.size
    assert program.inputs


@native
@settings(max_examples=20, deadline=None)
@given(graphs(), st.data())
def test_random_programs_on_random_grids(program, data):
    from symbolic_cost.program import fast

    names = data.draw(st.permutations(program.inputs))
    if not names:
        return
    axes = [{name: np.arange(1.0, data.draw(st.integers(2, 9)))} for name in names]
    grid = gridded(program.tape, axes, {})
    places, expected = every_point(program, grid)
    top = fast.NativeTop(grid, "out", "last")(grid, 3)
    counted = expected["last"] != 0
    values = np.where(counted, expected["out"], np.inf)
    order = [i for i in np.argsort(values, kind="stable") if np.isfinite(values[i])][:3]
    low = values[~np.isnan(values)]
    if not len(low) or low.min() == -np.inf:
        return
    assert same(top.values, values[order])
    assert top.places.tolist() == places[order].tolist()
    assert top.count == np.count_nonzero(counted)


def test_arrays_of_one_dimension_each_span_a_grid():
    compiled = Compiled({"cost": 100 * b + l / m1 + V})
    rows, columns = np.arange(1, 301).reshape(-1, 1), np.arange(1, 201)
    found = compiled({"b": rows, "l": columns, "m1": 4, "V": 2 * rows})["cost"]
    assert np.array_equal(found, 100.0 * rows + columns / 4 + 2 * rows)
    best = compiled.best({"b": rows, "l": columns, "m1": 4, "V": 2 * rows}, "cost", most=2)
    assert best.values.tolist() == [102.25, 102.5]
    assert best.places.tolist() == [[0, 0], [0, 1]]
    with pytest.raises(InputError, match="unknown expression 'coast': did you mean cost"):
        compiled.best({"b": 1, "l": columns, "m1": 1, "V": 1}, "coast")


def test_a_dimension_that_nothing_needs_is_there():
    found = Evaluator(real("gpt3-175b").chosen(["peak first"]))
    numbers = fixed(found.program) | {"b": 1.0, "l": 2048.0, "m1": 8.0}
    values = {n: numbers.get(n, 4.0) for n in found.inputs}
    shape = found({**values, "l": np.array([[[1024.0], [2048.0]]])})["peak first"].shape
    assert shape == (1, 2, 1)


def test_refusals():
    program = real("gpt3-175b")
    with pytest.raises(InputError) as caught:
        gridded(program.tape, ({"b": [1, 2], "l": [1]}, {"M": []}), {"b": 3})
    said = list(caught.value.problems)
    assert "b has two values" in said
    assert "no value for symbol 'm1'" in said
    assert any("equally long" in one for one in said)
