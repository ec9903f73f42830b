"""Documents and tables for papers: what they say, that they fit their pages, and hostile names."""

import re
import subprocess
from dataclasses import replace

import pytest

import symbolic_cost as sc
from symbolic_cost.conventions.presets import EXACT, MEGATRON_2022
from symbolic_cost.emit.bibtex import bibtex
from symbolic_cost.emit.document import FORMS, Document, Section, sheets_as_latex, write
from symbolic_cost.emit.latex import Float, tables
from symbolic_cost.emit.page import PAGES, TWO_COLUMNS, page
from symbolic_cost.emit.sheet import Column, Sheet
from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.jobs.tables.paper import COLUMNS, document, op_sheets
from symbolic_cost.jobs.tables.per_op import named_costs
from symbolic_cost.symbols import b, e, l

COSTS = named_costs(COLUMNS)
SPREAD = (PAGES["article"], PAGES["ieee"], TWO_COLUMNS)
GPT = sc.job("gpt", "tp,sp")


def latex_of(job, place=PAGES["article"]):
    return write(document(job, COSTS), "latex", place, cites=True)


def compiled(text, folder):
    """What pdflatex complains of: errors, overfull lines and floats that are too tall."""
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    run = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    said = run.stdout.decode(errors="replace")
    assert run.returncode == 0, said[-3000:]
    return re.findall(r"Overfull \\[hv]box.*|Float too large.*", said)


def test_every_op_symbol_and_collective_is_there():
    text = latex_of(GPT)
    for op in ("fc1", "core", "token", "logits"):
        assert rf"\mbox{{{op}}}" in text
    assert r"tensor parallel $\SymmOne $, Megatron sequence parallel" in text
    assert r"$\Symb \Syml \Symf \allowbreak (2 \Syme  + 1)/\SymmOne $" in text
    assert "Forward [FLOP] & Backward [FLOP]" in text
    assert r"\mbox{all-gather} & \mbox{tp} &" in text
    assert "Sent [byte], reduce-scatter over tp" in text
    assert r"$\Syml $: sequence length [tokens]" in text
    assert text.count(r"\bibitem") == text.count("@misc") == len(document(GPT, COSTS).cited)


def test_a_name_is_changed_in_one_place():
    text = latex_of(GPT)
    body = text.partition(r"\begin{document}")[2]
    assert text.count(r"\providecommand*{\Syme}{e}") == 1
    assert r"\Syme" in body
    assert r"\providecommand" not in body
    assert not re.search(r"\$[^$]*n_\{\\mathrm\{layers\}\}", body)


@pytest.mark.parametrize(
    ("rules", "said"), [(EXACT, r"2 \Symn  - 1"), (MEGATRON_2022, r"2 \Symn ")]
)
def test_conventions_are_given_as_formulas(rules, said):
    assert f"products: ${said}$" in latex_of(GPT.replace(conventions=rules))


def test_numbers_stand_where_all_are_known():
    known, open_ = (op_sheets(sc.job("gpt2", s), COSTS) for s in ("", "tp"))
    assert "Forward value" in [column.heading for column in known[0].columns]
    assert not [c for c in open_[0].columns if "value" in c.heading]


def test_a_table_is_divided_where_it_does_not_fit():
    columns = (Column("Op"), *(Column(f"{'wide ' * 3}{n}") for n in range(8)))
    rows = tuple((f"op{n}", *[b * l * e * (e + n)] * 8) for n in range(50))
    lines = tables(Sheet("many", columns, rows), Float(label="tab:many"))
    captions = [line for line in lines if line.startswith(r"\caption")]
    assert len(captions) > 2
    assert captions[0] == r"\caption{many}"
    assert set(captions[1:]) == {r"\caption{many (continued)}"}
    assert [line for line in lines if line.startswith(r"\label")][:2] == [
        r"\label{tab:many}",
        r"\label{tab:many-2}",
    ]
    for n in range(50):
        assert sum(rf"\mbox{{op{n}}}" in line for line in lines) >= 1


def test_rows_that_no_name_tells_apart_become_lines_of_their_own():
    columns = tuple(Column(f"heading number {n}") for n in range(14))
    sheet = Sheet("t", columns, (("same", *["cell"] * 13), ("same", *["other"] * 13)))
    lines = tables(sheet, Float())
    assert sum("heading number 7 &" in line for line in lines) == 2


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_are_shown_never_run(form):
    hostile = "\\input{/etc/passwd}<script>x</script>=cmd|'/c'!A1\x1b[2J\u202e$^"
    sheet = Sheet(hostile, (Column(hostile),), ((hostile,), ((hostile, b),)), (hostile,))
    text = write(
        Document(hostile, ((hostile, b),), (sheet,), (Section(hostile, ((hostile,),)),)), form
    )
    assert not any(sign in text for sign in ("\x1b", "\u202e"))
    if form == "latex":
        assert r"\input" not in text
    if form == "html":
        assert "<script" not in text
    if form == "markdown":
        assert "<script" not in text.replace(r"\<", "")


def test_a_document_has_four_formats():
    made = document(GPT, COSTS[3:5])
    with pytest.raises(UnknownNameError, match="table"):
        write(made, "csv")
    assert write(made, "markdown").startswith("# Costs of gpt\n\nStrategy: ")
    assert '<math displaystyle="true"' in write(made, "html")
    text = write(made, "table")
    assert max(map(len, text.splitlines())) <= 80


def test_references_say_who_wrote_them_and_when():
    text = latex_of(GPT)
    assert "Mohammad Shoeybi et al. Megatron-LM: Training" in text
    assert "08053, 2019." in text


def test_columns_that_say_nothing_are_left_out_of_a_page():
    rows = (("one", None, b), (("head",), None, None), ("two", None, l))
    sheet = Sheet("t", (Column("name"), Column("empty"), Column("last")), rows)
    text = write(Document("t", (("the head",),), (sheet,), ()), "html")
    assert "empty" not in text
    assert text.count("<th") - text.count("<thead") == 2
    assert '<td colspan="2">head</td>' in text
    assert "<p>The head</p>" in text


def test_pages():
    assert page("acm").text == 506
    assert page("8.5cm").column == 241.8
    assert page("240pt", columns=2).text == 492
    for bad in ("", "ieeee", "3in2", "1in", "99999pt"):
        with pytest.raises(InputError, match="ieee"):
            page(bad)


def test_every_publication_is_bibtex():
    text = bibtex(sc.references.REFERENCES)
    assert text.count("@misc{") == len(sc.references.REFERENCES)
    assert "author = {DeepSeek" not in text  # a group is in braces of its own
    assert "author = {{DeepSeek-AI}}" in text


@pytest.mark.latex
@pytest.mark.parametrize(
    ("model", "strategy", "place"),
    [
        ("gpt", "tp,sp,pp", page("ieee")),
        pytest.param("t5", "2d", page("acm"), marks=pytest.mark.slow),
    ],
)
def test_it_fits(model, strategy, place, tmp_path):
    assert compiled(latex_of(sc.job(model, strategy), place), tmp_path) == []


@pytest.mark.latex
def test_hostile_names_compile(tmp_path):
    hostile = "\\input{/etc/passwd}\\write18{x}&%$#_{}~^" * 3
    job = sc.job("gpt", "tp")
    made = document(job, COSTS[:2])
    sheet = Sheet(hostile, (Column(hostile),), ((hostile,), (hostile.replace("{", " "),)))
    text = write(replace(made, title=hostile, sheets=(sheet,)), "latex", page("acm"))
    assert compiled(text, tmp_path) == []


@pytest.mark.slow
@pytest.mark.latex
@pytest.mark.parametrize(
    ("model", "strategy"),
    [
        ("gpt", "2.5d"),
        ("llama-3-405b", "tp,sp,cp,dp,pp"),
        ("deepseek-v3", "ep,dp"),
        ("mamba2", "tp,sp"),
        ("t5", "dp,zero=3"),
    ],
)
def test_it_fits_pages_of_one_and_two_columns(model, strategy, tmp_path):
    job = sc.job(model, strategy)
    for place in SPREAD:
        assert compiled(latex_of(job, place), tmp_path) == [], place


@pytest.mark.slow
@pytest.mark.latex
@pytest.mark.parametrize("notation", ["huggingface", "megatron", "jax-book"])
def test_notations_fit(notation, tmp_path):
    with sc.written_in(sc.notation(notation)):
        text = latex_of(sc.job("llama-3-8b", "tp,sp"), page("ieee"))
        sheets = op_sheets(sc.job("llama-3-8b", "tp=8,sp"), COSTS)
        assert compiled(text, tmp_path) == []
        body = sheets_as_latex(sheets, Float(page("ieee"), "A caption", "tab:x"))
    preamble = text.partition(r"\begin{document}")[0]
    lines = f"{preamble}\\begin{{document}}\n{body}\\end{{document}}\n"
    assert compiled(lines, tmp_path) == []
