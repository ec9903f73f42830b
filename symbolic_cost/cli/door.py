"""How the command line begins and ends: streams, signals, exit codes.

0: all was written. 1: the output could not be written. 2: refused. 130: interrupted.
"""

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase, TextIOWrapper
from types import FrameType
from typing import Any, NoReturn

import click

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


def say(error: click.ClickException) -> None:
    """Show a refusal: short, and nothing in it that a terminal would obey."""
    lines = visible(brief(error.format_message(), _LONGEST)).splitlines()
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
