"""Every report prints its approved output; `make reports` approves a change that is meant."""

import re
import runpy
from pathlib import Path

import pytest

REPORTS = Path(__file__).parents[1] / "reports"
QUICK = ("errata", "laws", "scaling", "systems")
SLOW = ("conventions", "coverage", "formulas")
ELSEWHERE = {"accuracy", "benchmarks", "kernels", "lifted", "serving", "site"}
"""Tested on their own, measured, or made from rows that are not part of the project."""


def check(name):
    script = runpy.run_path(str(REPORTS / name / "run.py"))
    assert script["report"]() == (REPORTS / name / "output.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", QUICK)
def test_prints_the_approved_output(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_longer_reports_do_too(name):
    check(name)


def test_the_index_names_every_report():
    folders = {path.name for path in REPORTS.iterdir() if path.is_dir() and path.name[0] != "_"}
    index = (REPORTS / "README.md").read_text(encoding="utf-8")
    assert {name for name in folders if f"({name}/" not in index} == set()
    assert folders == {*QUICK, *SLOW} | ELSEWHERE


def test_scaling_rests_on_four_widths():
    """Attention core 4 b l^2 e and MLP 16 b l e^2 of a block meet at l = 4 e."""
    assert "| model-flop | `4 e` | 49152 |" in (REPORTS / "scaling" / "output.md").read_text()


def test_the_five_systems_agree_to_the_last_number():
    summary = (REPORTS / "systems" / "output.md").read_text().split("##")[0]
    assert re.findall(r"(\d+) of (\d+)", summary) == [
        ("454", "454"),
        ("27", "27"),
        ("44", "44"),
        ("69", "69"),
        ("124", "124"),
    ]
