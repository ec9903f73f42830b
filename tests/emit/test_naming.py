"""Symbols under the names of notations, on input and output."""

import pytest

import symbolic_cost as sc
from symbolic_cost.analysis.notations import notation, notation_names
from symbolic_cost.cli.declared import table
from symbolic_cost.emit.formulas import latex, plain, where_plain
from symbolic_cost.emit.naming import latex_of, macro, text_of, written_in
from symbolic_cost.errors import InputError
from symbolic_cost.symbols import GLOSSARY, b, e, f, h, l, m1, n_layers, q
from symbolic_cost.symbols import t as keys
from symbolic_cost.typed import formula

NOTATIONS = tuple(notation_names())
MEGATRON_34 = b * e * l * (34 + 5 * h * l / e)


def test_the_help_names_every_notation():
    said = table("@notated")["--notation"]["help"]
    listed = said.removeprefix("Names of symbols: ").partition(", or those")[0]
    assert sorted(listed.split(", ")) == sorted(NOTATIONS)


def test_macros_differ_and_are_letters():
    macros = [macro(name) for name in GLOSSARY]
    assert len(set(macros)) == len(macros)
    assert all(one[1:].isalpha() for one in macros)


@pytest.mark.parametrize("name", NOTATIONS)
def test_every_notation_writes_every_symbol_under_a_name_of_its_own(name):
    with written_in(notation(name)):
        texts = [text_of(own) for own in GLOSSARY]
        assert len(set(texts)) == len(texts)
        typeset = [latex_of(own) for own in GLOSSARY]
        assert len(set(typeset)) == len(typeset)


@pytest.mark.parametrize("name", NOTATIONS)
def test_what_a_notation_writes_it_reads(name):
    letters = notation(name)
    named = [own for own in letters.written if own in ("b", "l", "e", "h", "n_layers", "V")]
    total = sum(GLOSSARY[own].symbol ** 2 * 3 for own in named or ["b", "l"])
    with written_in(letters):
        assert sc.equal(formula(plain(total), letters.names), total)


def test_papers():
    with written_in(notation("megatron")):
        assert plain(MEGATRON_34) == "b s h (5 s a/h + 34)"
        assert latex(n_layers / m1) == r"\frac{L}{t}"
        assert (
            where_plain([e * m1]) == "where h: embedding (hidden) width; t: tensor-parallel degree"
        )
        assert "$" not in plain(keys)
    with written_in(notation("huggingface")):
        assert latex(e * f) == r"\mathtt{hidden\_size} \, \mathtt{intermediate\_size}"
    with written_in(notation("deepseek-v3")):
        assert latex(sc.symbols.r_q * sc.symbols.d_r) == "d_c' d_h^R"
    assert plain(e) == "e"


def test_names_of_a_user():
    letters = notation(symbols="e=d_model, l=s")
    with written_in(letters):
        assert plain(b * l * e) == "b s d_model"
        with pytest.raises(InputError, match=r"l \(sequence length .* and s \(size of one element"):
            plain(sc.symbols.s)
    assert formula("b s d_model", letters.names) == b * l * e
    assert notation("kaplan", "h=H").names["d_attn"] == h * q


@pytest.mark.parametrize(
    ("symbols", "told"),
    [
        ("e=d,l=d", "e (embedding (hidden) width) and l (sequence length [tokens]) would both be"),
        ("e=d,zz=4x,l", "SYMBOL=NAME is accepted"),
        ("zz=x", "unknown symbol 'zz'"),
        ("e=\\input", "letters, digits and _"),
        ("e=a,e=b", "'e' is named twice"),
    ],
)
def test_names_that_are_refused(symbols, told):
    with pytest.raises(InputError) as refused:
        notation(symbols=symbols)
    assert told in str(refused.value)


GOOD = 'meaning = "mine"\n[names]\ne = "D"\n[latex]\ne = "\\\\mathcal{D}"\n[others]\nA = "h q"\n'


def test_a_file_of_a_user(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    letters = notation(str(path))
    with written_in(letters):
        assert (plain(e), latex(e)) == ("D", r"\mathcal{D}")
    assert letters.names["A"] == h * q


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ["names: is missing"]),
        ("x = 1\n[names]\nzz = 'a'\ne = 'l m'", ["unknown key 'x'", "'zz'", "'l m'"]),
        ("[names]\ne = 'D'\n[latex]\ne = '\\write18{x}'\nl='}{'", ["latex of 'e'", "'l' has no"]),
        ("[names]\ne = 3", ["a table of texts"]),
        ("[names]\ne = 'D'\n[others]\nA = 'import os'\nB = 'zz'", ["import", "'zz'"]),
        ("[names", ["is not TOML"]),
        ("[names]\ne='D'\nl='D'", ["would both be 'D'"]),
        ("[names]\ne='D'\n[others]\nD='h'", ["the name of a symbol as well"]),
    ],
)
def test_files_that_are_refused(text, told, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        notation(str(path))
    for one in told:
        assert one in str(refused.value)
