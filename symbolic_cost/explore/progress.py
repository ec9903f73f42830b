"""A bar that shows how far something is, on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Tick = Callable[[int, int], None]
"""Takes how much is done, and of how much."""


@contextmanager
def bar(text: str, unit: str, *, shown: bool) -> Iterator[Tick]:
    """Show progress with its rate and the time left, on standard error if that is a terminal."""
    if not shown or sys.stderr is None or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + unit),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(text, total=1, rate="")
        first: dict[str, tuple[float, int]] = {}

        def tick(done: int, total: int) -> None:
            now = monotonic()
            begun, before = first.setdefault("", (now, done))
            speed = (done - before) / (now - begun) if now > begun else 0
            rate = f"{speed:,.0f} {unit}/s" if speed else ""
            progress.update(task, completed=done, total=total, rate=rate)

        yield tick
