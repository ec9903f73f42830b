"""Answers that are kept: the same bytes, and never those of another question."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from symbolic_cost import cache
from symbolic_cost.cli import door

LINE = ["memory", "gpt2", "--strategy", "dp=2,zero=1"]


def asked(words, folder, cwd):
    """What a line prints, with answers kept in a folder."""
    root = str(Path(__file__).parents[2])
    env = {**os.environ, "SYMBOLIC_COST_CACHE": str(folder), "PYTHONPATH": root}
    line = [sys.executable, "-m", "symbolic_cost", *words]
    done = subprocess.run(line, capture_output=True, cwd=cwd, env=env, check=False)
    return done.returncode, done.stdout, done.stderr


def kept(folder):
    return sorted(folder.glob("*.answer"))


@pytest.mark.slow
def test_the_same_bytes(tmp_path):
    folder = tmp_path / "cache"
    first, again = (asked(LINE, folder, tmp_path) for _ in range(2))
    assert first == again == asked(LINE, "", tmp_path)
    assert first[0] == 0
    assert len(kept(folder)) == 1
    (file,) = kept(folder)
    file.write_bytes(file.read_bytes()[:-5])  # cut off: not believed
    assert asked(LINE, folder, tmp_path) == first
    file.write_bytes(_forged(b"what was kept\n"))
    assert asked(LINE, folder, tmp_path) == (0, b"what was kept\n", b"")


def test_another_question_has_its_own_answer(monkeypatch):
    keys = {door._key(words) for words in (LINE, LINE[:2], [*LINE, "--format", "json"])}  # noqa: SLF001 - the rule itself
    monkeypatch.setenv("COLUMNS", "50")
    keys.add(door._key(LINE))  # noqa: SLF001 - the rule itself
    monkeypatch.setattr(door, "fingerprint", lambda: "later")
    keys.add(door._key(LINE))  # noqa: SLF001 - the rule itself
    assert len(keys) == 5


def _forged(body):
    return cache._digest(body) + b"\n" + body  # noqa: SLF001 - a file that is believed


def test_refusals_are_not_kept(tmp_path):
    folder = tmp_path / "cache"
    code, out, problem = asked(["memory", "gpt22"], folder, tmp_path)
    assert (code, out) == (2, b"")
    assert b"gpt22" in problem
    assert not kept(folder)


@pytest.mark.parametrize(
    ("words", "keepable"),
    [
        (["time", "gpt2"], True),
        (["time", "gpt2", "-o", "x.csv"], False),
        (["time", "gpt2", "-ox.csv"], False),
        (["time", "gpt2", "--output=x.csv"], False),
        (["time", "here"], False),
        (["time", "gpt2", "--system", "here"], False),
        (["time", "gpt2", "--system=here"], False),
        (["--plugin", "mine.py", "time", "gpt2"], False),
        (["sweep", "gpt2"], False),
        (["time", "--help"], False),
        ([], False),
    ],
)
def test_what_is_kept(words, keepable, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("{}")
    monkeypatch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path))
    assert door._is_keepable(words) is keepable  # noqa: SLF001 - the rule itself


def test_the_fingerprint_is_of_every_file(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    before = set()
    for text in ("one", "other"):
        (tmp_path / "rule.py").write_text(text)
        before.add(cache.fingerprint.__wrapped__())
    os.utime(tmp_path / "rule.py", ns=(1, 1))  # older, and as long
    before.add(cache.fingerprint.__wrapped__())
    (tmp_path / "rule.py").rename(tmp_path / "law.py")
    before.add(cache.fingerprint.__wrapped__())
    assert len(before) == 4


def test_the_older_half_makes_room(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_FILES", 10)
    monkeypatch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path))
    for number in range(30):
        cache.write_bytes(f"{number}.json", b"x")
        assert len(list(tmp_path.iterdir())) <= 11
    assert cache.read_bytes("29.json") == b"x"
