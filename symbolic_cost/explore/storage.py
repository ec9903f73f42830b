"""A sweep on disk: parts in a folder beside the file, then the file; nothing is lost between.

FILE.parts holds about.json, which says of which sweep it is, and done.jsonl: a line per task with
its counts, and the best candidates or, where all rows are kept, the hash of a file that holds them.
A line that was cut off or changed, or whose file is not what it says, counts as not done. When all
is done, the file is put together and takes its name in one step, and the folder goes.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from symbolic_cost.emit.files import write_whole
from symbolic_cost.errors import InputError, quote
from symbolic_cost.explore.formats import About, about_file, beside, encoded, ending, put_together
from symbolic_cost.explore.results import Result, Rows
from symbolic_cost.explore.sweep_question import SweepQuestion


class Store:
    """The parts of one sweep.

    Args:
        about: what the sweep is; "sweep" is its hash, "task" the candidates of one task.

    Raises:
        InputError: the file or the folder is of another sweep, or in use, or cannot be written.
    """

    def __init__(self, path: str, about: About, size: int) -> None:
        self.form = ending(path)
        self.path, self._size = Path(path), size
        self.about = dict(about)
        self.folder = self.path.with_name(self.path.name + ".parts")
        self._journal: IO[str] | None = None
        self.done: dict[int, Mapping[str, Any]] = {}
        self._refused = f"output {quote(path)}"

    def complete(self) -> Mapping[str, Any] | None:
        """Return the counts of the file, if it is there: one of another sweep is refused."""
        if not self.path.exists():
            return None
        held = about_file(self.path, self.form) if self.path.is_file() else None
        if held is None or held.get("sweep") != self.about["sweep"]:
            raise InputError(
                f"{self._refused}: exists, and is not of this sweep: choose another name"
            )
        counts_of: Mapping[str, Any] = held["counts of candidates"]
        return counts_of

    def __enter__(self) -> Self:
        """Open the folder, and read what is done."""
        try:
            self.folder.mkdir(exist_ok=True)
            self._journal = (self.folder / "done.jsonl").open("a+", encoding="utf-8")
            fcntl.flock(self._journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{self._refused}: another sweep is writing it") from None
        except OSError as error:
            raise InputError(f"{self._refused}: cannot be written: {error.strerror}") from None
        try:
            self._check_about()
        except InputError:
            self._journal.close()
            raise
        self._read()
        return self

    def __exit__(self, *_: object) -> None:
        """Close what is open; parts stay."""
        if self._journal is not None:
            self._journal.close()

    def _check_about(self) -> None:
        place = self.folder / "about.json"
        held = None
        with suppress(OSError, ValueError):
            held = json.loads(place.read_text("utf-8"))
        if held is None:
            if any(self.folder.glob("part-*")):
                raise InputError(
                    f"{self._refused}: {self.folder.name} does not say of which sweep it is"
                )
            write_whole(place, json.dumps(self.about, indent=1))
        elif held.get("sweep") != self.about["sweep"]:
            raise InputError(
                f"{self._refused}: {self.folder.name} holds parts of another sweep: "
                "remove it, or choose another name"
            )
        else:
            self.about = held

    def _read(self) -> None:
        """Read which tasks are done; a part is believed if it is what its line says."""
        if self._journal is None:
            return
        self._journal.seek(0)
        text = self._journal.read()
        if text and not text.endswith("\n"):  # a line that was cut off
            self._write("\n")
        for line in text.splitlines():
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                if entry.pop("check") == _digest(json.dumps(entry).encode()):
                    self.done[int(entry["start"])] = entry
        self.done = {start: e for start, e in self.done.items() if self._is_whole(e)}

    def _is_whole(self, entry: Mapping[str, Any]) -> bool:
        if entry["hash"] is None:
            return True
        with suppress(OSError):
            return _digest(self._part(entry["start"]).read_bytes()) == entry["hash"]
        return False

    def _part(self, start: int) -> Path:
        return self.folder / f"part-{start:020}{self.form}"

    def tasks(self) -> Iterator[tuple[int, int]]:
        """Yield the tasks that are not done."""
        step = int(self.about["task"])
        for start in range(0, self._size, step):
            if start not in self.done:
                yield start, min(start + step, self._size)

    def put(self, task: tuple[int, int], result: Result) -> None:
        """Write the part of a task, if it has rows, then that it is done."""
        facts: dict[str, Any] = {"hash": None}
        if result.rows:
            data = encoded(result.rows, self.form, self.about)
            write_whole(self._part(task[0]), data)
            facts["hash"] = _digest(data)
        else:
            facts |= {"places": result.places.tolist(), "keys": result.keys.tolist()}
        entry = {"start": task[0], "stop": task[1], **facts, **counts(result)}
        self.done[task[0]] = entry
        self._write(json.dumps({**entry, "check": _digest(json.dumps(entry).encode())}) + "\n")

    def _write(self, line: str) -> None:
        if self._journal is None:
            return
        try:
            self._journal.write(line)
            self._journal.flush()
        except OSError as error:
            raise InputError(f"{self._refused}: cannot be written: {error.strerror}") from None

    def total(self, asked: SweepQuestion) -> Result:
        """Return the counts of all tasks, and the best of all candidates."""
        result = Result()
        for entry in self.done.values():
            result.count(counted(entry))
            if entry.get("places"):
                places, keys = np.array(entry["places"], dtype=np.int64), np.array(entry["keys"])
                result.keep(asked, places, keys)
        return result

    def finish(self, result: Result, rows: Rows | None) -> None:
        """Put the file together, and remove the parts."""
        self.about["counts of candidates"] = counts(result)
        parts = [self._part(start) for start in sorted(self.done)]
        if rows is not None:
            parts = [self.folder / f"best{self.form}"]
            write_whole(parts[0], encoded(rows, self.form, self.about))
        whole = self.folder / "whole"
        try:
            with whole.open("wb") as file:
                put_together(parts, self.form, self.about, file)
                file.flush()
                os.fsync(file.fileno())
            if self.form != ".parquet":
                write_whole(beside(self.path), json.dumps(self.about, indent=1) + "\n")
            whole.replace(self.path)
        except OSError as error:
            raise InputError(f"{self._refused}: cannot be written: {error.strerror}") from None
        self.remove()

    def remove(self) -> None:
        """Remove the parts."""
        shutil.rmtree(self.folder, ignore_errors=True)


def counts(result: Result) -> dict[str, Any]:
    """Return the counts of a result as JSON has them."""
    off, place = result.nearest
    return {
        "candidates": result.candidates,
        "legal": result.legal,
        "counted": result.counted,
        "ruled": dict(result.ruled_out),
        "nearest": None if place < 0 else [off, place],
    }


def counted(entry: Mapping[str, Any]) -> Result:
    """Return what `counts` wrote."""
    off, place = entry["nearest"] or (np.inf, -1)
    return Result(
        int(entry["candidates"]),
        int(entry["legal"]),
        int(entry["counted"]),
        Counter(entry["ruled"]),
        nearest=(float(off), int(place)),
    )


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
