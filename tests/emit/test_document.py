"""The formula sheet: what it says, and that it compiles without errors or overfull lines."""

import re
import subprocess

import pytest

from symbolic_cost.conventions.presets import EXACT, MEGATRON_2022, STANDARD
from symbolic_cost.emit.document import formula_sheet
from symbolic_cost.models.catalog import model
from symbolic_cost.ops.recompute import SELECTIVE
from symbolic_cost.parallel.strategy import parse_strategy
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import strategy_table

MOST_OVERFULL = 10  # points


def sheet(name="gpt", strategy="tp,sp", conventions=STANDARD, **options):
    ranks = Structure(parse_strategy(strategy)).symbolic
    table = strategy_table(model(name), ranks, conventions, **options)
    return formula_sheet(table, strategy)


def test_every_op_and_symbol_is_there():
    text = sheet()
    for op in ("fc1", "softmax", "token", "logits"):
        assert re.search(rf"\b{op}\b", text)
    for said in ("Costs of gpt", "strategy: tp,sp", "conventions: standard", "sequence length"):
        assert said in text
    assert r"\frac{b l f}{m_1} (2 e + 1)" in text


def test_conventions_are_given_as_formulas():
    assert r"products: $2 n - 1$" in sheet(conventions=EXACT)
    assert r"products: $2 n$" in sheet(conventions=MEGATRON_2022)


@pytest.mark.latex
@pytest.mark.parametrize(
    ("name", "strategy", "conventions", "options"),
    [
        ("gpt", "tp,sp", STANDARD, {}),
        ("gpt", "tp,sp,cp,dp,zero=3", EXACT, {"recompute": SELECTIVE}),
        ("mixtral", "tp,ep,dp", STANDARD, {}),
    ],
)
def test_it_compiles(name, strategy, conventions, options, tmp_path):
    (tmp_path / "sheet.tex").write_text(sheet(name, strategy, conventions, **options))
    for _ in range(2):  # longtable settles its widths in the second run
        run = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "sheet.tex"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout[-3000:]
    log = (tmp_path / "sheet.log").read_text(errors="replace")
    overfull = [float(size) for size in re.findall(r"Overfull \\hbox \((\d+\.?\d*)pt", log)]
    assert all(size <= MOST_OVERFULL for size in overfull), overfull
    assert (tmp_path / "sheet.pdf").stat().st_size > 0
