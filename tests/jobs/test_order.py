"""Order of mesh axes, and what is kept of gathered inputs."""

from dataclasses import replace
from itertools import permutations

import pytest
from click.testing import CliRunner
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.conventions.questions import Saved
from symbolic_cost.errors import InputError
from symbolic_cost.parallel.groups import arranged, rank_groups
from symbolic_cost.systems.records import machine

STRATEGY = "tp=2,sp,cp=2,dp=4,pp=4,zero=1"


def job(strategy=STRATEGY, **options):
    return sc.job("gpt2-medium", strategy, {"M": 8}, system="h100", **options)


@pytest.mark.parametrize("order", list(permutations(("tp", "dp", "pp"))))
def test_hops_count_the_members_that_rank_groups_list(order):
    """Eight ranks of a node, 2 x 4 x 4 in any order: members on one node, rank by rank."""
    mesh = arranged({"tp": 2, "dp": 4, "pp": 4}, order)
    network = machine("h100").network()
    for axis in mesh:
        sizes = {name: Integer(degree) for name, degree in mesh.items()}
        inside, between = (hop.ranks for hop in network.hops(sizes, (axis,)))
        groups = rank_groups(mesh, axis, 8)
        assert {Integer(len(group.ranks) // len(group.nodes)) for group in groups} == {inside}
        assert {Integer(len(group.nodes)) for group in groups} == {between}


@pytest.mark.slow
def test_the_order_of_the_catalogue_is_the_default():
    assert job(order="tp,cp,dp,pp").time().step == job().time().step
    assert "order" not in str(job().time())
    assert "ranks in the order pp, dp, cp, tp, innermost first" in str(
        job(order=("pp", "dp", "cp", "tp")).time()
    )


def test_an_inner_axis_is_faster_and_the_others_pay():
    tensor, data = (
        sc.job("gpt3-175b", "tp=8,dp=8,pp=8", {"M": 8}, system="h100", order=order).time()
        for order in ("tp,dp,pp", "dp,tp,pp")
    )
    assert data.number("gradients") < tensor.number("gradients")
    assert data.number("microbatches.exposed") > tensor.number("microbatches.exposed")


@pytest.mark.parametrize("order", ["dp,tp,pp"])
def test_degrees_may_come_later(order):
    numbers = {"tp": 4, "dp": 1, "pp": 4, "M": 8}
    later = sc.job("gpt2", "tp,dp,pp", {"M": 8}, system="h100", order=order)
    first = sc.job("gpt2", "tp=4,dp=1,pp=4", {"M": 8}, system="h100", order=order)
    later = later.bind(**{name: numbers[name] for name in ("tp", "dp", "pp")})
    assert later.time().step == first.time().step


def test_ranks_that_share_a_head_stay_beside_their_neighbours():
    assert list(arranged({"kv": 2, "tp": 8, "dp": 4}, ("dp", "tp"))) == ["dp", "kv", "tp"]
    usual = sc.job("llama-3-8b", "tp=16,dp=2", {"M": 2}, system="h100")
    assert usual.replace(order="dp,tp").time().step > usual.time().step


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("tp,cp,pp", "mesh axis dp is missing: tp,cp,dp,pp in any order"),
        ("tp,cp,dp,pp,ep", "the strategy has no mesh axis 'ep': tp,cp,dp,pp in any order"),
        ("tp,tp,cp,dp,pp", "'tp' is given more than once"),
        ("sp,tp,cp,dp,pp", "no mesh axis 'sp'"),
    ],
)
def test_refused(order, said):
    with pytest.raises(InputError, match=said):
        job(order=order)
    with pytest.raises(InputError, match="does not say where cp lies"):
        arranged({"tp": 2, "cp": 2}, ("tp",))


def test_groups_follow_the_order():
    words = ["comm", "gpt2", "--strategy", "tp=2,dp=4", "--groups", "--order"]
    result = CliRunner().invoke(main, [*words, "dp,tp"])
    assert "[n0_g0 n0_g1 n0_g2 n0_g3]" in result.output
    assert "[n0_g0 n0_g4]" in result.output
    assert "dp, tp, innermost first" in result.output
    refused = CliRunner().invoke(main, ["comm", "gpt2", "--strategy", "tp=2", "--order", "tp"])
    assert "--order 'tp' is not read: only --groups lists where ranks lie" in refused.output


@pytest.mark.slow
@pytest.mark.parametrize(("regather", "saved"), [(True, Saved.SHARD), (False, Saved.GATHERED)])
@pytest.mark.parametrize("recompute", ["full"])
def test_the_option_and_the_conventions_say_the_same(regather, saved, recompute):
    said = replace(sc.preset("exact"), saved=saved)
    one = job(conventions="exact", regather=regather, recompute=recompute)
    other = job(conventions=said, recompute=recompute)
    assert one.memory().peak == other.memory().peak
    assert {mesh: one.value(sent) for mesh, sent in one.sent_by_rank.items()} == {
        mesh: other.value(sent) for mesh, sent in other.sent_by_rank.items()
    }
    assert one.time().step == other.time().step


@pytest.mark.slow
def test_memory_and_time_follow_one_decision():
    """A preset that keeps gathered inputs does so in the step as well as in memory."""
    usual, whole = job(), job(conventions="exact")
    assert whole.memory().total("saved") > usual.memory().total("saved")
    assert whole.time().number("exposed") == job(regather=False).time().number("exposed")
    assert whole.time().number("exposed") < usual.time().number("exposed")
    assert "kept as gathered, and not gathered again" in str(whole.time())
    assert "gathered in forward" not in str(usual.time())


@pytest.mark.slow
def test_shards_are_smaller_and_are_gathered_again():
    again, whole = job(regather=True), job(regather=False)
    assert again.memory().total("saved") < whole.memory().total("saved")
    assert again.value(again.sent_by_rank["tp"]) > whole.value(whole.sent_by_rank["tp"])
    assert again.time().step > whole.time().step
    assert again.time().step == job().time().step  # what the usual conventions say
    assert again.replace(strategy="tp=2,sp").training.saved is Saved.SHARD
    assert "kept as gathered, and not gathered again" in str(whole.time())


def test_regather_needs_something_that_gathers():
    for regather in (True, False):
        with pytest.raises(InputError, match="regather needs one of sp, cp"):
            job("tp=2,dp=4", regather=regather)
