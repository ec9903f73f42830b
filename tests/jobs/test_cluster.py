"""Three numbers of a cluster come back from its steps; a step that nothing explains is named."""

import numpy as np
import pytest

from symbolic_cost.errors import InputError
from symbolic_cost.jobs.cluster import NOISE, PRIOR, fit_cluster, on_cluster
from symbolic_cost.jobs.header import stack_note
from symbolic_cost.jobs.job import job
from symbolic_cost.jobs.steps import Steps, all_seconds
from symbolic_cost.systems.calibration import record
from symbolic_cost.systems.records import load_machine

TRUTH = {"computing": 1.1, "moving": 1.4, "issuing": 1.0}


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
    assert sum(map(len, own.derived.values())) == 1  # one derivation for all of them
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


@pytest.mark.slow
def test_intervals_hold_what_steps_leave_open(steps):
    """Clusters drawn from the priors, six of their steps fitted: four of five others lie within."""
    _, found = steps
    chance, within = np.random.default_rng(7), []
    for _ in range(30):
        truth = {name: float(np.exp(chance.normal(0, size))) for name, size in PRIOR.items()}
        seconds = all_seconds(found, truth)[0] * np.exp(chance.normal(0, NOISE, len(found)))
        places = [int(n) for n in chance.permutation(len(found))]
        some, left = places[:6], places[6:]
        fit = fit_cluster([found[n] for n in some], [seconds[n] for n in some])
        ends = [found[n].interval(fit.factors, fit.doubts) for n in left]
        within += [own.low <= seconds[n] <= own.high for own, n in zip(ends, left, strict=True)]
    assert 0.7 <= np.mean(within) <= 0.92


def test_intervals_narrow_with_the_steps_and_under_their_software_alone(steps, tmp_path):
    jobs, found = steps
    seconds = list(all_seconds(found, TRUTH)[0])
    widths = []
    for count in (1, 3, 8):
        fit = fit_cluster(found[:count], seconds[:count])
        own = found[3].interval(fit.factors, fit.doubts)
        widths.append((own.high - own.low) / found[3].seconds(fit.factors))
    before = found[3].interval()
    assert widths == sorted(widths, reverse=True)
    assert widths[2] < (before.high - before.low) / found[3].seconds() / 2
    (tmp_path / "mine.toml").write_text(record(on_cluster(jobs[3].machine, fit, 8)))
    mine = load_machine(tmp_path / "mine.toml")
    read = jobs[3].replace(system=mine).time()
    assert (read.low, read.high) == pytest.approx((own.low, own.high), rel=2e-3)
    assert read.doubt.endswith("8 measured steps")
    other = jobs[3].replace(system=mine, stack="nemo").time()
    assert "measured steps" not in other.doubt
