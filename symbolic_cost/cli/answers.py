"""Answers that are kept: the same line, asked again, prints the same bytes without deriving them.

What is kept is the standard output of a command that ended well. It is found again by everything
that it depends on: the words of the line, the library's own files, Python, the libraries that
derive and print, and the terminal. A line that reads or writes a file, or that plugins may change,
is never kept.
"""

import os
import sys
from collections.abc import Callable, Sequence
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from shutil import get_terminal_size

from symbolic_cost.cache import fingerprint, folder, names_a_file, read_bytes, write_bytes
from symbolic_cost.cli.door import CompleteStream

KEPT = (
    *("table", "formula", "tree", "scale", "memory", "comm", "time", "search", "fit"),
    *("schedule", "roofline", "compare-conventions"),
)
"""Commands whose answers rest on their words alone."""

_LARGEST = 1 << 20
_LIBRARIES = ("sympy", "numpy", "rich", "click", "pydantic")
_SHORT = "oh"
"""Letters of the options for output and help."""

_SETTINGS = ("COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")


def run_or_repeat(
    words: Sequence[str], run: Callable[[], object], plugins: Callable[[], bool]
) -> object:
    """Run a line, or print what it printed before; return its exit code.

    Args:
        words: of the line, without the program's name.
        run: runs it.
        plugins: tells whether any are installed.
    """
    stream = getattr(sys.stdout, "buffer", None)
    if not isinstance(stream, CompleteStream) or not _is_keepable(words) or plugins():
        return run()
    name = f"{_key(words)}.answer"
    answer = read_bytes(name)
    if answer is not None:
        stream.write(answer)
        return 0
    stream.written = bytearray()
    code = run()
    if code in (None, 0) and len(stream.written) < _LARGEST:
        write_bytes(name, bytes(stream.written))
    return code


def _is_keepable(words: Sequence[str]) -> bool:
    """Tell whether an answer rests on the words alone: they name no file, and write none."""
    if not words or words[0] not in KEPT or folder() is None:
        return False
    return not any(map(_is_output, words)) and not any(map(names_a_file, words))


def _is_output(word: str) -> bool:
    """Tell whether a word is the option -o, be it joined with others, or one for help."""
    short = word.startswith("-") and not word.startswith("--")
    return word.startswith(("--output", "--help")) or (short and not {*word}.isdisjoint(_SHORT))


def _key(words: Sequence[str]) -> str:
    specs = [find_spec(name) for name in _LIBRARIES]
    origins = [Path(one.origin) for one in specs if one is not None and one.origin is not None]
    libraries = [(str(one), one.stat().st_mtime_ns) for one in origins]
    encoding = getattr(sys.stdout, "encoding", "")
    terminal = (sys.stdout.isatty(), get_terminal_size(), encoding)
    settings = [os.environ.get(name) for name in _SETTINGS]
    about = (tuple(words), fingerprint(), sys.version, libraries, terminal, settings)
    return blake2b(repr(about).encode(), digest_size=16).hexdigest()
