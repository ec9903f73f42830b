"""Work done by a child process that ends with all that it loaded; what it keeps, this one has.

Python gives little of its memory back, so that one process would hold at its end what two need one
after the other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from signal import SIG_IGN, SIGINT, SIGTERM, signal
from threading import active_count
from typing import BinaryIO, NoReturn

from symbolic_cost.cache import RECEIVED, SENDERS, write_bytes


def goes_apart() -> bool:
    """Tell whether this process can be copied: it runs one thread, where processes are copied."""
    return hasattr(os, "fork") and active_count() == 1


def apart(work: Callable[[], object]) -> None:
    """Do work in a child process; what `cache` keeps there is kept here.

    What goes wrong there is no error here: whatever is not kept is made where it is asked for.
    Ctrl-C ends both, and a child whose parent is gone has nobody to send to.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(receiving)
            with suppress(Exception, KeyboardInterrupt), os.fdopen(sending, "wb") as pipe:
                _send(pipe, work)
        finally:
            os._exit(0)
    os.close(sending)
    try:
        with os.fdopen(receiving, "rb") as pipe:
            receive(pipe)
    except BaseException:
        os.kill(child, SIGTERM)
        raise
    finally:
        os.waitpid(child, 0)


def _send(pipe: BinaryIO, work: Callable[[], object]) -> None:
    """Do work, and send what is kept: a line of its name and size, then itself."""

    def send(name: str, body: bytes) -> None:
        pipe.write(f"{name} {len(body)}\n".encode() + body)
        pipe.flush()

    for one in (SIGINT, SIGTERM):
        signal(one, _end)
    SENDERS.append(send)
    work()


def _end(*_: object) -> NoReturn:
    """End at the first of several signals, and leave a terminal as it was."""
    for one in (SIGINT, SIGTERM):
        signal(one, SIG_IGN)
    raise KeyboardInterrupt


def receive(pipe: BinaryIO) -> None:
    """Keep what arrives whole; a child that is killed leaves a line or a body short."""
    for line in pipe:
        name, _, size = line.decode().partition(" ")
        body = pipe.read(int(size)) if line.endswith(b"\n") else b""
        if body and len(body) == int(size):
            RECEIVED[name] = body
            write_bytes(name, body)
