"""How many layers slide, what cells save, and the windows of uneven pools: counted by hand."""

import json
from pathlib import Path

import pytest
from sympy import Integer

from symbolic_cost.layers.conv import Maps, Trail
from symbolic_cost.layers.pool import AdaptiveMean
from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.models.config import from_config

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH = json.loads((GOLDEN / "torch_truth_decoders.json").read_text(encoding="utf-8"))


def blocks(name, **changes):
    """Layers by kind, of a configuration that does not list them."""
    config = next(entry["config"] for entry in TRUTH if entry["id"] == name)
    unlisted = {key: value for key, value in config.items() if key != "layer_types"}
    model = from_config(unlisted | changes)
    return {part.path: int(part.repeat) for part in model.parts if part.path.endswith("block")}


def test_every_sixth_layer_of_gemma_3_is_full():
    """Of 26 layers those numbered 6, 12, 18 and 24."""
    assert blocks("gemma-3-1b", sliding_window_pattern=6) == {"sliding.block": 22, "full.block": 4}


@pytest.mark.parametrize(("first", "sliding"), [(20, 8), (27, 1)])
def test_layers_of_qwen_slide_from_a_given_one_on(first, sliding):
    """Layers are counted from zero: 20 to 27 are eight of 28."""
    window = {"use_sliding_window": True, "sliding_window": 4096, "max_window_layers": first}
    assert blocks("qwen2-7b", **window) == {"full.block": first, "sliding.block": sliding}


@pytest.mark.parametrize(
    ("cell", "saved"),
    [
        (Cell.RNN, {"x", "y"}),
        (Cell.GRU, {"x", "y", "gates", "candidate"}),
        (Cell.LSTM, {"x", "y", "gates", "memory"}),
    ],
)
def test_what_recurrent_cells_save(cell, saved):
    assert {operand.tensor for operand in cell.op().saves()} == saved


@pytest.mark.parametrize(("length", "side", "window"), [(5, 2, 3), (6, 2, 3), (7, 7, 1), (8, 3, 3)])
def test_windows_of_an_adaptive_mean_cover_the_maps(length, side, window):
    """5 positions in two windows: 0 to 2 and 2 to 4, of three each."""
    trail = Trail(Maps("x", ("b", "c", "y", "x")), dict.fromkeys("bcyx", Integer(length)))
    AdaptiveMean(side).declare("pool", trail)
    (op,) = trail.ops
    assert [int(trail.sizes[axis]) for axis in op.window] == [window, window]
