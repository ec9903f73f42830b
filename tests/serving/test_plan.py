"""Plans: what binds, what is chosen, what is refused, and how it is told."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from sympy import Rational

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.errors import InputError

LLAMA = {
    "model": "llama-3-70b", "system": "h100", "prompt": 1000, "answer": 200, "chunk": "none"
}  # fmt: skip


def test_targets_bind():
    free = sc.serve_plan(**LLAMA, gpus=8, strategy="tp=8")
    tight = sc.serve_plan(**LLAMA, gpus=8, strategy="tp=8", itl=0.03)
    assert free.best[0].binds == "memory"
    assert "ITL" in tight.best[0].binds
    assert tight.best[0].itl <= 0.03 < free.best[0].itl
    assert tight.best[0].tokens < free.best[0].tokens


def test_rate_takes_no_more_engines_than_it_needs():
    (best,) = sc.serve_plan(**LLAMA, gpus=64, strategy="tp=8", rate=10.0).best
    assert best.engines < 8
    assert best.requests == pytest.approx(10, rel=1e-6)


def test_nothing_serves_says_why_and_what_is_nearest():
    with pytest.raises(InputError) as refused:
        sc.serve_plan(**LLAMA, gpus=2, ttft=0.01)
    text = "\n".join(refused.value.problems)
    assert "one GPU: does not fit" in text
    assert "tp=2: misses TTFT" in text


def test_every_wrong_option_is_told_at_once():
    wrong = {"system": "h1oo", "prompt": 0, "itl": -1.0, "gpus": 0, "strategy": "tp"}
    with pytest.raises(InputError) as refused:
        sc.serve_plan(**{**LLAMA, **wrong})
    assert len(refused.value.problems) >= 5


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"system": "symbolic"}, "machine with kernels on record"),
        ({"model": "llama"}, "have no number"),
        ({"strategy": "tp=2,dp=2,zero=1"}, "zero does not serve"),
        ({"prefill_strategy": "tp=2"}, "ask for split"),
        ({"model": "opt-13b", "prompt": 2000}, "opt-13b learned 2050 positions"),
    ],
)
def test_what_would_not_be_read_is_refused(changes, said):
    with pytest.raises(InputError, match=said):
        sc.serve_plan(**{**LLAMA, "gpus": 8, **changes})


def test_split_without_room_for_two_engines_is_told():
    plans = sc.serve_plan(**LLAMA, gpus=8, strategy="tp=8", split=True)
    assert "two engines" in plans.refused["tp=8, prompts apart"]


APART = {"gpus": 48, "strategy": "tp=8", "prefill_strategy": "tp=4", "split": True}


def apart(**changes):
    plans = sc.serve_plan(**{**LLAMA, **APART, **changes})
    return next(plan for plan in plans.best if plan.apart)


def test_pools_are_no_larger_than_a_rate_asks_for():
    """One engine less of either kind misses the rate or a target."""
    best = apart(rate=20.0, ttft=0.5, itl=0.03)
    counts = best.apart[1], best.engines
    assert (best.ttft <= 0.5, best.itl <= 0.03, best.gpus) == (
        True,
        True,
        4 * counts[0] + 8 * counts[1],
    )
    assert best.requests == pytest.approx(20, rel=1e-6)
    with pytest.raises(InputError, match=r"tp=8, prompts apart: (takes|misses)"):
        sc.serve_plan(**{**LLAMA, **APART, "gpus": best.gpus - 4}, rate=20.0, ttft=0.5, itl=0.03)


def test_pools_keep_step_with_each_other():
    best = apart()
    sent = best.apart[1] * 0.95 / best.steady.prompt
    decoded = best.engines * best.steady.decoded(best.steady.sequences)
    assert best.requests == pytest.approx(min(sent, decoded))
    assert best.gpus <= 48
    one_prompt = best.sized.sequence_bytes(1000) / (50e9 * 0.8)  # of the link between nodes
    assert best.steady.prefilling.transfer == pytest.approx(2 * one_prompt, rel=0.3)


SMALL = {"model": "llama-3-8b", "system": "l40s", "gpus": 1, "prompt": 1500, "answer": 200}


def test_chunk_of_most_tokens_is_chosen():
    plans = {
        chunk: sc.serve_plan(**SMALL, strategy="tp=1", itl=0.1, chunk=chunk).best[0]
        for chunk in ("best", "none", 512)
    }
    assert plans["best"].tokens == max(plan.tokens for plan in plans.values())
    assert plans["best"].tokens > 1.05 * plans["none"].tokens
    assert (plans["none"].chunk, plans[512].chunk) == (None, 512)
    assert plans[512].binds == "prompts"  # steps take no more, whatever room there is


@pytest.mark.slow
def test_largest_batch_that_meets_the_targets_is_found():
    """One sequence more misses the target."""
    best = sc.serve_plan(**SMALL, strategy="tp=1", itl=0.06, ttft=1.0, chunk=512).best[0]
    steady = best.steady
    more = type(steady)(steady.load, steady.sequences + 1, steady.times, 512)
    assert best.itl <= 0.06
    assert best.ttft <= 1.0
    assert more.between > 0.06 or more.first_token > 1.0


@pytest.mark.slow
def test_shared_prefix_is_cached_once_and_not_prefilled_again():
    plain = sc.serve_plan(**SMALL, strategy="tp=1", chunk=512).best[0]
    shared = sc.serve_plan(**SMALL, strategy="tp=1", chunk=512, shared_prefix=1000).best[0]
    cascade = sc.serve_plan(
        **SMALL, strategy="tp=1", chunk=512, shared_prefix=1000, prefix_reading="cascade"
    ).best[0]
    assert plain.sequences < shared.sequences
    assert plain.tokens < shared.tokens < cascade.tokens
    sized = shared.sized
    held = sized.weights + sized.cache(1000) + shared.sequences * sized.sequence_bytes(1700)
    assert shared.memory == held
    assert sized.sequence_bytes(1700) == sized.cache(700)


@pytest.mark.slow
def test_accepted_drafts_shorten_itl_at_a_small_batch():
    few = {**SMALL, "strategy": "tp=1", "chunk": "none", "itl": 0.03}
    plain = sc.serve_plan(**few).best[0]
    drafted = sc.serve_plan(**few, draft=4, acceptance=0.8).best[0]
    assert drafted.tokens > 1.3 * plain.tokens


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"chunk": 0}, "'best' or 'none' is accepted"),
        ({"chunk": "many"}, "chunk = 'many': an integer from 1"),
        ({"shared_prefix": 1500}, "shared = 1500: an integer from 0 to 1499"),
        ({"prefix_reading": "cascade"}, "say how long the shared prefix is"),
        ({"prefix_reading": "twice"}, "prefix_reading"),
        ({"draft": 4}, "go together"),
        ({"draft": 99, "acceptance": 0.5}, "an integer from 0 to 15"),
        ({"draft": 4, "acceptance": 1.5}, "a share from 0 to 1"),
        ({"draft_model": "llama-3-8b"}, "say how many tokens it drafts"),
        ({"draft_model": "llama-3-8x", "draft": 1, "acceptance": 0.5}, "unknown model"),
    ],
)
def test_options_are_refused_in_words(changes, said):
    with pytest.raises(InputError, match=said):
        sc.serve_plan(**{**SMALL, **changes})


def test_interval_holds_what_is_expected_and_is_wider_where_no_kernels_were_measured():
    widths = []
    for system in ("h100", "h200"):
        plan = sc.serve_plan(**{**SMALL, "system": system}, strategy="tp=1", chunk="none").best[0]
        own = sc.serving.span(plan, lambda one: one.itl)
        assert own.low < plan.itl < own.high
        widths.append((own.high - own.low) / plan.itl)
        assert sc.serving.spreads(plan.sized.engine)["attention of steps"] > 0.1
    assert widths[0] < widths[1]


def test_a_cluster_serves_as_much_slower_as_its_kernels_are():
    own = sc.systems.machine("h100")
    slow = replace(own.efficiencies.computing, value=Rational(11, 10), includes="fitted to 3 steps")
    cluster = replace(own, efficiencies=replace(own.efficiencies, computing=slow))
    plans = [
        sc.serve_plan(**{**SMALL, "system": system}, strategy="tp=1", chunk="none")
        for system in (own, cluster)
    ]
    before, after = (plan.best[0].sized.step.seconds for plan in plans)
    numbers = {"b": 8, "c": 1000}
    for kind, took in before(numbers).items():
        assert after(numbers)[kind] == pytest.approx(took * (1 if kind == "collectives" else 1.1))
    assert (
        "computing 1.1 (fitted to 3 steps)"
        in plans[1].best[0].sized.engine.kernels.machine.efficiencies.fitted
    )


def run(*arguments):
    return CliRunner().invoke(main, ["serve-plan", *arguments])


def test_command_line_draws_a_front(tmp_path):
    options = ["llama-3-8b", "--system", "l40s", "--gpus", "2", "--input", "500"]
    options += ["--output", "100", "--pareto", "--chunk", "none", "--strategy", "tp=1", "--split"]
    picture = tmp_path / "front.svg"
    done = run(*options, "-o", str(picture))
    assert (done.exit_code, done.stderr) == (0, "")
    assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_command_line_refuses_with_one_message(tmp_path):
    options = ["llama-3-8b", "--system", "l40s", "--gpus", "1", "--input", "500"]
    options += ["--output", "1", "--itl", "5min", "--prefill-strategy", "tp=1"]
    done = run(*options, "-o", str(tmp_path / "x.csv"))
    assert done.exit_code == 2
    assert "--itl '5min'" in done.stderr
    assert "ask for split" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_command_line_prints_a_table_of_80_columns():
    options = ["llama-3-8b", "--system", "l40s", "--gpus", "1", "--input", "500"]
    options += ["--output", "100", "--chunk", "512", "--shared-prefix", "100", "--price", "2"]
    done, data = (
        CliRunner().invoke(main, ["serve-plan", *options, *form], env={"COLUMNS": "80"}).stdout
        for form in ((), ("--format", "json"))
    )
    assert max(map(len, done.splitlines())) <= 80
    assert "four of five such engines" in done
    assert "USD" in done
    data = json.loads(data)
    (row,) = data["records"]
    assert row["chunk"] == 512
    assert {"TTFT", "requests/s", "memory", "USD/Mtoken", "kWh/Mtoken"} <= set(row)


def test_command_line_names_what_is_nearest():
    options = ["llama-3-8b", "--system", "l40s", "--gpus", "1", "--input", "500"]
    done = run(*options, "--output", "100", "--strategy", "tp=1", "--itl", "1ms", "--chunk", "none")
    assert done.exit_code == 1
    nearest = " ".join(done.stdout.split())
    assert "nearest, at" in nearest
    assert "with 1 sequence and whole prompts" in nearest


MTP = {"draft": 1, "acceptance": 0.85, "draft_model": "mtp"}


def test_block_that_drafts_costs_about_one_layer_more():
    small = {**SMALL, "strategy": "tp=1", "chunk": "none", "itl": 0.06}
    free, drafted = (
        sc.serve_plan(**small, draft=1, acceptance=0.8, draft_model=name).best[0]
        for name in ("", "mtp")
    )
    times = [sum(one.sized.stepped(16, 1600).values()) for one in (free, drafted)]
    layers, head = 32 * 218.1e6, 525.3e6  # parameters of a layer, and of the head
    extra = (218.1e6 + 2 * 4096**2 + head) / (layers + head)
    assert times[1] / times[0] - 1 == pytest.approx(extra, rel=0.15)
    assert drafted.sized.weights / free.sized.weights < 1 + 1.3 / 32
    with pytest.raises(InputError, match="no block for further tokens"):
        sc.serve_plan(**{**small, "model": "mamba-2.8b"}, **MTP)


@pytest.mark.slow
def test_small_model_without_experts_has_copies_on_ranks_that_divide_experts():
    small = {**SMALL, "model": "qwen3-30b-a3b", "gpus": 4, "chunk": "none", "system": "h100"}
    drafts = {"draft": 2, "acceptance": 0.7, "draft_model": "qwen3-8b"}
    plan = sc.serve_plan(**small, **drafts, strategy="dp=4,ep=4").best[0]
    assert str(plan.sized.drafting.engine.strategy) == "dp=4"
    assert plan.sized.weights > plan.sized.drafting.weights > 16e9
