"""Recurrent language models and perceptrons against formulas written by hand."""

import pytest
from sympy import expand

from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.errors import InputError, PlacementError
from symbolic_cost.layers.recurrent import Cell
from symbolic_cost.models.bound import bound
from symbolic_cost.models.mlp import Perceptron
from symbolic_cost.models.rnn import declared
from symbolic_cost.models.shape import TRAINING
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.placement import Placement
from symbolic_cost.symbols import V, b, e, l, n_layers

CELLS = [(Cell.RNN, 1, 1), (Cell.GRU, 3, 7), (Cell.LSTM, 4, 10)]


@pytest.mark.parametrize(("cell", "gates", "_"), CELLS)
def test_parameters_and_flop(cell, gates, _):
    rows = cost(declared(cell, TRAINING), PRESETS["model-flop"])
    parameters = n_layers * gates * (2 * e**2 + 2 * e) + 2 * V * e + V
    assert expand(rows.total("parameter") - parameters) == 0
    forward = 2 * b * l * (n_layers * gates * 2 * e**2 + V * e)
    assert expand(rows.total("flop", phase="forward") - forward) == 0
    assert expand(rows.total("flop") - 3 * forward) == 0


@pytest.mark.parametrize(("cell", "gates", "elementwise"), CELLS)
def test_layers_under_the_profiler(cell, gates, elementwise):
    """One FLOP per multiply-accumulate, two biases per gate, and the cell's own."""
    rows = cost(declared(cell, TRAINING), PRESETS["flops-profiler"]).select(path="block")
    counted = gates * e * e + gates * e * e + elementwise * e + 2 * gates * e
    assert expand(rows.total("flop", phase="forward") - n_layers * b * l * counted) == 0
    macs = cost(declared(cell, TRAINING), PRESETS["flops-profiler-macs"]).select(path="block")
    assert macs.total("flop", phase="forward") == 0


def test_published_lstm():
    """The large LSTM on the Penn Treebank: two layers of 1500, ten thousand words."""
    rows = cost(
        bound(declared(Cell.LSTM, TRAINING), e=1500, V=10_000, n_layers=2), PRESETS["model-flop"]
    )
    assert rows.total("parameter") == 66_034_000  # about the 66 million published


def test_positions_of_a_recurrence_cannot_be_split():
    with pytest.raises(PlacementError, match="axis 'l' cannot be split: the recurrent runs along"):
        cost(declared(Cell.LSTM, TRAINING), PRESETS["exact"], Placement({"s": 2}, {"l": ("s",)}))


def test_perceptron():
    rows = cost(Perceptron((784, 512, 10)).model(), PRESETS["model-flop"])
    assert rows.total("parameter") == 784 * 512 + 512 + 512 * 10 + 10
    products = 784 * 512 + 512 * 10
    assert rows.total("flop", phase="forward") == 2 * b * products
    assert rows.total("flop") == b * (6 * products - 2 * 784 * 512)  # the input is constant


@pytest.mark.parametrize(
    ("widths", "text"),
    [((784,), "give input and result"), ((784, 0), "width 0 is not accepted")],
)
def test_perceptrons_refused(widths, text):
    with pytest.raises(InputError, match=text):
        Perceptron(widths).model()
