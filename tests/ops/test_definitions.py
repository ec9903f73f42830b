"""The glossary, units, names that are unknown, conventions that are refused or mixed."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sympy import Integer, Rational, Symbol

from symbolic_cost.conventions.answers import ADDITIONS_OF_RING, CAUSAL, RING, WHOLE_MESSAGE
from symbolic_cost.conventions.presets import EXACT, STANDARD
from symbolic_cost.errors import ConventionError, InputError, UnknownNameError, unknown
from symbolic_cost.ledger import Quantity
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.einsum import einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.symbols import GLOSSARY, Active, exact, in_glossary_order, message, p, symbol
from symbolic_cost.units import Unit, human
from tests.strategies import model_of

# Symbols.


ENDS = ("first", "middle", "last")
OF_A_STAGE = {f"n_{kind}{end}" for kind in ("", "lead_", "rest_") for end in ENDS}
"""Blocks, of which a stage may have none."""


@pytest.mark.parametrize("name", GLOSSARY)
def test_every_symbol_is_positive_and_has_a_meaning(name):
    entry = GLOSSARY[name]
    assert entry.symbol.name == name
    assert entry.symbol.is_positive or name in OF_A_STAGE
    assert bool(entry.symbol.is_integer) is entry.integer
    assert entry.meaning
    assert entry.latex
    assert symbol(name) is entry.symbol


def test_no_two_symbols_are_printed_alike():
    latex = [entry.latex for entry in GLOSSARY.values()]
    assert len(set(latex)) == len(latex)


def test_unknown_symbols_are_refused_with_the_closest():
    with pytest.raises(UnknownNameError, match="unknown symbol 'n_layer': did you mean n_layers"):
        symbol("n_layer")


def test_symbols_sort_as_the_glossary_lists_them():
    names = ["m1", "l", "zeta", "e", "b", "alpha"]
    assert [s.name for s in in_glossary_order(map(Symbol, names))] == [
        *("b", "l", "e", "m1"),
        *("alpha", "zeta"),
    ]


@pytest.mark.parametrize(
    ("given", "number"),
    [
        (3, Integer(3)),
        (2**70, Integer(2**70)),
        (2e-9, Rational(2, 10**9)),
        (0.1, Rational(1, 10)),
        (Fraction(1, 3), Rational(1, 3)),
        (Decimal("1.5"), Rational(3, 2)),
        (np.int64(7), Integer(7)),
    ],
)
def test_numbers_are_exact(given, number):
    assert exact(given) == number


@pytest.mark.parametrize("given", [True, "2", None, float("nan"), float("inf"), 1j, [1], object()])
def test_other_values_are_no_numbers(given):
    with pytest.raises(InputError, match="is not a"):
        exact(given)


def test_active_is_one_for_more_than_one_rank():
    assert [Active(Integer(n)) for n in (1, 2, 8)] == [0, 1, 1]
    assert Active(p).subs(p, 1) == 0


# Units and names.


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, Unit.FLOP, "0 FLOP"),
        (999, Unit.FLOP, "999 FLOP"),
        (1000, Unit.FLOP, "1 kFLOP"),
        (123456789, Unit.FLOP, "123.5 MFLOP"),
        (314 * 10**21, Unit.FLOP, "3.14e+05 EFLOP"),
        (1023, Unit.BYTE, "1023 B"),
        (1024, Unit.BYTE, "1 KiB"),
        (80 * 2**30, Unit.BYTE, "80 GiB"),
        (-3 * 2**20, Unit.BYTE, "-3 MiB"),
        (0, Unit.BYTE, "0 B"),
        (175 * 10**9, Unit.ELEMENT, "175 G"),
        (Fraction(1, 2), Unit.SECOND, "500 ms"),
        (1.5, Unit.SECOND, "1.5 s"),
        (2.5e-5, Unit.SECOND, "25 µs"),
        (3e-9, Unit.SECOND, "3 ns"),
        (Fraction(1, 3), Unit.RATIO, "33.33 %"),
        (64, Unit.RANK, "64"),
    ],
)
def test_human(value, unit, text):
    assert human(value, unit) == text


@pytest.mark.parametrize(
    ("name", "accepted", "text"),
    [
        ("gpt33", ["gpt", "gpt3"], "unknown model 'gpt33': did you mean gpt3 or gpt?"),
        ("GPT3", ["gpt3"], "unknown model 'GPT3': did you mean gpt3?"),
        ("x", ["beta", "alpha"], "unknown model 'x': accepted are alpha, beta"),
        ("x", [], "unknown model 'x': accepted are none"),
    ],
)
def test_unknown(name, accepted, text):
    assert unknown("model", name, accepted) == text


def test_unknown_lists_no_more_than_thirty_names():
    text = unknown("model", "zzz", [f"m{i:02}" for i in range(40)])
    assert text.endswith("m29, ...")


# Conventions.


def test_a_kind_without_an_answer_is_refused():
    answered = replace(EXACT.elementwise, kinds={"gelu": EXACT.elementwise.kinds["gelu"]})
    convention = replace(EXACT, elementwise=answered)
    with pytest.raises(ConventionError) as refused:
        cost(model_of([pointwise("act", "x[a] -> y[a]", "relu")], {"a": 2}), convention)
    assert str(refused.value) == (
        "conventions 'exact' do not say what 'relu' costs: answered are gelu"
    )


def test_tables_of_different_conventions_do_not_add():
    model = model_of([einsum("op", "x[a], *w[a] -> y[]")], {"a": 2})
    one, other = cost(model, EXACT), cost(model, STANDARD)
    with pytest.raises(ConventionError) as refused:
        one + other
    assert str(refused.value) == (
        "tables of different conventions do not add: exact and standard; cost both under one"
    )
    assert (one + one).total(Quantity.FLOP) == 2 * one.total(Quantity.FLOP)


def test_a_total_is_of_one_quantity():
    table = cost(model_of([einsum("op", "x[a], *w[a] -> y[]")], {"a": 2}), EXACT)
    with pytest.raises(
        ConventionError, match="a total is of one quantity, not of activation_gradient, flop"
    ):
        table.total()


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (5, 5), (3, 8), (1, 9)])
def test_causal_pairs_are_those_of_the_mask(queries, keys):
    mask = np.tril(np.ones((queries, keys), dtype=bool), k=keys - queries)
    assert CAUSAL(queries, keys) == int(mask.sum())


def test_ring_bytes_are_those_of_its_steps():
    """p-1 steps of a chunk each, to scatter, to gather, or to do both."""
    for ranks in (1, 2, 3, 8):
        chunk, steps = Rational(24, ranks), ranks - 1
        for kind in ("all-gather", "reduce-scatter", "all-to-all"):
            assert RING(kind, Integer(24), Integer(ranks)) == steps * chunk
        assert RING("all-reduce", Integer(24), Integer(ranks)) == 2 * steps * chunk
        # Every element is added ranks - 1 times, by one rank each.
        assert ranks * 24 * ADDITIONS_OF_RING(ranks) == 24 * steps


def test_whole_messages_of_one_rank_cost_nothing():
    assert WHOLE_MESSAGE("all-reduce", message, Integer(1)) == 0
    assert WHOLE_MESSAGE("all-reduce", message, Integer(4)) == message
    assert WHOLE_MESSAGE("all-reduce", message, p).subs(p, 1) == 0


@pytest.mark.parametrize("name", ["ful", "none/2", "selective/4", "full/0", "full/x", "full/-1"])
def test_unknown_recompute_policies_are_refused(name):
    with pytest.raises(InputError, match="recompute policy"):
        recompute_policy(name)
