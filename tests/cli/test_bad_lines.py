"""Every option of every command with values that it does not take: one short message, exit 2."""

import re
import time
from itertools import product

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main
from symbolic_cost.errors import visible

LONG = "9" * 5000
WORDS = ("", "zz\x1b[2J", "q\u202egp", "__import__('os').getpid()", "../../etc/passwd", "x" * 3000)
NUMBERS = ("0", "-3", "1.5", "nan", "inf", "1e3", "0x10", "four", LONG, "1_0_", "None", "")

COSTED = {  # a line that the command takes, but for the bad option
    "table": ["table", "gpt2"],
    "formula": ["formula", "flops", "gpt2"],
    "tree": ["tree", "gpt2"],
    "scale": ["scale", "flops", "gpt2"],
    "memory": ["memory", "gpt2"],
    "comm": ["comm", "gpt2"],
    "time": ["time", "gpt2", "--global-batch", "4"],
    "roofline": ["roofline", "gpt2"],
}
STRATEGIES = (
    *(
        f"{name}={number}"
        for name in ("tp", "pp", "dp")
        for number in ("0", "-1", "x", "1.5", LONG)
    ),
    *("tpp", "fsdp", "sp", "tp=2,tp=4", "tp=2,2d=2x2", "zero=1", "dp,zero=9", "dp=2,ep=2"),
    *("tp=", "=4", "tp==4", "ring,cp", "replicas", "2d=2", "3d=2x2", "panels=2", *WORDS[1:]),
)
SETTINGS = (
    *(f"b={number}" for number in NUMBERS),
    *("b", "=", "=4", "b=2,b=3", "qq=4", "N_p=3", "d_model=5", "tp=4", "b=2;l=3", *WORDS),
)


def lines():
    """Yield every bad line as arguments, with what of it the message must name."""
    for line in COSTED.values():
        for option, values in {
            "--strategy": STRATEGIES,
            "--set": SETTINGS,
            "--conventions": ("standart", "STANDARD", *WORDS),
            "--recompute": ("ful", "full/0", "full/x", f"full/{LONG}", "selective/4", *WORDS),
            "--stage": ("3", "frist", "middle", *WORDS),
            "--format": ("pdf", "CSV", "tabel", *WORDS),
            "-o": ("a/b.txt", "new/", "x.xlsx", "x.docx", "loop", ".", "full", "a\0b", "x" * 300),
        }.items():
            yield from ([*line, option, value] for value in values)
        yield [*line, "--format", "csv", "--format", "json"]
        yield [*line, "--frobnicate"]
        yield [*line, "surplus" * 400]
        yield from ([line[0], *line[1:-1], word] for word in WORDS if line[0] != "time")
    own = {
        ("table", "gpt2"): {"--columns": ("flop", "flops,flops", *WORDS), "--only": WORDS},
        ("formula", "flops", "gpt2"): {
            "--phase": ("forwards", "step", *WORDS),
            "--path": ("blok", "block.mpl", *WORDS),
        },
        ("tree", "gpt2"): {"--of": ("flop", *WORDS), "--phase": ("step", *WORDS)},
        ("scale", "flops", "gpt2"): {"--wrt": ("ll", *WORDS), "--at": ("gpt4", *WORDS)},
        ("memory", "gpt2"): {
            "--precision": ("fp8", "bf17", *WORDS),
            "--optimizer": ("adm", *WORDS),
            "--schedule": ("1f1c", *WORDS),
            "--offload": ("optimiser", "saved,saved", *WORDS[1:]),
        },
        ("comm", "gpt2"): {"--node-size": NUMBERS},
        ("time", "gpt2"): {
            "--global-batch": NUMBERS,
            "--system": ("h101", "none.toml", *WORDS),
            "--precision": ("fp8", *WORDS),
            "--optimizer": ("adm", *WORDS),
            "--schedule": ("1f1c", *WORDS),
            "--roofline": ("max", *WORDS),
            "--overlap": ("dp", "dp=full", "qq=full", "dp=often", *WORDS[1:]),
        },
        ("roofline", "gpt2"): {"--precision": ("bf17", *WORDS), "--system": ("h101", *WORDS)},
        ("schedule",): {
            "--strategy": ("tp=2", "pp", "pp=0", "pp=100000", "", *WORDS),
            "--microbatches": (*NUMBERS, "9999999"),
            "--schedule": ("zb", *WORDS),
            "--chunks": NUMBERS,
        },
        ("count", "config.json"): {
            "--batch": NUMBERS,
            "--seq": NUMBERS,
            "--conventions": ("a", *WORDS),
        },
        ("profile", "bert-base"): {
            "--batch": NUMBERS,
            "--seq": NUMBERS,
            "--profiler": ("2022", *WORDS),
            "--latencies": ("none.json", *WORDS),
        },
        ("reproduce", "korthikanti-2022"): {"--inputs": ("none.json", "list.json", *WORDS)},
        ("report", "megatron"): {"--inputs": ("none.json", *WORDS), "--format": ("json", "html")},
        ("calibrate",): {"--rows": ("none.csv", *WORDS), "--system": ("symbolic", "h101")},
        ("compare-conventions", "gpt2", "standard", "fvcore"): {
            "--of": ("flop", *WORDS),
            "--set": SETTINGS,
        },
        ("systems",): {"--format": ("pdf", *WORDS)},
        ("models",): {"--format": ("pdf", *WORDS), "-o": ("new/", "x.pdf", "a/b")},
    }
    for line, options in own.items():
        for option, values in options.items():
            yield from ([*line, option, value] for value in values)
    for command, word in product(("systems", "report", "reproduce", "import", "count"), WORDS):
        yield [command, word]
    yield from (["profile", word] for word in WORDS)
    yield from ([word] for word in WORDS)


LINES = [list(line) for line in dict.fromkeys(map(tuple, lines()))]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "full").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _names(line, said):
    """Tell whether a message has the option that is wrong, or how its value begins."""
    *_, before, word = ("", *line)
    shown = visible(repr(word))
    inside = shown[1:-1].replace(" ", "")
    pieces = [shown[:24], *inside.split(","), *re.split("[,=]", inside), inside.split("/")[-1]]
    text = said.replace(" ", "")
    named = before.startswith("--") and before.replace("-", "") in text.replace("-", "")
    return named or any(p[:24] in text for p in pieces if len(p) > 1)


def refusal(line):
    """Return what is wrong with the answer to a bad line; nothing if all is well."""
    began = time.process_time()
    result = CliRunner().invoke(main, line, prog_name="symbolic-cost")
    took = time.process_time() - began
    said = result.stderr
    unprintable = [one for one in said if not (one.isprintable() or one == "\n")]
    return [
        text
        for text, holds in {
            f"exit {result.exit_code}: {result.exception!r}": result.exit_code == 2,
            f"prints {result.stdout[:80]!r}": not result.stdout,
            f"says {len(said)} characters": 0 < len(said) < 2000,
            f"says {said.count(chr(10))} lines": said.count("\n") <= 15,
            f"raw {unprintable[:3]!r}": not unprintable,
            "traceback": "Traceback" not in said,
            f"names nothing that was written: {said[-300:]!r}": _names(line, said),
            f"takes {took:.0f} s": took < 10,  # a guard against work without end, no measurement
        }.items()
        if not holds
    ]


def test_there_are_many():
    assert len(LINES) >= 900


@pytest.mark.slow
@pytest.mark.parametrize("part", range(16))
def test_refused(part, folder):
    before = sorted(path.name for path in folder.iterdir())
    wrong = {}
    for line in LINES[part::16]:
        found = refusal(line)
        if found:
            wrong[" ".join(word[:40] for word in line)] = found
    assert not wrong, "\n".join(f"{line!r}: {found}" for line, found in wrong.items())
    assert sorted(path.name for path in folder.iterdir()) == before
