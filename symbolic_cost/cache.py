"""A folder of what took time to make: programs, machine code and answers.

A file begins with the hash of what follows, so that one cut off or changed is not believed: it is
removed and made again. It appears as a whole or not at all, whoever else writes it.

The folder is $SYMBOLIC_COST_CACHE, else symbolic_cost in $XDG_CACHE_HOME or ~/.cache; where it
cannot be written, nothing is kept. SYMBOLIC_COST_CACHE= (empty) keeps nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

from symbolic_cost.shipped import shipped

MOST_FILES = 4096
"""Files beyond which the older half of the folder is removed."""


def folder() -> Path | None:
    """Return the folder; none if nothing is to be kept."""
    own = os.environ.get("SYMBOLIC_COST_CACHE")
    if own is not None:
        return Path(own) if own else None
    base = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):  # nobody's home
        return (Path(base) if base else Path.home() / ".cache") / "symbolic_cost"
    return None


SENDERS: list[Callable[[str, bytes], None]] = []
"""What takes files in place of the folder: in a child process, that sends them to its parent."""

RECEIVED: dict[str, bytes] = {}
"""Files that a child of this process made, whether or not the folder can be written."""


def read_bytes(name: str) -> bytes | None:
    """Return what a file of the folder holds; none if there is none that can be believed."""
    if name in RECEIVED:
        return RECEIVED[name]
    place = folder()
    if place is None:
        return None
    with suppress(OSError):
        head, _, body = (place / name).read_bytes().partition(b"\n")
        if head == _digest(body):
            return body
        (place / name).unlink()
    return None


def write_bytes(name: str, body: bytes) -> None:
    """Put a file into the folder, as a whole or not at all."""
    if SENDERS:
        SENDERS[-1](name, body)
        return
    place = folder()
    if place is None:
        return
    temporary = place / f".{os.getpid()}.{os.urandom(8).hex()}"
    with suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        _make_room(place)
        try:
            temporary.write_bytes(_digest(body) + b"\n" + body)
            temporary.replace(place / name)
        finally:
            temporary.unlink(missing_ok=True)


def _make_room(place: Path) -> None:
    """Remove the older half of the files where there are too many."""
    with os.scandir(place) as entries:
        files = [entry for entry in entries if entry.is_file()]
    if len(files) > MOST_FILES:
        files.sort(key=lambda entry: entry.stat().st_mtime_ns)
        for entry in files[: len(files) // 2]:
            with suppress(OSError):
                Path(entry.path).unlink()


def kept_bytes(about: object, ending: str) -> bytes | None:
    """Return what is kept of what is described, or came with the library; none if nothing is.

    Args:
        about: is told apart by its repr.
        ending: of the file.
    """
    data = read_bytes(_name(about, ending))
    return shipped(f"{_described(about)}{ending}") if data is None else data


def keep_bytes(about: object, ending: str, body: bytes) -> None:
    """Keep something of what is described; it is another one where the library changes."""
    write_bytes(_name(about, ending), body)


def _name(about: object, ending: str) -> str:
    return f"{_described(about)}-{fingerprint()}{ending}"


def _described(about: object) -> str:
    return blake2b(repr(about).encode(), digest_size=16).hexdigest()


def names_a_file(word: str) -> bool:
    """Tell whether a word, or what stands behind an equals sign in it, is a file or elsewhere."""
    if word.startswith("hub:"):
        return True
    return any(map(os.path.lexists, {word, word.partition("=")[2], word.rpartition("=")[2]} - {""}))


@cache
def fingerprint() -> str:
    """Return what changes with the library: names, sizes and times of all its files."""
    digest = blake2b(digest_size=16)
    for entry in sorted(_sources(str(Path(__file__).parent)), key=lambda one: one.path):
        stat = entry.stat()
        digest.update(f"{entry.path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _sources(path: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _sources(entry.path)
            elif entry.is_file():
                yield entry


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).hexdigest().encode()
