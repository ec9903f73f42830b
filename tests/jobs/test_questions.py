"""Crossovers, optima, sensitivities, dominance and inverse questions on the command line."""

import json

import pytest
from click.testing import CliRunner

import symbolic_cost as sc
from symbolic_cost.analysis.inverse import How
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError
from symbolic_cost.explore.solve import question, solve
from symbolic_cost.jobs.best_size import best_size
from symbolic_cost.jobs.header import header
from symbolic_cost.jobs.questions import (
    crossing,
    dominating,
    elasticities,
    sensitivity_sheet,
)
from symbolic_cost.symbols import e, f


def test_crossover_in_closed_form_and_as_an_integer():
    gpt = sc.job("gpt", conventions="model-flop")
    assert crossing(gpt, "attention.core", "mlp", "l").roots == (f,)
    gpt3 = sc.job("gpt3-175b", numbers={"b": 1})
    found = crossing(gpt3, "attention", "mlp", "l")
    root = gpt3.value(found.roots[0])
    assert found.integer - 1 < root <= found.integer
    flop = [gpt3.replace(numbers={"b": 1, "l": n}) for n in (found.integer - 1, found.integer)]
    gaps = [
        one.value(
            one.rows.total("flop", path="block.attention")
            - one.rows.total("flop", path="block.mlp")
        )
        for one in flop
    ]
    assert gaps[0] < 0 <= gaps[1]
    assert abs((gaps[1] - gaps[0]) - found.slope) / found.slope < 1e-3


def test_solved_memory_is_the_last_that_fits():
    job = sc.job("llama-3-8b", "tp=8,sp", {"b": 1}, precision="bf16-mixed")
    found = solve("memory == 80 GiB", job, "l")
    assert found.formula is not None
    assert abs(job.value(found.formula) - found.integer) < 1
    assert found.legal == found.integer // 8 * 8
    sizes = [
        job.replace(numbers={"b": 1, "l": n}).memory().peak for n in (found.legal, found.legal + 8)
    ]
    assert sizes[0] <= 80 * 2**30 < sizes[1]
    assert found.binds.startswith("backward: saved")
    assert found.slope > 0


def test_solved_parameters():
    job = sc.job("gpt", numbers={"n_layers": 96, "V": 50257, "h": 96, "b": 1, "l": 2048})
    gpt = sc.job(sc.GPT(f=4 * e).model(), numbers={"n_layers": 96, "V": 50257, "l": 2048, "b": 1})
    found = solve("params <= 175e9", gpt, "e")
    assert 12000 < found.integer < 12400
    with pytest.raises(sc.errors.InputError, match="no number for f"):
        solve("params <= 175e9", job, "e")


@pytest.mark.slow
def test_best_microbatch_of_a_global_batch():
    job = sc.job("gpt3-175b", "tp=8,sp,pp=8", {"b": 1}, system="a100-80gb", global_batch=16)
    found = best_size(job, "step", "b", range(1, 9))
    times = {n: job.replace(numbers={"b": n}).time().step for n in (1, 2, 4, 8)}
    assert (found.integer, found.evaluations) == (min(times, key=times.get), 4)
    assert found.value == min(times.values())
    with pytest.raises(sc.errors.InputError, match="other microbatches"):
        solve("step <= 2 s", job, "b")


@pytest.mark.slow
def test_best_degree_of_a_step_looks_at_jobs_of_their_own():
    job = sc.job("gpt3-175b", "tp=8,sp,pp=8", {"b": 1}, system="a100-80gb", global_batch=16)
    found = best_size(job, "step", "pp", range(6, 9))
    other = sc.job("gpt3-175b", "tp=8,sp,pp=6", {"b": 1}, system="a100-80gb", global_batch=16)
    assert found.integer == 8
    assert found.value == job.time().step < other.time().step
    with pytest.raises(sc.errors.InputError, match="a step is another chain"):
        solve("step <= 20 s", job, "pp")


def test_best_chunks_of_a_job_that_has_some():
    """Chunks that are a number stand in no formula: jobs of their own are looked at."""
    numbers = {"b": 1, "v": 2, "M": 4}
    run = sc.job("gpt2", "pp=2", numbers, schedule="interleaved", system="h100")
    best = best_size(run, "memory", "v", range(1, 7))
    assert best.value == min(run.bind(v=n).memory().peak for n in (1, 2, 3, 6))
    with pytest.raises(InputError, match="flops of this job does not depend on v"):
        best_size(run, "flops", "v", range(1, 7))


def test_best_size_in_closed_form():
    job = sc.job("gpt3-175b", "tp", {"b": 1})
    found = best_size(job, "saved", "m1", range(1, 13))
    assert found.integer == 12
    assert found.closed == ()
    assert found.refused
    assert How.CLOSED.value == "closed form"


@pytest.mark.parametrize(
    ("of", "least", "looked_at"), [("comm", 1, 5), ("memory", 6, 5), ("saved", 6, 5)]
)
def test_a_degree_of_one_is_among_the_candidates(of, least, looked_at):
    """One rank sends nothing: of 1, 2, 3, 4 and 6 ranks it is the best for what is sent."""
    job = sc.job("gpt2", "tp", {"b": 1, "l": 128, "M": 1})
    found = best_size(job, of, "m1", range(1, 9))
    assert (found.integer, found.evaluations) == (least, looked_at)
    own = sc.job("gpt2", f"tp={least}", {"b": 1, "l": 128, "M": 1})
    assert of != "saved" or found.value == own.total("saved")
    assert of != "comm" or found.value == 0


def test_bounds_are_met_by_one_rank_as_a_job_of_one_does():
    """The first of several stages lacks the head, which one stage has."""
    job = sc.job("llama-3-8b", "pp", {"b": 1, "l": 4096, "M": 8})
    assert solve("memory <= 150 GiB", job, "pp").integer == 2
    sent = solve("comm <= 1 MB", sc.job("gpt2", "tp", {"b": 1, "l": 128}), "m1")
    assert (sent.integer, sent.legal) == (1, 1)


def test_sensitivities_and_dominance_of_a_job():
    job = sc.job("llama-3-8b", "tp=8,sp", {"b": 1})
    found = elasticities(job, ("flops", "memory"))
    assert found.elasticities["flops"]["b"] == pytest.approx(1, abs=1e-4)
    regions = dominating(sc.job("llama-3-8b", conventions="model-flop"), ("attention.core", "mlp"))
    greater, less = regions[0].inequalities["mlp"]
    assert str(greater / less) in ("2*h*l*q/(3*e*f)", "h*l*q*2/(3*e*f)")


def run(*line):
    return CliRunner().invoke(main, line)


def test_command_lines():
    told = json.loads(
        run(
            "crossover",
            "gpt",
            "attention.core",
            "mlp",
            "--in",
            "l",
            "--conventions",
            "model-flop",
            "--format",
            "json",
        ).output
    )
    assert told["records"][0]["formula"] == "f"
    solved = run(
        "solve",
        "memory == 80 GiB",
        "llama-3-8b",
        "--for",
        "l",
        "--strategy",
        "tp=8,sp",
        "--set",
        "b=1",
        "--format",
        "json",
    )
    assert json.loads(solved.output)["records"][0]["how"] == "closed form"
    assert (
        run(
            "optimum",
            "gpt3-175b",
            "--of",
            "saved",
            "--in",
            "m1",
            "--strategy",
            "tp",
            "--set",
            "b=1",
            "--range",
            "1:12",
        ).exit_code
        == 0
    )
    assert run("sensitivity", "gpt3-175b", "--set", "b=1", "--of", "flops").exit_code == 0
    assert run("sensitivity", "gpt", "--of", "memory", "--branches", "l").exit_code == 0
    assert run("dominance", *PARTS).exit_code == 0


PARTS = ("llama-3-8b", "attention.core", "mlp", "--set", "b=1")


@pytest.mark.slow
def test_a_map_is_drawn(tmp_path):
    picture = tmp_path / "map.svg"
    axes = ("--over", "l=512:100000", "e=512:8192", "-o", str(picture))
    assert run("dominance", *PARTS, *axes).exit_code == 0
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (("crossover", "gpt", "attention", "memory", "--in", "l"), "one unit"),
        (("crossover", "gpt", "atention", "mlp", "--in", "ll"), "2 problems"),
        (("crossover", "gpt", "norm", "mlp", "--in", "l"), "name one of them"),
        (("solve", "memory == 80 s", "gpt2", "--for", "l", "--set", "b=1"), "another unit"),
        (("solve", "memory", "gpt2", "--for", "l"), "a quantity and a number"),
        (("solve", "memory == 80 GiB", "gpt", "--for", "l"), "no number for"),
        (("solve", "params <= 1e9", "gpt2", "--for", "b"), "does not depend on b"),
        (("solve", "__import__('os')", "gpt2", "--for", "b"), "an operator"),
        (("optimum", "gpt2", "--of", "saved", "--in", "b", "--range", "9:1"), "LEAST:MOST"),
        (("sensitivity", "gpt", "--of", "flops"), "no number for"),
        (("dominance", "gpt", "mlp"), "two or more"),
        (("dominance", "gpt", "mlp", "head", "-o", "x.svg"), "needs its axes"),
    ],
)
def test_refusals(line, told):
    result = run(*line)
    assert result.exit_code == 2
    assert told in result.output


@pytest.mark.parametrize("text", ["80 GiB >= memory", "memory <= 80 GiB"])
def test_both_ways_round(text):
    asked = question(text)
    assert (asked.name, asked.sign, asked.bound) == ("memory", "<=", 80 * 2**30)


def test_a_part_that_is_always_greater_meets_another_nowhere():
    sheet = crossing(sc.job("mamba2-2.7b"), "mixer", "head", "l").sheet()
    (row,) = sheet.rows
    assert row[2] == "none"
    assert row[3] == "mixer is greater than head at every l from 1 on"


def test_a_bound_that_no_size_meets_says_what_is_in_the_way():
    solved = solve("memory == 80 GiB", sc.job("llama-3-70b", "tp=8"), "l")
    assert solved.integer is None
    assert solved.refused == "no l meets the bound"
    assert solved.binds.startswith("backward: optimizer")


def test_learned_positions_bound_the_length():
    solved = solve("memory == 80 GiB", sc.job("gpt2"), "l")
    assert solved.integer > 100_000
    assert solved.legal == 1024
    assert "no l above 1024 is legal" in "\n".join(solved.sheet().notes)
    beyond = sc.job("bert-base", numbers={"l": 1024})
    assert "512 learned positions: of 1024, those beyond have no row" in "\n".join(header(beyond))


def test_a_length_beyond_the_one_on_record_is_told():
    solved = solve("memory == 80 GiB", sc.job("llama-3-8b", "tp=8,dp=8,zero=3"), "l")
    assert solved.legal > 8192
    assert "is beyond the l = 8192 on record" in "\n".join(solved.sheet().notes)


def test_a_bound_from_below_is_met_from_the_first_on():
    """2 b l e over 8 ranks: twice 70.44 GiB are the first above 100 GB; above 10 GB all are."""
    job = sc.job("llama-3-70b", "tp=8")
    rows = {row[0]: row[2] for row in solve("comm >= 100 GB", job, "b").sheet().rows}
    assert rows["first integer b"] == 2
    rows = {row[0]: row[2] for row in solve("comm >= 10 GB", job, "b").sheet().rows}
    assert rows == {"b": "every one"}
    rows = {row[0]: row[2] for row in solve("comm <= 100 GB", job, "b").sheet().rows}
    assert rows["last integer b"] == 1


def test_answers_are_told_with_the_size_that_they_are_of():
    """The notes are of the job at the answer, not at the number that was asked for."""
    job = sc.job("llama-3-8b", "tp=8,sp", {"b": 1}, precision="bf16-mixed")
    found = solve("memory == 80 GiB", job, "l")
    assert f", l = {found.legal}," in header_of(found.sheet())
    assert ", l = 13939" in header_of(crossing(job, "attention", "mlp", "l").sheet())
    best = best_size(sc.job("llama-3-8b", "tp,sp", {"b": 1}), "memory", "m1", range(1, 9))
    assert "m1 = 8" in header_of(best.sheet())


def header_of(sheet):
    return sheet.notes[-1]


@pytest.mark.slow
@pytest.mark.parametrize("ask", ["solve", "optimum"])
def test_another_stage_that_holds_more_is_told(ask):
    """Dense layers lead: stages between hold more of the mixtures than the first one."""
    sizes = {"M": 16, "l": 4096} if ask == "optimum" else {"M": 16, "b": 1}
    parallel = "tp=8,sp,pp=16,ep=8,dp=16,zero=1"
    job = sc.job("deepseek-v3", parallel, sizes, recompute="full", precision="bf16-mixed")

    def said(run):
        if ask == "solve":
            return solve("memory == 80 GiB", run, "l").sheet()
        return best_size(run, "memory", "b", range(1, 4)).sheet()

    (note,) = [note for note in said(job).notes if "--stage" in note]
    fullest = job.replace(stage="middle")
    assert note.startswith("stage middle holds ")
    assert note.endswith(" there, more than stage first: --stage middle")
    assert not [note for note in said(fullest).notes if "--stage" in note]


def test_what_is_the_same_meets_nowhere():
    gpt2 = sc.job("gpt2", conventions="model-flop")
    with pytest.raises(InputError, match=r"mlp.fc1 and mlp.fc2 are equal at every l"):
        crossing(gpt2, "mlp.fc1", "mlp.fc2", "l")


@pytest.mark.slow
def test_where_communication_outgrows_the_rest_of_a_step():
    """The times on both sides of the answer are those of two other steps."""
    run = sc.job("llama-3-8b", "tp=16,sp", {"b": 1, "M": 1}, system="h100")
    found = crossing(run, "exposed", "computing", "l")
    assert 480 < found.integer <= 496
    assert "first l at which exposed is greater" in str(found.sheet().rows)
    for size, is_greater in ((480, False), (496, True)):
        step = run.replace(numbers={"b": 1, "M": 1, "l": size}).time()
        waited, whole = (float(step.total(name)) for name in ("exposed", "step"))
        assert (waited > whole - waited) is is_greater


def test_communication_that_never_outgrows_the_rest_is_told():
    alone = sc.job("gpt2", "tp=4,sp", {"b": 1, "M": 1}, system="h100", stack="roofline")
    rows = crossing(alone, "exposed", "computing", "l").sheet().rows
    assert rows[0][-1] == "computing is greater than exposed at every l from 1 on"


def test_times_without_a_number_are_no_crossover():
    run = sc.job("gpt2", "tp=4,sp", {"b": 1}, system="h100", stack="roofline")
    with pytest.raises(InputError, match=r"no number for M .*: bind them"):
        crossing(run, "exposed", "computing", "l")


def test_a_memory_is_told_in_the_bytes_of_its_precision():
    """Costs beside it as well: they are compared with it."""
    gpt2 = sc.job("gpt2", numbers={"b": 1, "M": 1})
    sheet = sensitivity_sheet(gpt2, ["memory", "saved"])
    assert "bytes of precision bf16-mixed" in sheet.notes
    assert "bytes of precision bf16-mixed" not in sensitivity_sheet(gpt2, ["saved"]).notes
    assert crossing(gpt2, "weight_gradients", "memory", "l").sides[0].run.precise


def test_a_degree_goes_by_the_name_of_its_strategy():
    own = sc.job("llama-3-8b", "tp", {"b": 1, "l": 1024, "M": 1})
    sizes = [best_size(own, "memory", by, range(1, 9)).integer for by in ("tp", "m1")]
    assert sizes == [8, 8]
