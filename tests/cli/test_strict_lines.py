"""Lines that say a thing twice, ask for what cannot be, or go to a file that nobody writes."""

import json
import time
from itertools import repeat

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import SymbolicCostError

SWEEP = ["sweep", "gpt2", "--system", "h100", "--global-batch", "64"]
HEADS = {
    "vocab_size": 100,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 64,
    "head_dim": 0,
}

REFUSED = [
    # endings that nobody writes
    *(
        ([*line, "-o", name], f"-o '{name}': {ending} is not written here: .txt, .csv")
        for line in (
            ["sheet", "gpt"],
            ["errata"],
            ["roofline", "gpt2"],
            ["schedule"],
            ["table", "gpt2"],
        )
        for name, ending in (("x.exe", ".exe"), ("x.tex.gz", ".gz"), ("x.sh", ".sh"))
    ),
    (
        ["trace", "gpt2", "-o", "x.html", "--system", "h100", "--global-batch", "1"],
        "trace 'x.html': a name that ends with .json is accepted",
    ),
    # what varies and is given
    (
        [*SWEEP, "--strategy", "tp=4", "--vary", "tp=1,2"],
        "--strategy tp is not read: tp varies",
    ),
    ([*SWEEP, "--vary", "global_batch=8,16"], "--global-batch 64 is not read: global_batch varies"),
    ([*SWEEP, "--vary", "b=1", "system=h200"], "--system 'h100' is not read: system varies"),
    # one thing twice
    (
        ["mfu", "gpt2", "--tokens-per-second", "5", "--conventions", "palm,palm"],
        "--conventions: 'palm' is given more than once",
    ),
    (
        ["flops-per-token", "gpt2", "--conventions", "palm, palm"],
        "--conventions: 'palm' is given more than once",
    ),
    (["sensitivity", "gpt2", "--of", "flops,flops"], "--of: 'flops' is given more than once"),
    (
        ["pareto", *SWEEP[1:], "--vary", "tp=1,2", "--axes", "step,step"],
        "--axes step,step: two figures are accepted",
    ),
    (
        ["dominance", "gpt2", "mlp", "head", "--over", "l=1:9", "l=2:8", "-o", "a.svg"],
        "--over 'l' is given twice",
    ),
    (["table", "gpt2", "-o", "-"], "-o '-': the name of a file is accepted; what is printed needs"),
    (["sheet", "gpt2", "-o", ".tex"], "-o '.tex': the name of a file is accepted"),
    # what is no real number
    (["check", "sqrt(-b)", "--cost", "params", "gpt2"], "no real number is its value"),
    (
        ["check", "1/(b - 1)", "--cost", "params", "gpt2"],
        "1/(b - 1) is no real number at these sizes",
    ),
    (["check", "sqrt(b - l)", "--cost", "params", "gpt2"], "is no real number at these sizes"),
    # work without end, and what cannot be
    (
        [*SWEEP, "--vary", "e=1:10:x1.0001"],
        "e='1:10:x1.0001': the factor 1.0001 makes more than 2,000 values",
    ),
    (["check", "1e999999*b", "--cost", "params", "gpt"], "1e999999 is above 1E+100"),
    (["check", "1e-999999*b", "--cost", "params", "gpt"], "1e-999999 is below 1E-100"),
    (
        ["diff", "gpt2", "--strategy", "tp=7", "tp=4"],
        "axis h (12) is not divisible by mesh axis tp (m1 = 7)",
    ),
    (
        ["laws", "allocate", "--budget", "1e6USD", "--days", "3", "--pue", "0.5"],
        "pue = 0.5: 1 or more is accepted",
    ),
    (["laws", "fit", "runs.csv", "--law", "huge.toml"], "a finite number is accepted"),
    (
        ["reproduce", "gpipe-2019", "--inputs", "huge.json"],
        "is accepted",
    ),
    (["--plugin", "exits.py", "models"], "plugin 'exits.py': SystemExit: '0'"),
    *(
        (["count", f"{family}.json"], "key 'head_dim': 0 is not accepted: it must be a positive")
        for family in ("llama", "mixtral", "qwen3")
    ),
]
LAW = (
    '[mine]\nmeaning = "x"\nvariables = {N = "p", D = "t"}\nparameters = {E = [0, 10]}\n'
    'value = "E + 1/N + 1/D"\nsets.first = {values = {E = 1' + "0" * 400 + '}, source = "x"}\n'
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exits.py").write_text("raise SystemExit(0)")
    (tmp_path / "huge.toml").write_text(LAW)
    (tmp_path / "huge.json").write_text(json.dumps({"K": 10**400}))
    (tmp_path / "runs.csv").write_text("N,D,loss\n1e9,1e10,2.5\n")
    for family in ("llama", "mixtral", "qwen3"):
        (tmp_path / f"{family}.json").write_text(json.dumps({**HEADS, "model_type": family}))
    return tmp_path


@pytest.mark.parametrize(("line", "said"), REFUSED, ids=[" ".join(r[0])[:70] for r in REFUSED])
def test_refused(line, said, folder):
    before = {path.name for path in folder.iterdir()}
    began = time.process_time()
    result = CliRunner().invoke(main, line, prog_name="symbolic-cost")
    assert time.process_time() - began < 10  # a guard: what is refused late runs for hours
    assert result.exit_code == 2, (result.output, result.exception)
    assert said in " ".join(result.stderr.split())
    assert (result.stdout, len(result.stderr) < 1500) == ("", True)
    assert {path.name for path in folder.iterdir()} - {"__pycache__"} == before


def test_what_varies_is_not_told_as_one():
    line = ["sweep", "gpt2", "--global-batch", "8", "--vary", "system=h100,a100-80gb"]
    said = CliRunner().invoke(main, line).stdout
    assert "machine: varies\nstack: varies\n" in said
    line = [*SWEEP, "--vary", "recompute=none,full"]
    assert "recompute: varies\n" in CliRunner().invoke(main, line).stdout


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda own: own({"b": [[1], [2, 3]]}), "b = .*numbers in rows of one length"),
        (lambda own: own(5), "values = 5: a mapping of numbers by name is accepted"),
        (lambda own: own({"b": 10**9}), "a power is too large for an exact number"),
    ],
)
def test_a_compiled_function_refuses(call, said):
    own = sc.compile({"x": sc.symbols.b**sc.symbols.b})
    with pytest.raises(SymbolicCostError, match=said):
        call(own)


@pytest.mark.parametrize("listed", [range(10**9), repeat(2)])
def test_values_without_end_are_refused(listed):
    began = time.process_time()
    with pytest.raises(SymbolicCostError, match="b: more than 1,000,000 values"):
        sc.sweep(sc.job("gpt2", "tp=2", {"M": 4}, system="h100"), {"b": listed})
    assert time.process_time() - began < 10  # a guard: minutes
