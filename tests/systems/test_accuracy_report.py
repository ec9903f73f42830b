"""The report on accuracy prints its approved output, and its errors are as small as it is said."""

import json
import runpy
from pathlib import Path

import pytest

from symbolic_cost.systems.calibration import errors_of, read_rows

FOLDER = Path(__file__).parents[2] / "reports" / "accuracy"


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(FOLDER))
        yield runpy.run_path(str(FOLDER / "run.py"))


def errors(made, table):
    guesses = made["_tables"]()[table]
    return errors_of([g.predicted for g in guesses], [g.measured for g in guesses])


def test_prints_the_approved_output(made):
    assert made["report"]() == (FOLDER / "output.md").read_text(encoding="utf-8")


def test_korthikanti(made):
    found = errors(made, "Korthikanti 2022, Table 5")
    assert found.runs == 8
    assert found.mean <= 0.035
    assert found.largest <= 0.08


@pytest.mark.parametrize(
    ("table", "mean"),
    [
        ("Korthikanti 2022, Table 4", 0.07),
        ("Narayanan 2021, Table 1", 0.05),
        ("Llama 3, Table 4, 65 %", 0.03),
    ],
)
def test_other_tables(made, table, mean):
    assert errors(made, table).mean <= mean


@pytest.mark.parametrize(
    ("name", "mean", "median"), [("multi-node", 12, 6), ("single-node", 15, 8)]
)
def test_left_out_runs(name, mean, median):
    found = json.loads((FOLDER / "measured.json").read_text(encoding="utf-8"))[name]["held out"]
    assert 100 * found["mean"] <= mean
    assert 100 * found["median"] <= median


@pytest.mark.slow
def test_figures_of_rows_of_a_file(tmp_path):
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(FOLDER))
        figures = runpy.run_path(str(FOLDER / "measured.py"))["figures"]
    path = tmp_path / "rows.csv"
    header = "global_batch,micro_batch,e,h,n_layers,l,tp,dp,pp,iteration_time_ms\n"
    sizes = [
        f"{4 * b},{b},{e},16,8,1024,2,2,1,{b * e / 10}"
        for b in (1, 2)
        for e in range(512, 4608, 512)
    ]
    path.write_text(header + "\n".join(sizes))
    found = figures({"one": read_rows(path)})["one"]
    assert found["shipped"]["runs"] == found["held out"]["runs"] == 16
    assert set(found["groups"]["microbatch"]) == {"b = 1", "b = 2"}
