"""Where the time of a step goes."""

import pytest

import symbolic_cost as sc
from symbolic_cost.jobs.tables.explained import explained_sheet

STRATEGIES = [
    *("", "tp=2,sp,dp=2,zero=1"),
    pytest.param("tp=2,pp=2,dp=2,zero=3", marks=pytest.mark.slow),
]


def column(sheet, name):
    place = [one.heading for one in sheet.columns].index(name)
    return [row[place] for row in sheet.rows]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parts_add_up_to_the_step(strategy):
    timed = sc.job("gpt2", strategy, system="h100", microbatches=8).time().timed
    sheet = explained_sheet(timed)
    assert sum(column(sheet, "step")) == pytest.approx(float(timed.numbers["step"]), rel=1e-9)
    assert sum(column(sheet, "share")) == pytest.approx(100, abs=0.5)
    assert column(sheet, "step") == sorted(column(sheet, "step"), reverse=True)


@pytest.mark.parametrize("precision", ["bf16-mixed", "fp32", "mxfp8", "nvfp4"])
def test_products_reach_no_more_than_the_peak(precision):
    run = sc.job("llama-3-8b", "tp=2", system="b200", microbatches=1, precision=precision)
    timed = run.time().timed
    peaks = [value for value in column(explained_sheet(timed), "of peak") if value is not None]
    assert peaks
    assert max(peaks) <= 80  # the share that the record gives large products


def test_attention_in_16_bits_has_their_peak_where_products_have_8():
    """On h100 989 TFLOP/s, not 1979."""
    reached = []
    for precision in ("bf16-mixed", "fp8-hybrid"):
        run = sc.job("gpt2", system="h100", microbatches=1, precision=precision, stack="nemo")
        rows = explained_sheet(run.time().timed).rows
        reached.append({row[1]: row[6] for row in rows if row[0].endswith("attention.core")})
    assert reached[0] == reached[1]
    assert None not in reached[0].values()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "told"), [("nemo", "goes once to all its"), ("megatron-core", "goes alone")]
)
def test_what_is_assumed_of_experts_is_told(runs, told):
    """Nothing in a job says how many tokens an expert gets."""
    run = sc.job("qwen3-30b-a3b", "ep=8,dp=8", system="h100", microbatches=1, stack=runs)
    notes = explained_sheet(run.time().timed).notes
    assert "assumed of experts: each gets equally many tokens" in notes
    assert any(note.startswith(f"experts of stack {runs}: ") and told in note for note in notes)
    dense = explained_sheet(sc.job("gpt2", system="h100", microbatches=1).time().timed).notes
    assert not any("experts" in note for note in dense)


def test_what_helps_is_what_binds():
    """A model on one GPU waits for no link."""
    (helps,) = (
        note
        for note in explained_sheet(
            sc.job("gpt3-1.3b", system="h100", microbatches=1).time().timed
        ).notes
        if "a tenth better" in note
    )
    assert "matrix rate" in helps
    assert "nvlink" not in helps
