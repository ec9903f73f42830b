"""Programs that a wheel brings along: the first search of a common model derives nothing.

Building a wheel makes them (hatch_build.py); a checkout has none. An index says which sources of
the library they were made from: those of any other are never read, and made again where they are
asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

PLACE = Path(__file__).parent
"""Folder of the index and the archives."""

INDEX = "index.json"


def shipped(name: str) -> bytes | None:
    """Return a file that came with the library; none if there is none, or it is of another one."""
    entry = _index(PLACE).get(name)
    if entry is None:
        return None
    archive, start, stop = entry
    return _archive(PLACE / archive)[start:stop]


def ship(archives: Iterable[Mapping[str, bytes]], place: Path) -> int:
    """Write archives of files with their index; return what they take [byte].

    Args:
        archives: files by name, of each.
        place: folder, which is made.
    """
    import json
    import lzma

    place.mkdir(parents=True, exist_ok=True)
    files: dict[str, tuple[str, int, int]] = {}
    taken = 0
    for number, held in enumerate(archives):
        archive, start = f"{number}.xz", 0
        for name, data in held.items():
            files[name] = (archive, start, start + len(data))
            start += len(data)
        packed = lzma.compress(b"".join(held.values()), preset=9)
        (place / archive).write_bytes(packed)
        taken += len(packed)
    text = json.dumps({"sources": sources(), "files": files})
    (place / INDEX).write_text(text, encoding="utf-8")
    return taken + len(text)


@cache
def sources() -> str:
    """Return the hash of every file of the library: names and contents."""
    own, digest = Path(__file__).parent, blake2b(digest_size=16)
    for path in sorted(own.parent.rglob("*")):
        if path.suffix in (".pyc", ".xz") or path == own / INDEX or not path.is_file():
            continue
        digest.update(f"{path.relative_to(own.parent).as_posix()}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def _index(place: Path) -> Mapping[str, tuple[str, int, int]]:
    """Return where files are, by name; none where they were made from other sources."""
    if not (place / INDEX).exists():
        return {}
    import json

    with suppress(OSError, ValueError, KeyError):
        held = json.loads((place / INDEX).read_bytes())
        if held["sources"] == sources():
            return dict(held["files"])
    return {}


@cache
def _archive(place: Path) -> bytes:
    import lzma

    try:
        return lzma.decompress(place.read_bytes())
    except (OSError, lzma.LZMAError):
        return b""
