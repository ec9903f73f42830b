"""Offload: what is on the host crosses its link as often as a step of training needs it."""

import pytest
from sympy import Rational

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.systems.calibration import record
from symbolic_cost.systems.machines import SYMBOLIC
from symbolic_cost.systems.records import machine, machine_names, machine_of

PCIE = Rational(4, 5) * 64 * 10**9
"""What the link of an h100 to its host reaches [byte/s]."""


def job(strategy="", **options):
    """The efficiencies of the record alone: no host is waited for."""
    return sc.job("gpt2", strategy, {"M": 4}, system="h100", stack="roofline", **options)


def crossings(quantity, microbatches):
    """How often a rank's bytes of a quantity cross the link in a step, counted pass by pass."""
    forward, backward, weight_gradients, step = {
        "saved": (1, 1, 0, 0),
        "weight": (1, 1, 0, 1),
        "weight_gradient": (0, 0, 2, 2),
        "master_weight": (0, 0, 0, 2),
        "optimizer": (0, 0, 0, 2),
    }[quantity]
    return microbatches * (forward + backward + weight_gradients) + step


@pytest.mark.parametrize(
    "strategy", [pytest.param("tp=2,sp,dp=4,zero=1", marks=pytest.mark.slow), "tp=2,dp=2,zero=3"]
)
@pytest.mark.parametrize(
    "quantity",
    [
        *("saved", "optimizer"),
        *(
            pytest.param(one, marks=pytest.mark.slow)
            for one in ("weight", "weight_gradient", "master_weight")
        ),
    ],
)
def test_the_step_grows_by_the_bytes_over_the_link(quantity, strategy):
    """Without pipeline one microbatch is alive at a time: what memory holds is what crosses."""
    here, there = job(strategy), job(strategy, offload=quantity)
    moved = crossings(quantity, 4) * here.memory().total(quantity)
    assert there.time().step - here.time().step == moved / PCIE
    assert there.time().number("exposed") - here.time().number("exposed") == moved / PCIE


def test_copies_of_weights_cross_when_they_are_new_and_one_of_them_per_microbatch():
    there = job("pp=2", schedule="dualpipe", offload="weight").time().timed
    copied, once = (there.numbers[f"first.{name}.host.bytes"] for name in ("optimizer", "forward"))
    assert once < copied < 2 * once  # blocks twice, the embedding once
    assert copied == job("pp=2", schedule="dualpipe").memory().total("weight")


@pytest.mark.slow
@pytest.mark.parametrize("offload", ["optimizer", "saved,weight,optimizer"])
@pytest.mark.parametrize("pipeline", ["pp=4"])
def test_hiding_helps_and_never_gains(offload, pipeline):
    steps = [
        float(job(f"tp=2,{pipeline}", offload=offload, overlap=overlap).time().step)
        for overlap in ("host=none", "host=partial=0.5", "host=full")
    ]
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > steps[2] >= float(job(f"tp=2,{pipeline}").time().step)


def test_what_waits_for_weight_gradients_crosses_as_well():
    plain, late = (
        job("pp=4", schedule=name, offload="saved").time().timed for name in ("1f1b", "zb-h2")
    )
    name = "middle.weight gradients.host.bytes"
    assert name not in plain.step.chain.definitions
    assert late.numbers[name] > 0


def test_without_offload_nothing_moves():
    definitions = job("tp=2,pp=2").time().timed.step.chain.definitions
    assert not [name for name in definitions if "host" in name]


def test_the_rate_of_the_host_is_a_symbol_of_the_symbolic_machine():
    step = sc.job("gpt", "tp,dp", system="symbolic", offload="optimizer").time().timed.step
    assert "beta_h" in {symbol.name for symbol in step.chain.symbols}
    assert SYMBOLIC.host_link().name == "host"


@pytest.mark.parametrize("name", machine_names())
def test_a_machine_has_a_link_to_its_host_with_its_source_or_refuses(name):
    one = machine(name)
    if one.host is None:
        with pytest.raises(InputError, match=f"machine {name} has no link to the host on record"):
            one.host_link()
    else:
        assert one.host.bandwidth.source in one.sources
        assert one.host_link().bandwidth < one.bandwidth.value


def test_memory_needs_no_link_and_a_time_does():
    there = sc.job("gpt2", numbers={"M": 4}, system="tpu-v4", offload="optimizer")
    assert there.memory().total("optimizer") > 0
    with pytest.raises(InputError, match="machine tpu-v4 has no link to the host on record"):
        there.time()


def test_a_users_record_gives_the_link():
    text = record(machine("tpu-v4")) + (
        '\n[host]\nname = "pcie"\nbandwidth = { value = 16e9, source = "definition" }\n'
    )
    assert machine_of(text).host_link().bandwidth == 16 * 10**9
    with pytest.raises(InputError, match="bandwidth"):
        machine_of(text.replace("16e9", "0"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"overlap": "host=full"}, "overlap 'host=full': nothing is offloaded to the host"),
        ({"offload": "heads"}, "unknown offload 'heads'"),
        ({"offload": "saved", "overlap": "host=often"}, "unknown overlap 'often'"),
    ],
)
def test_refused(options, said):
    with pytest.raises(InputError, match=said):
        job("tp=2", **options)


def test_the_header_says_what_is_on_the_host_and_over_what_it_moves():
    assert "on the host: optimizer, saved, over pcie" in str(job(offload="saved,optimizer").time())
