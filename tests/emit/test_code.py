"""Exported code: compiled or run where its compiler is installed, equal to exact results."""

import math
import shutil
import subprocess
import sys

import pytest

import symbolic_cost as sc
from symbolic_cost.emit.code import LANGUAGES, Source, source
from symbolic_cost.errors import SymbolicCostError
from symbolic_cost.jobs.code_export import source_of
from symbolic_cost.program.tape import Tape

JOBS = {
    "gpt": (("gpt2", "tp,sp,pp=2,dp", {"M": 8}), ("step_time", "peak_memory", "flops")),
    "experts": (("mixtral-8x7b", "dp,ep,zero=1", {"M": 4}), ("step_time", "comm")),
    "states": (("mamba2-130m", "dp,zero=3", {"M": 2}), ("step_time", "params", "saved")),
}
COMPILERS = {
    "python": (sys.executable,),
    "c": ("gcc", "-std=c99", "-O1", "-ffp-contract=off", "-DCOST_TEST"),
    "javascript": ("node",),
    "rust": ("rustc", "--test", "-O"),
    "julia": ("julia",),
}


def cases():
    for language in COMPILERS:
        for name in JOBS:
            marks = [pytest.mark.slow] if name == "states" else []
            yield pytest.param(language, name, marks=marks)


@pytest.fixture(scope="module")
def written():
    made = {}

    def of(name):
        if name not in made:
            (model, strategy, numbers), costs = JOBS[name]
            job = sc.job(model, strategy, numbers, system="h100")
            made[name] = source_of(job, costs, tests=40)
        return made[name]

    return of


@pytest.mark.slow
@pytest.mark.parametrize(("language", "name"), list(cases()))
def test_code_equals_exact_results(language, name, written, tmp_path):
    compiler, *options = COMPILERS[language]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed: {language} was not run")
    file = tmp_path / f"cost{LANGUAGES[language]['ending']}"
    file.write_text(source(written(name), language), encoding="utf-8")
    command = [compiler, *options, str(file)]
    if language in {"c", "rust"}:
        built = [*command, "-o", str(tmp_path / "cost"), *(["-lm"] if language == "c" else [])]
        subprocess.run(built, check=True, capture_output=True)
        command = [str(tmp_path / "cost")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 tests passed" in done.stdout or "1 passed" in done.stdout


def test_wrong_test_is_seen(written, tmp_path):
    text = source(written("gpt"), "python")
    (inputs, results) = written("gpt").tests[0]
    broken = text.replace(repr(results[0]), repr(results[0] * 1.001), 1)
    assert broken != text
    file = tmp_path / "cost.py"
    file.write_text(broken, encoding="utf-8")
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert str(inputs[0]) in done.stderr


def test_every_operation_is_written_in_every_language():
    """One tape with all of them, on numbers whose results are known."""
    steps = (
        ("add", (0, 1)), ("sub", (0, 1)), ("mul", (0, 1)), ("div", (0, 1)), ("inv", (1,)),
        ("max", (0, 1)), ("min", (0, 1)), ("ge", (0, 1)), ("gt", (1, 0)), ("select", (9, 0, 1)),
        ("ceil", (5,)), ("floor", (5,)), ("sqrt", (0,)), ("log2", (0,)), ("exp2", (1,)),
    )  # fmt: skip
    outputs = {kind: 2 + place for place, (kind, _) in enumerate(steps)}
    tape = Tape(("b", "l"), (True, True), (), steps, outputs, (0,) * (2 + len(steps)))
    expected = (12, 4, 32, 2, 0.25, 8, 4, 1, 0, 8, 2, 2, math.sqrt(8), 3, 16)
    what = Source(
        "every",
        tape,
        ("all operations",),
        {"b": "one", "l": "other"},
        dict.fromkeys(outputs, "1"),
        [((8.0, 4.0), tuple(map(float, expected)))],
    )
    space = {}
    exec(source(what, "python"), space)  # noqa: S102 - the code under test
    space["_check"]()
    for language in LANGUAGES:
        text = source(what, language)
        assert all(f"t{place}" in text for place in range(len(steps)))


@pytest.mark.parametrize(
    ("costs", "options", "said"),
    [
        (("step_tiem",), {}, "step_time"),
        ((), {}, "no cost is named"),
        (("flops",), {"free": ("q1",)}, "symbol"),
        (("flops",), {"tests": 0}, "0 tests"),
        (("flops",), {"free": ()}, "no symbol is left"),
    ],
)
def test_bad_requests_are_refused(costs, options, said):
    with pytest.raises(SymbolicCostError, match=said):
        source_of(sc.job("gpt2"), costs, **options)


def test_words_of_a_language_are_no_names(written):
    what = written("gpt")
    named = Source("while", what.tape, (), what.meanings, what.units, what.tests)
    with pytest.raises(SymbolicCostError, match="word of c"):
        source(named, "c")
