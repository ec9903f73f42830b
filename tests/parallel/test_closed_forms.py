"""Derived volumes as formulas, against the closed forms of the literature."""

from collections import Counter
from dataclasses import replace

import pytest
from sympy import Integer, expand

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.layers import attention, mlp
from symbolic_cost.layers.attention import Rotated
from symbolic_cost.layers.attention_core import AttentionCore, Step
from symbolic_cost.ledger import CollectiveKind, Quantity
from symbolic_cost.models.decoders.decoder import ATTENTION
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import b, e, f, k, l, m1, m2, m3, q, s1
from tests.parallel.derived import WORDS

ROWS = b * l
GRADIENTS = ("backward_input", "backward_weight")


def linear():
    """y = x w with e summed; the shape that section 7 of most papers starts from."""
    ops = (einsum("fc", "x[b l e], *w[e f] -> y[b l f]"),)
    return Model("linear", (Part("one", ops),), {"b": b, "l": l, "e": e, "f": f}, axes=mlp.AXES)


def sent(strategy, phase, model=None, **chosen):
    table = strategy_table(model or linear(), parse_strategy(strategy), WORDS)
    return table.select(Quantity.COMMUNICATION, phase=phase, **chosen).total()


def same(one, other):
    return expand(one - other) == 0


def test_two_dimensions():
    """xu-2021: forward broadcasts x along rows and w along columns, backward twice as much."""
    forward = (m1 - 1) / m1 * ROWS * e / m2 + (m2 - 1) / m2 * e * f / m1
    assert same(sent("2d", "forward"), forward)
    assert same(sent("2d", GRADIENTS), 2 * forward)


def test_two_and_a_half_dimensions():
    """wang-2021: as 2D on fewer rows, and the sum of weight gradients over the depth."""
    forward = (m1 - 1) / m1 * ROWS * e / (m2 * m3) + (m2 - 1) / m2 * e * f / m1
    depth = 2 * (m3 - 1) / m3 * e * f / (m1 * m2)
    assert same(sent("2.5d", "forward"), forward)
    assert same(sent("2.5d", GRADIENTS), 2 * forward + depth)
    plain = sent("2.5d", (*GRADIENTS, "forward")).subs({m1: 1, m2: 1})
    assert same(plain, 2 * (m3 - 1) / m3 * e * f)  # one column and one row: data parallel


def test_three_dimensions():
    """bian-2021: x and w gathered, y scattered; with both gathered again in backward."""
    x = (m1 - 1) / m1 * ROWS * e / (m2 * m3)
    w = (m3 - 1) / m3 * e * f / (m1 * m2)
    y = (m2 - 1) / m2 * ROWS * f / (m1 * m3)
    assert same(sent("3d", "forward"), x + w + y)
    assert same(sent("3d", GRADIENTS), (x + w + y) + x + w)


@pytest.mark.parametrize(
    ("strategy", "values", "weights"),
    [
        ("2d", 1 / (m1 * m2), 1 / (m1 * m2)),
        ("2.5d", 1 / (m1 * m2 * m3), 1 / (m1 * m2)),
        ("3d", 1 / (m1 * m2 * m3), 1 / (m1 * m2 * m3)),
    ],
)
def test_what_a_grid_keeps(strategy, values, weights):
    table = strategy_table(linear(), parse_strategy(strategy), WORDS)
    assert same(table.total(Quantity.SAVED), ROWS * e * values)
    assert same(table.total(Quantity.WEIGHT), e * f * weights)
    assert same(table.total(Quantity.WEIGHT_GRADIENT), e * f * weights)


@pytest.mark.parametrize(
    ("strategy", "mesh", "rows"),
    [("2d", "m1", ROWS / m2), ("2.5d", "m1", ROWS / (m2 * m3)), ("3d", "m2", ROWS / (m1 * m3))],
)
def test_statistics_of_norms(strategy, mesh, rows):
    """Two values per row over the ranks that share rows, in forward and backward."""
    table = strategy_table(GPT().model(), parse_strategy(strategy), WORDS)
    for phase in ("forward", "backward_input"):
        messages = [
            row.collective.message
            for row in table.select("communication", phase=phase, path="block.mlp.norm")
            if row.collective.group == mesh and "statistics" in row.tensor
        ]
        assert messages == [2 * rows]


def test_megatron_counts_per_layer():
    """korthikanti-2022, section 4.2.2: 4 all-reduces; or 4 all-gathers and 4 reduce-scatters.

    With sequence parallelism the input of the first product of both branches is gathered again.
    """

    def counts(strategy):
        model = GPT(dropout=False).model()
        table = strategy_table(model, parse_strategy(strategy), STANDARD)
        rows = table.select("communication", path="block", where=lambda row: not row.per_step)
        return Counter(row.collective.kind for row in rows)

    assert counts("tp") == {CollectiveKind.ALL_REDUCE: 4}
    assert counts("tp,sp") == {
        CollectiveKind.ALL_GATHER: 4 + 2,
        CollectiveKind.REDUCE_SCATTER: 4,
    }


def test_exchange_of_grouped_heads():
    """Queries and results of h heads, keys and values of k heads: 2 l e + 2 l e k/h over s1."""
    layer = replace(
        ATTENTION, rotated=Rotated.NOTHING, core=AttentionCore(steps=Step.MASK | Step.CAST)
    )
    g = Integer(4)
    sizes = {"b": b, "l": l, "r": l, "t": l, "m": l, "e": g * k * q, "k": k, "g": g, "d": q}
    model = Model("grouped", (Part("one", layer.ops()),), sizes, axes=attention.AXES)
    width = g * k * q
    expected = (2 * b * l * width + 2 * b * l * width / g) / s1 * (s1 - 1) / s1
    assert same(sent("ulysses", "forward", model), expected)
    backward = strategy_table(model, parse_strategy("ulysses"), WORDS).select(
        "communication", phase="backward_input"
    )
    assert same(backward.total(), expected)
