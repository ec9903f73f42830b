"""How many layers slide, what cells save, and the windows of uneven pools: counted by hand."""

import json
from pathlib import Path

import pytest
from sympy import Integer

from symbolic_cost.axes import Role
from symbolic_cost.layers.conv import Maps, Trail
from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.layers.upsampling import AdaptiveMean
from symbolic_cost.models.bound import bound
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.models.config import from_config
from symbolic_cost.models.decoders.families import symbolic
from symbolic_cost.models.inference import touched
from symbolic_cost.models.shape import Shape
from symbolic_cost.numeric.binding import bind, value

GOLDEN = Path(__file__).parents[1] / "golden"
TRUTH = json.loads((GOLDEN / "torch_truth_decoders.json").read_text(encoding="utf-8"))


def blocks(name, **changes):
    """Layers by kind, of a configuration that does not list them."""
    config = next(entry["config"] for entry in TRUTH if entry["id"] == name)
    unlisted = {key: value for key, value in config.items() if key != "layer_types"}
    model = bound(from_config(unlisted | changes))
    return {part.path: int(part.repeat) for part in model.parts if part.path.endswith("block")}


def test_every_second_layer_has_experts():
    """Counted from one: of three layers the second, so that the first and the last are dense."""
    found = blocks("qwen3-30b-a3b", num_hidden_layers=3, decoder_sparse_step=2)
    assert found == {"dense.block": 2, "experts.block": 1}


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


@pytest.mark.parametrize(("batch", "experts", "tokens"), [(1, 2, 1), (3, 6, 1), (8, 8, 2)])
def test_tokens_of_an_expert_in_a_decoded_batch(batch, experts, tokens):
    """Two of eight experts for each token: sixteen copies of eight tokens, two for each expert."""
    model = touched(symbolic("mixtral", Shape(Integer(batch), Integer(1), Integer(4))))
    sizes = bind({axis: model.sizes[axis] for axis in "xuz"}, {"E": 8, "E_t": 2})
    assert value(sizes["x"]) == experts
    assert value(sizes["u"] * sizes["z"]) == tokens


@pytest.mark.parametrize("name", ["mamba", "rnn", "gru", "lstm"])
def test_recurrences_run_along_positions(name):
    model = CATALOG[name].model()
    along = {op.along for part in model.parts for op in part.ops if hasattr(op, "along")}
    assert along
    assert {model.axes[axis].role for axis in along} == {Role.TOKEN}


@pytest.mark.parametrize("name", sorted({preset.family for preset in CATALOG.values()} - {"cnn"}))
def test_what_a_part_makes_is_used(name):
    """But for its result, tables that other parts share, and the order of sorted tokens."""
    for part in CATALOG[name].model().parts:
        used = {operand.tensor for op in part.ops for operand in op.inputs}
        outputs = [operand for op in part.ops for operand in op.outputs]
        left = [o.tensor for o in outputs if o.tensor not in used and o.role != "index"]
        assert len([tensor for tensor in left if not tensor.startswith("@")]) <= 1, left
