"""Ranks that hold the same weights keep them in shards, whatever else they divide."""

import pytest

from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.parallel.strategy import parse_strategy

LEVELS = {1: {"optimizer"}, 2: {"weight_gradient", "optimizer"}}
LEVELS[3] = LEVELS[2] | {"weight"}


@pytest.mark.parametrize("mesh", ["dp", "cp", "ulysses", "ring"])
@pytest.mark.parametrize("level", LEVELS)
def test_levels_of_zero(mesh, level):
    placed = parse_strategy(f"{mesh}=2,zero={level}").placement(GPT().model())
    assert {what for what, meshes in placed.stored.items() if meshes == (mesh,)} == LEVELS[level]
    assert all(meshes == (mesh,) for meshes in placed.stored.values())
