"""Blocks of a sweep run in order by threads, or on a cluster of dask.distributed (extra `dask`).

The plan goes to every worker of a cluster once; a task is two numbers. A worker that is lost is
replaced by others, who take its tasks; results are those of one machine, bit for bit.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

from symbolic_cost.errors import InputError, quote
from symbolic_cost.explore.evaluation import Evaluation
from symbolic_cost.explore.plan import Plan
from symbolic_cost.explore.results import Result
from symbolic_cost.explore.sweep_question import SweepQuestion

Task = tuple[int, int]
"""First candidate, and the one after the last."""

OF_ROWS, OF_BEST, OF_CLUSTER = 1 << 17, 1 << 20, 1 << 22
"""Candidates of one task: where all rows are kept; where the best are; the same on a cluster.

A task on a cluster takes at least 0.1 s, beside which sending it is nothing.
"""


def results(
    plan: Plan,
    asked: SweepQuestion,
    tasks: Iterable[Task],
    engine: str = "threads",
    scheduler: str = "",
) -> Iterator[Result]:
    """Yield the result of every task, in order."""
    check_engine(engine, scheduler)
    if engine == "dask":
        return results_of_cluster(plan, asked, tasks, scheduler)
    return _threaded(Evaluation(plan, asked), tasks)


def check_engine(engine: str, scheduler: str) -> None:
    """Refuse what is no engine, and a scheduler that nothing reads."""
    if engine not in ("threads", "dask"):
        raise InputError(f"engine {quote(engine)}: accepted are threads and dask")
    if scheduler and engine != "dask":
        raise InputError(f"scheduler {quote(scheduler)} is not read: engine dask has one")


def _threaded(evaluation: Evaluation, tasks: Iterable[Task]) -> Iterator[Result]:
    workers = os.cpu_count() or 1
    pool = ThreadPoolExecutor(workers)
    waiting: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(evaluation.block, *task))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


ANSWER_WITHIN = 10
"""Seconds in which a scheduler must answer, and a first worker be there."""

_WAITING_PER_THREAD = 3

_kept: dict[str, Evaluation] = {}


def results_of_cluster(
    plan: Plan, asked: SweepQuestion, tasks: Iterable[tuple[int, int]], scheduler: str
) -> Iterator[Result]:
    """Yield the result of every task, in order.

    Raises:
        InputError: dask is not installed, no address, or nobody answers there.
    """
    try:
        from distributed import Client
        from distributed.scheduler import KilledWorker
    except ImportError as error:
        text = "engine dask needs dask.distributed: pip install 'symbolic_cost[dask]'"
        raise InputError(text) from error
    client = _client(Client, scheduler)
    try:
        yield from _run(client, plan, asked, tasks)
    except KilledWorker as error:
        raise InputError(f"scheduler {quote(scheduler)}: {error}") from None
    finally:
        client.close(timeout=ANSWER_WITHIN)


def _client(client: Any, scheduler: str) -> Any:  # noqa: ANN401 - dask carries few types
    """Return a client of a scheduler that has workers."""
    accepted = "the address of a scheduler is accepted, as in tcp://host:8786"
    try:
        address = urlsplit(scheduler)
        port = address.port
    except ValueError:
        port = None
        address = urlsplit("")
    if not address.scheme or not address.hostname or port is None:
        raise InputError(f"scheduler {quote(scheduler)}: {accepted}")
    try:
        connection = client(scheduler, timeout=ANSWER_WITHIN, name="symbolic_cost")
    except (OSError, ValueError, TimeoutError):
        text = f"scheduler {quote(scheduler)} does not answer within {ANSWER_WITHIN} s"
        raise InputError(text) from None
    try:
        connection.wait_for_workers(1, timeout=ANSWER_WITHIN)
    except (OSError, TimeoutError):
        connection.close(timeout=ANSWER_WITHIN)
        text = f"scheduler {quote(scheduler)} has no workers after {ANSWER_WITHIN} s"
        raise InputError(text) from None
    return connection


def _run(
    client: Any,  # noqa: ANN401 - dask carries few types
    plan: Plan,
    asked: SweepQuestion,
    tasks: Iterable[tuple[int, int]],
) -> Iterator[Result]:
    sent = client.scatter((plan, asked), broadcast=True, hash=False)
    name = f"{plan.digest} {hash(repr(asked))}"
    threads = sum(client.nthreads().values())
    waiting: deque[Any] = deque()
    for start, stop in tasks:
        key = f"sweep-{name}-{start}-{stop}"
        waiting.append(
            client.submit(block, name, sent, start, stop, key=key, pure=False, retries=3)
        )
        if len(waiting) > _WAITING_PER_THREAD * max(threads, 1):
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def block(name: str, sent: tuple[Plan, SweepQuestion], start: int, stop: int) -> Result:
    """Evaluate the candidates of a range on a worker, which keeps what it compiled."""
    return _evaluation(name, sent).block(start, stop)


def _evaluation(name: str, sent: tuple[Plan, SweepQuestion]) -> Evaluation:
    evaluation = _kept.get(name)
    if evaluation is None:
        _kept.clear()
        evaluation = _kept[name] = Evaluation(*sent)
    return evaluation
