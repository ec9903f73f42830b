"""Make the programs that a wheel brings along: `python -m symbolic_cost.explore.shipping FOLDER`.

Each job is searched once with a folder of its own, and what is kept there is shipped. Further words
name other jobs than the usual ones: MODEL:SYSTEM:GPUS.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import run
from tempfile import TemporaryDirectory

from symbolic_cost.shipped import ship

JOBS = (
    "gpt3-175b:a100-80gb:512",
    "gpt3-175b:h100:512",
    "llama-3-8b:h100:512",
    "llama-3-70b:h100:512",
)
"""Models of which a search is asked most, on the machines that they run on."""

_KEPT = (".facts", ".layers")


def kept_of(job: str) -> dict[str, bytes]:
    """Return what a search of a job keeps, by name without the library's version."""
    model, system, gpus = job.split(":")
    with TemporaryDirectory() as folder:
        words = ["search", model, "--system", system, "--gpus", gpus, "--global-batch", gpus]
        run(  # noqa: S603 - this interpreter, on the library
            [sys.executable, "-m", "symbolic_cost", *words],
            env={**os.environ, "SYMBOLIC_COST_CACHE": folder},
            stdout=sys.stderr,
            check=True,
        )
        return files_of(Path(folder))


def files_of(folder: Path) -> dict[str, bytes]:
    """Return what searches kept in a folder, by name without the library's version."""
    files = sorted(path for path in folder.iterdir() if path.suffix in _KEPT)
    return {f"{path.name.partition('-')[0]}{path.suffix}": _body(path) for path in files}


def _body(path: Path) -> bytes:
    """Return what a file holds behind the hash of it."""
    return path.read_bytes().partition(b"\n")[2]


def main(words: Sequence[str]) -> None:
    """Make the archives and their index in a folder."""
    folder, *jobs = words
    taken = ship(map(kept_of, jobs or JOBS), Path(folder))
    sys.stderr.write(f"programs of {len(jobs or JOBS)} jobs: {taken} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
