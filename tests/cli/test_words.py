"""Words of a line that say nothing, one thing twice, or a file that is not named."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import SymbolicCostError
from symbolic_cost.importers.quotes import check_quotes

SWEEP = ("sweep", "gpt2", "--system", "h100", "--global-batch", "64")
FIT = ("fit", "gpt2", "--system", "h100", "--gpus", "2")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (tmp_path / "F.json").write_text(json.dumps({"K": "x"}))
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    (tmp_path / "lone").mkdir()
    (tmp_path / "lone" / "x.safetensors").write_bytes(b"xx")
    (tmp_path / "open.sh").write_text(
        'A=1\ntorchrun pretrain_gpt.py "--num-layers 4 \\\n  --bf16\n'
    )
    return tmp_path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ((*SWEEP, "--vary", "l=1:100000", "b=1:100000"), "b (100,000) x l (100,000): 1e+10 cand"),
        ((*SWEEP, "--vary", "b=1,2", "--where", ""), "--where '' says nothing"),
        ((*SWEEP, "--vary", "b=1,2", "--where", "  "), "--where '  ' says nothing"),
        ((*FIT, "--in", "l,l"), "--in: 'l' is given more than once"),
        ((*FIT, "--in", "l,,b"), "--in 'l,,b': something is missing beside a comma"),
        (("memory", "gpt2", "--train", "all+all"), "'all+all' says 'all' more than once"),
        (("memory", "gpt2", "--train", "lora:r=8,q,q"), "names 'q' more than once"),
        (("memory", "gpt2", "--strategy", "tp,,dp"), "--strategy 'tp,,dp': something is missing"),
        (("memory", ""), "MODEL '' says nothing"),
        (("count", "lone"), "lone: is a directory without config.json"),
        (("memory", "gpt2", "--strategy", "zero-2019"), "'zero-2019': did you mean zero?"),
        (("calibrate", "--kernels", "rows.csv"), "its columns are of no kind of kernel: m, n, k"),
        (("calibrate", "--system", "v100", "--kernels", "rows.csv"), "bf16, of which v100 has no"),
        pytest.param(
            ("search", "gpt2", "--gpus", "2", "--global-batch", "2", "--prove", "--vary", "t_k=1"),
            "vary t_k: nothing depends on it",
            marks=pytest.mark.slow,
        ),
        (("count", ""), "CONFIG '' says nothing"),
        (("import", "F.json", ""), "FILES '' says nothing"),
        (("reproduce", "gpipe-2019", "--inputs", "F.json"), "'F.json': input 'K' is 'x'"),
        (("report", "megatron", "--inputs", "F.json"), "'F.json': input 'hidden' is missing"),
        (("profile", "bert-base", "--latencies", "F.json"), "'F.json': unknown group of"),
        (("count", "lone/x.safetensors"), "x.safetensors: beside it there is no config.json"),
        (("count", "."), " .: key 'num_hidden_layers'"),
        (("export", "flops", "gpt2", "--free", "b,b"), "free: 'b' is given more than once"),
        (("export", "flops,flops", "gpt2"), "costs: 'flops' is given more than once"),
        (("export", "flops,,params", "gpt2"), "unknown cost ''"),
        (("memory", "open.sh"), "open.sh: line 2: quotes that begin here never end"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_refused(line, said):
    result = CliRunner().invoke(main, line, prog_name="symbolic-cost")
    assert (result.exit_code, result.stdout) == (2, ""), result.exception
    assert said in result.stderr


@pytest.mark.parametrize("strategy", ["tp,,dp", ",tp", "tp,"])
def test_a_strategy_without_a_name(strategy):
    with pytest.raises(SymbolicCostError, match="a name is missing beside a comma"):
        sc.job("gpt2", strategy)


@pytest.mark.usefixtures("folder")
def test_no_model_is_the_folder_of_the_user():
    with pytest.raises(SymbolicCostError, match="unknown model ''"):
        sc.job("")
    with pytest.raises(SymbolicCostError, match="'' is not a configuration"):
        sc.count("")


@pytest.mark.parametrize("value", [np.array([1, 2]), 5, None, ["forward"]])
def test_values_that_are_no_names(value):
    with pytest.raises(SymbolicCostError, match="unknown phase"):
        sc.Phase(value)
    assert sc.Phase("forward") is sc.Phase.FORWARD


def test_a_profile_tells_of_positions_without_a_row():
    told = "learned positions: the table has 512: 513 tokens are counted"
    for seq, says in ((512, False), (513, True)):
        line = ["profile", "bert-base", "--seq", str(seq)]
        assert (told in CliRunner().invoke(main, line).stdout) is says


@pytest.mark.parametrize(
    "text",
    [
        'a="x"\n# it\'s a comment\nb=\'y "z\'\n',
        'cat <<EOF\nit\'s "here\nEOF\nrun --x 1',
        "cat <<-'EOF'\n\tdon't\n\tEOF\n",
        'echo "$(dirname "$0")/a" \'b\' ',
        "echo \"a\\\"b\" \\' ",
        'case $x in a) echo "y" ;; "b") z ;; esac',
        'x="${V:-"d"}" ${#a[@]} $# "$#"',
        "x=$(( ($N * 2) + 1 )) # don't",
        "echo $'it\\'s' \"a # b's\" \"$'\" x",
        "cat <<< \"it's\"",
    ],
)  # fmt: skip
def test_quotes_that_end(text):
    check_quotes(text, "run.sh")


@pytest.mark.parametrize(
    "text", ['a="x\nrun --y 1\n', "a='x\n", 'a="$(b"\n', 'echo "a" "b', "python \"a's "]
)
def test_quotes_that_do_not_end(text):
    with pytest.raises(SymbolicCostError, match="line 1: quotes that begin here never end"):
        check_quotes(text, "run.sh")


class _Foreign:
    """What no message can show, nor a table look up."""

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("no words")

    def __eq__(self, other):
        raise RuntimeError("not compared")


@pytest.mark.parametrize(
    "call",
    [
        lambda: sc.job(_Foreign()),
        lambda: sc.job("gpt2", _Foreign()),
        lambda: sc.parse_strategy("tp", {}),
        lambda: sc.parse_strategy(_Foreign()),
        lambda: sc.Phase(_Foreign()),
        lambda: sc.Phase("forward", 3),
        lambda: sc.Role(np.array([1, 2])),
        lambda: sc.TokenConventions("mine"),
        lambda: sc.Steps(3),
        lambda: sc.printed_data(""),
        lambda: sc.printed_data("\0"),
        lambda: sc.preset(_Foreign()),
    ],
)
def test_public_functions_refuse_in_words_of_their_own(call):
    with pytest.raises(SymbolicCostError):
        call()


def test_an_option_that_says_the_same_twice(tmp_path):
    line = ["memory", "gpt2", "--against", "tp=2", "--against", "tp=2", "-o"]
    result = CliRunner().invoke(main, [*line, str(tmp_path / "a.svg")])
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "--against 'tp=2' is given more than once" in result.stderr


@pytest.mark.parametrize("by", ["b", "pp"])
def test_a_range_that_nobody_waits_for(by):
    line = ["optimum", "gpt2", "--of", "step", "--in", by, "--range", "1:1000000"]
    line += ["--system", "h100", "--global-batch", "8", "--strategy", "pp"]
    result = CliRunner().invoke(main, line)
    assert result.exit_code == 2
    assert "range 1:1000000: 1,000,000 candidates" in result.stderr


@pytest.mark.slow
def test_shares_are_per_cent_and_what_fits_is_yes_or_no_for_people_alone():
    """As `search` and `mfu` print them; programs get shares and ones as they are."""
    sweep = [*SWEEP, "--vary", "tp=1,2", "--columns", "mfu,fits"]
    read = json.loads(CliRunner().invoke(main, [*sweep, "--format", "json"]).stdout)["records"]
    shown = CliRunner().invoke(main, sweep).stdout
    assert [one["fits"] for one in read] == [1, 1]
    for one in read:
        assert f"{100 * one['mfu']:.4g} %    yes" in shown
    step = ["time", "gpt2", "--system", "h100", "--set", "b=1,M=8"]
    answer = sc.job("gpt2", "", {"b": 1, "M": 8}, system="h100").time()
    assert f" {float(100 * answer.mfu):.4g} %\n" in CliRunner().invoke(main, step).stdout
    rows = json.loads(CliRunner().invoke(main, [*step, "--format", "json"]).stdout)["records"]
    (share,) = (row["value"] for row in rows if row["part"] == "mfu")
    assert share == float(answer.mfu)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("comm gpt2 --groups", "one rank is no group: --strategy names several"),
        ("formula comm gpt2", "one rank sends nothing: --strategy names several"),
        ("tree gpt2 --of comm", "one rank sends nothing: --strategy names several"),
        ("flops-per-token gpt2 --seq 5000", "the model has 1024 learned positions: of 5000, those"),
        ("time gpt", "definitions that these rest on are left out: --format json or markdown has"),
        ("import config.json", "a model's configuration alone, which says nothing of a run: count"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_told(line, told):
    shown = CliRunner().invoke(main, line.split()).stdout
    assert told in " ".join(shown.split())
    assert shown.count("\n") < 70


@pytest.mark.slow
def test_programs_get_all_definitions_of_a_step():
    rows = json.loads(CliRunner().invoke(main, ["time", "gpt", "--format", "json"]).stdout)
    assert len(rows["records"]) > 100
