"""How the command line begins and ends: streams, signals, exit codes, and answers that are kept.

0: all was written. 1: the output could not be written. 2: refused. 130: interrupted.

The same line, asked again, prints the same bytes without deriving them. What is kept is the
standard output of a command that ended well. It is found again by everything that it depends on:
the words of the line, the library's own files, Python, the libraries that derive and print, and the
terminal. A line that reads or writes a file, or that plugins may change, is never kept.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib.util import find_spec
from io import RawIOBase, TextIOWrapper
from pathlib import Path
from shutil import get_terminal_size
from types import FrameType
from typing import Any, NoReturn

import click

from symbolic_cost.cache import fingerprint, folder, names_a_file, read_bytes, write_bytes
from symbolic_cost.errors import brief, visible

UNWRITTEN, REFUSED, INTERRUPTED = 1, 2, 130
_LONGEST = 1600
_MOST_LINES = 10


def ended(run: Callable[[], object]) -> int:
    """Run the command line and return its exit code; problems go to standard error, once."""
    try:
        with _whole_output(), _orderly_end():
            code = run()
    except click.ClickException as error:
        say(error)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        complain("Interrupted")
        return INTERRUPTED
    except OSError as error:
        if error.errno != errno.EPIPE:  # who closed a pipe has read enough
            complain(f"Error: standard output: cannot be written: {error.strerror}")
        return UNWRITTEN
    return code if isinstance(code, int) else 0


_MEANT = {
    "--seq": "--set l=4096",
    "--batch": "--set b=4, or --global-batch 512",
    "--gpus": "--strategy tp=8,dp=8, whose degrees are the ranks",
}
"""What says the same where an option of some commands is none."""


def _meant(error: click.ClickException) -> str:
    """Return the message of a refusal, with what is written for an option of other commands."""
    if isinstance(error, click.NoSuchOption) and error.ctx is not None:
        spelled = {name for one in error.ctx.command.params for name in one.opts}
        said = _MEANT.get(error.option_name, "")
        if said and spelled >= {"--set", "--strategy"}:
            return f"No such option {error.option_name!r}: write {said}"
    return error.format_message()


def say(error: click.ClickException) -> None:
    """Show a refusal: short, and nothing in it that a terminal would obey."""
    lines = visible(brief(_meant(error), _LONGEST)).splitlines()
    text = "\n".join(lines[:_MOST_LINES] + ["  ..."] * (len(lines) > _MOST_LINES))
    short = click.UsageError(text, error.ctx) if isinstance(error, click.UsageError) else None
    with suppress(OSError, ValueError):
        (short or click.ClickException(text)).show()


def complain(text: str) -> None:
    """Print a line to standard error, if there is one."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


class CompleteStream(RawIOBase):
    """A stream that writes all it is given, or raises.

    Python's own standard output leaves out the rest without a word where a file may grow no more.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.written: bytearray | None = None
        """What was written since somebody asked to know."""

    def writable(self) -> bool:
        """Tell that it takes bytes."""
        return True

    def isatty(self) -> bool:
        """Tell whether it is a terminal."""
        return os.isatty(self._descriptor)

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def write(self, data: Any) -> int:
        """Write all of it."""
        rest = memoryview(data).cast("B")
        if self.written is not None:
            self.written += rest
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        return len(data)


@contextmanager
def _whole_output() -> Iterator[None]:
    """Print to the end or raise; what the encoding lacks is printed escaped."""
    before = sys.stdout
    try:
        descriptor = before.fileno()
        encoding = before.encoding
    except AttributeError:  # there is none: it was closed before Python began
        descriptor, encoding = -1, "utf-8"
    except OSError:  # a buffer in memory
        yield
        return
    sys.stdout = TextIOWrapper(
        CompleteStream(descriptor), encoding=encoding, errors="backslashreplace", write_through=True
    )
    try:
        yield
    finally:
        sys.stdout = before


@contextmanager
def _orderly_end() -> Iterator[None]:
    """On TERM and HUP clean up as after Ctrl-C, unless they are handled or ignored already."""
    ours = threading.current_thread() is threading.main_thread()
    names = [name for name in ("SIGTERM", "SIGHUP") if ours and hasattr(signal, name)]
    taken = [getattr(signal, name) for name in names]
    taken = [one for one in taken if signal.getsignal(one) is signal.SIG_DFL]
    for one in taken:
        signal.signal(one, _terminated)
    try:
        yield
    finally:
        for one in taken:
            signal.signal(one, signal.SIG_DFL)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - Python's signature
    sys.exit(128 + number)


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
