"""A part of the tests is run by `PART=1/3`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def collected(part):
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*words, "tests/numeric"],
        cwd=ROOT,
        env={**os.environ, "PART": part},
        capture_output=True,
        text=True,
        check=False,
    )


def names(part):
    lines = collected(part).stdout.splitlines()
    return {line for line in lines if "::" in line}


@pytest.mark.slow
def test_parts_share_no_test_and_leave_none():
    first, second = names("1/2"), names("2/2")
    assert first
    assert second
    assert not first & second
    assert first | second == names("1/1") == names("")


@pytest.mark.slow
@pytest.mark.parametrize("part", ["3/2", "0/2", "a half", "1/0"])
def test_what_is_no_part_runs_nothing(part):
    refused = collected(part)
    assert refused.returncode == pytest.ExitCode.USAGE_ERROR
    assert f"PART={part}: a part is written 1/3, 2/3 or 3/3" in refused.stderr
