"""What slows a step besides rooflines: a host that issues ops slowly; sends in parts."""

from dataclasses import replace

import pytest
from sympy import Integer, Rational

import symbolic_cost as sc
from symbolic_cost.models.catalog import model
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.symbols import n_layers, t_h
from symbolic_cost.systems.machines import Efficiencies, Figure
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.step import Methods, step_time

A100 = machine("a100-80gb")
SIZES = {"n_layers": 12, "e": 768, "f": 3072, "h": 12, "V": 50304, "P": 1024, "b": 8, "l": 1024}
BLOCKS = {n_layers: Integer(12)}
VALUES = {**SIZES, "M": 4, "t_h": 1}


def numbers(chain):
    return chain.evaluate({s.name: VALUES[s.name] for s in chain.symbols})


def issued(made):
    """What the host issues for one microbatch, times the repetitions of a part."""
    (stage,) = made.stages
    return sum(stage.counts[op.path].xreplace(BLOCKS) * op.issued for op in stage.ops)


def evaluated(strategy, host=0, *, scattered=False):
    issuing = Figure(Rational(host, 10**6))
    slow = replace(A100, efficiencies=replace(A100.efficiencies, host=issuing))
    made = step_time(
        model("gpt2"),
        parse_strategy(strategy),
        slow,
        Training(),
        Methods(scattered=scattered),
    )
    return made, numbers(made.chain)


def test_a_fast_host_costs_nothing():
    assert evaluated("", host=0)[1]["step"] == evaluated("", host=1)[1]["step"]


def test_a_slow_host_sets_the_pace():
    made, found = evaluated("", host=1000)
    assert found["first.microbatch"] == issued(made) * Rational(1, 1000)


def test_collectives_are_issued_as_well():
    fast, slow = evaluated("", host=1000)[1], evaluated("tp=2", host=1000)[1]
    assert slow["first.microbatch"] > fast["first.microbatch"]


def test_the_time_of_a_symbolic_host_differentiates():
    reached = Efficiencies(host=Figure(t_h))
    made = step_time(
        model("gpt2"), parse_strategy(""), replace(A100, efficiencies=reached), Training()
    )
    slope = made.chain.derivative("step", "t_h")
    assert numbers(slope)["d step/d t_h"] == 4 * issued(made)


@pytest.mark.parametrize("split", ["", ",sp"])
def test_sends_in_parts(split):
    strategy = f"tp=2{split},pp=2"
    whole, parts = (evaluated(strategy, scattered=way)[1] for way in (False, True))
    if split:
        assert whole["step"] == parts["step"]
        return
    message = 8 * 1024 * 768 * 2
    (inside, outside) = A100.network().tiers
    gather = inside.link.latency + message / (2 * inside.link.bandwidth)
    sent = inside.link.latency + message / (2 * inside.link.bandwidth)
    assert outside.link.latency > 0
    assert parts["first.forward.sent"] == sent + gather
    assert whole["first.forward.sent"] == inside.link.latency + message / inside.link.bandwidth


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1", "zb-h2", "zb-v"])
def test_a_larger_microbatch_is_never_faster(schedule):
    """Apart from the gradients of inputs, those of weights wait for the host themselves."""
    small = sc.job("t5-base", "pp=4", system="b200", microbatches=8, schedule=schedule)
    steps = [float(small.bind(b=b, l=128).time().step) for b in (1, 2, 4, 8, 16)]
    assert steps == sorted(steps)
    gradients = small.bind(b=1, l=128).time().timed.numbers
    waits = "first.weight gradients.idle" in gradients
    assert waits is (schedule != "1f1b")
