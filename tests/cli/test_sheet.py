"""`sheet`, LaTeX of `table`, notations and pictures on the command line."""

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main
from symbolic_cost.costs import COSTS
from symbolic_cost.jobs.tables.paper import HEADS


def run(line, exit_code=0):
    words = line if isinstance(line, list) else line.split()
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.stdout if exit_code == 0 else result.stderr


def test_the_ending_says_what_is_written(tmp_path):
    starts = {
        "tex": b"\\documentclass[10pt,twocolumn]{article}",
        "md": b"# Costs of gpt",
        "html": b"<!DOCTYPE html>",
        "bib": b"@misc{",
    }
    for ending, start in starts.items():
        more = {"bib": "", "tex": "--columns params,comm --width ieee --cite"}
        path = tmp_path / f"paper.{ending}"
        chosen = more.get(ending, "--columns params,comm")
        assert run(f"sheet gpt --strategy tp,sp {chosen} -o {path}") == ""
        assert path.read_bytes().startswith(start)


@pytest.mark.latex
@pytest.mark.slow
def test_a_pdf_is_the_same_each_time(tmp_path):
    files = [tmp_path / f"{n}.pdf" for n in range(2)]
    for path in files:
        run(f"sheet gpt --strategy tp,sp --notation megatron -o {path}")
    one, other = (path.read_bytes() for path in files)
    assert one.startswith(b"%PDF-")
    assert one == other


def test_a_missing_pdflatex_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    told = run(f"sheet gpt -o {tmp_path / 'a.pdf'}", exit_code=2)
    assert "needs pdflatex: install TeX Live" in told
    assert not list(tmp_path.iterdir())


def test_a_terminal_shows_text_of_80_columns():
    text = run("sheet gpt --strategy tp,sp,pp --columns params,comm")
    assert text.startswith("Costs of gpt\n  Strategy: tensor parallel m1, Megatron")
    assert max(map(len, text.splitlines())) <= 80


def test_a_table_for_a_paper():
    line = "table gpt --strategy tp --columns params,comm --format latex --notation megatron"
    text = run([*line.split(), "--caption", "Parameters & more", "--label", "tab:p", "--cite"])
    assert r"\providecommand*{\Syme}{h}" in text
    assert r"\caption{Parameters \& more~\cite{" in text
    assert r"\label{tab:p}" in text
    assert r"\label{tab:p-b}" in text  # collectives by kind
    assert "% @misc{korthikanti-2022," in text
    assert "value &" not in text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sheet gpt --format csv", "a sheet is no csv"),
        ("sheet gpt --format html --cite", "--cite is not read"),
        ("sheet gpt -o x.pdf --format html", "--format 'html' is not read"),
        ("sheet gpt -o x.svg", ".svg is not written here"),
        ("sheet gpt -o x.bib --cite", "-o is BibTeX alone"),
        ("sheet nope --columns zz --width 9in9 --format latex", "3 problems"),
        ("table gpt --caption x", "--caption not read"),
        ("table gpt --format latex --label {x}", "letters, digits and : . _ -"),
        ("table gpt --notation nope", "unknown notation 'nope'"),
        ("formula flops gpt --symbols e=l", "would both be 'l'"),
        ("formula flops gpt --symbols e", "SYMBOL=NAME is accepted"),
        ("memory gpt2 --against tp=2", "--against is not read"),
        ("fit gpt2 --gpus 1 -o x.svg", ".svg is not written here"),
        ("scale flops gpt2 --width ieee", "--width is not read"),
        ("scale flops gpt2 --at gpt2 -o x.svg", "--at is not read"),
        ("time gpt2 --ops -o x.svg", "are tables"),
        ("roofline gpt2 -o x.svg --width wide", "3.25in"),
    ],
)
def test_what_is_refused(line, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in run(line, exit_code=2)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("notation", ["megatron", "huggingface"])
@pytest.mark.parametrize("form", ["table", "json", "markdown", "html"])
def test_every_format_has_the_names_of_a_notation(form, notation):
    text = run(f"formula params gpt --notation {notation} --format {form}")
    names = {"megatron": "h", "huggingface": "<math" if form == "html" else "hidden"}
    assert names[notation] in text
    assert " e V" not in text


def test_check_and_derive_have_them_too():
    line = ["check", "12h^2 + 13h", "gpt", "--cost", "params", "--path", "block"]
    assert "12 h^2 + 13 h" in run([*line, "--notation", "megatron"])
    text = run("derive gpt --cost saved --path block --notation megatron")
    assert "34 b s h = (" in text


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib")
    for line in ("memory gpt2 --set M=8 --strategy tp=4 --against tp=4,sp --width ieee",):
        path = tmp_path / f"{line.split()[0]}.svg"
        run(f"{line} -o {path}")
        assert "<svg" in path.read_text()


LINES = (
    "sheet gpt --strategy tp,sp --width acm --cite --format latex",
    "sheet gpt --strategy dp --format html --notation jax-book",
    "table gpt2 --strategy tp --format latex --notation huggingface",
    "derive gpt --cost params --path block --symbols e=D",
)


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_the_same_bytes_under_other_hash_seeds_and_locales(line):
    outputs = set()
    for seed, locale in (("0", "C"), ("7", "C.UTF-8")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "PYTHONUTF8": "1"}
        env["SYMBOLIC_COST_CACHE"] = ""
        command = [sys.executable, "-m", "symbolic_cost", *line.split()]
        done = subprocess.run(command, env=env, capture_output=True, check=True)
        outputs.add(done.stdout)
    assert len(outputs) == 1


def test_every_cost_has_a_column_in_a_sheet():
    assert HEADS.keys() == COSTS.keys()


def test_degrees_without_a_number_are_mathematics():
    line = ["sheet", "llama", "--strategy", "tp,sp", "--columns", "cache"]
    text = CliRunner().invoke(main, [*line, "--format", "markdown"]).output
    assert r"assumed to be several: $m_1 \geq 2$" in text
    assert "--precision" not in text
