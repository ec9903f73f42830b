"""Degrees of one split nothing, whatever names they have."""

import pytest

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import InputError, PlacementError
from symbolic_cost.models.catalog import CATALOG, model
from symbolic_cost.numeric.binding import bind
from symbolic_cost.parallel.communication import sent_by_cluster
from symbolic_cost.parallel.memory import memory_table
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.parallel.structure import Structure
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import m1
from symbolic_cost.systems.machines import SYMBOLIC
from symbolic_cost.systems.step import step_time

ALONE = "tp=1,sp,cp=1,ulysses=1,ep=1,dp=1,replicas=1,pp=1,zero=3"


FAMILIES = tuple({preset.family: name for name, preset in CATALOG.items()}.values())
"""One model of each family: the others have the same ops."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_one_rank_is_no_strategy(name):
    """Every row, whatever its cost, and the memory of every family."""
    declared = model(name)
    alone = parse_strategy(ALONE)
    for table in (strategy_table, memory_table):
        assert table(declared, alone, STANDARD) == table(declared, Strategy(), STANDARD)
    assert sent_by_cluster(declared, alone, STANDARD) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_the_step_of_one_rank(name):
    declared = model(name)
    steps = [step_time(declared, parse_strategy(text), SYMBOLIC).chain for text in (ALONE, "")]
    assert steps[0] == steps[1]


@pytest.mark.parametrize(
    ("more", "less"),
    [
        ("tp=2,pp=1", "tp=2"),
        ("ring=1,tp=2,sp", "tp=2,sp"),
        ("2d=1x1,dp=4,zero=2", "dp=4,zero=2"),
        ("2.5d=1x1x1,panels=4", ""),
        ("tp=1,sp,dp=8", "dp=8"),
        ("dp=8,replicas=1,zero=3", "dp=8,zero=3"),
        ("ulysses=2,dp=1,zero=1", "ulysses=2,zero=1"),
    ],
)
def test_names_of_one_rank_change_nothing(more, less):
    declared = model("llama")
    one, other = (strategy_table(declared, parse_strategy(text), STANDARD) for text in (more, less))
    assert one == other
    assert str(Structure(parse_strategy(more)).reduced) == less


def test_the_structure_names_what_it_assumes():
    assumed = Structure(parse_strategy("tp,dp=8,ep=8,pp,cp=1")).assumptions
    assert [(bound.what, bound.least) for bound in assumed] == [
        ("ranks of tp", 2),
        ("ranks of pp", 3),
    ]
    assert Structure(parse_strategy("tp=4,pp=2,dp=8,ep=8,cp=1")).symbolic.degrees == {
        **parse_strategy("tp,cp=1,ep,dp,pp=2").degrees,
        "dp": parse_strategy("ep,dp").degrees["ep"],
    }


def test_stages_that_are_not_there_are_refused():
    table = strategy_table(model("gpt"), parse_strategy("pp"), STANDARD)
    with pytest.raises(InputError, match="ranks of pp: pp = 2 is less than 3"):
        bind(table, {"pp": 2, "n_layers": 12})
    for text in ("pp=2", "tp=2"):
        with pytest.raises(PlacementError, match="stage middle: a pipeline of"):
            strategy_table(model("gpt"), parse_strategy(text), STANDARD, stage=Stage.MIDDLE)
    assert (
        m1
        in strategy_table(model("gpt"), parse_strategy("tp"), STANDARD).total("flop").free_symbols
    )
