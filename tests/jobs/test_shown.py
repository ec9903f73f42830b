"""What print shows of values, and names for the blocks of uneven stages."""

import json

import pytest

import symbolic_cost as sc
from symbolic_cost.emit.sheet import render
from symbolic_cost.jobs.letters import lettered
from symbolic_cost.jobs.tables.memory import memory_sheet
from symbolic_cost.ledger import Quantity
from symbolic_cost.parallel.moments import moments, peak
from symbolic_cost.symbols import n_dense, n_first, n_layers, pp

UNEVEN = sc.job("deepseek-v3", "tp=8,sp,pp=16,ep=8,dp=8,zero=1", global_batch=4096)


def test_a_job_and_a_model_are_a_line_and_print_as_tables():
    assert repr(UNEVEN) == "<Job deepseek-v3, tp=8,sp,ep=8,dp=8,pp=16,zero=1, no machine>"
    assert repr(sc.model("gpt2")) == "<Model gpt2, 3 parts>"
    assert "flops_fwd" in str(sc.job("gpt2"))
    assert "output.loss" in str(sc.model("gpt2"))


@pytest.mark.parametrize(
    ("make", "title"),
    [
        (lambda: sc.diff("llama-3-8b", conventions=("palm", "verl")), "verl less palm"),
        (lambda: sc.check("6*e*V", "params", "gpt"), "parameters of one rank of gpt: differs"),
        (lambda: sc.derive("gpt", "params"), "parameters of one rank of gpt"),
        (lambda: sc.mfu("llama-3-8b", 1e4, system="h100"), "MFU of llama-3-8b on h100"),
        (lambda: sc.flops_per_token("llama-3-8b"), "Training FLOP per token of llama-3-8b [FLOP]"),
        (lambda: sc.search("gpt2", 1, 4, system="h100"), "gpt2 on 1 x h100, 4 sequences in a step"),
        (lambda: sc.fit("gpt2", 1, system="h100", symbols=("b",)), "What fits of gpt2 on h100"),
        (
            lambda: sc.solve("memory == 9 GiB", sc.job("gpt2", microbatches=8), "b"),
            "memory == 9 GiB for b",
        ),
    ],
)
def test_answers_are_tables_to_whoever_types_them(make, title):
    found = make()
    assert repr(found).startswith(title)
    assert "text/latex" in found._repr_mimebundle_()


def test_what_fits_is_said_in_words():
    assert repr(UNEVEN.replace(system="h100").memory().fits).startswith("fits: ")


def test_a_job_whose_numbers_do_not_fit_has_no_table():
    with pytest.raises(sc.errors.DivisibilityError, match=r"axis k \(8\) is not divisible"):
        str(sc.job("llama-3-8b", "tp=3"))


def test_what_has_no_number_is_told():
    job = sc.job("llama-3-8b", "tp=8,sp,pp=4", system="h100")
    told = "no number for M (microbatches per pipeline and step): bind them, as in --set M=8"
    for answer in (job.memory(), job.communication()):
        assert any(note.startswith(told) for note in answer.sheet.notes)
        assert not any("no number" in note for note in job.bind(M=8).memory().sheet.notes)
    rows = {row[0]: row[1] for row in sc.job("gpt", "tp,pp").memory().sheet.rows}
    assert rows["peak"] == "at backward"


def test_a_maximum_that_fills_pages_is_counted():
    text = str(sc.job("deepseek_v3", "tp,pp,ep,dp").memory())
    assert "the greatest of 39 sums, which --format json gives in full" in text
    assert text.startswith("Memory of one rank of deepseek_v3 [byte]\n")
    assert len(text.splitlines()) < 80


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["first", "middle"])
def test_blocks_of_an_uneven_stage_have_letters_for_people(stage):
    sheet = memory_sheet(UNEVEN.replace(stage=stage))
    text = " ".join(render(sheet, "table").split())
    assert f"n_rest_{stage} = ceiling(n_layers/pp) - " in text
    assert f"n_{stage} = n_lead_{stage} + n_rest_{stage}, the blocks of" in text
    formulas = text[: text.index("precision bf16")]
    assert f" n_{stage} " in formulas, "what all blocks have"
    assert f"4 b f n_lead_{stage}" in formulas or f"4 f n_lead_{stage}" in formulas
    assert "n_layers" not in formulas
    whole = json.loads(render(sheet, "json"))["records"]
    assert "n_layers" in str(whole), "programs read whole formulas"
    assert f"n_rest_{stage}" not in str(whole)


def test_letters_change_no_number():
    for stage in ("first", "last"):
        job = UNEVEN.replace(stage=stage)
        other = lettered(job)
        flop = Quantity.FLOP
        assert other.bound.total(flop) == job.bound.total(flop)
        with_letters, whole = (moments(one.memory_rows)["backward"] for one in (other, job))
        assert with_letters != whole
        assert other.value(with_letters) == job.value(whole)


def test_even_stages_of_blocks_alike_need_no_letter():
    assert not lettered(sc.job("llama-3-8b", "pp=4", {"M": 4})).names
    uneven = lettered(sc.job("llama-3-405b", "pp=16", {"M": 16}))
    assert list(uneven.names) == [n_first]


def test_a_stage_may_hold_no_block():
    """Two layers on four stages: the first one has the embedding alone."""
    sizes = [
        job.value(sum(row.count for row in job.rows.select("flop", path="block", phase="forward")))
        for job in (sc.job("lstm-large", "pp=4", stage=one) for one in ("first", "middle"))
    ]
    assert sizes[0] == 0 < sizes[1]
    assert sc.job("lstm-large", "pp=4").table().total("flop", phase="forward") >= 0


def test_blocks_are_those_of_the_layout():
    numbers = {n_layers: 61, pp: 16, n_dense: 3}
    leading, others, every = lettered(UNEVEN).names.items()
    assert leading[1].xreplace(numbers) == 3
    assert others[1].xreplace({**numbers, leading[0]: 3}) == 0
    assert every == (n_first, leading[0] + others[0])


def test_a_total_is_refused_where_the_table_is():
    """197 positions of ViT-B/16 are not divided by 8, in a total as little as in a table."""
    with pytest.raises(sc.errors.InputError, match="not divisible by mesh axis cp"):
        sc.job("vit-b-16", "cp=8").total("flops_fwd")


def test_a_share_of_all_is_a_hundred_percent():
    from sympy import Rational

    from symbolic_cost.jobs.header import _percent

    said = [_percent(Rational(share, 10**6)) for share in (999_000, 36_120, 1_234, 1)]
    assert said == ["100 %", "3.6 %", "0.12 %", "less than 0.001 %"]


def test_frames_hold_numbers_and_their_units():
    timed = sc.job("gpt2", "dp=8", {"b": 1}, system="h100", global_batch=8).time()
    own = timed.frame().set_index("part").loc["step"]
    assert own["value"] == pytest.approx(float(timed.step))
    assert own["value unit"] == "s"


@pytest.mark.parametrize(
    ("name", "strategy", "stage", "train"),
    [
        ("gpt2", "pp=4", "last", "all-but:embedding"),  # no block of the first kind there
        ("deepseek-v3", "pp=4", "middle", "all-but:embedding"),
        ("t5-small", "pp=5", "last", None),  # half a block of two kinds
    ],
)
def test_letters_for_blocks_count_what_a_stage_lacks(name, strategy, stage, train):
    """Letters may stand for no block, which keeps nothing of what all blocks take."""
    job = sc.job(
        name, strategy, {"b": 1, "l": 512}, stage=stage, train=train, microbatches=16, system="h100"
    )
    shown = lettered(job)
    assert shown.names
    assert shown.value(peak(shown.memory_rows)) == job.value(peak(job.memory_rows))
