"""What `--help` lists is what is accepted."""

import pytest
from click.testing import CliRunner

from symbolic_cost.cli import main
from symbolic_cost.cli.declared import table
from symbolic_cost.conventions.presets import PRESETS
from symbolic_cost.costs import COSTS
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.schedules import SCHEDULES
from symbolic_cost.parallel.states import OPTIMIZERS, PRECISIONS
from symbolic_cost.systems.records import machine_names
from symbolic_cost.systems.rooflines import ROOFLINES

# What there is before another test registers its own.
LISTS = {
    "conventions": frozenset(PRESETS),
    "costs": COSTS,
    "strategies": {*STRATEGIES, "zero=1|2|3", "reshard=1", "panels=N"},
    "schedules": SCHEDULES,
    "optimizers": OPTIMIZERS,
    "precisions": PRECISIONS,
    "rooflines": ROOFLINES,
    "machines": {*machine_names(), "symbolic"},
}


@pytest.mark.parametrize("name", LISTS)
def test_what_is_listed_is_what_there_is(name):
    shipped = {one for one in LISTS[name] if not str(one).startswith("test")}
    assert set(table("accepted")[name]) == shipped


def test_help_lists_it():
    text = CliRunner().invoke(main, ["time", "--help"]).output
    folded = " ".join(text.split())
    for said in ("Accepted: fp32, bf16,", "gpipe, 1f1b", "megatron-2022", "h100-nvl", "zero=1|2|3"):
        assert said in folded
    assert max(map(len, text.splitlines())) <= 80
