"""Files written whole or not at all."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from symbolic_cost.errors import InputError, quote, visible


def check_ending(what: str, path: str, ending: str, *others: str) -> None:
    """Refuse a file that has another ending than what is written needs, or that can be none."""
    if Path(path).suffix.lower() not in (ending, *others):
        raise InputError(f"{what} {visible(path)!r}: a name that ends with {ending} is accepted")
    check_target(path)


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write a file; whatever goes wrong, an old file stays as it was and no part of a new one.

    Text is written as UTF-8 with its own line ends. The new file has the mode of the old one.

    Raises:
        InputError: no name, no such directory, not a regular file, or not writable.
    """
    data = content.encode() if isinstance(content, str) else content
    _onto(path, lambda target: _replace(target, data))


def check_target(path: str) -> None:
    """Refuse what can be no file, before anything is made that it would hold.

    A file is begun in its folder, and is gone again: the system may refuse what permissions allow.

    Raises:
        InputError: as of `write_whole`.
    """
    _onto(path, _try)


def _onto(path: str | Path, write: Callable[[Path], None]) -> None:
    """Write onto the place that a name stands for, if it can hold a file."""
    name = str(path)
    if not name:
        raise InputError("output file: the name is empty; give the name of a file")
    refused = f"output file {quote(name, 200)}"
    if name.endswith("/"):
        raise InputError(f"{refused}: names a directory; give the name of a file")
    try:
        target = Path(path).resolve()  # a link is followed, not replaced
        _check(refused, target)
        write(target)
    except RuntimeError:
        raise InputError(f"{refused}: cannot be written: a link that leads to itself") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name has a null character"
        raise InputError(f"{refused}: cannot be written: {reason}") from error


def _check(refused: str, target: Path) -> None:
    if target.is_symlink():
        raise InputError(f"{refused}: cannot be written: a link that leads to itself")
    if target.is_dir():
        raise InputError(f"{refused}: is a directory; give the name of a file")
    if not target.parent.is_dir():
        raise InputError(f"{refused}: directory {quote(str(target.parent), 200)} does not exist")
    if target.exists() and not target.is_file():
        raise InputError(f"{refused}: is not a regular file; leave it out to print")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"{refused}: is not writable")


def _try(target: Path) -> None:
    part = _part(target)
    file, named = _opened(target.parent, part)
    os.close(file)
    if named:
        part.unlink()


def _part(target: Path) -> Path:
    return target.parent / f".{uuid4().hex}.part"


def _replace(target: Path, data: bytes) -> None:
    """Write beside the target, then take its place in one step.

    Where the system has files without a name, the new one has none until it is complete: a process
    that is killed leaves nothing behind.
    """
    part = _part(target)
    try:
        with _unnamed(target.parent, part) as file:
            if target.exists():
                os.fchmod(file, stat.S_IMODE(target.stat().st_mode))
            _write(file, data)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _write(file: int, data: bytes) -> None:
    """Write all of it, and have the system say so."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
    os.fsync(file)


@contextmanager
def _unnamed(folder: Path, name: Path) -> Iterator[int]:
    """Open a file that gets its name when it is complete, or, where that cannot be, at once."""
    file, named = _opened(folder, name)
    try:
        yield file
        if not named:  # given a directory, the system follows the link in /proc to the file
            os.link(f"/proc/self/fd/{file}", name, src_dir_fd=file, follow_symlinks=True)
    finally:
        os.close(file)


def _opened(folder: Path, name: Path) -> tuple[int, bool]:
    """Return a new file, and whether it has its name at once."""
    with suppress(OSError, AttributeError):  # a file system without such files, not Linux
        Path("/proc/self/fd").stat()
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666), False
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), True
