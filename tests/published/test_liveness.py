"""Memory over a program: allocator rounding, running peak."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolic_cost.published.ulysses_prefill.declaration import caching, moments

MIB = 2**20


@pytest.mark.parametrize(
    ("size", "counted"),
    [
        (1, 512),
        (512, 512),
        (513, 1024),
        (10 * MIB - 512, 10 * MIB - 512),
        (11 * MIB, 11 * MIB + MIB),  # the rest is 1 MiB: not split off
        (11 * MIB - 512, 11 * MIB - 512),  # the rest is more: split off
        (12 * MIB, 12 * MIB),
        (122_880_000, 59 * 2 * MIB),
        (399_360_000, 399_360_000),
        (57_600_000_000, 57_600_376_832),
    ],
)
def test_caching_allocator(size, counted):
    assert caching(size) == counted


@given(st.integers(1, 2**40))
def test_caching_allocator_adds_at_most_a_small_rest(size):
    assert 0 <= caching(size) - size <= MIB + 512


@given(st.lists(st.tuples(st.integers(1, 2**36), st.booleans()), max_size=8))
def test_running_peak(requests):
    sizes = {f"t{place}": size for place, (size, _) in enumerate(requests)}
    steps = [
        (name, f"+{name} -{name}" if freed else f"+{name}")
        for name, (_, freed) in zip(sizes, requests, strict=True)
    ]
    found = moments(steps, sizes, "payload").values()
    kept = 0
    peak = 0
    for moment, (size, freed) in zip(found, requests, strict=True):
        peak = max(peak, kept + size)
        kept += 0 if freed else size
        assert (moment.current, moment.peak) == (kept, peak)
