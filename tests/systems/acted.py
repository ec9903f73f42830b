"""Collectives acted out rank by rank, sharing nothing with the library but the algorithms' names.

A message is `p` pieces. Every rank holds, per piece, the set of ranks whose terms are in its copy;
in one step a rank sends some pieces to one other rank, which keeps or adds them. Each player below
returns the steps of its collective and the most that a rank sent in each of them, in messages, and
checks that everybody has what the collective promises.
"""

from fractions import Fraction


class Group:
    """Ranks with pieces, a clock, and the words sent."""

    def __init__(self, ranks, start):
        self.p = ranks
        self.held = [[set(start(rank, piece)) for piece in range(ranks)] for rank in range(ranks)]
        self.steps, self.sent = 0, Fraction(0)

    def step(self, messages):
        """Pass on pieces at the same time: (from, to, pieces) each; terms add up."""
        assert len({source for source, *_ in messages}) == len(messages)
        copies = [[set(terms) for terms in pieces] for pieces in self.held]
        for source, target, pieces in messages:
            for piece in pieces:
                self.held[target][piece] |= copies[source][piece]
        self.steps += 1
        self.sent += max(Fraction(len(pieces), self.p) for *_, pieces in messages)

    @property
    def cost(self):
        return self.steps, self.sent

    def whole(self, ranks=None):
        """Everybody, or the given ranks, hold every term of every piece."""
        everyone = set(range(self.p))
        return all(terms == everyone for r in (ranks or range(self.p)) for terms in self.held[r])


def everyone(p):
    return set(range(p))


def scattered(p):
    """Pieces in shards: rank r holds piece r whole."""
    return Group(p, lambda rank, piece: everyone(p) if rank == piece else ())


def partial(p):
    """Every rank holds its term of every piece."""
    return Group(p, lambda rank, _: {rank})


def root(p):
    """The first rank holds everything."""
    return Group(p, lambda rank, _: everyone(p) if rank == 0 else ())


# ------------------------------------------------------------------------------------- rings


def ring_scatter(group):
    """Pass sums on: after p - 1 steps rank r has the whole of piece r."""
    p = group.p
    for turn in range(p - 1):
        group.step([(r, (r + 1) % p, [(r - turn - 1) % p]) for r in range(p)])
    assert all(group.held[r][r] == everyone(p) for r in range(p))
    return group


def ring_gather(group):
    p = group.p
    for turn in range(p - 1):
        group.step([(r, (r + 1) % p, [(r - turn) % p]) for r in range(p)])
    return group


def ring(kind, p):  # noqa: PLR0911 - one player per collective
    if kind == "reduce-scatter":
        return ring_scatter(partial(p)).cost
    if kind == "all-gather":
        group = ring_gather(scattered(p))
        assert group.whole()
        return group.cost
    if kind == "all-reduce":
        group = ring_gather(ring_scatter(partial(p)))
        assert group.whole()
        return group.cost
    if kind == "all-to-all":
        return exchange(p)
    if kind == "broadcast":  # the root hands out pieces, neighbours pass them round
        group = root(p)
        for turn in range(p - 1):
            group.step([(0, turn + 1, [turn + 1])])
        group = ring_gather(group)
        assert group.whole()
        return group.cost
    if kind == "reduce":  # sums go round, then the root collects the pieces
        group = ring_scatter(partial(p))
        for turn in range(1, p):
            group.step([(turn, 0, [turn])])
        assert group.whole([0])
        return group.cost
    return send(p)


def exchange(p):
    """Every rank sends one piece to every other, in turns."""
    arrived = {(r, r) for r in range(p)}
    steps = 0
    for distance in range(1, p):
        arrived |= {(r, (r + distance) % p) for r in range(p)}
        steps += 1
    assert len(arrived) == p * p
    return steps, Fraction(p - 1, p)


def send(_):
    return 1, Fraction(1)


# -------------------------------------------------------------------------------- partners


def halving(group):
    """Partners at distances p/2, p/4, ... send the half that the other will keep."""
    p, span = group.p, group.p
    while span > 1:
        half = span // 2
        messages = []
        for r in range(p):
            other = r ^ half
            first = (other // half) * half
            messages.append((r, other, list(range(first, first + half))))
        group.step(messages)
        span = half
    return group


def doubling(group):
    """Partners at distances 1, 2, 4, ... send all the pieces that they have whole."""
    p, distance = group.p, 1
    while distance < p:
        firsts = [r // distance * distance for r in range(p)]
        group.step(
            [(r, r ^ distance, list(range(firsts[r], firsts[r] + distance))) for r in range(p)]
        )
        distance *= 2
    return group


def swapping(p):
    """Partners at distances 1, 2, 4, ... send everything."""
    group, distance = partial(p), 1
    while distance < p:
        group.step([(r, r ^ distance, range(p)) for r in range(p)])
        distance *= 2
    assert group.whole()
    return group.cost


def store_and_forward(p):
    """Partners at distances 1, 2, 4, ... send half of what they hold, on its way."""
    at = {(source, target): source for source in range(p) for target in range(p)}
    steps, sent, distance = 0, Fraction(0), 1
    while distance < p:
        moving = {key for key, place in at.items() if (key[1] ^ place) & distance}
        busiest = max(sum(at[key] == r for key in moving) for r in range(p))
        at |= {key: at[key] ^ distance for key in moving}
        steps, sent, distance = steps + 1, sent + Fraction(busiest, p), 2 * distance
    assert all(place == target for (_, target), place in at.items())
    return steps, sent


def scatter_from_root(group):
    """The root hands out halves, those who got them hand on halves of these."""
    p, half = group.p, group.p // 2
    while half:
        senders = range(0, p, 2 * half)
        group.step([(r, r + half, list(range(r + half, r + 2 * half))) for r in senders])
        half //= 2
    return group


def gather_to_root(group):
    p, half = group.p, 1
    while half < p:
        senders = range(half, p, 2 * half)
        group.step([(r, r - half, list(range(r, r + half))) for r in senders])
        half *= 2
    return group


def partners(kind, p, all_reduce):  # noqa: PLR0911 - one player per collective
    if kind == "reduce-scatter":
        group = halving(partial(p))
        assert all(group.held[r][r] == everyone(p) for r in range(p))
        return group.cost
    if kind == "all-gather":
        group = doubling(scattered(p))
        assert group.whole()
        return group.cost
    if kind == "all-to-all":
        return store_and_forward(p)
    if kind == "broadcast":
        group = doubling(scatter_from_root(root(p)))
        assert group.whole()
        return group.cost
    if kind == "reduce":
        group = gather_to_root(halving(partial(p)))
        assert group.whole([0])
        return group.cost
    if kind == "all-reduce":
        return all_reduce(p)
    return send(p)


def halved_and_doubled(p):
    group = doubling(halving(partial(p)))
    assert group.whole()
    return group.cost


# ------------------------------------------------------------------------------------ trees


def down(group, pieces):
    """A binomial tree from the root, the whole message each time."""
    p, half = group.p, group.p // 2
    while half:
        group.step([(r, r + half, pieces) for r in range(0, p, 2 * half)])
        half //= 2
    return group


def up(group):
    p, half = group.p, 1
    while half < p:
        group.step([(r, r - half, range(p)) for r in range(half, p, 2 * half)])
        half *= 2
    return group


def tree(kind, p):
    if kind == "broadcast":
        group = down(root(p), range(p))
        assert group.whole()
        return group.cost
    if kind == "reduce":
        group = up(partial(p))
        assert group.whole([0])
        return group.cost
    if kind == "all-reduce":
        group = down(up(partial(p)), range(p))
        assert group.whole()
        return group.cost
    if kind == "reduce-scatter":
        group = scatter_from_root(up(partial(p)))
        assert all(group.held[r][r] == everyone(p) for r in range(p))
        return group.cost
    if kind == "all-gather":
        group = down(gather_to_root(scattered(p)), range(p))
        assert group.whole()
        return group.cost
    return store_and_forward(p) if kind == "all-to-all" else send(p)


# ---------------------------------------------------------------------------------- switches


def switches(kind, p):
    """Everybody sends up what the switch adds or copies, and receives; one step each way."""
    if kind == "all-to-all":
        return exchange(p)
    if kind == "send-receive":
        return send(p)
    # The switch returns a rank's own piece to nobody: (p - 1)/p of shards go up or come down.
    shards = {"reduce-scatter", "all-gather"}
    return 2, Fraction(p - 1, p) if kind in shards else Fraction(1)


PLAYERS = {
    "ring": ring,
    "tree": tree,
    "recursive doubling": lambda kind, p: partners(kind, p, swapping),
    "halving and doubling": lambda kind, p: partners(kind, p, halved_and_doubled),
    "in-network": switches,
}
