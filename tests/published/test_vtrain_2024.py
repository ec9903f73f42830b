"""Predicted step times of Megatron-DeepSpeed runs."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.published.contract import reproduce
from symbolic_cost.published.vtrain_2024 import PUBLISHED_INPUTS, cluster, evaluate
from symbolic_cost.systems.runs import rates

SMALL = {
    "gpus": 8,
    "global_batch": 32,
    "micro_batch": 2,
    "e": 1024,
    "h": 16,
    "n_layers": 12,
    "l": 1024,
    "tp": 2,
    "dp": 2,
    "pp": 2,
}


def milliseconds(**changes):
    return evaluate({**SMALL, **changes})["iteration_time_ms"]


def test_the_network_of_the_cluster():
    assert rates(cluster())["n_d"] == 8
    assert rates(cluster())["beta"] <= 12.5e9


def test_a_large_run_is_bound_by_its_flop():
    """96 B l n_layers e^2 (...) FLOP at no more than the reach of the matrix units."""
    size = PUBLISHED_INPUTS
    e, l, layers = size["e"], size["l"], size["n_layers"]
    flop = 96 * size["global_batch"] * l * layers * e**2
    flop *= 1 + l / (6 * e) + 50257 / (16 * layers * e)
    found = evaluate(size)["iteration_time_ms"] / 1000
    least = flop / (size["gpus"] * rates(cluster())["F_m"])
    assert least < found < 2 * least


def test_more_work_takes_longer():
    assert milliseconds(n_layers=24) > milliseconds()
    assert milliseconds(global_batch=64) > milliseconds()
    assert milliseconds(e=2048) > milliseconds()
    assert milliseconds(V=200000) > milliseconds()


def test_small_microbatches_wait_for_the_host():
    """The same work in half as many microbatches is issued in half the time."""
    assert milliseconds(micro_batch=1) > 1.5 * milliseconds(micro_batch=2)


def test_other_numbers_build_nothing(monkeypatch):
    """The formulas of one structure are there: numbers are put in, no table is derived again."""
    milliseconds()

    def refuse(*_, **__):
        raise AssertionError

    monkeypatch.setattr("symbolic_cost.parallel.table.Divided.table", refuse)
    times = [milliseconds(global_batch=4 * batch) for batch in range(1, 21)]
    assert times == sorted(set(times))


def test_no_printed_number_is_compared():
    found = reproduce("vtrain-2024")
    assert (found.total, len(found.rows)) == (0, 1)


def test_refusals():
    given = dict(PUBLISHED_INPUTS, gpus=3, h=5, n_layers=7, micro_batch=7)
    with pytest.raises(InputError) as caught:
        evaluate(given)
    assert caught.value.problems == (
        "h = 5 is not divisible by tp = 8",
        "e = 12288 is not divisible by h = 5",
        "n_layers = 7 is not divisible by pp = 16",
        "global_batch = 1536 is not divisible by micro_batch dp = 28",
        "gpus = 3, but tp dp pp = 512",
    )
    with pytest.raises(InputError, match="input 'tp' is missing"):
        evaluate({"gpus": 1})
