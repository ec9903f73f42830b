"""What fits is derived with numbers; the same formulas, bound later, say the same."""

from dataclasses import replace

import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.jobs.build import setup
from symbolic_cost.jobs.fit import fit
from symbolic_cost.numeric.binding import check_values, value
from symbolic_cost.parallel.moments import at_moments
from symbolic_cost.systems.machines import Figure
from symbolic_cost.systems.records import machine

RUNS = [
    ("llama-3-8b", "dp=8,zero=3", {"stack": "torchtitan"}),
    ("gpt3-175b", "tp=4,pp=5,dp=8,zero=2", {"recompute": "full"}),
    ("mixtral-8x7b", "tp=2,pp=4,ep=4,dp=8,zero=1", {}),
    ("t5-small", "tp=2,pp=2,dp=2", {"stack": "fsdp"}),
    ("mamba-2.8b", "tp=2,dp=2,zero=1", {}),
]


@pytest.mark.parametrize(("model", "strategy", "options"), RUNS)
def test_numbers_from_the_start_are_numbers_later(model, strategy, options):
    run = setup(model, strategy, {}, system="h100", global_batch=160, **options)
    numbers = check_values(run.values)
    peaks = fit(run).peaks
    assert set(peaks) == set(run.structure.stages)
    for stage, peak in peaks.items():
        sums = run.stages_memory.device_bytes(stage)
        bound = {key: [one.xreplace(numbers) for one in terms] for key, terms in sums.items()}
        held = at_moments(bound)
        assert peak.size == int(max(value(size) for size in held.values()))
        assert peak.size == int(value(held[peak.moment]))


def test_a_symbol_without_a_number_leaves_it_open():
    run = setup("gpt", "dp=2", {"b": 1}, system="h100")
    assert fit(run).peaks == {}


@pytest.mark.parametrize(("stack", "strategy"), [("unknown", "dp=8,zero=1"), ("nemo", "tp=2,dp=4")])
def test_what_surrounds_tensors_must_fit_too(stack, strategy):
    """A gigabyte of room is too little for context, workspaces and buffers of NCCL."""
    own = machine("h100")
    run = sc.job("gpt2", strategy, {"b": 1}, system="h100", stack=stack)
    fits = run.memory().fits
    device = run.device_memory("smi").sheet
    beside = {row[0]: row[1] for row in device.rows}
    names = ("buffers of NCCL", "CUDA context", "workspaces of cuBLAS")
    known = sum(beside.get(name, 0) for name in (*names, "workspace of TransformerEngine"))
    assert fits.beside == known > 10**9
    peak = fits.peaks[fits.fullest].size
    for more, word in ((known - 1, False), (known, True)):
        small = replace(own, usable=Figure(Integer(peak + more)))
        assert bool(run.replace(system=small).memory().fits) is word
    tight = replace(own, usable=Figure(Integer(peak + known - 1)))
    assert "of context, workspaces and buffers of collectives" in str(
        run.replace(system=tight).memory().fits
    )


def test_searches_and_sweeps_ask_the_same():
    """All strategies of two questions on a device that holds tensors, but not what is around."""
    run = sc.job("gpt2", "dp=2", {"b": 1}, system="h100", stack="nemo")
    fits = run.memory().fits
    size = fits.peaks[fits.fullest].size + fits.beside
    found = {}
    for room in (size - 1, size):
        small = replace(machine("h100"), usable=Figure(Integer(room)))
        alone = sc.job("gpt2", system=small, stack="nemo")
        own = {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "zero": 0, "sp": False, "recompute": "none"}
        best = sc.search(alone, 2, 2, choose={**own, "b": 1}).best
        swept = sc.sweep(run.replace(system=small), {"M": [1]}, columns=("fits",))
        told = (run.replace(system=small).memory().fits, best, swept["fits"][0])
        found[room] = tuple(map(bool, told))
    assert found == {size - 1: (False, False, False), size: (True, True, True)}


def test_machines_that_publications_made_up_have_nothing_around():
    run = sc.job("gpt2", "tp=2", {"b": 1}, system="transformer-tables")
    assert run.memory().fits.beside == 0
    assert sc.job("gpt2", "dp=8", {"b": 1}, system="tpu-v5e").memory().fits.beside == 0


REPORTED = {
    "b200": 178.35,
    "gb200-nvl72": 184.31,
    "b300": 267.69,
    "gb300-nvl72": 276.5,
    "h200": 139.8,
    "l40s": 44.39,
    "a40": 44.34,
    "mi355x": 287.98,
    "tpu-v4": 30.75,
    "tpu-v5e": 15.75,
    "tpu-v5p": 95.74,
    "trillium": 31.25,
    "tpu-v7": 189.5,
}
"""GiB that programs are offered, as PyTorch and XLA say where memory runs out."""


@pytest.mark.parametrize("name", REPORTED)
def test_usable_memory_is_what_programs_are_offered(name):
    own = machine(name)
    assert float(own.usable.value) / 2**30 == pytest.approx(REPORTED[name])
    assert own.usable.value <= own.capacity.value
