"""Searches whose programs are kept or came with the library: no SymPy, and the same answer."""

import os
import subprocess
import sys

import pytest

from symbolic_cost import shipped
from symbolic_cost.explore.choices import DATA_AXES, DEGREES, HOST, OFFLOADED
from symbolic_cost.explore.shipping import files_of
from symbolic_cost.explore.space import USUAL
from symbolic_cost.ledger import Quantity
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel import catalogue
from symbolic_cost.parallel.part_memory import STATES
from symbolic_cost.parallel.schedules import SCHEDULES
from symbolic_cost.systems import overlap

LINE = "search gpt2 --gpus 2 --global-batch 4 --choose zero=1 --choose recompute=none --choose tp=2"
RUN = """
import sys
from pathlib import Path
from symbolic_cost import shipped
from symbolic_cost.cli import main
shipped.PLACE = Path(sys.argv.pop(1))
try:
    main()
except SystemExit as ended:
    print(ended.code, *sorted({"sympy", "pandas", "pydantic", "rich"} & {*sys.modules}))
"""


def told(cache, place, *more):
    """What a fresh process prints; at the end its code, and which large libraries it loaded."""
    line = [sys.executable, "-c", RUN, str(place), *LINE.split(), *more]
    env = {**os.environ, "SYMBOLIC_COST_CACHE": str(cache)}
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=True)
    *lines, last = done.stdout.splitlines()
    return lines, last


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kept")
    return folder, told(folder, folder / "none")


@pytest.mark.slow
def test_what_is_kept_needs_no_sympy(answered):
    folder, (lines, last) = answered
    assert last == "0"  # a child has SymPy
    again, loaded = told(folder, folder / "none", "--top", "10")  # other words: no kept answer
    assert again == lines
    assert loaded == "0"


def test_what_is_shipped_is_used(answered, tmp_path):
    folder, (lines, _) = answered
    taken = shipped.ship([files_of(folder)], tmp_path)
    assert taken == sum(path.stat().st_size for path in tmp_path.iterdir())
    assert told("", tmp_path) == (lines, "0")


@pytest.mark.parametrize("index", ["{}", "[", "of others", ""])
def test_what_other_sources_made_is_never_read(index, tmp_path, monkeypatch):
    shipped.ship([{"a": b"one", "b": b"two"}], tmp_path)
    monkeypatch.setattr(shipped, "PLACE", tmp_path)
    own = (tmp_path / shipped.INDEX).read_text()
    others = own.replace(shipped.sources(), "others")
    (tmp_path / shipped.INDEX).write_text({"of others": others, "": own}.get(index, index))
    read = [shipped.shipped(name) for name in ("a", "b", "c")]
    assert read == ([b"one", b"two", None] if not index else [None] * 3)


def test_words_of_a_search_are_those_of_the_catalogue():
    entries = {n: [*e.meshes.values()] for n, e in catalogue.STRATEGIES.items() if n in DEGREES}
    assert [(n, one.name) for n, (one,) in entries.items()] == [*DEGREES.items()]
    assert {*DATA_AXES} == {*catalogue.DATA_AXES}
    assert tuple(one.value for one in (*STATES, Quantity.SAVED)) == OFFLOADED
    assert overlap.HOST == HOST
    assert all(map(recompute_policy, USUAL["recompute"]))
    assert {*USUAL["schedule"]} <= {*SCHEDULES}
