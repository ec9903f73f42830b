"""Programs as JSON, and a folder that is right whatever happens to its files."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given

from symbolic_cost import cache
from symbolic_cost.errors import InputError
from symbolic_cost.program import layered, stored
from symbolic_cost.program.lowering import lowered
from symbolic_cost.symbols import V, b, m1
from tests.program.recipes import graphs, real, values
from tests.program.test_graph import _exact

PROGRAM = lowered({"0|x": V / m1 + b, "0|y": b**2 / 3})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@given(graphs(), values(64))
def test_round_trip(program, numbers):
    back = stored.read(stored.written(program))
    assert stored.written(back) == stored.written(program)
    assert back.tape == program.tape
    assert _exact(back, numbers) == _exact(program, numbers)


def test_round_trip_of_a_job():
    program = real("gpt3-175b")
    text = stored.written(program)
    assert len(text) < 60_000
    assert stored.read(text).tape == program.tape


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a program"),
        ("[1, 2]", "not a program"),
        ('{"format": "other"}', "format 'other' of a program"),
        (
            json.dumps(
                {"format": stored.FORMAT, "symbols": {}, "nodes": [["ceil", 0]], "outputs": {}}
            ),
            "node 0 rests on a later one",
        ),
        (
            json.dumps(
                {"format": stored.FORMAT, "symbols": {}, "nodes": [["import", "os"]], "outputs": {}}
            ),
            r"node 0 is \['import', 'os'\]",
        ),
        (
            json.dumps(
                {"format": stored.FORMAT, "symbols": {}, "nodes": [["num", 1.5]], "outputs": {}}
            ),
            "1.5 is no exact number",
        ),
        (
            json.dumps({"format": stored.FORMAT, "symbols": {}, "nodes": [], "outputs": {"x": 3}}),
            "not a program",
        ),
    ],
)
def test_what_is_no_program_is_refused(text, said):
    with pytest.raises(InputError, match=said):
        stored.read(text)


def test_it_is_made_once(folder):
    made = []

    def make():
        made.append(1)
        return PROGRAM.tape

    found = [layered.cached(("family", 1), make).tape for _ in range(3)]
    assert len(made) == 1
    assert found == [PROGRAM.tape] * 3
    layered.cached(("family", 2), make)
    assert len(made) == 2
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_made_again(folder, damage):
    layered.cached("x", lambda: PROGRAM.tape)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-20] if damage is None else damage)
    found = layered.cached("x", lambda: PROGRAM.tape)
    assert found.tape == PROGRAM.tape
    assert file.read_bytes() == whole


def test_another_version_of_the_library_has_its_own(folder, monkeypatch):
    layered.cached("x", lambda: PROGRAM.tape)
    monkeypatch.setattr(cache, "fingerprint", lambda: "later")
    layered.cached("x", lambda: PROGRAM.tape)
    assert len(list(folder.iterdir())) == 2


def test_nothing_is_kept_where_nothing_can_be_written(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    for place in (str(file / "inside"), ""):
        monkeypatch.setenv("SYMBOLIC_COST_CACHE", place)
        assert layered.cached("x", lambda: PROGRAM.tape).tape == PROGRAM.tape


def test_many_writers_at_once(folder):
    def one(_):
        return layered.cached("x", lambda: PROGRAM.tape).tape

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(64))) == [PROGRAM.tape] * 64
    code = (
        "from symbolic_cost import cache\n"
        "for turn in range(200): cache.write_bytes('same', bytes([turn]) * 10000)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    seen = 0
    while any(writer.poll() is None for writer in writers):
        body = cache.read_bytes("same")
        if body is not None:
            assert len(set(body)) == 1
            assert len(body) == 10_000
            seen += 1
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen
    assert not [file for file in folder.iterdir() if file.name.startswith(".")]
