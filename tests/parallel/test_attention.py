"""Words that ranks send for an attention block: derived and counted."""

from dataclasses import replace

import numpy as np
import pytest

from symbolic_cost.layers.attention import AXES, Attention, Bias, Rotated
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.models.decoders.decoder import ATTENTION
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import fragment
from tests.parallel import algorithms, attention
from tests.parallel.derived import assert_same_results, derived_words, sizes
from tests.parallel.simulator import Ranks

SHAPE = {"b": 6, "l": 12, "e": 12, "k": 12, "g": 1, "d": 1}
GROUPED = {"b": 4, "l": 12, "e": 12, "k": 6, "g": 2, "d": 2}
BATCHED = {"b": 12, "l": 3, "e": 12, "k": 12, "g": 1, "d": 1}

CONTEXT = [
    (1, 1, 1),
    (2, 1, 1),
    (1, 2, 1),
    (1, 3, 1),
    (1, 4, 1),
    (2, 2, 1),
    (3, 2, 1),
    (2, 3, 1),
    (2, 1, 2),
    (1, 2, 2),
    (1, 3, 2),
    (2, 2, 2),
    (3, 1, 2),
]
EXCHANGES = [
    (1, 1, 1, 1),
    (1, 2, 1, 1),
    (1, 3, 1, 1),
    (1, 6, 1, 1),
    (1, 2, 2, 1),
    (1, 2, 3, 1),
    (1, 3, 2, 1),
    (1, 1, 3, 1),
    (2, 3, 1, 1),
    (2, 1, 2, 1),
    (3, 2, 2, 1),
    (1, 2, 1, 2),
    (1, 3, 2, 2),
    (1, 1, 4, 2),
    (1, 2, 6, 1),
    (1, 3, 4, 1),
    (1, 6, 2, 1),
    (2, 3, 2, 1),
    (3, 2, 1, 1),
    (1, 6, 1, 2),
    (1, 1, 2, 1),
    (1, 1, 6, 1),
    (1, 1, 2, 2),
    (2, 1, 3, 1),
    (3, 1, 4, 1),
]
GRIDS_2D = [
    (1, 1),
    (1, 2),
    (2, 1),
    (2, 2),
    (3, 1),
    (1, 3),
    (2, 3),
    (3, 2),
    (3, 3),
    (4, 2),
    (2, 4),
    (4, 3),
]
GRIDS_3D = [
    (1, 1, 1),
    (2, 1, 1),
    (1, 2, 1),
    (1, 1, 2),
    (2, 2, 1),
    (2, 1, 2),
    (1, 2, 2),
    (2, 2, 2),
    (3, 2, 1),
    (1, 3, 2),
    (2, 3, 1),
    (3, 1, 2),
    (2, 1, 3),
]


PLAIN_ATTENTION = replace(ATTENTION, rotated=Rotated.NOTHING)


def model(shape):
    layer = replace(PLAIN_ATTENTION, core=AttentionCore(steps=Step.MASK))
    length = dict.fromkeys(("r", "t", "m"), shape["l"])
    return Model("attention", (fragment("block", layer.ops()),), sizes(shape | length), axes=AXES)


def fused(shape):
    """Heads without groups, projected by one product."""
    layer = Attention(bias=Bias.NONE, core=AttentionCore(steps=Step.MASK))
    length = dict.fromkeys(("r", "t"), shape["l"])
    given = {axis: size for axis, size in shape.items() if axis not in "kg"}
    return Model(
        "attention",
        (fragment("block", layer.ops()),),
        sizes(given | length | {"h": shape["k"], "c": 3}),
        axes=AXES,
    )


def arrays(shape):
    rng = np.random.default_rng(1)
    b, l, e, k, g, d = (shape[axis] for axis in "blekgd")
    shapes = ((b, l, e), (e, k, g, d), (e, k, d), (e, k, d), (k, g, d, e), (b, l, e))
    x, *weights, dy = [rng.standard_normal(s) / np.sqrt(s[0]) for s in shapes]
    return x, weights, dy


def check(strategy, ranks, run, shape, declared):
    given = arrays(shape)
    assert_same_results(run(ranks, *given), algorithms.block(*given))
    assert ranks.words() == derived_words(declared(shape), strategy)


@pytest.mark.parametrize("sp", [False, True])
@pytest.mark.parametrize("mesh", CONTEXT)
@pytest.mark.parametrize(("shape", "declared"), [(SHAPE, model), (SHAPE, fused), (GROUPED, model)])
def test_gathered_keys(mesh, sp, shape, declared):
    tp, cp, dp = mesh
    ranks = Ranks(tp=tp, cp=cp, dp=dp)

    def run(ranks, *given):
        core = attention.Gathered(ranks, "cp")
        return attention.block(ranks, *given, core=core, data="cp+dp", sp=sp)

    check(f"tp={tp},cp={cp},dp={dp}" + (",sp" if sp else ""), ranks, run, shape, declared)


@pytest.mark.parametrize(("tp", "ulysses", "ring", "dp"), EXCHANGES)
@pytest.mark.parametrize("shape", [SHAPE, GROUPED])
def test_exchanged_heads_and_rings(tp, ulysses, ring, dp, shape):
    ranks = Ranks(tp=tp, ulysses=ulysses, ring=ring, dp=dp)

    def run(ranks, *given):
        core = attention.Exchanged(ranks, "ulysses", attention.Ring(ranks, "ring"))
        return attention.block(ranks, *given, core=core, data="ulysses+ring+dp")

    check(f"tp={tp},ulysses={ulysses},ring={ring},dp={dp}", ranks, run, shape, model)


@pytest.mark.parametrize(("m1", "m2"), GRIDS_2D)
def test_two_dimensions(m1, m2):
    def run(ranks, *given):
        return attention.grid_block(ranks, *given, lines=("", "m2"))

    check(f"2d={m1}x{m2}", Ranks(m1=m1, m2=m2), run, SHAPE, fused)


@pytest.mark.parametrize(("m1", "m2", "m3"), GRIDS_3D)
def test_two_and_a_half_dimensions(m1, m2, m3):
    def run(ranks, *given):
        return attention.grid_block(ranks, *given, lines=("m2+m3", ""))

    check(f"2.5d={m1}x{m2}x{m3}", Ranks(m1=m1, m2=m2, m3=m3), run, BATCHED, fused)


@pytest.mark.parametrize(("m1", "m2", "m3"), GRIDS_3D)
def test_three_dimensions(m1, m2, m3):
    check(f"3d={m1}x{m2}x{m3}", Ranks(m1=m1, m2=m2, m3=m3), attention.cube_block, BATCHED, fused)


@pytest.mark.parametrize("ring", [1, 2, 3, 4])
def test_rings_keep_no_copies(ring):
    """Keys that are copied to every query head otherwise go round once for all of them."""
    copied = replace(PLAIN_ATTENTION, core=AttentionCore(steps=Step.MASK | Step.COPY))
    plain = model(GROUPED)
    declared = Model("copied", (fragment("block", copied.ops()),), plain.sizes, axes=AXES)
    assert derived_words(declared, f"ring={ring}") == derived_words(plain, f"ring={ring}")


@pytest.mark.parametrize("cp", [1, 2, 3, 4, 6])
def test_copied_keys_are_saved_whole(cp):
    """Their gradients are added over the copies before they are scattered."""
    copied = replace(PLAIN_ATTENTION, core=AttentionCore(steps=Step.MASK | Step.COPY))
    declared = Model("copied", (fragment("block", copied.ops()),), model(GROUPED).sizes, axes=AXES)
    words = derived_words(declared, f"cp={cp}")
    block = 2 * 4 * 12 * 6 * 2  # keys and values
    sent = block * (cp - 1) // cp
    assert words.get(("forward", "cp"), 0) == sent
    gradients = derived_words(model(GROUPED), f"cp={cp}").get(("backward", "cp"), 0)
    assert words.get(("backward", "cp"), 0) == gradients - sent
