"""Puts faults into a copy of the package and runs the tests that must see them.

    python tests/faults/run.py             every fault of table.py
    python tests/faults/run.py ops/flow    those whose file or text has this in it

Every fault is put in alone; for each, the tests of the table run until one fails. What no test
sees is listed at the end, and the exit code is 1. Takes about ten seconds per fault.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
COPIED = ("symbolic_cost", "tests", "reports", "pyproject.toml", "README.md")
TIMEOUT = 300  # s

sys.path.insert(0, str(ROOT))

from tests.faults.table import FAULTS, Fault  # noqa: E402 - found below ROOT


def seen(fault: Fault, folder: Path) -> bool:
    """Tell whether one of a fault's tests fails on a copy of the sources in a folder."""
    _copy(folder)
    path = folder / "symbolic_cost" / fault.file
    source = path.read_text(encoding="utf-8")
    if source.count(fault.text) != 1:
        raise SystemExit(f"{fault.file}: {fault.text!r} does not stand there once")
    path.write_text(source.replace(fault.text, fault.instead), encoding="utf-8")
    try:
        return any(not _passes(test, folder) for test in fault.tests)
    finally:
        path.write_text(source, encoding="utf-8")


def _copy(folder: Path) -> None:
    for name in COPIED:
        source, target = ROOT / name, folder / name
        if target.exists() or not source.exists():
            continue
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def _passes(test: str, folder: Path) -> bool:
    quick = [] if "::" in test else ["-m", "not slow"]  # one test by name is run however slow
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", *quick]
    command += ["-p", "no:cacheprovider", *test.split()]
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_PROFILE": "ci",
    }
    run = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, timeout=TIMEOUT, check=False
    )
    if run.returncode not in (0, 1, 2):
        raise SystemExit(run.stdout.decode() + run.stderr.decode())
    return run.returncode == 0


def main(words: list[str]) -> int:
    """Run the faults that have one of some words in their file or text, all without any."""
    chosen = [
        fault
        for fault in FAULTS
        if not words or any(word in f"{fault.file} {fault.text}" for word in words)
    ]
    unseen = []
    with TemporaryDirectory() as folder:
        for fault in chosen:
            found = seen(fault, Path(folder))
            sys.stdout.write(f"{'seen' if found else 'NOT SEEN'}  {fault.file}: {fault.text}\n")
            sys.stdout.flush()
            unseen += [] if found else [fault]
    sys.stdout.write(f"{len(chosen) - len(unseen)} of {len(chosen)} faults are seen\n")
    return 1 if unseen else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
