"""Stages of a pipeline, for one model of every family."""

import pytest
from sympy import expand

import symbolic_cost as sc
from symbolic_cost.errors import PlacementError
from symbolic_cost.models.catalog import CATALOG
from symbolic_cost.symbols import symbol

WITHOUT_BLOCKS = {"cnn"}
FAMILIES = {preset.family: name for name, preset in reversed(CATALOG.items())}
QUICK = {"bert", "deepseek_v3", "llama", "mamba2", "t5", "vit"}
"""Families that the quick run tries: each puts its parts together in another way."""


def forward(name, *strategy, **options):
    return sc.job(name, *strategy, **options).table().total("flop", phase="forward")


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in sorted(FAMILIES.keys() - WITHOUT_BLOCKS)
    ],
)
def test_stages_are_the_whole(family):
    """What every stage does forward is together what the whole model does."""
    first, middle, last = (
        forward(FAMILIES[family], "pp", stage=stage) for stage in ("first", "middle", "last")
    )
    stages = symbol("pp")
    together = first + (stages - 2) * middle + last
    assert expand(together - forward(FAMILIES[family])) == 0


@pytest.mark.parametrize("family", sorted(WITHOUT_BLOCKS))
def test_nothing_to_divide(family):
    with pytest.raises(PlacementError, match="repeats no part"):
        forward(FAMILIES[family], "pp", stage="first")
