"""Workbooks: live formulas that LibreOffice recalculates, equal to exact results."""

import re
import zipfile
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest

import symbolic_cost as sc
from symbolic_cost.emit.cells import Formulas
from symbolic_cost.errors import SymbolicCostError
from symbolic_cost.jobs.workbook import cell_names, workbook, workbook_bytes
from symbolic_cost.jobs.workings import Workings
from symbolic_cost.program.graph import Graph
from symbolic_cost.program.program import of_graph
from symbolic_cost.program.scalars import rounded
from symbolic_cost.symbols import GLOSSARY
from symbolic_cost.systems.records import machine_of
from tests.jobs import sheets

NEAR = 1e-12
MOST_CHARACTERS = 8192  # of a formula, as Excel accepts it
JOBS = {
    "gpt": ("gpt2", "tp=2,sp,pp=4,dp=2,zero=1", {"M": 8}, {}, {"b": 3, "m1": 4, "dp": 6, "l": 512}),
    "llama": (
        "llama-3-70b", "tp=8,sp,pp=4,dp=8,zero=1", {"b": 1}, {"global_batch": 64},
        {"machine.links.nvlink.bandwidth": 9e11, "l": 4096, "V": 128255, "m1": 4, "pp": 8},
    ),
    "experts": (
        "mixtral-8x7b", "dp=8,ep=2,cp=2,zero=2", {"M": 4},
        {"recompute": "full", "stack": "roofline"},
        {"E_t": 1, "ep": 4, "machine.efficiencies.matrix": 0.61, "machine.links.nvlink.ranks": 4},
    ),
    "latent": (
        "deepseek-v3", "tp=2,pp=2,dp=16,ep=8,zero=1", {"M": 16}, {"recompute": "selective"},
        {"b": 2, "machine.memory.bandwidth": 4.8e12},
    ),
}  # fmt: skip
SLOW = ("llama", "experts", "latent")


@cache
def worked(name):
    model, strategy, numbers, options, change = JOBS[name]
    return Workings(sc.job(model, strategy, numbers, **{"system": "h100", **options})), change


def exact(workings, change):
    values = {one.name: one.value for one in workings.inputs}
    values |= {name: Fraction(str(value)) for name, value in change.items()}
    assert change.keys() <= {one.name for one in workings.inputs}
    return workings.program.exact(values)


@sheets.needs_office
@pytest.mark.parametrize("names", [("gpt",), pytest.param(SLOW, marks=pytest.mark.slow)])
def test_formulas_recalculate_to_exact_results(names, tmp_path):
    files, wanted = [], []
    for name in names:
        workings, change = worked(name)
        (tmp_path / f"{name}.xlsx").write_bytes(workbook_bytes(workings))
        rows = {one.name: f"B{row}" for row, one in enumerate(workings.inputs, 5)}
        for number, numbers in enumerate(({}, change)):
            cells = {rows[one]: value for one, value in numbers.items()}
            copy = tmp_path / f"{name}{number}.xlsx"
            files.append(sheets.changed(tmp_path / f"{name}.xlsx", copy, cells))
            wanted.append((workings, exact(workings, numbers)))
    for file, (workings, results) in zip(sheets.recalculated(files, tmp_path), wanted, strict=True):
        found = sheets.numbers(file)
        assert found.keys() == {one.name for one in workings.steps}
        for name, number in found.items():
            expected = rounded(results[name])
            assert abs(number - expected) <= NEAR * abs(expected), (file.name, name)
        told = sheets.tables(file)["Inputs"]
        first = next(row for (column, row), text in told.items() if text in {"met", "NOT MET"})
        for row, one in enumerate(workings.checks, first):
            assert told["A", row] == ("met" if results[one.name] == 0 else "NOT MET"), one.said


HOSTILE = "=cmd|' /C calc'!A0\x1b[31m\u202e<script>"
RECORD = """
name = "=mine"
meaning = "one"
sources = { bad = '=HYPERLINK("http://x","y")' }
[matrix]
bf16 = { value = 400e12, source = "bad", includes = "dense" }
[vector]
fp32 = { value = 25e12, source = "bad", includes = "multiply-adds" }
[memory]
bandwidth = { value = 2e12, source = "bad", includes = "peak" }
capacity = { value = 68719476736, source = "bad", includes = "64 GiB" }
usable = { value = 64e9, source = "bad", includes = "rest" }
[[links]]
name = "+A1"
bandwidth = { value = 32e9, source = "bad", includes = "one direction" }
latency = { value = 5e-6, source = "bad", includes = "one step" }
"""


@pytest.mark.slow
@pytest.mark.parametrize("system", ["h200", "a100-40gb", "mi300x", "tpu-v5p"])
def test_machines_that_take_the_kernels_of_others_are_opened_too(system):
    """Shares are those of the machine as it is; its peaks and links are cells."""
    job = sc.job("gpt2", "tp=2", {"b": 1, "M": 2}, system=system)
    workings = Workings(job)
    assert any(one.name == "machine.matrix.bf16" for one in workings.inputs)
    found = float(exact(workings, {})["step"])
    assert found == pytest.approx(float(job.time().step), rel=1e-9)


def test_hostile_names_stay_text_and_name_no_cell(tmp_path):
    model = replace(sc.model("gpt2"), name=HOSTILE)
    job = sc.job(model, "dp=2", {"M": 2}, system=machine_of(RECORD))
    workbook(job, str(tmp_path / "a.xlsx"))
    for name, cell, formula in sheets.formulas(tmp_path / "a.xlsx"):
        assert not any(word in formula for word in ("cmd", "HYPERLINK", "script", "http")), cell
        assert name
    cells = sheets.tables(tmp_path / "a.xlsx")
    assert "\x1b" not in str(cells)
    assert cells["Summary"]["A", 1].startswith("One step of =cmd|")
    assert any(str(text).startswith("=HYPERLINK") for text in cells["Inputs"].values())
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        text = book.read("xl/workbook.xml").decode()
        assert not any("externalLink" in name for name in book.namelist())
    names = re.findall(r'definedName name="([^"]*)"', text)
    assert names
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*_(cap)?", name) for name in names)


def test_no_name_is_a_cell_or_another_name():
    names = cell_names([*GLOSSARY, "machine.links.=a.ranks", "machine.links.a.ranks"])
    folded = [name.lower() for name in names.values()]
    assert len(folded) == len(set(folded))
    assert not any(re.fullmatch(r"[A-Za-z]{1,3}\d+|[rc](\d+)?|r\d*c\d*", n) for n in folded)


def test_long_formulas_are_put_into_parts():
    """A sum of 3,000 products, and roots in roots, 90 levels deep."""
    graph = Graph({"b": True, "l": True})
    one, two = graph.symbol("b"), graph.symbol("l")
    wide = graph.sum([(graph.product([(one, n), (two, 1)]), 7 * n) for n in range(1, 3001)])
    deep = one
    for _ in range(90):
        deep = graph.square_root(graph.sum([(deep, 1)], 1))
    program = of_graph(graph, {"wide": wide, "deep": deep})
    placed = []

    def place(formula):
        placed.append(formula)
        return f"Parts!$B${len(placed)}"

    made = Formulas(program.nodes, {"b": "b_", "l": "l_"}, place)
    texts = [made.formula(node) for node in program.outputs.values()] + placed
    assert len(placed) > 10
    assert max(map(len, texts)) <= MOST_CHARACTERS // 4
    assert max(depth(text) for text in texts) < 64


def depth(text):
    levels, most = 0, 0
    for character in text:
        levels += (character == "(") - (character == ")")
        most = max(most, levels)
    return most


@pytest.mark.slow
def test_every_formula_is_short_and_the_file_is_the_same_twice(tmp_path):
    workings, _ = worked("gpt")
    (tmp_path / "one.xlsx").write_bytes(workbook_bytes(workings))
    assert (tmp_path / "one.xlsx").read_bytes() == workbook_bytes(workings)
    found = list(sheets.formulas(tmp_path / "one.xlsx"))
    assert len(found) > len(workings.steps)
    assert max(len(formula) for _, _, formula in found) <= MOST_CHARACTERS


@pytest.mark.parametrize(
    ("job", "path", "said"),
    [
        (sc.job("gpt2", "dp=2"), "x.xls", "(?s)2 problems.*ends with .xlsx.*a machine is needed"),
        (sc.job("gpt2", "dp=2", system="symbolic"), "x.xlsx", "has no numbers"),
        (sc.job("gpt", "dp", system="h100"), "x.xlsx", "no number for e .embedding"),
    ],
)
def test_bad_requests_are_refused(job, path, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SymbolicCostError, match=said):
        workbook(job, path)
    assert not list(tmp_path.iterdir())
