"""What a budget buys: devices, days, dollars, energy and carbon; and the model of least loss."""

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.scaling.allocate import Budget
from symbolic_cost.systems.prices import facts, rates
from symbolic_cost.systems.records import machine_names


def test_every_fact_has_source_and_date():
    for kind, entries in facts().items():
        for name, entry in entries.items():
            for fact in entry.values() if kind == "machines" else [entry]:
                assert fact.value > 0, name
                assert fact.source
                assert fact.date[:2] == "20"
    assert set(facts()["machines"]) <= set(machine_names())


def test_costs_of_an_hour():
    costs = rates("h100").costs(3600)
    assert costs.usd == 10.8
    assert costs.kwh == pytest.approx(0.7 * 1.1)
    assert costs.kg_co2e == pytest.approx(0.7 * 1.1 * 0.385)
    assert rates("trillium").costs(3600).usd is None
    assert rates("h100", price=2, power=500, pue=1, grid=1).costs(3600).kg_co2e == 0.5


def test_costs_of_a_step():
    timed = sc.job("gpt2", "dp=4", {"b": 1, "M": 1}, system="h100").time()
    costs = timed.costs()
    assert costs.usd == pytest.approx(float(timed.step) * 4 / 3600 * 10.8)
    assert costs.kwh == pytest.approx(float(timed.step) * 4 / 3600 * 0.77)
    assert timed.costs(price=1).usd == pytest.approx(costs.usd / 10.8)


@pytest.mark.parametrize(
    ("budget", "run"),
    [
        (Budget(usd=1e6, days=30), (128, 30, "dollars")),
        (Budget(days=10, gpus=16), (16, 10, "days and GPUs")),
        (Budget(usd=10.8 * 48, gpus=2), (2, 1, "dollars")),
        (Budget(kwh=0.77 * 24 * 3, gpus=3), (3, 1, "energy")),
        (Budget(usd=1e9, kwh=0.77 * 24 * 3, gpus=3), (3, 1, "energy")),
        (Budget(usd=10.8 * 24, days=30, gpus=1), (1, 1, "dollars")),
    ],
)
def test_what_a_budget_buys(budget, run):
    gpus, days, binds = budget.run(rates("h100"))
    assert (gpus, binds) == (run[0], run[2])
    assert days == pytest.approx(run[1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "neither days nor GPUs are given"),
        ({"days": 3}, "days and GPUs are given together"),
        ({"days": -1, "gpus": 0}, "2 problems"),
        ({"usd": 1, "days": 30}, "less than one for 30 days"),
        ({"usd": 1e6, "days": 30, "system": "v100"}, "no price is on record"),
        ({"kwh": 1e6, "days": 30, "system": "tpu-v5p"}, "no power is on record"),
        ({"days": 30, "gpus": 8, "price": -1}, "price = -1: a positive number is accepted"),
        ({"days": 30, "gpus": 8, "grid": "mars"}, "unknown grid 'mars'"),
        ({"days": 30, "gpus": 8, "mfu": 2}, "mfu = 2: a share above 0"),
        ({"days": 30, "gpus": 8, "of": "chinchilla"}, "name one of body, tex, code"),
        ({"days": 30, "gpus": 8, "strategy": "tp=4"}, "has 4 ranks, and 8 GPUs run"),
        ({"days": 30, "gpus": 8, "system": "h1000"}, "unknown machine"),
    ],
)
def test_refusals(options, said):
    with pytest.raises(InputError) as refused:
        sc.laws.allocate(**options)
    assert said in str(refused.value)


def test_with_a_share_of_the_peak():
    found = sc.laws.allocate(usd=1e6, days=30, mfu=0.4)
    assert found.gpus == 128
    assert "MFU of 0.4 is assumed, not derived from a job" in found.warnings
    assert found.costs.usd <= 1e6
    flop = 128 * 30 * 86400 * 989.4e12 * 0.4
    assert 0.9 < flop / (6 * found.parameters * found.tokens) < 1.6


def test_an_allocation_says_what_its_dollars_and_energy_rest_on():
    found = sc.laws.allocate(usd=1e6, days=30, mfu=0.4)
    told = " ".join(found.warnings)
    assert "price 10.8: one GPU of a rented node" in told
    assert "power 700" in told
    assert "PUE 1.1" in told
    assert "carbon 0.385" in told
    given = sc.laws.allocate(usd=1e6, days=30, mfu=0.4, price=2.0, pue=1.2)
    assert not any(word in " ".join(given.warnings) for word in ("price", "PUE"))


@pytest.mark.slow
def test_with_the_step_time_of_a_job():
    found = sc.laws.allocate(usd=2e4, days=7)
    assert found.gpus == 8
    assert found.strategy.endswith("zero=1")
    assert "recompute selective, precision bf16-mixed" in found.warnings[0]
    steps = 7 * 86400 / found.step
    job = sc.job(
        "llama",
        found.strategy,
        {**found.sizes, "b": 1},
        system="h100",
        global_batch=round(found.tokens / steps / found.sizes["l"]),
        recompute="selective",
        precision="bf16-mixed",
    )
    assert float(job.time().step) == pytest.approx(found.step)
    assert job.memory().fits
