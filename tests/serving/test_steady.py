"""Closed forms of continuous batching against an event simulation."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.serving.choice import at_rate, roomy
from symbolic_cost.serving.load import Load, accepted
from symbolic_cost.serving.pools import Pools, Prefilling
from symbolic_cost.serving.steady import Batching, Chunked
from tests.serving.simulation import Costs, apart, by_chance, saturated

COSTS = Costs()
LOADS = [(128, 128, 16), (512, 256, 64), (2000, 500, 32), (2000, 50, 32), (100, 300, 48)]


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "answer", "slots"), LOADS)
def test_full_engine_is_simulated_to_one_percent(prompt, answer, slots):
    load = Load(prompt, answer)
    closed = Batching(load, slots, COSTS)
    requests, between, _ = saturated(load, slots, COSTS, 12 * slots)
    assert closed.requests == pytest.approx(requests, rel=0.01)
    assert closed.between == pytest.approx(between, rel=0.01)


@pytest.mark.parametrize(
    ("load", "slots", "chunk"),
    [
        (Load(2000, 300), 32, 512),
        (Load(2000, 300), 48, 2048),
        (Load(2100, 100), 24, 1024),
        (Load(2000, 200, shared=1500), 32, 256),
        (Load(128, 128), 48, 2048),
        (Load(128, 64), 160, 512),
        (Load(2000, 40), 64, 512),  # chunks bind: more prompts wait than steps take
    ],
)
def test_full_engine_of_chunks_is_simulated_to_one_percent(load, slots, chunk):
    costs = Costs(once=load.shared // 2)
    closed = Chunked(load, slots, costs, chunk)
    requests, between, _ = saturated(load, slots, costs, 12 * slots, chunk)
    assert closed.requests == pytest.approx(requests, rel=0.01)
    assert closed.between == pytest.approx(between, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "shared"), [(0.3, 0), (0.6, 0), (0.6, 384)])
def test_first_token_waits_as_in_the_queue(share, shared):
    load = Load(512, 256, shared)
    full = Batching(load, 64, COSTS)
    closed = at_rate(share * full.requests, lambda held: Batching(load, held, COSTS), 64)
    requests, between, first = by_chance(
        load, COSTS, requests=2500, rate=share * full.requests, seed=1
    )
    assert requests == pytest.approx(closed.requests, rel=0.03)  # by chance
    assert closed.between_by_chance == pytest.approx(between, rel=0.01)
    assert closed.first_token == pytest.approx(first, rel=0.02)


@pytest.mark.slow
def test_places_for_three_standard_deviations_keep_the_wait_short():
    load = Load(512, 128)
    rates = [Batching(load, held, COSTS).requests for held in (roomy(32), 31)]
    closed = Batching(load, roomy(32), COSTS)
    (_, between, first), (*_, crowded) = (
        by_chance(load, COSTS, requests=6000, rate=rate, seed=5, slots=32) for rate in rates
    )
    assert closed.between_by_chance == pytest.approx(between, rel=0.01)
    assert first < 1.25 * closed.first_token
    assert crowded > 10 * first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "chunk", "share"),
    [
        (Load(2000, 200), 512, 0.3),
        (Load(2000, 200), 512, 0.7),
        (Load(900, 150, shared=400), 512, 0.6),
        (Load(128, 64), 512, 0.7),
    ],
)
def test_first_token_waits_for_chunks_before_it(load, chunk, share):
    most = Chunked(load, 10**4, COSTS, chunk).requests
    closed = at_rate(share * most, lambda held: Chunked(load, held, COSTS, chunk), 10**4)
    requests, between, first = by_chance(
        load, COSTS, requests=2500, rate=share * most, seed=2, chunk=chunk
    )
    assert requests == pytest.approx(closed.requests, rel=0.03)  # by chance
    # While a queue of prompts runs, more sequences join than leave: more tokens see its chunks.
    assert closed.between_by_chance == pytest.approx(between, rel=0.02 if share < 0.7 else 0.04)
    assert closed.first_token == pytest.approx(first, rel=0.06)


def test_more_prompts_than_steps_take_wait_without_end():
    full = Chunked(Load(2000, 40), 64, COSTS, 512)
    assert full.first_token == float("inf")
    assert full.requests == Chunked(Load(2000, 40), 128, COSTS, 512).requests


def test_one_chunk_of_the_whole_prompt_takes_less_than_a_step_beside_a_prefill():
    """The weights are read once: a step that holds a prompt saves the start of a pass."""
    load = Load(500, 100)
    whole, chunked = Batching(load, 32, COSTS), Chunked(load, 32, COSTS, 500)
    assert chunked.requests > whole.requests


def test_slower_pool_sets_the_pace():
    load = Load(1000, 100)
    few, many = (Pools(load, 64, COSTS, Prefilling(COSTS, n, 0.001), 8 - n) for n in (1, 7))
    prompt = COSTS.prefill(1, 1000, 0)
    assert (few.slower, many.slower) == ("prefill", "decode")
    assert 7 * few.requests == pytest.approx(0.95 / prompt)
    assert few.flying < 64 == many.flying
    assert many.requests == pytest.approx(64 / (99 * COSTS.decode(64, 1050)))
    assert few.first_token == pytest.approx(prompt * (0.95 / 0.1 + 1) + 0.001)
    slow = Pools(load, 64, COSTS, Prefilling(COSTS, 4, 1.0), 4)
    assert (slow.slower, slow.requests) == ("transfer", 0.25)


@pytest.mark.parametrize(
    ("load", "engines", "transfer", "share"),
    [
        (Load(2000, 60), (3, 2), 0.02, 0.6),
        (Load(500, 20), (2, 3), 0.06, 0.6),
        pytest.param(Load(1000, 6, 200), (8, 4), 0.005, 0.7, marks=pytest.mark.slow),
        pytest.param(Load(500, 20), (2, 3), 0.01, 0.8, marks=pytest.mark.slow),
    ],
)
def test_pools_are_simulated_to_one_percent(load, engines, transfer, share):
    def at(held):
        return Pools(load, held, COSTS, Prefilling(COSTS, engines[0], transfer), engines[1])

    rate = share * at(10**4).admitted
    closed = at_rate(rate, at, 10**4)
    requests, between, first = apart(
        load,
        COSTS,
        engines=engines,
        transfer=transfer,
        requests={60: 3000, 20: 8000, 6: 30000}[load.output],
        rate=rate * engines[1],
        seed=3,
    )
    assert requests == pytest.approx(closed.requests * engines[1], rel=0.03)  # by chance
    assert closed.between_by_chance == pytest.approx(between, rel=0.01)
    assert closed.first_token == pytest.approx(first, rel=0.04)


def test_checked_drafts_yield_tokens():
    plain, drafted = (Batching(Load(100, 401, yielded=y), 8, COSTS) for y in (1.0, 2.0))
    assert drafted.requests > 1.5 * plain.requests
    assert drafted.between < plain.between


def test_tokens_of_a_checked_draft():
    assert accepted(0.0, 4) == 1
    assert accepted(1.0, 4) == 5
    assert accepted(0.8, 4) == pytest.approx(sum(0.8**i for i in range(5)))
    with pytest.raises(InputError, match="share from 0 to 1"):
        accepted(1.2, 4)


def test_load_without_tokens_is_refused_with_all_problems():
    with pytest.raises(InputError) as refused:
        Load(0, 1, shared=3, yielded=0.5)
    assert len(refused.value.problems) == 4
