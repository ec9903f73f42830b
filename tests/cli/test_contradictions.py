"""Contradicting and unread options, small inputs that ask for work without end, and streams."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main

CONTRADICTIONS = [
    (
        "memory gpt2 --strategy pp=2 --system h100 --as smi --stage last",
        "--stage 'last' is not read: --as shows the fullest stage",
    ),
    (
        "time gpt2 --system h100 --stack fsdp --roofline ridge",
        "roofline 'ridge' is not read under stack 'fsdp'",
    ),
    ("formula flops gpt --path head --path block", "'--path' is given more than once"),
    ("scale flops gpt --in l --wrt e", "'--in' is given more than once"),
    ("formula comm_fwd gpt --phase bwd", "comm_fwd has nothing in phase 'bwd'"),
    ("formula saved gpt --phase fwd", "saved has nothing in phase 'fwd'"),
    ("formula comm gpt --phase step --strategy dp,zero=1", "comm has nothing in phase 'step'"),
    ("formula flops gpt2 --strategy tp=4 --set m1=2", "m1=2 contradicts the strategy tp=4"),
    ("formula flops gpt2 --strategy dp=4 --set dp=2", "dp=2 contradicts the strategy dp=4"),
    ("formula flops gpt2 --set N_p=4", "unknown symbol of model 'gpt2' and its strategy 'N_p'"),
    ("formula flops gpt2 --set m1=4", "unknown symbol of model 'gpt2' and its strategy 'm1'"),
    ("formula flops gpt2 --strategy tp=2,panels=2", "panels=2: only 2d and 2.5d"),
    ("table gpt2 --stage middle", "a pipeline of pp = 1 has none; accepted are first, last"),
    (
        "table gpt2 --strategy pp=2 --stage middle",
        "a pipeline of pp = 2 has none; accepted are first, last",
    ),
    ("table gpt2 --columns flops,flops", "'flops' is given more than once"),
    ("table gpt2 --format csv -o out.json", "--format csv and -o 'out.json' contradict"),
    ("table gpt2 -o out.svg", ".svg is not written here"),
    (
        "time gpt2 --global-batch 64 --set M=3",
        "global batch 64 makes 64 microbatches, M=3 is given",
    ),
    ("time gpt2 --global-batch 4 --ops --in l", "--in 'l' is not read: --ops"),
    ("time gpt2 --global-batch 4 --overlap tp=full", "the strategy has no mesh axis tp"),
    (
        "time gpt2 --global-batch 4 --strategy dp=2 --overlap dp=full,dp=none",
        "overlap of dp is given twice",
    ),
    ("time gpt2 --global-batch 4 --scattered", "scattered is about tensor-parallel ranks"),
    (
        "time resnet-50 --system h100 --attention flash",
        "attention flash is not read: model 'resnet-50' has no attention",
    ),
    (
        "memory mamba-130m --attention eager",
        "attention eager is not read: model 'mamba-130m' has no attention",
    ),
    ("memory gpt2 --strategy dp=2 --layout ends=1", "layout 'ends=1' is of the stages of pp"),
    ("memory gpt2 --layout uneven", "layout 'uneven' is of the stages of pp"),
    (
        "time gpt2 --schedule interleaved --set M=1",
        "schedule 'interleaved' is of the stages of pp",
    ),
    ("memory gpt2 --strategy tp=2 --schedule gpipe", "schedule 'gpipe' is of the stages of pp"),
    (
        "time gpt2 --strategy pp=2 --set v=2,M=4",
        "v = 2 contradicts schedule '1f1b', which has 1 chunk per stage",
    ),
    ("table gpt2 --set v=3", "v = 3 contradicts schedule '1f1b'"),
    (
        "memory gpt2 --strategy pp=2 --schedule zb-v --set v=4",
        "v = 4 contradicts schedule 'zb-v', which has 2 chunks",
    ),
    (
        "sweep gpt2 --global-batch 8 --vary pp=2,4 schedule=1f1b,interleaved v=1,2",
        "v = 2 contradicts schedule '1f1b'",
    ),
    (
        "sweep gpt2 --global-batch 8 --vary pp=2,4 --schedule interleaved",
        "schedule 'interleaved' has no number of chunks per stage",
    ),
    ("memory gpt2 --set B=8", "B is not read: a global batch"),
    ("table gpt2 --set M=4", "--set M is not read: costs are of one microbatch"),
    ("formula flops gpt2 --set l=4,M=4", "--set M is not read"),
    ("formula flops gpt --form by:dp", "form 'by:dp': the formula has no dp"),
    ("table gpt --only values", "no values without numbers for"),
    ("laws chinchilla --set N=1e9 --flops 1e24", "N = 1e+09 is not read: a compute or a loss"),
    ("laws chinchilla --set D=1e9 --loss 2", "D = 1e+09 is not read: a compute or a loss"),
    ("laws fit a.csv --approach 2 --delta 0.1", "--delta 0.1 is not read: it is of approach 3"),
    ("laws fit a.csv --approach 1 --method projection", "--method 'projection' is not read"),
    (
        "laws allocate --days 30 --gpus 8 --mfu 0.4 --strategy tp=8",
        "--strategy 'tp=8' is not read: a share of the peak is assumed",
    ),
    ("laws allocate --days 30 --gpus 8 --system symbolic", "'symbolic' has symbols for rates"),
    ("fit gpt2 --gpus 2 --global-batch 0", "global_batch = 0"),
    ("sweep gpt2 --vary l=1:8 --global-batch 0", "B = 0: an integer from 1"),
    ("pareto gpt2 --vary l=1:8 --global-batch 8", "step and cost need a machine"),
    ("diff gpt2 --conventions 6nd palm --attention eager", "attention is not read"),
    ("diff gpt2 --conventions 6nd palm --on tp=2", "on is not read: FLOP per token"),
    ("diff gpt2 --conventions standard fvcore --global-batch 8", "global_batch is not read"),
    ("diff gpt2 --system h100 h200 --of flops", "of is not read: two machines differ in the time"),
    ("diff gpt2 --strategy tp=2 dp=2 --seq 512 --set l=128", "seq = 512 and l = 128: give one"),
    ("flops-per-token gpt2 --seq 512 --set l=128", "seq = 512 and l = 128: give one"),
    ("mfu gpt2 --tokens-per-second 9 --seq 5 --set l=8", "seq = 5 and l = 8: give one"),
    ("flops-per-token gpt2 --batch 1,2 --set l=8", "l = 8 is not read: the batch has 2 lengths"),
    ("scale flops gpt2 --in tp", "tp: the strategy has no tp that could grow"),
    ("scale flops gpt2 --in m1 --strategy dp=2", "tp: the strategy has no tp that could grow"),
    ("scale flops gpt2 --in tp -o a.svg", "tp: the strategy has no tp that could grow"),
    ("scale flops gpt2 --in M", "unknown symbol of model 'gpt2' and its strategy 'M'"),
    ("scale flops gpt --at resnet-50", "--at resnet-50 has no V, e, f, h, l, n_layers, which"),
    ("scale flops mamba-130m --at gpt2", "--at gpt2 has no J, K, N, r_dt, which"),
    ("diff gpt2 gpt2", "model and other: 'gpt2' twice; two that differ are accepted"),
    ("diff gpt2 --strategy tp=2 tp=2", "strategy: 'tp=2' twice; two that differ are accepted"),
    ("diff gpt2 --conventions 6nd 6nd", "conventions: '6nd' twice; two that differ"),
    ("diff gpt2 --system h100 h100", "system: 'h100' twice; two that differ are accepted"),
    ("compare-conventions gpt2 exact exact", "first and second: 'exact' twice; two that differ"),
    ("memory gpt2 --train all+head", "train: 'all+head' is every weight: all alone is accepted"),
    ("search gpt2 --gpus 8 --global-batch 8 --choose recompute=none,none", "'none' is given more"),
    ("search gpt2 --gpus 8 --global-batch 8 --choose tp=1,2,2", "choose tp: 2 is given more than"),
    ("fit gpt2 --gpus 2 --choose offload=none,none", "choose offload: 'none' is given more than"),
    (
        "memory gpt2 --system a100-80gb --precision nvfp4",
        "nvfp4 computes in fp4, of which",
    ),
    ("time gpt2 --system v100", "bf16, of which v100 has no rate: accepted are fp32, fp16-mixed"),
    ("sweep gpt2 --vary tp=1,2 --global-batch 8 --where step<3s", "step needs a machine"),
    ("sweep gpt2 --vary tp=1,2 --global-batch 8 --columns mfu,fits", "mfu needs a machine"),
    ("import .", ".: cannot be read: Is a directory"),
    ("sensitivity gpt2 --of flops --set b=1,M=8", "--set M is not read: costs are of one"),
    ("dominance gpt2 attention mlp --set b=1,M=8", "--set M is not read: costs are of one"),
    ("derive gpt2 --of flops --set M=8", "--set M is not read: costs are of one microbatch"),
    ("check 5 --cost params gpt2 --set M=8", "--set M is not read: costs are of one microbatch"),
    ("mfu gpt2 --tokens-per-second 5000 --set b=8", "b = 8 is not read: a token costs the same in"),
    ("flops-per-token gpt2 --set b=8", "b = 8 is not read: a token costs the same in"),
    ("crossover gpt2 attention mlp --in l --optimizer sgd", "--optimizer 'sgd' is not read: it is"),
    (
        "optimum gpt2 --of flops --in b --system h100",
        "--system 'h100' is not read: it is of memory",
    ),
    ("solve flops==1PFLOP gpt2 --in l --global-batch 8", "--global-batch 8 is not read: it is of"),
    ("dominance gpt2 mlp block", "mlp is a part of block: parts beside each other are accepted"),
    ("count resnet-50 --seq 5", "--seq 5 is not read: resnet-50 has no sequence of tokens"),
    ("laws chinchilla --flops 1e-5", "the best size is N = 0.0033, D = 0.000504: more is accepted"),
    (
        "serve-plan llama-3-8b --system h100 --gpus 1 --input 5 --output 5 --split",
        "split: engines that stand apart take 2 GPUs or more",
    ),
    (
        "serve-plan gpt --system a40 --gpus 2 --input 5 --output 5 --split --prefill-strategy tp=2",
        "prefill_strategy tp=2: 2 of 2 GPUs leave none that decodes",
    ),
    ("sweep gpt2 --vary tp=1,2 --global-batch 8 --by 5", "'5' is the same for every candidate"),
    ("sweep gpt2 --vary tp=1,2 --global-batch 8 --where 1<2", "'1<2' is the same for every"),
    ("pareto gpt2 --vary tp=1,2 --global-batch 8 --axes 5,memory", "'5' is the same for every"),
    ("sweep gpt2 --vary pp=2 --global-batch 8 --stage last", "--stage 'last' is not read: candid"),
    ("memory gpt2 --set b=1 --as foo", "unknown view of memory 'foo': accepted are allocated"),
    ("memory gpt2 --offload saved,saved", "'saved' is given more than once"),
    ("comm gpt2 --strategy tp=2 --groups --per-op", "--per-op is not read"),
    ("comm gpt2 --strategy tp=2 --node-size 4", "--node-size 4 is not read"),
    ("schedule --strategy tp=2", "--strategy tp is not read"),
    ("schedule --strategy tp=2,pp=4", "--strategy tp is not read"),
    ("schedule --chunks 4", "--chunks 4 is not read"),
    ("schedule --format json -o a.svg", "--format 'json' is not read"),
    ("roofline gpt2 --format csv -o a.png", "--format 'csv' is not read"),
    ("report megatron --format json", "--format 'json' is not read: a report is plain text"),
    ("reproduce zero-2019 --formulas", "--formulas is not read"),
    ("calibrate --rows a.csv --rows a.csv", "'a.csv' is given more than once"),
    ("calibrate --rows a.csv --format json -o a.toml", "--format is not read"),
    ("profile alexnet --seq 128", "seq = 128 is not read"),
    ("import run.sh run.sh", "run.sh: is given more than once"),
    (
        "compare-conventions gpt2 standard fvcore --set N_p=2",
        "unknown symbol of model 'gpt2' and its strategy 'N_p'",
    ),
]

DEEP = "[" * 60_000
MEGATRON = "--num-layers 2 --hidden-size 8 --tensor-model-parallel-size"
DOUBLING = "A=ab\n" + "A=$A$A\n" * 60 + f"{MEGATRON} $A\n"
ALIASES = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(22)
)
GPT2 = '"model_type": "gpt2", "vocab_size": 8, "n_positions": 8, "n_layer": 1, "n_head": 1'

UNBOUNDED = [  # name of the file, its text, the line
    ("a.yaml", "hidden: 1\n" + ALIASES, "import a.yaml"),
    ("a.yaml", "hidden: &a {x: *a}", "import a.yaml"),
    ("a.yaml", "hidden: " + DEEP, "import a.yaml"),
    ("a.yaml", "hidden: !!python/object/apply:os.getpid []\nx: 1", "import a.yaml"),
    ("a.yaml", "hidden: !!python/name:os.getpid x", "import a.yaml"),
    ("a.yaml", "hidden: " + "9" * 50_000, "import a.yaml"),
    ("a.yaml", "hidden: 1e999", "import a.yaml"),
    ("a.yaml", "hidden: 1\nhidden: 2", "import a.yaml"),
    ("a.json", '{"hidden": ' + "9" * 5000 + "}", "import a.json"),
    ("a.json", '{"hidden": ' + DEEP, "import a.json"),
    ("a.json", '{"hidden": 1, "hidden": 2}', "import a.json"),
    ("a.json", '{"hidden": NaN}', "import a.json"),
    ("a.json", '{"tensor_par": 4, "num_procs": "six"}', "import a.json"),
    ("a.json", '{"tensor_par": 4, "num_procs": 6}', "import a.json"),
    ("a.json", '{"tensor_par": 4, "num_procs": -8}', "import a.json"),
    ("run.sh", "${a:-" * 150_000, "import run.sh"),
    ("run.sh", DOUBLING, "import run.sh"),
    ("run.sh", f"{MEGATRON} $((9*9*9{'*9' * 3000}))", "import run.sh"),
    ("run.sh", f"{MEGATRON} 2 --nproc-per-node 8 --nnodes inf", "import run.sh"),
    ("c.json", "{" + GPT2 + ', "n_embd": ' + "1" + "0" * 300 + "}", "count c.json"),
    ("c.json", "{" + GPT2 + ', "n_embd": 1e400}', "count c.json"),
    ("c.json", "{" + GPT2 + ', "n_embd": 8, "n_embd": 16}', "count c.json"),
    ("c.json", '{"\\ud800": 1, "b": 1}', "reproduce transformer-tables --inputs c.json"),
    ("c.json", '{"b": ' + DEEP, "reproduce transformer-tables --inputs c.json"),
    ("m.toml", "a = " + DEEP, "systems m.toml"),
    ("m.toml", "a" + ".a" * 60_000 + " = 1", "systems m.toml"),
    ("m.toml", 'name = "x"\n[matrix]\nbf16 = { value = nan, source = "x" }', "systems m.toml"),
    ("m.toml", 'name = "x"\n[matrix]\nbf16 = 500e12', "systems m.toml"),
    ("m.csv", '"' + "x" * 200_000, "calibrate --rows m.csv"),
    ("", "", "schedule --strategy pp=10000 --microbatches 8"),
    ("", "", "schedule --strategy pp=50 --microbatches 390 -o a.svg"),
    ("", "", "export step_time gpt2 --system h100 --global-batch 8 --tests 100000"),
    ("", "", "comm gpt2 --strategy dp=1048576 --groups --set M=1"),
    ("", "", "count /dev/zero"),
    ("", "", "systems /dev/zero.toml"),
    ("", "", "import /dev/zero"),
    ("", "", "reproduce transformer-tables --inputs /dev/zero"),
]


def refused(line):
    result = CliRunner().invoke(main, line.split(), prog_name="symbolic-cost")
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    assert 0 < len(result.stderr) < 2000
    assert result.stderr.count("\n") <= 15
    return result.stderr


@pytest.mark.parametrize(("line", "said"), CONTRADICTIONS, ids=[c[0][:70] for c in CONTRADICTIONS])
def test_a_contradiction_is_refused(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("run.sh", "a.csv"):
        (tmp_path / name).write_text("--num-layers 2\n")
    assert said in refused(line)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("name", "text", "line"), UNBOUNDED, ids=[str(n) for n in range(len(UNBOUNDED))]
)
def test_work_without_end_is_refused(name, text, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if name:
        (tmp_path / name).write_text(text)
    began = time.process_time()
    said = refused(line)
    assert time.process_time() - began < 20  # a guard: what is refused late runs for hours
    assert not name or name in said


def test_a_launch_problem_names_what_the_user_wrote(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.sh").write_text("x --num-layers 0 --hidden-size 8 --num-attention-heads 3\n")
    assert "run.sh: line 1, key '--num-layers'" in refused("import run.sh")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("calculator llama-3-8b -o missing/a.html", "directory"),
        ("report run llama-3-8b -o missing/a.html", "directory"),
        ("workbook llama-3-8b -o missing/a.xlsx", "directory"),
        ("search gpt3-175b --gpus 8 --global-batch 8 -o missing/a.csv", "directory"),
        ("search gpt3-175b --gpus 8 --global-batch 8 --format pdf", "unknown format 'pdf'"),
        ("search gpt3-175b --gpus 8 --global-batch 8 --objective stp", "unknown objective 'stp'"),
        ("search gpt3-175b --gpus 8 --global-batch 8 --top 0", "top = 0"),
        ("fit gpt3-175b --gpus 2 --in zz", "unknown symbol 'zz'"),
        ("fit gpt3-175b --gpus 2 --in T", "T is no size of gpt3-175b: P, V, b, e"),
        ("sweep gpt2 --vary tp=1,2 --global-batch 8 --where colour<3", "unknown name 'colour'"),
        ("sweep gpt2 --vary tp=1,2 --global-batch 8 --system h100 --by colour", "unknown name 'c"),
        (
            "pareto gpt2 --vary tp=1,2 --global-batch 8 --axes memory,colour",
            "unknown name 'colour'",
        ),
        ("sweep gpt2 --vary tp=1,2 --global-batch 8 --columns colour", "unknown column 'colour'"),
    ],
)
def test_what_is_refused_anyway_is_refused_before_anything_is_derived(line, said, monkeypatch):
    monkeypatch.setattr("symbolic_cost.ops.derive.PartCosts.__init__", _derives)
    monkeypatch.setattr("symbolic_cost.explore.apart.apart", _derives)
    assert said in refused(line)


def _derives(*_, **__):
    raise AssertionError("something was derived")


def test_the_format_follows_the_ending(tmp_path):
    for name, begins in (
        ("a.csv", "cost,"),
        ("a.json", "{"),
        ("a.md", "### "),
        ("a.tex", "\\frac"),
    ):
        line = ["formula", "params", "gpt", "--strategy", "tp", "-o", str(tmp_path / name)]
        assert CliRunner().invoke(main, line).exit_code == 0
        text = (tmp_path / name).read_text()
        assert text.startswith(begins)


@pytest.mark.parametrize("strategy", ["2d", "2.5d", "3d", "ring"])
def test_every_strategy_has_a_sheet(strategy):
    result = CliRunner().invoke(main, ["sheet", "gpt", "--strategy", strategy, "--format", "latex"])
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith(r"\end{document}")


# ---------------------------------------------------------------------- processes


def process(line, **more):
    command = [sys.executable, "-m", "symbolic_cost", *line.split()]
    return subprocess.run(command, check=False, capture_output=True, text=True, **more)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["--help", "strategies", "formula --help"])
def test_output_that_cannot_be_written_is_no_success(line, tmp_path):
    here = f"{sys.executable} -m symbolic_cost {line}"
    for redirected in (">/dev/full", ">&-"):
        done = subprocess.run(
            ["bash", "-c", f"{here} {redirected}"], check=False, capture_output=True, text=True
        )
        assert done.returncode == 1
        assert "Error: standard output: cannot be written" in done.stderr
        assert done.stderr.count("\n") == 1
    limited = f"ulimit -f 1; trap '' XFSZ; {here} > {tmp_path}/out"
    done = subprocess.run(["bash", "-c", limited], check=False, capture_output=True, text=True)
    size = (tmp_path / "out").stat().st_size
    assert done.returncode == (1 if size == 1024 else 0)


def test_an_encoding_that_lacks_a_character_prints_it_escaped():
    done = process("models", env={**os.environ, "PYTHONIOENCODING": "cp1252"})
    assert done.returncode == 0
    assert "\\u2500" in done.stdout


@pytest.mark.slow
def test_same_bytes_for_every_hash_seed_and_width():
    outputs = {
        process(
            "memory gpt --offload b,a,c", env={**os.environ, "PYTHONHASHSEED": s, "COLUMNS": w}
        ).stderr
        for s, w in (("0", "40"), ("1", "80"), ("2", "200"))
    }
    assert len(outputs) == 1


@pytest.mark.parametrize(
    "sent",
    [
        signal.SIGINT,
        signal.SIGKILL,
        *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGTERM, signal.SIGHUP)),
    ],
)
def test_a_killed_run_leaves_nothing_behind(sent, tmp_path):
    code = (
        "import os, sys, signal, time\n"
        # What starts the tests in the background has the signals of a terminal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "from symbolic_cost.emit import files\n"
        "whole = files._write\n"
        f"def slow(file, data):\n    whole(file, data[:9]); os.kill(os.getpid(), {int(sent)})\n"
        "    time.sleep(9)\n"
        "files._write = slow\n"
        "from symbolic_cost.cli import main\n"
        f"main(['systems', '-o', {str(tmp_path / 'out')!r}])\n"
    )
    (tmp_path / "out").write_text("old")
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    expected = {signal.SIGKILL: -9, signal.SIGINT: 130}.get(sent, 128 + sent)
    assert done.returncode == expected
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "old"


def test_reading_json_of_reproduce_has_formulas():
    line = ["reproduce", "transformer-tables", "--formulas", "--format", "json"]
    rows = json.loads(CliRunner().invoke(main, line).stdout)["rows"]
    assert any(row["formula"] for row in rows)


def test_a_schedule_goes_for_the_strategies_with_stages(tmp_path):
    """One of two strategies has stages: the schedule is its own, whichever stands first."""
    for first, other in (("pp=4", "tp=4"), ("tp=4", "pp=4")):
        picture = tmp_path / f"{first}.svg"
        line = ["memory", "llama-3-8b", "--strategy", first, "--against", other]
        options = ["--schedule", "zb-v", "--set", "b=1,M=8", "-o", str(picture)]
        result = CliRunner().invoke(main, line + options)
        assert result.exit_code == 0, result.output
        assert picture.exists()
    flat = ["memory", "llama-3-8b", "--strategy", "tp=4", "--against", "tp=2"]
    refused = CliRunner().invoke(main, [*flat, *options])
    assert refused.exit_code == 2
    assert "schedule 'zb-v' is of the stages of pp, which there is not" in refused.output
