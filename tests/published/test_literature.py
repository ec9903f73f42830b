"""Tables of papers: how much of each is recomputed, and the closed forms for other inputs."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolic_cost.cli.sheets.reproduce import summary
from symbolic_cost.errors import InputError
from symbolic_cost.parallel.orders import Pass
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.published import (
    contract,
    gpipe_2019,
    llama3_2024,
    ring_2023,
    ulysses_2023,
    zero_2019,
    zero_bubble_2024,
)


@pytest.mark.parametrize(
    ("name", "matched", "listed"),
    [
        ("zero-2019", 54 + 20, 54 + 20 + 10),
        ("ring-2023", 8, 10),
        ("ulysses-2023", 5, 5),
        ("zero-bubble-2024", 48, 72),
        ("llama3-2024", 6, 9),
        ("gpipe-2019", 0, 18),
    ],
)
def test_every_printed_number_is_matched_or_explained(name, matched, listed):
    found = contract.reproduce(name)
    assert (found.matched, found.total, len(found.rows)) == (matched, matched, listed)
    assert all(row.note for row in found.rows if row.match is None)
    assert all(row.published for row in found.rows)


def test_numbers_that_are_not_compared_are_no_matches():
    found = contract.reproduce("llama3-2024")
    text = "6 of 6 compared numbers match; 3 published numbers are not compared"
    assert summary(found) == text
    assert summary(contract.reproduce("ulysses-2023")) == "5 of 5 published numbers match"
    other = contract.reproduce("llama3-2024", llama3_2024.PUBLISHED_INPUTS)
    assert summary(other) == "nothing here was published to be compared"


def test_zero_cells_are_rounded_or_truncated():
    table = [row for row in zero_2019.reproduce() if row.key.startswith("table 1")]
    assert sum(row.note == "truncated in print" for row in table) == 8
    assert {row.note for row in table} == {"", "truncated in print"}


@given(st.integers(10**6, 10**13), st.integers(1, 10**4), st.integers(1, 32))
def test_zero_closed_forms(psi, nd, K):
    found = zero_2019.evaluate({"psi": psi, "nd": nd, "K": K, "device_gb": 80, "mp": 2})
    per_parameter = {
        "baseline": 4 + K,
        "P_os": 4 + Fraction(K, nd),
        "P_os+g": 2 + Fraction(2 + K, nd),
        "P_os+g+p": Fraction(4 + K, nd),
    }
    for name, size in per_parameter.items():
        assert found[name] == pytest.approx(float(psi * size / 10**9), rel=1e-12)
        assert found["max_params_billion"][name] == pytest.approx(float(160 / size), rel=1e-12)
    volumes = dict(zip(per_parameter, (2, 2, 2, 3), strict=True))
    assert found["volume_elements"] == {name: psi * factor for name, factor in volumes.items()}


@given(st.integers(1, 10**4), st.integers(1, 10**4))
def test_ring_closed_form(tflops, bandwidth):
    found = ring_2023.evaluate({"tflops": tflops, "bw_gb_s": bandwidth})
    block = tflops / bandwidth
    assert found == pytest.approx({"min_block_1e3": block, "min_seq_1e3": 6 * block}, rel=1e-12)


@given(*[st.integers(1, 40)] * 4, st.integers(1, 4))
def test_ulysses_closed_forms(tokens, width, share, group, beta):
    s1 = 4
    k = s1 * share
    h = k * group
    l, e = s1 * tokens, h * width
    found = ulysses_2023.evaluate({"l": l, "e": e, "h": h, "k": k, "s1": s1, "beta": beta})
    moved = 2 * l * e + 2 * l * e * Fraction(k, h)
    assert found["aggregate_qkv"] + found["aggregate_out"] == moved
    assert found["per_link"] == moved / s1
    assert found["megatron_per_link"] == 4 * l * e
    assert found["sent_bytes"] == beta * moved / s1 * (s1 - 1) / s1


def step_time(name, stages, microbatches, times, latency):
    """The longest time from a stage's first task to its last, where a message takes `latency`."""
    made = schedule(name)
    orders = made.plan(stages, microbatches, 1)
    ready, done, start, clock = {}, [0] * stages, [None] * stages, [Fraction(0)] * stages
    while any(done[stage] < len(order) for stage, order in enumerate(orders)):
        for stage, order in enumerate(orders):
            while done[stage] < len(order):
                ((work, m),) = [(task.work, task.microbatch) for task in order[done[stage]]]
                backward = work in {Pass.BACKWARD, Pass.BACKWARD_INPUT}
                source = stage + 1 if backward else stage - 1
                needed = (backward, m, source) if 0 <= source < stages else None
                if work is Pass.BACKWARD_WEIGHT:
                    needed = None
                if needed is not None and needed not in ready:
                    break
                begin = max(clock[stage], ready[needed] + latency if needed else 0)
                start[stage] = begin if start[stage] is None else start[stage]
                clock[stage] = begin + times[work]
                if work is not Pass.BACKWARD_WEIGHT:
                    ready[backward, m, stage] = clock[stage]
                done[stage] += 1
    return max(end - begin for begin, end in zip(start, clock, strict=True))


@pytest.mark.parametrize("column", ["bubble_rate_1F1B", "ZB-H1", "ZB-H2"])
@pytest.mark.parametrize(("p", "m"), [(2, 4), (4, 8), (8, 24), (8, 32)])
def test_bubble_rates_are_those_of_a_simulation(column, p, m):
    T_F, T_B, T_W, latency = (Fraction(number, 1000) for number in (18522, 18086, 9337, 601))
    names = {"bubble_rate_1F1B": "1f1b", "ZB-H1": "zb-h1", "ZB-H2": "zb-h2"}
    times = {
        Pass.FORWARD: T_F,
        Pass.BACKWARD: T_B + T_W,
        Pass.BACKWARD_INPUT: T_B,
        Pass.BACKWARD_WEIGHT: T_W,
    }
    cost = step_time(names[column], p, m, times, latency)
    rate = 1 - m * (T_F + T_B + T_W) / cost
    inputs = {"p": p, "m": m, "T_F": 18.522, "T_B": 18.086, "T_W": 9.337, "T_comm": 0.601}
    assert zero_bubble_2024.evaluate(inputs)[column] == pytest.approx(float(rate), rel=1e-12)


def test_zero_bubble_closed_form_of_1f1b():
    inputs = {"p": 4, "m": 12, "T_F": 3, "T_B": 5, "T_W": 2, "T_comm": 0.25}
    cost = (12 + 4 - 1) * 10 + (2 * 3 * 12 / 4 + 2 * 2) * 0.25
    found = zero_bubble_2024.evaluate(inputs)
    assert found["bubble_rate_1F1B"] == pytest.approx(1 - 120 / cost, rel=1e-12)
    one = zero_bubble_2024.evaluate(inputs | {"p": 1})
    assert set(one.values()) == {0.0}


@given(*[st.integers(1, 64)] * 4)
def test_llama_ranks_and_tokens(tp, cp, pp, dp):
    run = {"tp": tp, "cp": cp, "pp": pp, "dp": dp, "seq": 7, "batch_per_dp": 3}
    found = llama3_2024.evaluate(run | {"tflops_per_gpu": 400, "peak_tflops": 1000})
    assert found == {
        "gpus": tp * cp * pp * dp,
        "tokens_per_batch": 21 * dp,
        "bf16_mfu_percent": 40.0,
    }


@given(st.integers(1, 100), st.integers(1, 1000))
def test_gpipe_speedup(K, M):
    found = gpipe_2019.evaluate({"K": K, "M": M})
    assert found["speedup_bound"] == pytest.approx(K * M / (M + K - 1), rel=1e-12)


@pytest.mark.parametrize(
    ("module", "change", "problem"),
    [
        (zero_2019, {"nd": 0}, "input 'nd' is 0: input should be greater than or equal to 1"),
        (zero_2019, {"psi": float("inf")}, "input 'psi' is inf: input should be a finite number"),
        (ring_2023, {"bw_gb_s": -1}, "input 'bw_gb_s' is -1: input should be greater than 0"),
        (ulysses_2023, {"s1": 7}, "key/value heads = 128 is not divisible by s1 = 7"),
        (zero_bubble_2024, {"m": 25}, "m = 25 is not divisible by p = 8"),
        (llama3_2024, {"tq": 8}, "unknown input 'tq': did you mean tp?"),
        (gpipe_2019, {"K": True}, "input 'K' is True: input should be a valid integer"),
    ],
)
def test_refusals(module, change, problem):
    with pytest.raises(InputError) as refused:
        module.evaluate({**module.PUBLISHED_INPUTS, **change})
    assert problem in refused.value.problems
