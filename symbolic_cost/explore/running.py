"""Blocks of a sweep run by threads or on a cluster, in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

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
        from symbolic_cost.explore.cluster import results_of_cluster

        return results_of_cluster(plan, asked, tasks, scheduler)
    return _threaded(Evaluation(plan, asked), tasks)


def check_engine(engine: str, scheduler: str) -> None:
    """Refuse what is no engine, and a scheduler that nothing reads.

    Raises:
        InputError: see above.
    """
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
