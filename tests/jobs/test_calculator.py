"""The calculator's page in a real browser: equal to exact results, silent, usable."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from random import Random

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import SymbolicCostError
from symbolic_cost.jobs.calculator import calculator, page
from symbolic_cost.jobs.structures import CLASSES, Structures
from symbolic_cost.program.scalars import rounded
from symbolic_cost.systems.records import machine_of
from tests.jobs import browser

NEAR = 1e-12
FEW = {"tp": ("1", "sp"), "pp": ("1", "3"), "dp": ("1z",), "recompute": ("none",)}
DATA = {"0": "0", "1z": "1", "3z": "3"}
RATES = {"efficiency": (0.3, 1), "ranks": (2, 72), "bandwidth": (1e10, 1e13), "latency": (0, 1e-5)}
START = sc.job("llama-3-8b", "tp=2,sp,pp=4,dp=4,zero=1", {"M": 8}, system="h100")


@pytest.fixture(scope="module")
def few():
    structures = Structures(START, FEW)
    return structures, page(structures)


def drawn(structures, chance):
    """A legal configuration: the state of the page, and exact numbers by symbol."""
    choice = chance.choice(list(structures.every))
    tp, pp, dp, recompute = choice
    numbers = {
        "m1": 1 if tp == "1" else chance.choice((2, 4, 8, 3)),
        "pp": {"1": 1, "2": 2}.get(pp) or chance.choice((3, 4, 8)),
        "dp": 1 if dp == "1" else chance.choice((2, 6, 16, 64)),
        "M": chance.randrange(1, 65),
        "b": chance.randrange(1, 9),
        "q": chance.choice((64, 80, 128)),
        "e": 64 * chance.randrange(8, 256),
        "V": chance.randrange(1000, 300_000),
    }
    numbers["n_layers"] = numbers["pp"] * chance.randrange(1, 20)
    numbers["k"] = numbers["m1"] * chance.randrange(1, 9)
    numbers["h"] = numbers["k"] * chance.randrange(1, 9)
    numbers["f"] = numbers["m1"] * chance.randrange(100, 9000)
    numbers["l"] = numbers["m1"] * chance.randrange(10, 5000)
    for name in structures.program.symbols:
        if name.startswith("machine."):
            low, high = RATES.get(name.rpartition(".")[2], (1e12, 1e15))
            low, high = (0.3, 1) if "efficiencies" in name else (low, high)
            low, high = (0, 1e-5) if name.endswith(("launch", "host")) else (low, high)
            whole = name.endswith("ranks")
            numbers[name] = chance.randrange(low, high) if whole else chance.uniform(low, high)
    options = {"sp": str(int(tp == "sp")), "zero": DATA.get(dp, "0"), "recompute": recompute}
    state = {name: repr(value) for name, value in numbers.items()} | options
    return choice, state, {name: Fraction(value) for name, value in numbers.items()}


def compared(structures, text, count, folder):
    chance = Random(7)  # noqa: S311 - no secret
    cases = [drawn(structures, chance) for _ in range(count)]
    script = f"""
        return {json.dumps([state for _, state, _ in cases])}.map((own) => {{
            const got = calculator.answer(own);
            return got.problems.length ? got.problems : Object.fromEntries(got.values);
        }});"""
    found, told = browser.ran(text, script, folder)
    assert not told
    for (choice, _, numbers), values in zip(cases, found, strict=True):
        workings = structures.every[choice]
        assert isinstance(values, dict), values
        assert values.keys() == {step.name for step in workings.steps}
        known = {name: numbers[name] for name in workings.program.symbols}
        for name, exact in workings.program.exact(known).items():
            if name in values:
                expected = rounded(exact)
                assert abs(values[name] - expected) <= NEAR * abs(expected), (choice, name)


@browser.needs_browser
def test_the_page_computes_exact_results(few, tmp_path):
    compared(*few, 60, tmp_path)


@browser.needs_browser
@pytest.mark.slow
def test_every_structure_computes_exact_results(tmp_path):
    structures = Structures(sc.job("llama"), {name: tuple(own) for name, own in CLASSES.items()})
    text = page(structures)
    assert len(text) < 300_000
    assert len(structures.every) == 108
    compared(structures, text, 300, tmp_path)


@browser.needs_browser
def test_the_page_begins_with_the_job_and_says_what_does_not_go_together(few, tmp_path):
    script = """
        const step = (own) => calculator.answer(Object.assign({}, calculator.start, own));
        const first = step({}).values;
        const type = (id, value) => { const box = document.getElementById(`in-${id}`);
            box.value = value; box.dispatchEvent(new Event("input")); };
        type("b", "2");
        const address = location.hash;
        document.getElementById("keep").click();
        type("b", "x");
        const wrong = document.getElementById("wrong").textContent;
        type("b", "4");
        document.querySelector(".card").click();
        const controls = [...document.querySelectorAll("input, select")];
        return {
            step: first.get("step"), peak: first.get("memory.peak"), address, wrong,
            kept: location.hash, compared: document.querySelectorAll("#compare tbody tr").length,
            formula: document.querySelectorAll("#formula math *").length,
            focused: document.activeElement.id,
            unlabelled: controls.filter((one) => !one.labels.length).map((one) => one.id),
            ids: [...document.querySelectorAll("[id]")].map((one) => one.id),
            heads: step({k: "9"}).problems, single: step({m1: "2", k: "1"}).problems,
            negative: step({l: "-1"}).problems,
            requests: performance.getEntriesByType("resource").length,
            links: [...document.querySelectorAll("[src], link:not([href^='data:'])")].length,
        };"""
    found, told = browser.ran(few[1], script, tmp_path)
    assert not told
    exact = START.replace(precision="bf16-mixed", stack="roofline")
    assert found["step"] == pytest.approx(float(exact.time().step), rel=NEAR)
    assert found["peak"] == max(peak.size for peak in exact.memory().fits.peaks.values())
    assert found["address"] == "#b=2"
    assert found["kept"] == "#b=4&kept=b%3D2"
    assert (
        "b: a whole number from 1 is accepted" in found["wrong"]
        or "give a number" in found["wrong"]
    )
    assert found["compared"] > 10
    assert found["formula"] > 10
    assert found["focused"] == "formula"
    assert not found["unlabelled"]
    assert len(found["ids"]) == len(set(found["ids"]))
    assert any(
        "k is a multiple of tp" in text and "k = 9, tp = 2" in text for text in found["heads"]
    )
    assert any("tp = 1 would divide" in text for text in found["single"])
    assert found["negative"] == ["l: a whole number from 1 is accepted"]
    assert found["requests"] == found["links"] == 0


HOSTILE = "<script>window.hacked=1</script>\x1b[31m\u202e=cmd|' /C calc'!A0"


def hostile_job():
    record = """
name = "mine"
meaning = "one"
sources = { bad = 'BAD' }
[matrix]
bf16 = { value = 400e12, source = "bad", includes = "dense" }
[vector]
fp32 = { value = 25e12, source = "bad", includes = "multiply-adds" }
[memory]
bandwidth = { value = 2e12, source = "bad", includes = "peak" }
capacity = { value = 68719476736, source = "bad", includes = "64 GiB" }
usable = { value = 64e9, source = "bad", includes = "rest" }
[[links]]
name = "=1+1"
ranks = { value = 8, source = "bad", includes = "one" }
bandwidth = { value = 32e9, source = "bad", includes = "one direction" }
latency = { value = 5e-6, source = "bad", includes = "one step" }
[[links]]
name = "b2"
bandwidth = { value = 32e9, source = "bad", includes = "one direction" }
latency = { value = 5e-6, source = "bad", includes = "one step" }
"""
    machine = machine_of(record.replace("BAD", "</script><script>window.hacked=1</script>=cmd|x"))
    model = replace(sc.model("llama-3-8b"), name=HOSTILE)
    return sc.job(model, "tp=2,sp,pp=4,dp=4,zero=1", {"M": 8}, system=machine)


@browser.needs_browser
def test_hostile_names_are_shown_and_never_run(tmp_path):
    one = {"tp": ("sp",), "pp": ("3",), "dp": ("1z",), "recompute": ("none",)}
    text = page(Structures(hostile_job(), one))
    assert "\x1b" not in text
    assert "\u202e" not in text
    script = """return {hacked: window.hacked || 0, scripts: document.scripts.length,
        title: document.title, head: document.getElementById("title").textContent,
        step: calculator.answer(calculator.start).values.get("step")};"""
    found, told = browser.ran(text, script, tmp_path)
    assert not told
    assert found["hacked"] == 0
    assert found["scripts"] == 3
    assert "<script>" in found["title"]
    assert found["head"].startswith("<script>")
    assert found["step"] > 0


@pytest.mark.parametrize(
    ("job", "path", "said"),
    [
        (START, "x.txt", "ends with .html"),
        (sc.job("mixtral-8x7b", "dp=8,ep=8,zero=2"), "x.html", "ep: tp, sp, pp and dp"),
        (START.replace(stack="torchtitan"), "x.html", "stack torchtitan: the page has each"),
        (sc.job("llama-3-8b", "dp=8,zero=2"), "x.html", "zero=2: 0, 1 and 3"),
        (sc.job("llama-3-8b", recompute="full/4"), "x.html", "recompute: none"),
        (sc.job("llama-3-8b", "pp", layout="ends=1"), "x.html", "layout ends=1"),
        (sc.job("llama-3-8b", offload="optimizer"), "x.html", "no link to a host"),
        (sc.job("llama-3-8b", system="v100"), "x.html", "machine v100"),
        (sc.job("llama-3-8b", system="symbolic"), "x.html", "machine symbolic"),
        (sc.job("llama-3-8b", "dp=8,zero=2", system="v100"), "x", "(?s)3 problems.*ends with"),
    ],
)
def test_what_a_page_has_not_is_refused(job, path, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SymbolicCostError, match=said):
        calculator(job, path)
    assert not list(tmp_path.iterdir())


SEEDED = """
import hashlib
import symbolic_cost as sc
from symbolic_cost.jobs.calculator import page
from symbolic_cost.jobs.structures import Structures
one = {"tp": ("sp",), "pp": ("2",), "dp": ("1z",), "recompute": ("full",)}
job = sc.job("gpt2", "tp=2,sp,pp=2,dp=2,zero=1", {"M": 4}, system="h100")
print(hashlib.sha256(page(Structures(job, one)).encode()).hexdigest())
"""


@pytest.mark.slow
def test_a_page_is_the_same_under_every_hash_seed():
    pages = {
        subprocess.run(
            [sys.executable, "-c", SEEDED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "77")
    }
    assert len(pages) == 1
