"""Families of the tables are those that are lifted from their exported graphs.

`make lifted` writes what comes of all of them; a test repeats some, others every day.
"""

import os
import time
from importlib.util import find_spec

import pytest

from tests.golden.pt2.lifted import EQUAL, OUTPUT, known, outcome, report

ALWAYS = ("llama", "bert")
TURN = int(os.environ.get("LIFTED_TURN", int(time.time()) // 86_400))
"""Which of the others are lifted: those of this day, unless it is said."""

AT_ONCE = 2


def test_no_family_differs():
    assert report(known()) == OUTPUT.read_text(encoding="utf-8")
    assert {name: said for name, said in known().items() if "DIFFERENT" in " ".join(said)} == {}


@pytest.mark.slow
@pytest.mark.skipif(
    find_spec("torch") is None or find_spec("transformers") is None,
    reason="extra lifted is not installed",
)
@pytest.mark.parametrize("chosen", [*ALWAYS, *range(AT_ONCE)])
def test_a_family_is_lifted_as_it_is_declared(chosen):
    others = sorted(name for name, (_, said) in known().items() if said == EQUAL)
    family = chosen if chosen in ALWAYS else others[(AT_ONCE * TURN + chosen) % len(others)]
    graphs, said = outcome(family)
    assert (family, graphs) == (family, EQUAL)
    assert "DIFFERENT" not in said
    if chosen in ALWAYS:
        assert (family, said) == (family, EQUAL)
