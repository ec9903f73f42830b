"""The same bytes whatever the seed of hashes and the locale are."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
SEEDS = Path(__file__).with_name("seeds.py")
LOCALES = ("C", "C.UTF-8")


def digests(folder, seed, which):
    """Digests of all commands; click's runner has no terminal and no encoding of its own."""
    place = folder / str(seed)
    place.mkdir()
    asked = LOCALES[seed % 2]
    settings = {"PYTHONHASHSEED": str(seed), "LC_ALL": asked, "LANG": asked}
    done = subprocess.run(
        [sys.executable, str(SEEDS), which],
        cwd=place,
        env={**os.environ, **settings, "PYTHONPATH": str(SEEDS.parents[2])},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_same_bytes_under_ten_seeds_and_two_locales(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(lambda seed: digests(tmp_path, seed, "short"), range(10))
    assert len(first) == 4
    assert all(line.startswith("0 ") for line in first)
    for other in others:
        assert other == first
