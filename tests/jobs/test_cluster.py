"""Three numbers of a cluster come back from its steps; a step that nothing explains is named."""

import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.cluster import PRIOR, fit_cluster, on_cluster
from symbolic_cost.jobs.header import stack_note
from symbolic_cost.jobs.job import job
from symbolic_cost.jobs.steps import Steps, all_seconds

TRUTH = {"computing": 1.1, "streaming": 1.1, "moving": 1.4}


@pytest.fixture(scope="module")
def steps():
    own = Steps()
    jobs = [
        job(
            "llama-3-8b",
            f"tp={tp},dp={8 // tp}",
            {"b": b},
            system="a100-80gb",
            stack="megatron-core",
            global_batch=64,
        )
        for tp in (2, 4)
        for b in (1, 2, 4, 8)
    ]
    found = [own.of(one) for one in jobs]
    assert sum(map(len, own.known.values())) == 1  # one derivation for all of them
    return jobs, found


def test_a_step_is_that_of_the_job(steps):
    jobs, found = steps
    assert found[3].seconds() == pytest.approx(float(jobs[3].time().step), rel=1e-9)
    both = all_seconds(found, {}, TRUTH)
    assert both[1, 3] == pytest.approx(found[3].seconds(TRUTH))
    assert found[3].interval().low < found[3].seconds() < found[3].interval().high


def test_factors_come_back(steps):
    _, found = steps
    fit = fit_cluster(found, all_seconds(found, TRUTH)[0])
    assert fit.factors["computing"] == pytest.approx(TRUTH["computing"], rel=0.05)
    assert 1 < fit.factors["moving"] < TRUTH["moving"]  # mostly hidden, so that the prior holds it
    assert fit.after.mean < 0.02 < fit.before.mean / 3
    assert all(fit.spreads[name] <= PRIOR[name] for name in PRIOR)
    assert fit.outliers == ()


def test_an_outlier_is_named_and_weighs_less(steps):
    _, found = steps
    seconds = list(all_seconds(found, TRUTH)[0])
    seconds[5] *= 3
    fit = fit_cluster(found, seconds)
    assert fit.outliers == (5,)
    assert fit.factors["computing"] < 1.3


def test_one_step_moves_little_and_none_is_refused(steps):
    jobs, found = steps
    fit = fit_cluster(found[:1], [3 * found[0].seconds()])
    assert 1 < fit.factors["computing"] < 3
    with pytest.raises(InputError, match="no measured steps"):
        fit_cluster([], [])
    fitted = on_cluster(jobs[0].machine, fit, 1)
    assert jobs[0].replace(system=fitted).time().step == pytest.approx(
        found[0].seconds(fit.factors), rel=1e-3
    )
    told = stack_note(jobs[0].replace(system=fitted))
    assert f"computing {fit.factors['computing']:.3g}" in told
    assert "(fitted to 1 measured step," in told
    assert "fitted to" not in stack_note(jobs[0])
