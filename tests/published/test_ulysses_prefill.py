"""The prefill step: three public logs, and the closed forms of its values for other runs."""

from decimal import ROUND_HALF_EVEN, Decimal
from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbolic_cost.errors import InputError
from symbolic_cost.published import contract, ulysses_prefill

PUBLISHED = dict(ulysses_prefill.PUBLISHED_INPUTS)


@pytest.mark.parametrize(
    ("name", "total"),
    [("ulysses-prefill", 124), ("ulysses-prefill-later", 125), ("ulysses-prefill-earlier", 100)],
)
def test_all_published_values(name, total):
    found = contract.reproduce(name)
    assert (found.matched, found.total) == (total, total)
    inputs = contract.publication(name).PUBLISHED_INPUTS
    computed = contract.publication(name).evaluate(inputs)
    assert set(computed) == {row.key for row in found.rows} | {"derived_not_printed"}


LINES = ["init", "qkv", "a2a_qkv", "reshape_qkv", "scores", "context", "transpose_c", "a2a_c"]
LINES += ["reshape_c", "output"]


@pytest.mark.parametrize(
    ("parts", "printed"),
    [
        (
            {"allocator": "payload", "workspace": 0},
            "2.27 2.64 3.01 3.13 60.61 60.73 60.85 60.85 60.98 60.98 56.47 60.98",
        ),
        (
            {"allocator": "payload"},
            "2.27 2.67 3.04 3.16 60.64 60.76 60.89 60.89 61.01 61.01 56.50 61.01",
        ),
        ({}, "2.27 2.68 3.05 3.17 60.65 60.77 60.90 60.90 61.02 61.02 56.50 61.02"),
    ],
)
def test_parts_of_the_memory_model(parts, printed):
    found = ulysses_prefill.evaluate(PUBLISHED | parts)
    lines = [f"{line}.peak" for line in LINES] + ["mlp.current", "mlp.peak"]
    assert [found[line] for line in lines] == [f"{number} GB" for number in printed.split()]


def test_what_the_log_does_not_print():
    assert ulysses_prefill.evaluate(PUBLISHED)["derived_not_printed"] == {
        "flops_per_gpu": {
            "qkv": 6039797760000,
            "scores": 7372800000000,
            "context": 7372800000000,
            "output": 2013265920000,
        },
        "mlp_flops_true_total": 26381836615680000,
        "mlp_flops_true_per_gpu": 1648864788480000,
        "a2a_buffer_bytes_per_gpu": 122880000,
        "a2a_calls": 4,
        "a2a_total_buffer_bytes_per_gpu": 491520000,
        "a2a_wire_bytes_sent_per_gpu": 460800000,
        "a2a_message_bytes_per_pair_per_call": 7680000,
        "mlp_allgather_recv_bytes_per_gpu": 860160000,
        "mlp_allgather_output_bytes": 983040000,
        "mlp_allreduce_calls": 126,
        "mlp_allreduce_buffer_bytes": 983040000,
        "mlp_allreduce_ring_wire_bytes_per_gpu_total": 216760320000,
        "softmax_skipped": True,
        "mlp_current_bytes": 56502370304,
        "peak_bytes": 61018734592,
    }


@st.composite
def runs(draw):
    TP, DP = draw(st.sampled_from([1, 2, 3, 4])), draw(st.sampled_from([1, 2, 5]))
    P = TP * DP
    h = P * draw(st.integers(1, 8))
    return {
        "N": P * draw(st.integers(1, 5000)),
        "d": h * draw(st.integers(1, 256)),
        "h": h,
        "P": P,
        "TP": TP,
        "DP": DP,
        "L": draw(st.integers(1, 130)),
        "d_ff": TP * draw(st.integers(1, 9000)),
        "nbytes": draw(st.sampled_from([1, 2, 4])),
        "rank": draw(st.integers(0, P - 1)),
    }


def printed(value, scale, unit):
    exact = (Decimal(value) / scale).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
    return f"{exact} {unit}"


def gb(size):
    return printed(size, 10**9, "GB")


def rho(x):
    rounded = 512 * ceil(x / 512)
    segment = 2**21 * ceil(rounded / 2**21)
    return rounded if rounded < 10 * 2**20 or segment - rounded > 2**20 else segment


@given(runs())
@settings(max_examples=40)
def test_other_runs_follow_the_closed_forms(run):
    N, d, h, P, L = (run[name] for name in ("N", "d", "h", "P", "L"))
    TP, DP, f, beta = (run[name] for name in ("TP", "DP", "d_ff", "nbytes"))
    found = ulysses_prefill.evaluate(run)
    a, w, Wk = rho(beta * N * d // P), rho(beta * d * d), 2**25
    A = rho(beta * (h // P) * N * N)
    peak = 10 * a + 4 * w + Wk + A
    large = rho(beta * L * d * f // TP)
    current = a + Wk + rho(beta * N * d // DP) + 2 * large + rho(beta * N * f // (DP * TP))
    scores = max(8 * a, 7 * a + A) + 4 * w + Wk
    expected = {
        "init.peak": gb(a + 4 * w),
        "qkv.peak": gb(4 * a + 4 * w + Wk),
        "a2a_qkv.peak": gb(7 * a + 4 * w + Wk),
        "reshape_qkv.peak": gb(8 * a + 4 * w + Wk),
        "scores.peak": gb(scores),
        "context.peak": gb(max(scores, 8 * a + A + 4 * w + Wk)),
        "transpose_c.peak": gb(9 * a + 4 * w + Wk + A),
        "reshape_c.peak": gb(peak),
        "output.peak": gb(peak),
        "mlp.current": gb(current),
        "mlp.peak": gb(max(peak, current)),
        "mlp.tp_ranks": [r for r in range(P) if r // TP == run["rank"] // TP],
        "mlp.input_.shape": [N // DP, d],
        "mlp.W1.shape": [L, d, f // TP],
        "mlp.inter.size": printed(beta * N * f // (DP * TP), 10**6, "MB"),
        "a2a_c.c_.shape": [P, N // P, h // P, d // h],
        "scores.A.size": gb(beta * (h // P) * N * N),
        "reshape_c.O.elements": d * d,
        "qkv.flops": printed(6 * N * d * d, 10**12, "TFLOPs"),
        "scores.flops": printed(2 * N * N * d, 10**12, "TFLOPs"),
        "output.flops": printed(2 * N * d * d, 10**12, "TFLOPs"),
    }
    assert {name: found[name] for name in expected} == expected
    derived = found["derived_not_printed"]
    a0 = beta * N * d // P
    assert derived["a2a_wire_bytes_sent_per_gpu"] * P == 4 * a0 * (P - 1)
    assert derived["a2a_message_bytes_per_pair_per_call"] * P == a0
    assert derived["mlp_allgather_recv_bytes_per_gpu"] == (TP - 1) * a0
    assert derived["mlp_allreduce_ring_wire_bytes_per_gpu_total"] == 2 * L * (TP - 1) * a0
    assert derived["mlp_flops_true_total"] == 4 * L * N * d * f
    assert derived["flops_per_gpu"]["qkv"] * P == 6 * N * d * d


def test_refusals_list_all_problems():
    with pytest.raises(InputError) as refused:
        ulysses_prefill.evaluate(PUBLISHED | {"P": 7, "rank": 9, "d_ff": 3, "d": 16383})
    assert refused.value.problems == (
        "P = 7 is not TP * DP = 8 * 2 = 16",
        "rank = 9 is not below P = 7",
        "h = 128 is not divisible by P = 7",
        "N = 60000 is not divisible by P = 7",
        "d = 16383 is not divisible by h = 128",
        "d_ff = 3 is not divisible by TP = 8",
    )
    with pytest.raises(InputError, match="input 'log' is 'abc': input should be '3b1a699'"):
        ulysses_prefill.evaluate(PUBLISHED | {"log": "abc"})
