"""What fits is derived with numbers; the same formulas, bound later, say the same."""

import pytest

from symbolic_cost.jobs.build import setup
from symbolic_cost.jobs.fit import fit
from symbolic_cost.numeric.binding import check_values, value
from symbolic_cost.parallel.moments import at_moments

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
