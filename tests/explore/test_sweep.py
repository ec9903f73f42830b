"""Sweeps: each row is what the job says one by one; nothing is lost and nothing is silent."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.explore import evaluation, running

GPT2 = {"b": "1:4", "l": "256:1024:256", "tp": "1,2,4,5", "dp": "1,2"}


def gpt2():
    return sc.job("gpt2", "tp,dp", {"M": 8}, system="a100-80gb")


def one_by_one(case, row, options):
    """Step and memory of the job of one row."""
    model, strategy, numbers, system = case
    names = []
    for part in strategy.split(","):
        name = part.partition("=")[0]
        if name == "sp" and "sp" in row:
            names += ["sp"] if row["sp"] == "on" else []
        elif name in row and name != "zero":
            names.append(f"{name}={int(row[name])}")
        elif name != "zero" or "zero" not in row:
            names.append(part)
    names += [f"zero={int(row['zero'])}"] if "zero" in row else []
    own = {name: int(row[name]) for name in ("b", "l", "v", "e", "M") if name in row}
    words = {name: row[name] for name in ("recompute", "schedule", "precision") if name in row}
    answer = sc.job(
        model, ",".join(names), {**numbers, **own}, system=system, **{**options, **words}
    ).time()
    return float(answer.step), max(peak.size for peak in answer.fits.peaks.values())


CASES = {
    "degrees of one, two stages, shared heads, uneven stages": (
        ("llama-3-8b", "tp,sp,pp,dp,zero=1", {"l": 2048}, "h100"),
        {"tp": "1,2,16", "pp": "1,2,3,4", "b": "1,2", "l": "1024,2048"},
        {"gpus": 64, "global_batch": 64},
        {},
    ),
    "experts on data-parallel ranks": (
        ("mixtral-8x7b", "tp,pp,ep,dp", {"l": 2048}, "h100"),
        {"tp": "1,2", "pp": "1,4", "ep": "1,2,8"},
        {"gpus": 32, "global_batch": 64},
        {},
    ),
    "words and chunks": (
        ("gpt3-1.3b", "tp=2,sp,pp,dp,zero=1", {}, "a100-80gb"),
        {"pp": "1,4", "sp": "on,off", "zero": "0,3", "recompute": "none,full", "v": "1,2"},
        {"gpus": 16, "global_batch": 64},
        {"schedule": "interleaved"},
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_the_job_one_by_one(name):
    case, vary, run, options = CASES[name]
    model, strategy, numbers, system = case
    job = sc.job(model, strategy, numbers, system=system, **options)
    frame = sc.sweep(job, vary, **run, progress=False)
    for row in frame.sample(min(8, len(frame)), random_state=3).to_dict("records"):
        step, memory = one_by_one(case, row, options)
        assert row["step"] == pytest.approx(step, rel=1e-12), row
        assert row["memory"] == pytest.approx(memory, rel=1e-12), row


def test_counts_add_up_and_conditions_are_named():
    frame = sc.sweep(gpt2(), GPT2, progress=False)
    summary = frame.attrs["summary"]
    assert len(frame) == 96  # 12 heads are on 1, 2 or 4 ranks, not on 5
    assert "128 candidates, 96 legal, 96 counted" in summary
    assert "ruled out 32" in summary
    assert frame["step"].is_monotonic_increasing


def test_the_best_are_the_first_of_all():
    every = sc.sweep(gpt2(), GPT2, where="memory < 10 GiB", progress=False)
    best = sc.sweep(gpt2(), GPT2, where="memory < 10 GiB", top=7, progress=False)
    assert best.equals(every.head(7))
    most = sc.sweep(gpt2(), GPT2, by="mfu", top=1, progress=False)
    assert most["mfu"][0] == sc.sweep(gpt2(), GPT2, progress=False)["mfu"].max()


@pytest.mark.slow
def test_blocks_change_nothing(monkeypatch):
    whole = sc.sweep(gpt2(), GPT2, progress=False)
    front = sc.pareto(gpt2(), GPT2, progress=False)
    monkeypatch.setattr(evaluation, "BLOCK", 5)
    monkeypatch.setattr(running, "OF_ROWS", 7)
    monkeypatch.setattr("symbolic_cost.explore.sweep_run.OF_ROWS", 7)
    monkeypatch.setattr("symbolic_cost.explore.sweep_run.OF_BEST", 7)
    assert sc.sweep(gpt2(), GPT2, progress=False).equals(whole)
    assert sc.pareto(gpt2(), GPT2, progress=False).equals(front)


def test_a_front_is_what_no_other_beats():
    every = sc.sweep(gpt2(), GPT2, progress=False)
    front = sc.pareto(gpt2(), GPT2, progress=False)
    pairs = list(zip(front["step"], front["memory"], strict=True))
    for step, memory in zip(every["step"], every["memory"], strict=True):
        better = [p for p in pairs if p[0] <= step and p[1] <= memory]
        assert better, "a row that the front does not beat or hold"
    assert front["memory"].is_monotonic_decreasing


def test_machine_code_and_arrays_agree_in_every_bit(monkeypatch):
    pytest.importorskip("llvmlite")
    arrays = sc.sweep(gpt2(), GPT2, progress=False)
    monkeypatch.setattr(evaluation, "_WORTH_COMPILING", 0)
    assert sc.sweep(gpt2(), GPT2, progress=False).equals(arrays)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vary", "options", "said"),
    [
        ({}, {}, "nothing varies"),
        ({"tpp": 1}, {}, "unknown name to vary 'tpp'"),
        ({"tp": "8:1", "b": ""}, {}, "runs backwards"),
        ({"tp": "a"}, {}, "numbers are accepted"),
        ({"tp": 0}, {}, "0"),
        ({"tp": 1, "m1": 2}, {}, "are the same"),
        ({"zero": 4}, {}, "accepted are 0, 1, 2, 3"),
        ({"recompute": "some", "dp": 1}, {}, "some"),
        ({"schedule": "1f2b"}, {}, "1f2b"),
        ({"gpus": "8,16"}, {"gpus": 8}, "gpus is given and varies"),
        ({"M": 8}, {"global_batch": 8}, "do not vary both"),
        (
            {"l": "1:1000000", "b": "1:1000000", "tp": 1, "dp": 1},
            {},
            "1e.12 candidates, which take about 3.47 days",
        ),
        ({"l": "1:1000000", "b": "1:1000000", "tp": 1, "dp": 1}, {"top": 1}, "say yes"),
        ({"tp": 1}, {"top": 0}, "a positive integer"),
        ({"tp": 1, "dp": 1}, {"where": "memory < 1"}, "two units"),
        ({"tp": 1, "dp": 1}, {"by": "stp"}, "did you mean step"),
        ({"tp": 1, "dp": 1}, {"histogram": "step", "top": 2}, "top does not go with it"),
        ({"tp": 1, "dp": 1, "regather": "maybe"}, {}, "accepted are on and off"),
        ({"tp": 1, "dp": 1, "order": "tp+xp"}, {}, "no mesh axis 'xp'"),
        ({"tp": 1, "dp": 1}, {"columns": ["stp"]}, "unknown column"),
        ({"tp": 1, "dp": 1}, {"engine": "ray"}, "accepted are threads and dask"),
        ({"tp": 1, "dp": 1}, {"scheduler": "tcp://x:1"}, "engine dask has one"),
        ({"tp": 1, "dp": 1}, {"out": "x.xlsx"}, ".parquet, .csv, .jsonl"),
        ({"tp": 2}, {}, "dp has no number"),
        ({"tp": 5, "dp": 1}, {}, "no candidate is legal"),
        ({"tp": 2, "dp": 1}, {"gpus": 8}, r"no candidate is legal; .* gpus is tp\*dp"),
        ({"tp": 3}, {"gpus": 8}, r"no candidate is legal; .* gpus is a multiple of tp"),
    ],
)
def test_refused(vary, options, said):
    with pytest.raises(InputError, match=said):
        sc.sweep(gpt2(), vary, progress=False, **options)


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(InputError) as refused:
        sc.sweep(
            gpt2(), {"tpp": 1, "b": "8:1", "recompute": "none,some", "zero": 7}, progress=False
        )
    assert len(refused.value.problems) == 4


def test_nothing_that_counts_says_how_near_the_nearest_is():
    with pytest.raises(InputError, match="nearest of 96 legal candidates is") as refused:
        sc.sweep(gpt2(), GPT2, where="memory < 1 MiB", progress=False)
    least = sc.sweep(gpt2(), GPT2, by="memory", top=1, progress=False)
    for name in GPT2:
        assert f"{name}={least[name][0]}" in str(refused.value)


def test_options_that_change_no_rows_vary():
    vary = {"order": "default,dp+tp", "regather": "on,off", "sp": "on,off", "offload": "none,saved"}
    frame = sc.sweep(gpt2(), {"tp": 2, "dp": 2, **vary}, progress=False)
    assert len(frame) == 16
    row = frame[(frame["order"] == "dp+tp") & (frame["offload"] == "saved")].iloc[0]
    words = {"order": "dp,tp", "offload": "saved"}
    words |= {"regather": row["regather"] == "on"} if row["sp"] == "on" else {}
    names = "tp=2,sp,dp=2" if row["sp"] == "on" else "tp=2,dp=2"
    alone = sc.job("gpt2", names, {"M": 8}, system="a100-80gb", **words).time()
    assert row["step"] == pytest.approx(float(alone.step), rel=1e-12)


def test_a_histogram_counts_the_rows():
    rows = sc.sweep(gpt2(), GPT2, where="memory < 10 GiB", progress=False)
    bins = sc.sweep(gpt2(), GPT2, where="memory < 10 GiB", histogram="step", progress=False)
    inside = [
        ((rows["step"] >= low) & (rows["step"] < high)).sum()
        for low, high in zip(bins["from"], bins["below"], strict=True)
    ]
    assert bins["candidates"].tolist() == inside
    assert sum(inside) == len(rows)


def test_without_a_machine_memory_is_swept():
    frame = sc.sweep(sc.job("gpt2", "tp,dp", {"M": 8}), GPT2, progress=False)
    assert "memory" in frame
    assert "step" not in frame


# ---------------------------------------------------------------------- files


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("top", [None, 5])
def test_files_hold_the_rows_and_say_what_they_are(tmp_path, ending, top):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"rows.{ending}"
    summary = sc.sweep(gpt2(), GPT2, top=top, out=str(file), progress=False)
    assert f"written to {file}" in str(summary)
    assert not list(tmp_path.glob("*.parts"))
    rows = sc.sweep(gpt2(), GPT2, top=top, progress=False)
    read = {
        "csv": pd.read_csv,
        "jsonl": lambda path: pd.read_json(path, lines=True, precise_float=True),
        "parquet": pd.read_parquet,
    }[ending](file)
    order = ["step", *GPT2]
    left, right = (one.sort_values(order).reset_index(drop=True) for one in (read, rows))
    pd.testing.assert_frame_equal(left, right, check_dtype=False, rtol=0, atol=0)
    about = about_of(file)
    assert about["job"]["model"] == "gpt2"
    assert about["job"]["conventions"] == "standard"
    assert about["units"]["memory"] == "byte"
    assert about["library"].startswith("symbolic_cost ")
    assert about["vary"]["tp"] == [1, 2, 4, 5]
    assert len(about["expressions"]) == 32


def about_of(file):
    if file.suffix == ".parquet":
        from pyarrow import parquet

        return json.loads(parquet.read_schema(file).metadata[b"symbolic_cost"])
    return json.loads(Path(f"{file}.about.json").read_text(encoding="utf-8"))


def test_a_file_of_another_sweep_is_refused_and_the_same_one_is_complete(tmp_path):
    file = tmp_path / "rows.csv"
    first = sc.sweep(gpt2(), GPT2, out=str(file), progress=False)
    assert sc.sweep(gpt2(), GPT2, out=str(file), progress=False) == first
    before = file.read_bytes()
    with pytest.raises(InputError, match="is not of this sweep"):
        sc.sweep(gpt2(), {**GPT2, "b": "1:5"}, out=str(file), progress=False)
    with pytest.raises(InputError, match="is not of this sweep"):
        sc.sweep(gpt2(), GPT2, where="memory < 9 GiB", out=str(file), progress=False)
    assert file.read_bytes() == before
    (tmp_path / "mine.csv").write_text("a,b\n")
    with pytest.raises(InputError, match="is not of this sweep"):
        sc.sweep(gpt2(), GPT2, out=str(tmp_path / "mine.csv"), progress=False)


class BrokenError(Exception):
    """Ends a sweep in the middle."""


def interrupted(tmp_path, monkeypatch, parts):
    """A sweep that ends after some parts; its file."""
    file = tmp_path / "rows.csv"
    monkeypatch.setattr("symbolic_cost.explore.sweep_run.OF_ROWS", 16)
    original = running.results

    def broken(*args):
        for place, result in enumerate(original(*args)):
            if place == parts:
                raise BrokenError
            yield result

    monkeypatch.setattr("symbolic_cost.explore.sweep_run.results", broken)
    with pytest.raises(BrokenError):
        sc.sweep(gpt2(), GPT2, out=str(file), progress=False)
    monkeypatch.setattr("symbolic_cost.explore.sweep_run.results", original)
    return file


def fresh(tmp_path):
    sc.sweep(gpt2(), GPT2, out=str(tmp_path / "fresh.csv"), progress=False)
    return (tmp_path / "fresh.csv").read_bytes()


def counted(monkeypatch):
    """Tasks that are run from now on."""
    tasks = []
    original = evaluation.Evaluation.block

    def block(self, start, stop):
        tasks.append(start)
        return original(self, start, stop)

    monkeypatch.setattr(evaluation.Evaluation, "block", block)
    return tasks


def test_an_interrupted_sweep_goes_on_where_it_was(tmp_path, monkeypatch):
    file = interrupted(tmp_path, monkeypatch, 5)
    assert not file.exists()
    tasks = counted(monkeypatch)
    summary = sc.sweep(gpt2(), GPT2, out=str(file), progress=False)
    assert sorted(tasks) == [80, 96, 112]
    assert (summary.candidates, summary.legal) == (128, 96)
    assert file.read_bytes() == fresh(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["changed", "gone", "cut off"])
def test_a_part_that_is_not_what_it_was_is_made_again(tmp_path, monkeypatch, harm):
    file = interrupted(tmp_path, monkeypatch, 5)
    folder = tmp_path / "rows.csv.parts"
    part = sorted(folder.glob("part-*"))[1]
    if harm == "changed":
        part.write_bytes(part.read_bytes().replace(b"1", b"2"))
    elif harm == "gone":
        part.unlink()
    else:
        journal = folder / "done.jsonl"
        journal.write_bytes(journal.read_bytes()[:-20])
    sc.sweep(gpt2(), GPT2, out=str(file), progress=False)
    assert file.read_bytes() == fresh(tmp_path)


def test_parts_of_another_sweep_are_refused(tmp_path, monkeypatch):
    file = interrupted(tmp_path, monkeypatch, 2)
    with pytest.raises(InputError, match="holds parts of another sweep"):
        sc.sweep(gpt2(), {**GPT2, "b": "1:5"}, out=str(file), progress=False)


def command(*words):
    return [sys.executable, "-m", "symbolic_cost", "sweep", "gpt2", *words]


LONG = command(
    *("--system", "a100-80gb", "--set", "M=8", "--vary", "tp=1,2"),
    *("dp=1:16", "b=1:128", "l=16:4096:16", "-o"),
)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_sweep_continues_and_loses_nothing(tmp_path, how):
    file = tmp_path / "rows.csv"
    journal = tmp_path / "rows.csv.parts" / "done.jsonl"
    running_one = subprocess.Popen(
        [*LONG, str(file)],
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in its background has interrupts ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads
    )
    while running_one.poll() is None:
        if journal.exists() and journal.read_text().count("\n") >= 1:
            running_one.send_signal(how)
            break
        time.sleep(0.02)
    _, said = running_one.communicate()
    assert running_one.returncode == (-9 if how == signal.SIGKILL else 130), said
    assert "Traceback" not in said
    assert not file.exists()
    assert journal.read_text().count("\n") >= 1
    subprocess.run([*LONG, str(file)], check=True, capture_output=True)
    subprocess.run([*LONG, str(tmp_path / "whole.csv")], check=True, capture_output=True)
    assert file.read_bytes() == (tmp_path / "whole.csv").read_bytes()


# ---------------------------------------------------------------------- the command line


def test_help_imports_neither_numpy_nor_sympy():
    code = (
        "import sys; from symbolic_cost.cli import main\n"
        "for name in ('sweep', 'pareto'):\n"
        "    main([name, '--help'], standalone_mode=False)\n"
        "print([m for m in ('numpy', 'sympy', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_picture_of_fronts(tmp_path):
    from click.testing import CliRunner

    from symbolic_cost.cli import main

    words = ["pareto", "gpt2", "--system", "a100-80gb", "--set", "M=8", "--vary", "tp=1,2"]
    words += ["dp=1,2", "b=1,2", "-o", str(tmp_path / "front.svg")]
    done = CliRunner().invoke(main, words, standalone_mode=False)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "front.svg").read_text().startswith("<?xml")


def test_rows_that_do_not_fit_are_told():
    line = "sweep gpt2 --system h100 --gpus 1 --global-batch 4096 --vary b=4,4096 --top 2"
    said = "1 of these rows do not fit: --where fits leaves them out"
    assert said in CliRunner().invoke(main, line.split()).stdout
    assert said not in CliRunner().invoke(main, [*line.split(), "--where", "fits"]).stdout


def test_a_cost_says_what_it_is_of():
    line = "pareto gpt2 --system h100 --gpus 1 --global-batch 8 --vary b=1,2"
    said = "cost: seconds of all devices together for one token"
    assert said in CliRunner().invoke(main, line.split()).stdout


def test_rows_of_several_machines_are_told_by_their_own_room():
    line = "sweep llama-3-8b --gpus 8 --vary system=h100,b300 --set b=1 --set l=8192"
    said = "1 of these rows do not fit: --where fits leaves them out"
    assert said in CliRunner().invoke(main, line.split()).stdout


def test_a_front_has_two_figures():
    with pytest.raises(InputError, match="two figures are accepted"):
        sc.pareto(gpt2(), GPT2, axes=("step", "step"))
