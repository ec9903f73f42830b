"""Gradients that the ranks of all experts add up are those of data-parallel ranks."""

import pytest

import symbolic_cost as sc


@pytest.mark.slow
@pytest.mark.parametrize("data", [8, 16])
def test_overlap_of_dp_hides_gradients(data):
    """Where ep = dp, no rank of dp is left beside those of ep; dp=full hides their sums even so."""
    steps = {
        overlap: sc.job(
            "mixtral-8x7b",
            f"ep=8,dp={data}",
            {"b": 1, "l": 1024},
            system="h100",
            stack="roofline",
            microbatches=1,
            overlap=overlap,
        )
        .time()
        .step
        for overlap in ("dp=none", "dp=full", "dp=none,ep=full", "dp=full,ep=full")
    }
    assert steps["dp=full"] < steps["dp=none"]
    assert steps["dp=full,ep=full"] < steps["dp=none,ep=full"] < steps["dp=none"]
