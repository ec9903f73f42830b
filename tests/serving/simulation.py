"""An event simulation of one engine: requests arrive, are prefilled, and decode together.

Every sequence has its own context, and every prompt its own parts; nothing here is a mean.
"""

import random
from collections import deque
from dataclasses import dataclass, field


@dataclass
class Sequence:
    """One that is being answered: when its last token came, and how many steps it has behind it."""

    last: float | None
    steps: int = 0


@dataclass
class Prompt:
    """One that is being prefilled: when it arrived, and how many of its tokens are in the cache."""

    arrived: float
    cached: int


@dataclass
class Costs:
    """A pass takes a start, time for every token that it computes, and for every token it reads.

    `once` tokens at the start of all contexts are read once per step, where a cascade reads them.
    """

    start: float = 0.012
    token: float = 2.5e-5
    read: float = 2e-8
    once: int = 0

    def seconds(self, contexts, parts):
        """Of a pass over one new token of each context, and parts of prompts (tokens, cached)."""
        tokens = len(contexts) + sum(new for new, _ in parts)
        read = sum(c - self.once for c in contexts) + (self.once if contexts else 0)
        read += sum(new * (cached + new / 2) for new, cached in parts)
        return self.start + self.token * tokens + self.read * read

    # The same as the closed forms ask for it.
    def prefill(self, prompts, tokens, cached):
        return self.seconds([], [(tokens, cached)] * prompts)

    def decode(self, sequences, context):
        return (
            self.start
            + sequences * (self.token + self.read * (context - self.once))
            + (self.read * self.once)
        )

    def mixed(self, sequences, context, prompts, tokens, cached):
        part = self.seconds([], [(tokens, cached)]) - self.start
        return self.decode(sequences, context) + prompts * part


@dataclass
class Engine:
    """Prefills whatever waits, as long as there is room.

    Whole prompts run before the next decode step, one after the other; in chunks, each step takes
    a part of the prompt that is first in line, or as many whole prompts as the chunk has room for.
    """

    load: object
    slots: int
    costs: Costs
    chunk: int | None = None
    now: float = 0.0
    queue: deque = field(default_factory=deque)
    prompts: list = field(default_factory=list)
    running: list = field(default_factory=list)
    ends: list = field(default_factory=list)
    gaps: list = field(default_factory=list)
    firsts: list = field(default_factory=list)

    def start_prompt(self):
        arrived = self.queue.popleft()
        self.now += self.costs.seconds([], [(self.load.prefilled, self.load.shared)])
        self.first(arrived)

    def first(self, arrived):
        self.firsts.append((self.now, self.now - arrived))
        self.running.append(Sequence(self.now))

    def admitted(self):
        """Parts of prompts that the next step holds."""
        if self.chunk is None:
            return []
        places = max(1, self.chunk // self.load.prefilled)
        while self.queue and len(self.prompts) < places:
            if len(self.running) + len(self.prompts) >= self.slots:
                break
            self.prompts.append(Prompt(self.queue.popleft(), self.load.shared))
        parts = -(-self.load.prefilled // self.chunk)
        return [(self.load.prefilled / parts, prompt.cached) for prompt in self.prompts]

    def step(self):
        parts, decoding = self.admitted(), list(self.running)
        contexts = [self.load.input + one.steps for one in decoding]
        self.now += self.costs.seconds(contexts, parts)
        for one in decoding:
            if one.last is not None:
                self.gaps.append((self.now, self.now - one.last))
            one.last = self.now
            one.steps += 1
        self.ends += [self.now for one in decoding if one.steps >= self.load.steps]
        self.running = [one for one in decoding if one.steps < self.load.steps]
        for prompt, (tokens, _) in zip(self.prompts, parts, strict=True):
            prompt.cached += tokens
            if prompt.cached >= self.load.input - 0.5:
                self.first(prompt.arrived)
        self.prompts = [p for p in self.prompts if p.cached < self.load.input - 0.5]

    def run(self, arrivals):
        waiting = deque(arrivals)
        while waiting or self.queue or self.running or self.prompts:
            while waiting and waiting[0] <= self.now:
                self.queue.append(waiting.popleft())
            if self.chunk is None and self.queue and len(self.running) < self.slots:
                self.start_prompt()
            elif self.running or self.queue or self.prompts:
                self.step()
            else:
                self.now = waiting[0]

    def measured(self):
        """Requests per second, mean ITL and TTFT, without the first and last fifth."""
        begin, end = self.now / 5, self.now * 4 / 5
        done = sum(begin <= at < end for at in self.ends) / (end - begin)
        return done, *(
            sum(inside) / len(inside)
            for inside in (
                [wait for at, wait in pairs if begin <= at < end]
                for pairs in (self.gaps, self.firsts)
            )
        )


def saturated(load, slots, costs, requests, chunk=None):
    """Keep as many in flight as there are slots, their ages spread at the start."""
    engine = Engine(load, slots, costs, chunk)
    engine.running = [Sequence(None, int(place * load.steps // slots)) for place in range(slots)]
    engine.run([0.0] * requests)
    return engine.measured()


def by_chance(load, costs, *, requests, rate, seed, chunk=None, slots=None):
    """Let requests arrive by chance at a rate, with room for all unless slots are given."""
    chance, time, arrivals = random.Random(seed), 0.0, []  # noqa: S311 - no secret
    for _ in range(requests):
        time += chance.expovariate(rate)
        arrivals.append(time)
    engine = Engine(load, slots or requests, costs, chunk)
    engine.run(arrivals)
    return engine.measured()


def apart(load, costs, *, engines, transfer, requests, rate, seed):
    """Let requests arrive by chance at engines that prefill, and decode elsewhere.

    A cache leaves when its prefill is done and both links are free, in the order of the prefills;
    its sequence joins the step of its decoding engine that begins next.
    """
    chance, time = random.Random(seed), 0.0  # noqa: S311 - no secret
    ready, leaves, enters = ([0.0] * count for count in (engines[0], *engines))
    done, decoding = [], [Engine(load, requests, costs) for _ in range(engines[1])]
    joining = [[] for _ in decoding]
    for _ in range(requests):
        time += chance.expovariate(rate)
        first = chance.randrange(engines[0])
        ready[first] = max(time, ready[first]) + costs.seconds([], [(load.prefilled, load.shared)])
        done.append((ready[first], first, time))
    for at, first, arrived in sorted(done):
        then = chance.randrange(engines[1])
        moved = max(at, leaves[first], enters[then]) + transfer
        leaves[first] = enters[then] = moved
        joining[then].append((moved, arrived))
    for engine, joins in zip(decoding, joining, strict=True):
        waiting = deque(sorted(joins))
        while waiting or engine.running:
            if not engine.running:
                engine.now = max(engine.now, waiting[0][0])
            while waiting and waiting[0][0] <= engine.now:
                moved, arrived = waiting.popleft()
                engine.firsts.append((moved, moved - arrived))
                engine.running.append(Sequence(moved))
            engine.step()
    begin, end = time / 5, time * 4 / 5
    return sum(begin <= at < end for e in decoding for at in e.ends) / (end - begin), *(
        sum(inside) / len(inside)
        for pairs in ("gaps", "firsts")
        for inside in ([w for e in decoding for at, w in getattr(e, pairs) if begin <= at < end],)
    )
