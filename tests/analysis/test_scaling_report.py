"""The report on scaling prints its approved output."""

import runpy
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "reports" / "scaling"


def test_prints_the_approved_output():
    made = runpy.run_path(str(FOLDER / "run.py"))["report"]()
    assert made == (FOLDER / "output.txt").read_text(encoding="utf-8")


def test_rests_on_four_widths():
    """Attention core 4 b l^2 e and MLP 16 b l e^2 of a block meet at l = 4 e."""
    assert "| model-flop | `4 e` | 49152 |" in (FOLDER / "output.txt").read_text(encoding="utf-8")
