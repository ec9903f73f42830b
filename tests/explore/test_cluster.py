"""Sweeps on a cluster of two worker processes: the results are those of one machine."""

import os
import signal

import pytest

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.explore import running

distributed = pytest.importorskip("distributed")

VARY = {"b": "1:64", "l": "64:2048:64", "tp": "1,2,4", "dp": "1:8"}


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        yield made


@pytest.fixture
def job():
    return sc.job("gpt2", "tp,dp", {"M": 8}, system="a100-80gb")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_finds_what_one_machine_finds_though_a_worker_is_killed(
    cluster, job, monkeypatch
):
    monkeypatch.setattr(running, "OF_CLUSTER", 4096)
    local = sc.sweep(job, VARY, where="memory < 40 GiB", top=50, progress=False)
    pids = [worker.process.pid for worker in cluster.workers.values()]
    original = running.results

    def killing(plan, asked, tasks, engine, scheduler):
        for place, result in enumerate(original(plan, asked, tasks, engine, scheduler)):
            if place == 3:
                os.kill(pids[0], signal.SIGKILL)
            yield result

    monkeypatch.setattr("symbolic_cost.explore.sweep_run.results", killing)
    far = sc.sweep(
        job,
        VARY,
        where="memory < 40 GiB",
        top=50,
        engine="dask",
        scheduler=cluster.scheduler_address,
        progress=False,
    )
    assert far.equals(local)
    assert far.attrs["summary"] == local.attrs["summary"]


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        ("tcp://127.0.0.1:9", "does not answer within"),
        ("localhost", "tcp://host:8786"),
        ("", "tcp://host:8786"),
        ("tcp://host:port", "tcp://host:8786"),
    ],
)
def test_a_scheduler_that_does_not_answer_is_one_error(job, scheduler, said, monkeypatch):
    from symbolic_cost.explore import running

    monkeypatch.setattr(running, "ANSWER_WITHIN", 1)
    with pytest.raises(InputError, match=said):
        sc.sweep(job, {"b": "1,2", "tp": 1, "dp": 1}, engine="dask", scheduler=scheduler)
