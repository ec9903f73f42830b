"""Rank groups against coordinates counted out one by one."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbolic_cost.errors import InputError
from symbolic_cost.parallel.groups import rank_groups
from symbolic_cost.parallel.parsing import parse_strategy

MESHES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(
    lambda degrees: dict(zip(("tp", "cp", "dp", "pp"), degrees, strict=False))
)


@given(MESHES, st.integers(1, 9), st.data())
def test_groups_are_lines_of_the_mesh(mesh, node_size, data):
    names = data.draw(st.lists(st.sampled_from(list(mesh)), unique=True, min_size=1))
    order = data.draw(st.permutations(list(mesh)))
    coordinates = {}
    for rank, place in enumerate(product(*(range(mesh[name]) for name in reversed(order)))):
        coordinates[rank] = dict(zip(reversed(order), place, strict=True))
    expected = {}
    for rank, place in coordinates.items():
        rest = tuple((name, place[name]) for name in order if name not in names)
        expected.setdefault(rest, set()).add(rank)
    found = rank_groups({name: mesh[name] for name in order}, tuple(names), node_size)
    assert sorted(map(set, expected.values()), key=min) == sorted(
        (set(group.ranks) for group in found), key=min
    )
    for group in found:
        assert group.crosses_nodes == (len({rank // node_size for rank in group.ranks}) > 1)
        first = [coordinates[rank][names[0]] for rank in group.ranks]
        assert first[: mesh[names[0]]] == list(range(mesh[names[0]]))


def test_published_groups():
    """megatron-report prints two nodes of four with tp 2, dp 2 and pp 2."""
    mesh = {"tp": 2, "dp": 2, "pp": 2}
    assert list(map(str, rank_groups(mesh, "tp", 4)))[:2] == ["[n0_g0 n0_g1]", "[n0_g2 n0_g3]"]
    pipeline = rank_groups(mesh, "pp", 4)
    assert str(pipeline[0]) == "[n0_g0 n1_g0]"
    assert all(group.crosses_nodes for group in pipeline)
    assert not any(group.crosses_nodes for group in rank_groups(mesh, "dp", 4))


def test_mesh_of_a_strategy():
    mesh = {
        name: int(degree) for name, degree in parse_strategy("dp=2,pp=2,tp=4,cp=2").mesh.items()
    }
    assert list(mesh) == ["tp", "cp", "dp", "pp"]
    assert rank_groups(mesh, ("cp", "dp"), 8)[0].ranks == (0, 4, 8, 12)
    assert rank_groups(mesh, ("dp", "cp"), 8)[0].ranks == (0, 8, 4, 12)


def test_refusals_name_everything():
    with pytest.raises(InputError) as caught:
        rank_groups({"tp": 0, "dp": 2}, "tq", 1.5)
    assert caught.value.problems == (
        "mesh axis 'tp' has degree 0: rank groups need a positive integer",
        "unknown mesh axis 'tq': did you mean tp?",
        "node size 1.5: a positive integer is accepted",
    )
    with pytest.raises(InputError, match="too many to list"):
        rank_groups({"dp": 2**21}, "dp", 8)
