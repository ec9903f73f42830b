"""A proven search finds what pricing every combination finds, and says what it proved."""

import random
from inspect import signature
from itertools import product
from math import prod

import numpy as np
import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.explore.axes import columns_of
from symbolic_cost.explore.bound import minimum
from symbolic_cost.explore.candidates import candidates
from symbolic_cost.explore.facts import subject
from symbolic_cost.explore.free_symbols import checked, freed
from symbolic_cost.explore.objectives import LEGAL, MEMORY, OBJECTIVES
from symbolic_cost.explore.proof_table import proof_sheet
from symbolic_cost.explore.proven import proof
from symbolic_cost.explore.search_options import space_of
from symbolic_cost.explore.together import all_priced
from symbolic_cost.jobs.job import Job


@pytest.fixture(autouse=True, scope="module")
def _kept(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SYMBOLIC_COST_CACHE", str(tmp_path_factory.mktemp("programs")))
        yield


def brute(base, space, vary, objective):
    """The best of all combinations, each priced."""
    numbers = checked(base, vary)
    own = subject(freed(base, numbers))
    room, wanted = own.facts.capacity, OBJECTIVES[objective]
    found, best, count = candidates(space, own.facts), np.inf, 0
    for shape, together in all_priced(own, found.structures, ("b", *numbers)):
        rows = columns_of(found, shape)
        grid = list(product(range(found.rows(shape)), *numbers.values()))
        places = np.array([point[0] for point in grid])
        columns = {name: column[places] for name, column in rows.items()}
        for axis, name in enumerate(numbers, 1):
            columns[name] = np.array([float(point[axis]) for point in grid])
        for _, outputs in together.evaluated(columns, len(grid)):
            count += len(grid)
            meets = np.ones(len(grid), dtype=bool)
            for name, met in outputs.items():
                meets &= (met != 0) if name.startswith(LEGAL) else True
            meets &= outputs[MEMORY] <= (np.inf if room is None else room)
            best = min(best, np.min(np.where(meets, wanted.value(outputs), np.inf)))
    return float(best), count


SPACES = {
    ("gpt2", "h100"): (8, 16, {"zero": (0, 1), "recompute": ("selective",)}),
    ("llama-3-8b", "a100-80gb"): (8, 16, {"zero": 3, "recompute": ("none", "full")}),
    ("llama-3-8b", "symbolic"): (8, 8, {"zero": 1, "recompute": ("full",), "pp": (1, 2, 4)}),
}
USUAL = {"cp": 1, "schedule": "1f1b", "sp": (True,)}
RATES = {
    "F_m": (1e14, 2e15),
    "F_v": (1e13, 2e14),
    "beta_m": (1e12, 8e12),
    "beta": (1e10, 1e11),
    "alpha": (1e-6, 1e-4),
    "beta_d": (1e11, 1e12),
    "alpha_d": (1e-6, 1e-5),
    "t_k": (1e-6, 1e-5),
}


def drawn(seed, system):
    """Random values of sizes and rates: all of the symbolic machine's, some of another's."""
    draw = random.Random(seed)  # noqa: S311 - draws values
    vary = {"l": sorted(draw.sample(range(64, 32768), 4))}
    chosen = list(RATES) if system == "symbolic" else ["F_m", "beta_m", "beta"]
    for name in chosen:
        low, high = RATES[name]
        size = draw.choice((1, 2)) if system == "symbolic" else draw.randint(2, 5)
        vary[name] = [f"{draw.uniform(low, high):.3e}" for _ in range(size)]
    if system == "symbolic":
        vary["n_d"] = [2, 8]
    return vary, draw.choice([name for name, one in OBJECTIVES.items() if not one.resource])


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=() if (place, seed) == (0, 0) else pytest.mark.slow)
        for place, name in enumerate(SPACES)
        for seed in range(8 if place == 0 else 7)
    ],
)
def test_the_optimum_is_that_of_all_combinations(name, seed):
    model, system = name
    gpus, batch, choose = SPACES[name]
    base, space = sc.job(model, system=system), space_of(gpus, batch, {**USUAL, **choose})
    vary, objective = drawn(seed, system)
    done = proof(subject(base), space, vary, objective)
    value, count = brute(base, space, vary, objective)
    assert done.proven
    assert done.least.combinations == count
    assert (done.candidate is None) == (value == np.inf)
    if done.candidate is not None:
        sign = done.objective.sign
        assert sign * done.value == value
        assert sign * done.bound <= value
        assert done.bound == pytest.approx(done.value, rel=1e-9)


@pytest.mark.slow
def test_the_best_is_a_job_of_its_own():
    vary = {"l": "256:2048:x2", "F_m": "1e14:1e15:x2", "beta": "1e10:1e11:x3"}
    roofline = sc.job("gpt2", system="h100", stack="roofline")
    done = sc.prove(roofline, 8, 16, vary=vary, choose={**USUAL, "zero": 1, "recompute": "full"})
    made = done.job
    run = Job(**{name: getattr(made, name) for name in made.__dataclass_fields__})
    assert float(run.time().step) == pytest.approx(done.value, rel=1e-12)
    memory = max(peak.size for peak in run.memory().fits.peaks.values())
    assert memory == pytest.approx(done.candidate.outputs[MEMORY], rel=1e-12)
    assert done.at["F_m"] == 8 * 10**14
    assert run.values["l"] == done.at["l"] == 256


@pytest.mark.slow
def test_many_combinations_take_few_boxes():
    rates = {name: f"{low}:{high}:x1.01" for name, (low, high) in RATES.items()}
    done = sc.prove(
        sc.job("gpt2", system="h100", stack="roofline"),
        8,
        16,
        vary={n: rates[n] for n in ("F_m", "F_v", "beta_m", "beta", "beta_d")},
        choose={**USUAL, "zero": 1, "recompute": "full"},
    )
    assert done.proven
    assert done.least.combinations > 10**12
    assert done.least.boxes < 10**5


@pytest.mark.slow
def test_a_search_that_gives_up_says_so():
    space = space_of(8, 16, {**USUAL, "zero": 1, "recompute": "full"})
    vary = {"l": "256:2048:x2", "F_m": "1e14:1e15:x1.01", "beta": "1e10:1e11:x1.01"}
    done = proof(subject(sc.job("gpt2", system="h100")), space, vary, "mfu", most_boxes=10)
    assert not done.proven
    assert done.value < done.bound
    assert prod(map(len, done.vary.values())) * 10 < done.least.combinations


def test_by_itself_a_search_gives_up_within_minutes():
    assert signature(minimum).parameters["most_boxes"].default <= 2_000_000


@pytest.mark.slow
def test_lengths_without_a_position_are_told():
    space = space_of(8, 16, {**USUAL, "zero": 1, "recompute": "full"})
    done = proof(subject(sc.job("gpt2", system="h100")), space, {"l": "512,2048"}, "throughput")
    assert done.at["l"] == 2048
    told = "the model has 1024 learned positions: of 2048"
    assert any(told in note for note in proof_sheet(done).notes)
    swept = sweep_line_of("--vary l=512,2048")
    assert "positions: " + told in " ".join(swept.split())


def sweep_line_of(more):
    line = f"sweep gpt2 --system h100 --global-batch 8 {more}"
    return CliRunner().invoke(main, line.split()).stdout


LINE = ["search", "gpt2", "--system", "h100", "--gpus", "4", "--global-batch", "4"]
SMALL = ["--choose", "cp=1", "--choose", "zero=1", "--choose", "recompute=full"]


@pytest.mark.slow
def test_the_command_says_what_is_proven():
    told = CliRunner().invoke(main, [*LINE, *SMALL, "--prove", "--vary", "l=256:1024:x2 F_m=1e14"])
    assert told.exit_code == 0, told.output
    assert "proven: no candidate is below" in " ".join(told.stdout.split())
    assert "combinations," in told.stdout
    assert "l: 3 values from 256 to 1024" in told.stdout


@pytest.mark.parametrize(
    ("vary", "said"),
    [
        ("n_layers=3", "decides which structures there are"),
        ("q=1", "unknown size or rate to vary 'q'"),
        ("F_m=fast", "vary F_m='fast': numbers are accepted"),
        ("l=1.5", "an integer"),
        ("l=8:4", "runs backwards"),
        ("l", "NAME=VALUES is accepted"),
        ("l=1 l=2", "l is given twice"),
        pytest.param("alpha_m=1e-9", "nothing depends on it", marks=pytest.mark.slow),
    ],
)
def test_refusals(vary, said):
    told = CliRunner().invoke(main, [*LINE, *SMALL, "--prove", "--vary", vary])
    assert told.exit_code == 2
    assert said in told.stderr
    assert not told.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--vary", "l=3"], "--vary 'l=3' is not read: only --prove varies"),
        (["--prove", "--top", "3"], "--top 3 is not read"),
        (["--prove", "--explain"], "--explain is not read"),
    ],
)
def test_options_that_contradict(words, said):
    told = CliRunner().invoke(main, [*LINE, *words])
    assert told.exit_code == 2
    assert said in told.stderr


def test_a_symbol_without_a_number_is_refused():
    with pytest.raises(InputError, match="no number for F_m"):
        sc.prove("gpt2", 4, 4, system="symbolic", vary={"l": [256]}, choose={**USUAL, "zero": 1})
