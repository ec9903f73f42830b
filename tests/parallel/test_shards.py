"""Ranks that hold the same weights keep them in shards, whatever else they divide."""

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.parallel.parsing import parse_strategy

LEVELS = {1: {"optimizer"}, 2: {"weight_gradient", "optimizer"}}
LEVELS[3] = LEVELS[2] | {"weight"}


@pytest.mark.parametrize("mesh", ["dp", "cp", "ulysses", "ring"])
@pytest.mark.parametrize("level", LEVELS)
def test_levels_of_zero(mesh, level):
    placed = parse_strategy(f"{mesh}=2,zero={level}").placement(GPT().model())
    assert {what for what, meshes in placed.stored.items() if meshes == (mesh,)} == LEVELS[level]
    assert all(meshes == (mesh,) for meshes in placed.stored.values())


def gathers(text, *phases):
    """Messages of weights that are gathered, by how often a step has them."""
    rows = sc.job("gpt2", text, {"M": 3}).rows.select("communication")
    moves = [row for row in rows if row.collective.kind == "all-gather"]
    moves = [row for row in moves if not phases or row.phase in phases]
    return {per_step: sum(r.count for r in moves if r.per_step == per_step) for per_step in (0, 1)}


def test_weights_that_stay_whole_are_gathered_once():
    """FSDP: a microbatch gathers them in forward, and those of a pipeline find them whole."""
    each, plain = gathers("dp=2,zero=3,reshard=1"), gathers("dp=2,zero=3")
    assert each == gathers("dp=2,zero=3", "forward")
    assert 0 < each[0] < plain[0]
    staged = gathers("dp=2,pp=2,zero=3,reshard=1")
    assert staged == gathers("dp=2,pp=2,zero=1")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("dp=4,zero=3,reshard=2", "shards over fewer ranks"),
        ("dp=4,zero=2,reshard=1", "reshard=1 needs zero=3"),
        ("dp=4,reshard=1", "reshard=1 needs zero=3"),
    ],
)
def test_what_is_not_resharded_otherwise(text, told):
    with pytest.raises(InputError, match=told):
        parse_strategy(text)


@pytest.mark.parametrize("later", ["dp,zero=3,reshard=1", "dp,pp,zero=3,reshard=1"])
def test_a_degree_may_come_later(later):
    """Bound later, a job is that of the numbers; one rank keeps no shards."""
    for degrees in ({"dp": 4, "pp": 3}, {"dp": 1, "pp": 3}):
        own = {name: size for name, size in degrees.items() if name in later}
        text = ",".join(f"{name}={size}" for name, size in own.items()) + ",zero=3,reshard=1"
        numbers = {"b": 1, "l": 1024, "M": 4}
        bound, built = sc.job("gpt2", later, numbers).bind(**own), sc.job("gpt2", text, numbers)
        for answer in ("memory", "communication"):
            one, two = (getattr(job, answer)().sheet.rows for job in (bound, built))
            assert [row[-1] for row in one] == [row[-1] for row in two]
