"""Calibration recovers what made the times; rows and records are read and written."""

from dataclasses import replace
from itertools import product

import pytest
from sympy import Rational

from symbolic_cost.errors import InputError
from symbolic_cost.systems.calibration import (
    FITTED,
    Measured,
    calibrate,
    errors_of,
    read_rows,
    record,
)
from symbolic_cost.systems.machines import Efficiencies, Figure
from symbolic_cost.systems.records import machine, machine_of
from symbolic_cost.systems.runs import Run, Way, rates, step_seconds

A100 = machine("a100-80gb")
HEADER = "global_batch,micro_batch,e,h,n_layers,l,tp,dp,pp,iteration_time_ms\n"


def changed(share, host, latency):
    """A machine that reaches other shares of the same rates."""
    inside, outside = (
        replace(link, efficiency=Figure(Rational(share, 100)), latency=Figure(Rational(latency)))
        for link in A100.links
    )
    reached = Efficiencies(
        matrix=Figure(Rational(share, 100)),
        half=Figure(Rational(10) ** 10),
        memory=Figure(Rational(share, 80)),
        host=Figure(Rational(host)),
    )
    return replace(A100, links=(inside, outside), efficiencies=reached)


def runs():
    sizes = product((1024, 4096), (1, 4), ((1, 1, 1), (4, 2, 1), (2, 16, 1), (2, 1, 2), (1, 8, 4)))
    return [
        Run(
            e=e,
            h=16,
            n_layers=8,
            l=1024,
            V=50257,
            global_batch=4 * b * dp,
            micro_batch=b,
            tp=tp,
            dp=dp,
            pp=pp,
        )
        for e, b, (tp, dp, pp) in sizes
    ]


def test_what_made_the_times_is_found_again():
    truth = changed(70, "4e-5", "2e-5")
    measured = [
        Measured(run, s) for run, s in zip(runs(), step_seconds(runs(), rates(truth)), strict=True)
    ]
    found = rates(calibrate([measured[::2], measured[1::2]], A100))
    assert {name: found[name] for name in FITTED} == pytest.approx(
        {name: rates(truth)[name] for name in FITTED}, rel=0.03
    )
    errors = errors_of(step_seconds(runs(), found), [one.seconds for one in measured])
    assert errors.largest < 0.01


@pytest.mark.slow
def test_one_wrong_run_does_not_decide():
    truth = changed(70, "4e-5", "2e-5")
    times = step_seconds(runs(), rates(truth))
    times[3] *= 5
    measured = [Measured(run, s) for run, s in zip(runs(), times, strict=True)]
    found = calibrate([measured], A100)
    assert errors_of(step_seconds(runs(), rates(found)), times).median < 0.02


def test_errors():
    found = errors_of([90, 110, 150, 100], [100, 100, 100, 100])
    assert (found.runs, found.mean, found.median) == (4, pytest.approx(0.175), pytest.approx(0.1))
    assert (found.bias, found.largest) == (pytest.approx(0.125), pytest.approx(0.5))


@pytest.mark.parametrize("name", ["a100-80gb", "h100", "mi300x"])
def test_a_record_reads_as_it_was_written(name):
    assert machine_of(record(machine(name))) == machine(name)


def test_a_step_scales_with_the_machine():
    """Twice all rates and half all latencies is half the time."""
    slow = rates(A100)
    fast = {name: 2 * rate for name, rate in slow.items()}
    fast |= {name: slow[name] / 2 for name in ("alpha", "alpha_d", "alpha_m", "t_k", "t_h")}
    fast |= {name: slow[name] for name in ("n_half", "n_d")}
    assert step_seconds(runs(), fast) == pytest.approx(step_seconds(runs(), slow) / 2)


@pytest.mark.parametrize(("h", "b", "apart"), [(16, 1, 1), (16, 2, 0), (32, 1, 0), (24, 2, 1)])
def test_softmax_of_a_few_heads_is_issued_op_by_op(h, b, apart):
    """Of 2 or 6 heads times sequences per rank, no multiples of 4: five kernels, three times."""
    issued = dict.fromkeys(rates(A100), 1e18) | dict.fromkeys(("alpha", "alpha_d"), 0.0)
    issued |= {"alpha_m": 0.0, "t_k": 0.0, "n_half": 0.0, "n_d": 8.0, "t_h": 1.0}

    def seconds(layers, heads, sequences):
        run = Run(
            e=1536, h=heads, n_layers=layers, l=1024, V=50257, global_batch=sequences,
            micro_batch=sequences, tp=8, dp=1, pp=1,
        )  # fmt: skip
        return step_seconds([run], issued)[0]

    layer = seconds(9, h, b) - seconds(8, h, b)
    assert layer - (seconds(9, 32, 4) - seconds(8, 32, 4)) == pytest.approx(12 * apart, abs=1e-6)


def test_recomputation_takes_time_and_selective_less():
    full, selective, none = (
        step_seconds(runs(), rates(A100), Way(recompute=name)).sum()
        for name in ("full", "selective", "none")
    )
    assert full > selective > none


def test_rows_of_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(HEADER + "16,2,1024,16,12,512,2,4,1,250.5\n")
    (found,) = read_rows(path)
    assert found.seconds == 0.2505
    assert found.run.values()["M"] == 2
    assert found.run.vocabulary == 50432


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER, ["has 0 rows"]),
        ("e,h\n1,2\n", ["column 'l' is missing", "column 'iteration_time_ms' is missing"]),
        (
            HEADER + "16,x,1024,16,12,512,2,4,1,-1\n16,2,1024,16,12,512,3,4,5,1\n",
            [
                "row 1: micro_batch is 'x'",
                "row 1: iteration_time_ms is '-1'",
                "row 2: h = 16 is not divisible by tp = 3",
                "row 2: n_layers = 12 is not divisible by pp = 5",
            ],
        ),
        (HEADER + "16,2\n", ["row 1: has fewer cells than the first line has names"]),
        (HEADER + "16,2,1024,16,12,512,2,4,1,٣5\n", ["row 1: iteration_time_ms is '٣5'"]),
    ],
)
def test_refused_rows(tmp_path, text, said):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_rows(path)
    assert all(part in str(caught.value) for part in said)


def test_refusals(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_rows(tmp_path / "none.csv")
    one = Measured(runs()[0], 1.0)
    with pytest.raises(InputError, match="at least 8 are needed"):
        calibrate([[one]], A100)
    with pytest.raises(InputError, match="two tiers are accepted"):
        rates(replace(A100, links=A100.links[1:]))
    table = ((Figure(Rational(1)), Figure(Rational(1, 2))),)
    tabled = replace(A100, efficiencies=replace(A100.efficiencies, products=table))
    with pytest.raises(InputError, match="has a table of matmul efficiencies"):
        rates(tabled)
    times = step_seconds(runs(), rates(A100))
    measured = [Measured(run, s) for run, s in zip(runs(), times, strict=True)]
    assert calibrate([measured], tabled) == calibrate([measured], A100)
