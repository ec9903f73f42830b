"""Bad input: one clear error that says what is wrong and what is accepted, and nothing written."""

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main

TABLE = "table gpt3-175b"
HUGE = "1" + "0" * 30

REFUSED = [
    # unknown names, the closest offered
    ("xyzzy", "unknown command 'xyzzy'", "accepted are"),
    ("tabel gpt", "unknown command 'tabel'", "did you mean table"),
    ("table gpt3-176b", "unknown model 'gpt3-176b'", "gpt3-175b"),
    ("table GPT3", "unknown model 'GPT3'", "did you mean gpt"),
    ("table ../etc/passwd", "unknown model", ""),
    ("table gpt --strategy tpp", "unknown strategy 'tpp'", "did you mean tp"),
    ("table gpt --strategy tensor", "unknown strategy 'tensor'", ""),
    ("table gpt --strategy tp8", "unknown strategy 'tp8'", "did you mean tp=8"),
    ("table gpt --strategy dp=8,ZeRO-3", "unknown strategy 'ZeRO-3'", "did you mean zero=3"),
    ("table gpt --strategy fsdp=8", "unknown strategy 'fsdp'", "dp=8,zero=3"),
    ("table mla", "unknown model 'mla'", "did you mean deepseek_v3"),
    ("table GQA", "unknown model 'GQA'", "did you mean llama"),
    ("formula memory gpt", "unknown cost 'memory'", "symbolic-cost memory MODEL"),
    ("table gpt --conventions standart", "unknown conventions 'standart'", "standard"),
    ("table gpt --recompute selektive", "unknown recompute policy 'selektive'", "selective"),
    ("table gpt --columns flop", "unknown cost 'flop'", "flops"),
    ("table gpt --columns flops,,saved", "unknown cost ''", "accepted are"),
    ("table gpt --format tabel", "unknown format 'tabel'", "table"),
    ("table gpt --format PDF", "unknown format 'PDF'", ""),
    ("table gpt --set m9=4", "unknown symbol 'm9'", "did you mean"),
    ("table gpt --set heads=4", "unknown symbol 'heads'", ""),
    ("formula flopz gpt", "unknown cost 'flopz'", "flops"),
    ("formula flops gptt", "unknown model 'gptt'", "gpt"),
    ("formula flops gpt --phase forth", "unknown phase 'forth'", "fwd"),
    ("formula flops gpt --path blok", "unknown path 'blok'", "block"),
    ("formula flops gpt --path block.mpl", "unknown path 'block.mpl'", "block.mlp"),
    ("tree gpt --of sved", "unknown cost 'sved'", "saved"),
    ("scale flops gpt --wrt ll", "unknown symbol 'll'", ""),
    ("scale flops gpt --wrt width", "unknown symbol 'width'", ""),
    ("scale flop gpt", "unknown cost 'flop'", "flops"),
    ("scale flops gpt --at gpt4", "unknown model 'gpt4'", "gpt"),
    ("reproduce transformer-table", "unknown publication", "transformer-tables"),
    ("reproduce nothing-like-it", "unknown publication", "accepted are"),
    ("table gpt --train lora:r=8,qkw", "unknown linear layer of model 'gpt' 'qkw'", "qkv"),
    ("memory gpt --train embeding", "unknown weight of model 'gpt' 'embeding'", "embedding"),
    ("count gpt2 --train lora:r=0,qkv", "'r=0'", "r=NUMBER"),
    ("time gpt --train frozen:nf4", "what is trained", "is accepted"),
    # malformed assignments
    ("table gpt --set", "requires an argument", ""),
    ("table gpt --set m1", "'m1' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set =4", "'=4' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=", "'m1=' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1==4", "'m1==4' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=4=4", "'m1=4=4' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1:4", "'m1:4' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=four", "'m1=four' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=0x4", "'m1=0x4' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=4e0", "'m1=4e0' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=2+2", "'m1=2+2' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=__import__('os')", "is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=2 --set m1=4", "a second number", "one is accepted"),
    ("table gpt --set m1=2,m1=4", "a second number", "one is accepted"),
    ("table gpt --set m1=٣", "'m1=٣' is not an assignment", "NAME=INTEGER"),
    ("crossover gpt2 attention mlp --in l --set l=4", "--set l is not read", "asked for"),
    ("solve memory==8GiB gpt2 --for b --set l=4,b=2", "--set b is not read", "asked for"),
    ("sweep gpt2 --vary b=1,2 --set b=4", "--set b is not read", "b varies"),
    # refused numbers
    ("count gpt2 --batch ٣", "DIGIT THREE}' is not a valid integer", "--batch"),
    ("laws chinchilla --flops ٣e24", "DIGIT THREE}e24' is not a valid float", "--flops"),
    ("laws chinchilla --set N=٣e9", "'N=٣e9' is not an assignment", "NAME=NUMBER"),
    ("table gpt --set m1=0", "m1 = 0", "an integer from 1"),
    ("table gpt --set m1=-4", "m1 = -4", "an integer from 1"),
    ("table gpt --set m1=1.5", "'m1=1.5' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=inf", "'m1=inf' is not an assignment", "NAME=INTEGER"),
    ("table gpt --set m1=nan", "'m1=nan' is not an assignment", "NAME=INTEGER"),
    (f"table gpt --set l={HUGE}", "an integer of 100 bits", "an integer from 1"),
    (f"table gpt --set l={'9' * 80}", "is not an assignment", "NAME=INTEGER"),
    ("mfu gpt2 --tokens-per-second 1e30", "h100 computes at most", "gpus says"),
    ("search gpt2 --gpus 8 --global-batch 8 --top 0", "top = 0", "a positive integer"),
    # symbols and values that nothing reads
    ("optimum gpt2 --of params --in l", "params of this job does not depend on l", ""),
    ("optimum gpt2 --of memory --in dp --global-batch 8", "does not depend on dp", ""),
    ("crossover gpt2 attention mlp --in v", "attention and mlp of this job do not depend", ""),
    ("sensitivity gpt2 --of memory --branches v", "memory of this job does not depend on v", ""),
    ("export flops gpt2 --free b,v", "free v: nothing of flops depends on it", ""),
    ("dominance gpt2 attention mlp --over l=1:1 b=1:8 -o a.svg", "l = 1:1", "two that differ"),
    ("dominance gpt2 attention mlp --over l=1:9 v=1:8 -o a.svg", "v: no part depends", ""),
    # strategies
    ("table gpt --strategy sp", "sp needs tp", "write for example"),
    ("table gpt --strategy tp=0", "tp=0", "positive integer"),
    ("table gpt --strategy tp=-2", "tp=-2", "positive integer"),
    ("table gpt --strategy tp=1.5", "tp=1.5", "positive integer"),
    ("table gpt --strategy tp=two", "tp=two", "positive integer"),
    ("table gpt --strategy tp=", "tp=", "positive integer"),
    (f"table gpt --strategy tp={HUGE}", "tp=", "positive integer"),
    ("table gpt --strategy tp=2,tp=4", "'tp' is given twice", ""),
    ("table gpt --strategy tp=2x2", "tp=2x2", "2 degrees are given"),
    ("table gpt --strategy sp=2,tp", "sp", ""),
    ("table gpt --strategy zero=1", "zero=1 needs one of", "dp"),
    ("table gpt --strategy dp=8,zero=4", "zero=4", "0, 1, 2 and 3"),
    ("table gpt --strategy dp=8,zero", "zero takes one number", "zero=1"),
    # numbers that do not divide: axis and mesh axis are named
    (
        f"{TABLE} --strategy tp=5",
        "axis h (96) is not divisible by mesh axis tp (m1 = 5)",
        "nearest",
    ),
    (f"{TABLE} --strategy tp --set m1=7", "axis f", "mesh axis tp (m1 = 7)"),
    (f"{TABLE} --strategy tp=8,sp --set l=2047", "axis r", "mesh axis tp (m1 = 8)"),
    (f"{TABLE} --set h=97", "is not a whole number", "axis d"),
    (f"{TABLE} --strategy cp=3 --set l=2048", "axis r", "mesh axis cp (cp = 3)"),
    # output
    (f"{TABLE} -o missing/out.txt", "directory", "does not exist"),
    (f"{TABLE} -o .", "is a directory", "give the name of a file"),
    (f"{TABLE} -o /proc/version", "cannot be written", ""),
    ("formula flops gpt -o /dev/null/x", "output file", ""),
    # inputs of publications
    ("reproduce transformer-tables --inputs missing.json", "cannot be read", "No such file"),
    ("reproduce transformer-tables --inputs empty.json", "is not JSON", ""),
    ("reproduce transformer-tables --inputs truncated.json", "is not JSON", ""),
    ("reproduce transformer-tables --inputs list.json", "holds no object", "write for example"),
    ("reproduce transformer-tables --inputs large.json", "at most", ""),
    ("reproduce transformer-tables --inputs deep.json", "is not JSON", ""),
    # schedules, machines, times
    ("schedule --schedule zbh1", "unknown schedule 'zbh1'", "zb-h1"),
    ("schedule --microbatches 0", "microbatches=0", "a positive integer"),
    ("memory gpt2 --strategy pp=40", "blocks of a stage at the end", "more blocks from an end"),
    ("schedule --schedule dualpipe --strategy pp=3", "pp=3", "an even number of stages"),
    ("schedule --schedule interleaved --microbatches 7", "microbatches=7", "multiples of 4"),
    ("schedule --strategy pp=500 --microbatches 999", "too many", "a product up to 20000"),
    ("schedule --strategy tp=2,pp", "pp needs a number", "pp=4"),
    ("systems h101", "unknown machine 'h101'", "h100"),
    ("systems missing.toml", "cannot be read", "No such file"),
    ("roofline gpt --system h100", "no point without values", "e"),
    ("roofline gpt2 --precision fp99", "unknown precision of a100-80gb 'fp99'", "fp32"),
    ("roofline gpt2 -o missing/x.svg", "does not exist", "missing"),
    ("time gpt3-175b --strategy dp=2 --global-batch 3", "global batch 3", "a multiple of the 2"),
    ("time gpt3-175b --global-batch 4 --overlap dp", "overlap 'dp'", "dp=full"),
    ("time gpt3-175b --global-batch 4 --overlap qq=full", "mesh axis of overlap 'qq'", "accepted"),
    (
        "time gpt3-175b --strategy dp=2 --global-batch 4 --overlap dp=often",
        "unknown overlap 'often'",
        "partial",
    ),
    ("time gpt3-175b --global-batch 4 --roofline max", "unknown roofline 'max'", "maximum"),
    ("time gpt3-175b --global-batch 4 --wrt zz", "unknown symbol 'zz'", ""),
    ("memory gpt --precision fp --optimizer adm", "unknown precision 'fp'", "'adm'"),
    ("comm gpt --strategy tp --groups", "groups need numbers", "tp=2"),
    ("comm gpt --strategy tp=2 --groups --node-size 0", "node size 0", "a positive integer"),
    ("count missing.json", "cannot be read", "No such file"),
    ("count truncated.json", "not JSON", "line 1"),
    ("calibrate --rows missing.csv --system zz", "unknown machine 'zz'", "missing.csv"),
    ("compare-conventions gpt a standard", "unknown conventions 'a'", "accepted are"),
    ("report megatrom", "unknown report 'megatrom'", "megatron"),
    ("import missing.sh", "cannot be read", "No such file"),
    # usage
    ("table", "Missing argument 'MODEL'", ""),
    ("table gpt extra", "unexpected extra argument", "extra"),
    ("table gpt --frob", "No such option", "--frob"),
    ("memory gpt2 --seq 512", "No such option '--seq': write --set l=4096", ""),
    ("time gpt2 --gpus 8", "write --strategy tp=8,dp=8, whose degrees are the ranks", ""),
    ("count gpt2 --gpus 8", "No such option '--gpus'.", ""),
    ("crossover gpt2 attn mlp --in l", "'attn': did you mean attention", ""),
    ("table gpt --only everything", "'everything' is not one of", "formulas"),
    ("formula flops", "Missing argument", "MODEL"),
]

FILES = {
    "empty.json": "",
    "truncated.json": '{"b": 1, ',
    "list.json": "[1, 2]",
    "large.json": " " * 1_000_001,
    "deep.json": "[" * 100_000,
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_list_is_long_enough():
    assert len({line for line, *_ in REFUSED}) >= 60


@pytest.mark.parametrize(("line", "said", "accepted"), REFUSED, ids=[r[0][:60] for r in REFUSED])
def test_refused(line, said, accepted, folder):
    result = CliRunner().invoke(main, line.split(), prog_name="symbolic-cost")
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert accepted in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert {path.name for path in folder.iterdir()} == set(FILES)


def test_an_output_file_stays_when_a_later_run_is_refused(folder):
    kept = folder / "out.csv"
    kept.write_text("kept")
    line = f"{TABLE} --strategy tp=5 --format csv -o out.csv"
    assert CliRunner().invoke(main, line.split()).exit_code == 2
    assert kept.read_text() == "kept"


def test_all_problems_are_told_at_once():
    line = "table gptx --strategy tpp --set q --conventions std --recompute al"
    result = CliRunner().invoke(main, line.split())
    assert result.stderr.startswith("Error: 5 problems:\n  1. ")
    for said in ("model 'gptx'", "strategy 'tpp'", "'q' is not", "'std'", "policy 'al'"):
        assert said in result.stderr
