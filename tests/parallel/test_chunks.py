"""Chunks of a stage that hold different blocks: what is kept at once, against the schedule's run.

The oracle runs the tasks of every stage one by one and adds up what one-stage jobs keep for the
blocks and the ends of each chunk.
"""

from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.parallel.orders import Pass
from symbolic_cost.parallel.timeline import timeline

SIZES = {"b": 1, "l": 8}
GPT = {**SIZES, "e": 8, "f": 32, "h": 2, "V": 64}


def chain(name, stages, chunks, microbatch):
    """The way of a microbatch, told from the schedule's description alone."""
    if name == "zb-v":
        return [(s, 0) for s in range(stages)] + [(s, 1) for s in reversed(range(stages))]
    if name == "dualpipe":
        odd = microbatch % 2
        return [(s, odd) for s in (reversed(range(stages)) if odd else range(stages))]
    return [(s, c) for c in range(chunks) for s in range(stages)]


def laid_out(name, way, each, lacking):
    """Blocks by place of a way: ends lack some, those of zb-v on the way back."""
    held = dict.fromkeys(way, each)
    first, last = lacking
    held[way[-1] if name == "zb-v" else way[0]] -= first
    held[way[len(way) // 2] if name == "zb-v" else way[-1]] -= last
    return held


def most_kept(name, stages, microbatches, chunks, contents):
    """Most that each stage keeps; blocks of zb-v wait for their weight gradients.

    Args:
        contents: bytes of blocks and of the ends by place, of even and odd microbatches.
    """
    peaks = []
    slots = {s: {} for s in range(stages)}
    for event in timeline(name, stages, microbatches, chunks):
        slots[event.stage].setdefault((event.start, event.end), []).append(event.task)
    for s in range(stages):
        now = peak = 0
        for tasks in slots[s].values():
            own = [(task.work, contents[task.microbatch % 2][s, task.chunk]) for task in tasks]
            now += sum(sum(held) for work, held in own if work is Pass.FORWARD)
            peak = max(peak, now)
            for work, (blocks, ends) in own:
                backward = work in {Pass.BACKWARD, Pass.BACKWARD_INPUT}
                freed = work is Pass.BACKWARD_WEIGHT if name == "zb-v" else backward
                now -= ends * backward + blocks * freed
        assert now == 0
        peaks.append(peak)
    return peaks


def parts_of(job):
    """Saved bytes of a job of one stage: before, inside and behind the blocks, by part."""
    rows, parts = job.memory_rows.select("saved"), job.share.parts
    first = next(place for place, part in enumerate(parts) if part.is_block)
    sizes = {part.path: 0 for part in parts}
    for row in rows:
        sizes[row.part] += job.value(row.total)
    blocks = {part.path: sizes[part.path] for part in parts if part.is_block}
    ends = (
        sum(sizes[part.path] for part in own if not part.is_block)
        for own in (parts[:first], parts[first:])
    )
    return blocks, tuple(ends)


@cache
def of_gpt(blocks, recompute, words):
    """Bytes of so many blocks in one chunk, and of the ends."""
    numbers = {**GPT, "V": words, "n_layers": max(blocks, 2)}
    held, ends = parts_of(sc.job("gpt", "", numbers, recompute=recompute))
    if blocks < 2:
        one = sc.job("gpt", "", {**numbers, "n_layers": 1}, recompute=recompute.split("/")[0])
        held = parts_of(one)[0] if blocks else {}
    return sum(held.values()), ends


@cache
def of_mixture():
    """Bytes of a dense block, of one with experts, and of the ends."""
    job = sc.job("deepseek-v3", "", {**SIZES, "n_layers": 5, "n_dense": 2})
    held, ends = parts_of(job)
    return held["dense.block"] / 2, held["experts.block"] / 3, ends


def simulated(way, each, lacking, content, ends):
    """Most that the first and the last stage keep; content is the bytes of blocks from one on."""
    contents = []
    for parity in (0, 1):
        places = chain(way.name, way.stages, way.chunks, parity)
        at, held = 0, {}
        for place, blocks in laid_out(way.name, places, each, lacking).items():
            held[place] = [content(at, blocks), 0]
            at += blocks
        held[places[0]][1] += ends[0]
        held[places[-1]][1] += ends[1]
        contents.append(held)
    return most_kept(way.name, way.stages, way.microbatches, way.chunks, contents)[
        :: way.stages - 1
    ]


def counted(model, way, numbers, **options):
    """What the library says of the same stages, by its rows and by its sums."""
    own = {"v": way.chunks} if way.name == "interleaved" else {}
    totals = []
    for stage in ("first", "last"):
        job = sc.job(
            model,
            f"pp={way.stages}",
            {**numbers, **own},
            stage=stage,
            schedule=way.name,
            microbatches=way.microbatches,
            **options,
        )
        totals.append(job.value(job.memory_rows.total("saved")))
        sums = job.stages_memory.device_bytes(job.stage)["saved", None]
        assert sum(job.value(size) for size in sums) == totals[-1]
    return totals


class Way(NamedTuple):
    """How microbatches pass the stages."""

    name: str
    stages: int
    chunks: int
    microbatches: int


def check_lighter_ends(way, each, lacking, recompute, words):
    layers = way.stages * way.chunks * each - sum(lacking)
    expected = simulated(
        way,
        each,
        lacking,
        lambda _, blocks: of_gpt(blocks, recompute, words)[0],
        of_gpt(2, recompute, words)[1],
    )
    numbers = {**GPT, "V": words, "n_layers": layers}
    layout = f"ends={lacking[0]}/{lacking[1]}"
    assert counted("gpt", way, numbers, layout=layout, recompute=recompute) == expected


@pytest.mark.parametrize("words", [8, 4000])  # a head that keeps less and more than the blocks
@pytest.mark.parametrize(
    "way",
    [Way("interleaved", 2, 5, 6), Way("interleaved", 3, 2, 3), Way("zb-v", 3, 2, 7)],
    ids=lambda way: way.name,
)
def test_lighter_ends_keep_what_their_chunks_do(way, words):
    check_lighter_ends(way, 4, (3, 4), "none", words)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    st.one_of(
        st.tuples(st.just("interleaved"), st.integers(2, 5), st.integers(2, 5), st.integers(1, 3)),
        st.tuples(st.just("zb-v"), st.integers(2, 5), st.just(2), st.integers(1, 3)),
        st.tuples(st.just("dualpipe"), st.sampled_from([2, 4, 6]), st.just(1), st.integers(2, 4)),
    ),
    st.integers(1, 4),
    st.tuples(*[st.integers(0, 4)] * 2),
    st.sampled_from(["none", "full", "full/2"]),
    st.sampled_from([8, 64, 4000]),
)
def test_all_lighter_ends(way, each, lacking, recompute, words):
    *own, turns = way
    lacking = tuple(min(each, one) for one in lacking)
    assume(each > 1 or recompute != "full/2")
    assume(own[1] * own[2] * each - sum(lacking) >= own[2] * each)  # as a stage between holds
    check_lighter_ends(Way(*own, turns * own[1]), each, lacking, recompute, words)


@pytest.mark.parametrize(
    ("way", "leading"),
    [
        (Way("interleaved", 2, 2, 4), 1),
        pytest.param(Way("interleaved", 2, 3, 2), 4, marks=pytest.mark.slow),
        pytest.param(Way("zb-v", 3, 2, 6), 2, marks=pytest.mark.slow),
        (Way("dualpipe", 4, 1, 8), 2),
    ],
    ids=lambda one: getattr(one, "name", str(one)),
)
def test_blocks_that_lead_are_in_the_first_chunks(way, leading):
    dense, experts, ends = of_mixture()
    expected = simulated(
        way,
        2,
        (0, 0),
        lambda at, blocks: sum(dense if at + n < leading else experts for n in range(blocks)),
        ends,
    )
    numbers = {**SIZES, "n_layers": 2 * way.stages * way.chunks, "n_dense": leading}
    assert counted("deepseek-v3", way, numbers) == expected


def test_leading_blocks_beyond_the_first_chunks_are_refused():
    options = {"schedule": "interleaved", "microbatches": 4}
    job = sc.job("deepseek-v3", "pp=2", {"n_layers": 12, "n_dense": 5, "v": 3}, **options)
    with pytest.raises(InputError, match="first chunks beside those that lead"):
        job.total("params")


def test_uneven_interleaved_by_hand():
    """Llama 3 8B on 2 stages of 5 chunks: 16 blocks each, 4 in all chunks but that at the end.

    The first stage keeps most with 3 microbatches in its first chunk, which holds none, and 8 in
    the others. The last one keeps 8 in its first four chunks and one in the head, or 9 and none.
    """
    numbers, options = {"b": 1, "v": 5}, {"schedule": "interleaved", "microbatches": 4}
    blocks, (embedding, head) = parts_of(sc.job("llama-3-8b", "", {"b": 1}))
    four = blocks["block"] / 8
    expected = {"first": 8 * four + 3 * embedding, "last": max(8 * four + head, 9 * four)}
    for stage, size in expected.items():
        job = sc.job("llama-3-8b", "pp=2", numbers, stage=stage, layout="uneven", **options)
        assert job.value(job.memory_rows.total("saved")) == size
    told = " ".join(str(job.memory()).split())
    assert "first stage lacks blocks in its first chunk" in told
    assert "so that the peak is no higher" in told
    alike = sc.job("llama-3-8b", "pp=2", {"b": 1, "v": 4}, **options)
    assert "no higher" not in " ".join(str(alike.memory()).split())
