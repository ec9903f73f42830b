"""Files written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

from symbolic_cost.errors import InputError


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file; whatever goes wrong, an old file stays as it was and no part of a new one.

    Text is written as UTF-8 with its own line ends.

    Raises:
        InputError: no name, no such directory, not a regular file, or not writable.
    """
    data = content.encode() if isinstance(content, str) else content
    if not str(path):
        raise InputError("output file: the name is empty; give the name of a file")
    try:
        target = Path(path).resolve()  # a link is followed, not replaced
        _check(path, target)
        _replace(target, data)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"output file {str(path)!r}: cannot be written: {reason}") from error


def _check(path: str | Path, target: Path) -> None:
    refused = f"output file {str(path)!r}"
    if target.is_dir():
        raise InputError(f"{refused}: is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise InputError(f"{refused}: directory {str(target.parent)!r} does not exist")
    if target.exists() and not target.is_file():
        raise InputError(f"{refused}: is not a regular file; leave it out to print")
    if target.exists() and not os.access(target, os.W_OK):
        raise InputError(f"{refused}: is not writable")


def _replace(target: Path, data: bytes) -> None:
    part = target.parent / f".{uuid4().hex}.part"
    try:
        with part.open("xb") as file:
            file.write(data)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
