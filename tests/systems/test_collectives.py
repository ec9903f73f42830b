"""Collectives: step counts against simulations, hierarchy, and where groups lie."""

import math

import pytest
from sympy import Integer, Rational, expand, oo

from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.ledger import CollectiveKind as Kind
from symbolic_cost.parallel.groups import rank_groups
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import alpha, alpha_d, beta, beta_d, dp, m1, message, n_d
from symbolic_cost.systems.collectives import ALGORITHMS, COLLECTIVES, collectives, two_tier_rings
from symbolic_cost.systems.network import Hop, Link, Network, Tier
from tests.systems.acted import PLAYERS

FAST, SLOW = Link("fast", beta_d, alpha_d), Link("slow", beta, alpha)
RANKS = (2, 4, 8, 16)


def ring_all_gather(ranks, size):
    """Pass pieces round until every rank has all; count steps and bytes of one rank."""
    have = [{rank} for rank in range(ranks)]
    steps = sent = 0
    passing = list(range(ranks))
    while any(len(held) < ranks for held in have):
        passing = [passing[rank - 1] for rank in range(ranks)]
        for rank, piece in enumerate(passing):
            have[rank].add(piece)
        steps, sent = steps + 1, sent + Rational(size, ranks)
    return steps, sent


def doubling_all_gather(ranks, size):
    """Exchange all that is held with partners at distances 1, 2, 4, ..."""
    have = [{rank} for rank in range(ranks)]
    steps = sent = 0
    distance = 1
    while any(len(held) < ranks for held in have):
        sent += Rational(size, ranks) * len(have[0])
        have = [have[rank] | have[rank ^ distance] for rank in range(ranks)]
        steps, distance = steps + 1, 2 * distance
    return steps, sent


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize(
    ("name", "acted"),
    [("ring", ring_all_gather), ("recursive doubling", doubling_all_gather)],
)
def test_all_gather_as_acted_out(name, acted, ranks):
    steps = ALGORITHMS[name].steps(Kind.ALL_GATHER, Integer(960), Integer(ranks))
    assert (steps.count, steps.sent) == acted(ranks, 960)


def test_every_algorithm_knows_every_collective():
    for algorithm in ALGORITHMS.values():
        assert set(algorithm.rules) == set(Kind)
        assert algorithm.source in REFERENCES


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("ranks", RANKS)
def test_no_algorithm_beats_the_lower_bounds(name, ranks):
    """Bytes that must leave or reach one rank, and steps that must reach all (Thakur 2005)."""
    size, p = Integer(1), Integer(ranks)
    share = Rational(ranks - 1, ranks)
    in_network = name == "in-network"
    bounds = {
        Kind.ALL_GATHER: share,
        Kind.REDUCE_SCATTER: share,
        Kind.ALL_REDUCE: 1 if in_network else 2 * share,
        Kind.BROADCAST: 1 if ranks == 2 else share,
        Kind.ALL_TO_ALL: share,
        Kind.SEND_RECEIVE: 1,
    }
    for kind, least in bounds.items():
        if (name, kind) == ("recursive doubling", Kind.ALL_REDUCE):
            least = 1  # noqa: PLW2901 - each exchange adds a whole message to what is held
        steps = ALGORITHMS[name].steps(kind, size, p)
        bruck = kind is Kind.ALL_TO_ALL and steps.count == math.log2(ranks)
        assert steps.sent >= (Rational(1, 2) if bruck else least)
        if kind is not Kind.SEND_RECEIVE and not in_network:
            assert steps.count >= math.log2(ranks)


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("kind", list(Kind))
def test_one_rank_takes_no_time(name, kind):
    alone = (Hop(FAST, Integer(1)), Hop(SLOW, Integer(1)))
    assert COLLECTIVES[name].time(kind, message, alone) == 0


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("kind", list(Kind))
def test_times_grow_with_the_message_and_fall_with_bandwidth(name, kind):
    hops = (Hop(FAST, Integer(4)), Hop(SLOW, Integer(2)))
    time = COLLECTIVES[name].time(kind, message, hops)
    at = {alpha: 2, alpha_d: 1, beta: 10, beta_d: 100}
    assert 0 < time.subs({**at, message: 10}) < time.subs({**at, message: 20})
    by_slow = time.diff(beta).subs({**at, message: 1000})
    assert by_slow < 0


def test_hierarchical_sends_less_between_domains_than_flat():
    """Within, reduce-scatter and all-gather of all; between, an all-reduce of a fourth."""
    hops = (Hop(FAST, Integer(4)), Hop(SLOW, Integer(2)))
    time = COLLECTIVES["hierarchical ring"].time(Kind.ALL_REDUCE, message, hops)
    within = 6 * alpha_d + 2 * message * Rational(3, 4) / beta_d
    between = 2 * alpha + 2 * (message / 4) / 2 / beta
    assert (time - within - between).expand() == 0
    flat = COLLECTIVES["ring"].time(Kind.ALL_REDUCE, message, hops)
    at = {alpha: 2, alpha_d: 1, beta: 10, beta_d: 100, message: 1000}
    assert time.subs(at) < flat.subs(at)


@pytest.mark.parametrize(
    ("ranks", "inside", "kind", "time"),
    [
        (4, 4, Kind.ALL_GATHER, alpha_d * 3 + Rational(3, 4) * message / beta_d),
        (4, 1, Kind.ALL_GATHER, alpha * 3 + Rational(3, 4) * message / beta),
        (4, 1, Kind.BROADCAST, alpha * 3 + message / beta),
        (2, 2, Kind.SEND_RECEIVE, alpha_d + message / beta_d),
        (2, 1, Kind.SEND_RECEIVE, alpha + message / beta),
    ],
)
def test_two_tier_rings_on_one_tier(ranks, inside, kind, time):
    hops = (Hop(FAST, Integer(inside)), Hop(SLOW, Integer(ranks // inside)))
    found = two_tier_rings(Integer(3)).time(kind, message, hops)
    assert (found - time).expand() == 0


def test_two_tier_rings_share_interfaces():
    """8 ranks, 4 to a domain, half an interface each: 2 interfaces send at once."""
    hops = (Hop(FAST, Integer(4)), Hop(SLOW, Integer(2)))
    time = two_tier_rings(Rational(1, 2)).time(Kind.ALL_REDUCE, Integer(800), hops)
    at = {alpha: 5, alpha_d: 1, beta: 10, beta_d: 1000}
    assert time.subs(at) == 2 * 700 / Integer(20) + 5 * 1 + 1 * 6


def network(*domains):
    links = [Link(f"tier{place}", Integer(1)) for place in range(len(domains) + 1)]
    sizes = [*map(Integer, domains), oo]
    return Network(tuple(Tier(link, size) for link, size in zip(links, sizes, strict=True)))


@pytest.mark.parametrize("axes", ["tp", "cp", "dp", "pp", "cp+dp", "tp+dp", "tp+cp+dp+pp"])
@pytest.mark.parametrize("domain", [1, 2, 4, 8, 16, 64])
def test_members_of_a_domain_as_in_the_rank_groups(axes, domain):
    mesh, names = {"tp": 2, "cp": 2, "dp": 4, "pp": 2}, tuple(axes.split("+"))
    hops = network(domain).hops({name: Integer(size) for name, size in mesh.items()}, names)
    for group in rank_groups(mesh, names, domain):
        assert hops[1].ranks == len(group.nodes)
        assert hops[0].ranks * hops[1].ranks == len(group.ranks)


def test_three_tiers_and_symbols():
    hops = network(8, 64).hops({"tp": Integer(4), "dp": Integer(64)}, ("dp",))
    assert [hop.ranks for hop in hops] == [2, 8, 4]
    made = Network((Tier(FAST, n_d), Tier(SLOW, oo)))
    inner, outer = made.hops({"tp": m1, "dp": dp}, ("dp",))
    numbers = {m1: 4, dp: 16, n_d: 8}
    assert (inner.ranks.subs(numbers), outer.ranks.subs(numbers)) == (2, 8)


def test_refusals():
    with pytest.raises(InputError, match="joins all ranks"):
        Network((Tier(FAST, Integer(8)),))
    one = (Hop(SLOW, Integer(8)),)
    with pytest.raises(InputError, match="two-tier rings take 2 kinds of links"):
        two_tier_rings(Integer(1)).time(Kind.BROADCAST, message, one)
    with pytest.raises(UnknownNameError, match="did you mean ring"):
        collectives("rings")


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_collective_of_every_algorithm_as_acted_out(name, kind, ranks):
    found = ALGORITHMS[name].steps(kind, Integer(960), Integer(ranks))
    steps, sent = PLAYERS[name](kind, ranks)
    assert (found.count, found.sent) == (steps, 960 * sent)


@pytest.mark.parametrize("kind", [Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_REDUCE])
@pytest.mark.parametrize(("inside", "outside"), [(2, 2), (8, 4), (4, 16)])
def test_outer_tiers_carry_what_inner_ones_left(kind, inside, outside):
    """Rings in every domain, then rings of one rank per domain on 1/inside of the message.

    Acted out: what one rank sends over the slow link is its part of a message that is a domain's
    smaller, in so many pieces as there are domains.
    """
    hops = (Hop(FAST, Integer(inside)), Hop(SLOW, Integer(outside)))
    size = 960 * inside * outside
    time = collectives("hierarchical ring").time(kind, Integer(size), hops)
    within, between = ring(kind, inside), ring(kind, outside)
    expected = within[0] * alpha_d + size * within[1] / beta_d
    expected += between[0] * alpha + Rational(size, inside) * between[1] / beta
    assert expand(time - expected) == 0


def ring(kind, ranks):
    steps, sent = PLAYERS["ring"](kind, ranks)
    return steps, Rational(sent.numerator, sent.denominator)
