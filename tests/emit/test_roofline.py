"""The roofline as a table and as a picture."""

import pytest

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.emit.plots import write_picture
from symbolic_cost.emit.roofline import draw, points_sheet
from symbolic_cost.errors import InputError
from symbolic_cost.models.catalog import model
from symbolic_cost.numeric.binding import bind
from symbolic_cost.ops.derive import cost
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.rooflines import roofline_points

GPT2 = model("gpt2")
DEVICE = machine("transformer-tables").device("fp16")
POINTS = roofline_points(bind(cost(GPT2, STANDARD), GPT2.bindings), DEVICE)


@pytest.mark.slow
def test_drawing_is_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    files = [tmp_path / "one.svg", tmp_path / "two.svg"]
    for path in files:
        write_picture(str(path), lambda figure: draw(figure, POINTS, DEVICE, "GPT-2"))
    text = files[0].read_text()
    assert text == files[1].read_text()
    assert text.startswith("<?xml")


def test_nothing_to_draw(tmp_path):
    with pytest.raises(InputError, match="nothing to draw"):
        write_picture(str(tmp_path / "none.svg"), lambda figure: draw(figure, [], DEVICE, ""))
    assert not list(tmp_path.iterdir())


def test_table_names_the_ridge_points():
    sheet = points_sheet(POINTS, DEVICE, "GPT-2")
    assert len(sheet.rows) == len(POINTS)
    assert sheet.notes[0].startswith("ridge point of the matrix units: 200.6 FLOP/byte")
