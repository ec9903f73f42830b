"""Large published runs expressed as they ran, and their steps."""

import pytest

from symbolic_cost.jobs.job import job


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "teraflops", "mfu"), [(64, 430, 0.43), (128, 400, 0.41)])
def test_llama_3_405b(ranks, teraflops, mfu):
    """126 layers on 16 stages, the first and the last one lighter; arXiv:2407.21783, Table 4.

    Overlap, bundling and chunks per stage are not printed: the stated defaults of an unknown stack
    and eight chunks. With 6 N + 6 L e l FLOP per token the step of the table is 12.0 and 6.46 s.
    """
    run = job(
        "llama-3-405b",
        f"tp=8,sp,pp=16,dp={ranks},zero=1",
        {"b": 1, "l": 8192, "v": 8},
        system="h100",
        global_batch=2048,
        schedule="interleaved",
        layout="ends=1",
        precision="bf16-mixed",
        stack="unknown",
    )
    per_token = 6 * 405.85e9 + 6 * 126 * 16384 * 8192
    measured = 2048 * 8192 * per_token / (run.strategy.ranks * teraflops * 1e12)
    time = run.time()
    assert float(time.step) == pytest.approx(float(measured), rel=0.05)
    assert time.mfu == pytest.approx(mfu, abs=0.025)
    assert time.low < measured < time.high


@pytest.mark.slow
def test_deepseek_v3():
    """61 layers on 16 stages under DualPipe, 2,048 H800; arXiv:2412.19437.

    180 thousand GPU hours for 10^12 tokens are 19.9 s of 15,360 sequences of 4096 tokens, which go
    once to each node (section 3.2.2); DualPipe hides all-to-alls and sends (3.2.1).
    """
    run = job(
        "deepseek-v3",
        "pp=16,ep=64,dp=128,zero=1",
        {"b": 1, "l": 4096},
        system="h800",
        global_batch=15360,
        schedule="dualpipe",
        precision="fp8-deepseek",
        stack="deepseek",
    )
    assert run.trained.layout == "uneven"
    measured = 180e3 * 3600 / 2048 * 15360 * 4096 / 1e12
    time = run.time()
    assert time.low < measured < time.high
    assert float(time.step) == pytest.approx(measured, rel=0.15)
    assert "hidden by its passes, unless said otherwise: ep, pp" in time.sheet.notes
