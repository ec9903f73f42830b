"""Chains of formulas, citations, and values in a notebook."""

import pytest

import symbolic_cost as sc

JOB = sc.job("gpt3-175b", "tp=8,sp", system="a100-80gb", global_batch=8)


def test_a_time_is_explained_down_to_its_inputs():
    sheet = sc.explain(JOB.time(), "mfu").sheet
    names = [str(row[0]).strip() for row in sheet.rows]
    assert names[0] == "mfu"
    assert {"step", "bubble", "microbatches", "e", "matrix.bf16"} <= set(names)
    assert any("datasheet" in str(row[3]) for row in sheet.rows)
    assert "definitions lie below" in sheet.notes[0]
    whole = sc.explain(JOB.time(), "step", levels=99)
    assert "definitions lie below" not in whole.sheet.notes[0]
    assert len(whole.sheet.rows) > 2 * len(sheet.rows)


def test_what_moves_is_in_bytes_and_what_is_a_ratio_has_no_unit():
    time = sc.job("gpt2", "dp=2", {"b": 1, "M": 2}, system="h100").time()
    rows = sc.explain(time, "step", levels=99).sheet.rows
    said = {str(row[0]).strip(): row[2] for row in rows}
    assert said["first.gradients.dp.all-reduce.message"] == "474.7 MiB"
    assert said["slowness.products"] == "1"


def test_a_cost_is_explained_by_its_ops():
    sheet = sc.explain(JOB, "saved").sheet
    total, *rest = sheet.rows
    ops = [row for row in rest if row[1] is not None]
    assert total[2] == sum(row[2] for row in ops) == JOB.total("saved")
    inputs = {str(row[0]).strip(): row for row in rest if row[1] is None}
    assert inputs["e"][2:] == (12288, "embedding (hidden) width; model gpt3-175b")
    assert inputs["m1"][3].endswith("strategy tp=8,sp")


def test_what_is_not_there_is_refused():
    with pytest.raises(sc.errors.InputError, match="did you mean step"):
        sc.explain(JOB.time(), "stepp")
    with pytest.raises(sc.errors.InputError, match="unknown cost"):
        sc.explain(JOB, "savd")
    with pytest.raises(sc.errors.InputError, match="publication"):
        sc.citations("korthikanti")


def test_citations_are_what_was_used():
    assert "brown-2020" in sc.citations(JOB)
    assert "korthikanti-2022" in sc.citations(JOB)
    assert "korthikanti-2022" not in sc.citations(JOB.replace(strategy="tp=8"))
    rows = sc.cost("gpt", "megatron-2022")
    assert sc.citations(rows).count("@misc") == 1
    with sc.written_in(sc.notation("palm")):
        assert "chowdhery-2022" in sc.citations(JOB)


def test_a_notebook_shows_values():
    values = {
        "job": JOB,
        "table": JOB.rows,
        "model": JOB.model,
        "strategy": JOB.strategy,
        "conventions": JOB.conventions,
        "machine": JOB.machine,
        "memory": JOB.memory(),
        "law": sc.laws.law("chinchilla"),
    }
    for name, value in values.items():
        bundle = value._repr_mimebundle_(include=None, exclude=None)
        assert set(bundle) == {"text/plain", "text/latex", "text/html"}, name
        assert bundle["text/html"].startswith("<table>")
        widest = max(map(len, bundle["text/plain"].splitlines()))
        assert widest <= 80 or name == "machine"  # whose sources are single long words
        assert r"\begin{tabular}" in bundle["text/latex"]


def test_latex_of_an_answer_has_caption_and_label():
    text = JOB.memory().latex(caption="Memory", label="tab:memory", width="ieee")
    assert r"\caption{Memory}" in text
    assert r"\label{tab:memory}" in text


def test_versions(capsys):
    sc.show_versions()
    printed = capsys.readouterr().out
    assert "sympy " in printed
    assert "symbolic_cost " in printed
