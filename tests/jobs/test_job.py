"""One value for a model run one way: the same answers as its parts, and numbers late as early."""

from fractions import Fraction

import pytest
from click.testing import CliRunner
from sympy import Integer, Rational

import symbolic_cost as sc
from symbolic_cost.cli import main
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.errors import DivisibilityError, InputError, UnknownNameError
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.models.kernels import Attention, running
from symbolic_cost.ops.derive import cost as derived
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.moments import moments
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table

STRATEGY = "tp=8,sp,pp=8,dp=8,zero=1"


def gpt3(**options):
    return sc.job("gpt3-175b", STRATEGY, system="a100-80gb", global_batch=64, **options)


def test_a_job_asks_what_the_parts_answer():
    model = running(sc.model("llama-3-8b"), Attention.FLASH).model
    strategy = parse_strategy("tp,sp,dp")
    rows = strategy_table(on_every_rank(model, strategy), strategy, STANDARD)
    job = sc.job("llama-3-8b", "tp,sp,dp")
    assert job.rows.total("flop") == rows.total("flop")
    assert job.rows.total("saved") == rows.total("saved")


def test_the_microbatch_is_that_of_one_rank():
    alone, many = sc.job("llama"), sc.job("llama", "dp=8")
    for quantity in ("flop", "saved", "read"):
        assert many.rows.total(quantity, phase="forward") == alone.rows.total(
            quantity, phase="forward"
        )


def test_cost_is_complete_for_every_strategy():
    """A placement alone knows no stages, no steps and no axes of a strategy."""
    for strategy in ("tp,sp,pp", "ulysses", "ring", "2d", "2.5d", "3d", "cp,dp"):
        table = sc.cost("gpt", strategy=strategy)
        assert len(table.select("communication")), strategy
    stage = sc.cost("gpt", strategy="tp,sp,pp=4", stage="middle")
    assert {row.path.split(".")[0] for row in stage} >= {"block"}
    assert not stage.select(where=lambda row: row.path.startswith("embedding"))


def test_objects_do_where_names_do():
    named = sc.cost("gpt", "model-flop", "tp=4")
    made = sc.cost(GPT(), sc.preset("model-flop"), sc.parse_strategy("tp=4"))
    assert named.total("flop") == made.total("flop")
    placed = sc.cost(GPT().model(), "model-flop", sc.Placement({"tp": 4}, {"f": ("tp",)}))
    assert placed.total("flop") == derived(
        GPT().model(), sc.preset("model-flop"), sc.Placement({"tp": 4}, {"f": ("tp",)})
    ).total("flop")


def test_numbers_may_come_later():
    early = sc.job("llama-3-8b", "tp=8", {"l": 32768}).table()
    late = sc.job("llama-3-8b", "tp").bind(l=32768, tp=8).table()
    for quantity in ("flop", "saved", "parameter", "communication"):
        assert early.total(quantity) == late.total(quantity)
    assert early.total("saved").is_Integer


def test_a_job_is_changed_by_replacing_options():
    changed = gpt3(recompute="selective").replace(strategy="tp=4,pp=16,dp=16")
    assert changed.training.microbatches == Integer(4)
    assert changed.training.recompute.name == "selective"
    assert changed.machine is not None
    assert changed.strategy.degree("pp") == 16


def test_memory_says_what_binds():
    memory = gpt3(recompute="selective").memory()
    assert memory.fits
    assert memory.fits.peaks[memory.fits.fullest].size >= memory.peak
    tight = sc.job("gpt3-175b", "tp=8", system="a100-80gb", global_batch=1).memory().fits
    assert not tight
    assert "usable" in str(tight)


def test_fits_names_the_stage_and_the_moment_that_bind():
    job = sc.job("gpt3-175b", "pp=4,dp=2,zero=1", {"M": 8}, system="h100")
    fits = job.memory().fits
    assert not fits
    assert f"DOES NOT FIT: {fits}" in " ".join(str(job.memory()).split())
    assert list(fits.peaks) == ["first", "middle", "last"]
    for stage, peak in fits.peaks.items():
        held = moments(job.replace(stage=stage).memory_rows)
        assert peak.size == job.value(held[peak.moment]) == max(map(job.value, held.values()))


def test_the_peak_is_a_formula_while_the_microbatches_are_open():
    memory = sc.job("gpt3-175b", "pp=4", system="h100").memory()
    assert not memory.fits.has_numbers
    assert {symbol.name for symbol in memory.peak.free_symbols} == {"M"}
    assert "peak" in str(memory)
    assert "FIT" not in str(memory)


def test_time_tells_what_does_not_fit():
    time = sc.job("gpt3-175b", "tp=8", system="a100-80gb", global_batch=1).time()
    assert "DOES NOT FIT" in str(time)


def test_kernels_decide_seconds_and_conventions_what_is_reported():
    flash, eager = gpt3().time(), gpt3(attention="eager").time()
    assert flash.step < eager.step
    causal = gpt3(conventions="model-flop-causal").time()
    assert causal.step == flash.step
    assert causal.mfu < flash.mfu
    assert max(flash.mfu, eager.mfu, causal.mfu) < 1


def test_headers_say_what_a_number_is_of():
    text = str(gpt3().time())
    for said in ("attention flash", "causal mask", "stage first", "bf16-mixed", "a100-80gb"):
        assert said in text


REFUSED = [
    ({"strategy": "tp=8", "numbers": {"m1": 4}}, "contradicts the strategy"),
    ({"strategy": "tp=8", "numbers": {"tp": 4}}, "contradicts the strategy"),
    ({"strategy": "dp=8", "numbers": {"tp": 4}}, "no tp whose degree"),
    ({"strategy": "tp=8", "numbers": {"E": 4}}, "symbol of model"),
    ({"strategy": "pp=2", "stage": "middle"}, "middle"),
    ({"strategy": "tp=8", "attention": "flas"}, "flash"),
    ({"strategy": "tp=8", "overlap": "dp=full"}, "no mesh axis dp"),
    ({"strategy": "tp=8", "global_batch": 0}, "positive integer"),
    ({"strategy": "dp=8", "global_batch": 12}, "multiple of the 8"),
    ({"strategy": "dp=8", "global_batch": 8, "numbers": {"M": 3}}, "give one"),
    ({"strategy": "tp=8", "sistem": "h100"}, "system"),
    ({"tp": 8}, r'unknown option \'tp\': a strategy is one text, as in "tp=8"'),
    ({"l": 4096}, r"unknown option 'l': numbers go together, as in \{'l': 4096\}"),
]


@pytest.mark.parametrize(("changes", "text"), REFUSED)
def test_contradictions_are_refused(changes, text):
    with pytest.raises(InputError, match=text):
        sc.job("gpt3-175b", **changes)


def test_all_problems_are_told_at_once():
    with pytest.raises(InputError) as caught:
        sc.job("gpt33", "tpp=2", system="h1000", recompute="al", precision="fp7")
    assert len(caught.value.problems) == 5


@pytest.mark.parametrize("family", ["mamba-2.8b", "resnet-18", "lstm-large"])
def test_recompute_policies_that_match_nothing_are_refused(family):
    with pytest.raises(InputError, match="no attention core that could run again"):
        sc.job(family, recompute="selective").rows  # noqa: B018 - rows are derived when asked for


def test_work_that_no_rank_shares_is_refused_with_op_and_axes():
    with pytest.raises(InputError, match=r"block\.layer\.cell \[b batch, l token query"):
        sc.job("lstm-large", "tp=8").rows  # noqa: B018 - rows are derived when asked for


@pytest.mark.parametrize(("ranks", "copies"), [(8, 1), (16, 2), (64, 8)])
def test_ranks_beyond_the_key_value_heads_share_these(ranks, copies):
    """Llama-3-70B has 8 key/value heads: every rank has one, and its part of the query heads."""
    whole = sc.job("llama-3-70b", "", {"l": 4096}, conventions="model-flop").table()
    job = sc.job("llama-3-70b", f"tp={ranks}", {"l": 4096}, conventions="model-flop")
    late = sc.job("llama-3-70b", "tp", {"l": 4096}, conventions="model-flop").bind(tp=ranks)
    assert job.strategy.copies == late.strategy.copies == copies
    keys, queries = (f"block.attention.{name}" for name in "kq")
    for path, times in ((keys, copies), (queries, 1), ("block.mlp.up", 1)):
        one, all_ranks = (
            table.total("flop", phase="forward", path=path) for table in (job.table(), whole)
        )
        assert one * ranks == all_ranks * times
        assert late.table().total("flop", phase="forward", path=path) == one
    shared = {each.path for each in job.repeated if each.reason.name == "shared key/value heads"}
    assert shared == ({keys, "block.attention.v"} if copies > 1 else set())


def test_heads_that_cannot_be_shared_evenly_are_refused():
    with pytest.raises(InputError, match="k"):
        sc.job("llama-3-70b", "tp=12", {"l": 4096}).table()


def test_stages_are_uneven_where_the_blocks_are():
    """61 blocks on 16 stages, as DeepSeek-V3 ran: 4 on a middle stage, 3 and 2 at the ends."""
    options = {"system": "h100", "global_batch": 4096, "recompute": "selective"}
    job = sc.job("deepseek-v3", "tp=8,sp,pp=16,ep=8,dp=8,zero=1", {"b": 1, "l": 4096}, **options)
    assert job.trained.layout == "uneven"
    assert "layout uneven" in " ".join(str(job.memory()).split())
    assert sc.job("deepseek-v3", "pp").bind(pp=16).trained.layout == "uneven"
    assert sc.job("llama-3-70b", "pp=8").trained.layout == "even"
    with pytest.raises(InputError, match="61"):
        sc.job("deepseek-v3", "pp=16", layout="even").table()


def test_saved_bytes_that_were_not_checked_say_so():
    said = "not checked against PyTorch"
    assert said not in str(sc.job("llama-3-8b").table("saved"))
    assert said in str(sc.job("falcon-7b").table("saved"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tp", "tp,sp", "cp", "ulysses", "ring", "dp", "pp"])
def test_one_rank_bound_later_is_no_strategy(name):
    """A degree of one is no degree, whether it is known first or last."""
    degree, numbers = name.split(",")[0], {"l": 4096, "b": 1, "M": 4}
    late = sc.job("llama-3-8b", name, numbers, system="h100").bind(**{degree: 1})
    alone = sc.job("llama-3-8b", "", numbers, system="h100")
    for cost in ("flops", "params", "saved", "bytes", "comm"):
        assert late.total(cost) == alone.total(cost)
    assert late.memory().peak == alone.memory().peak
    assert late.time().step == alone.time().step


def test_headers_say_what_is_assumed_of_symbols():
    assert "m1 >= 2, pp >= 3" in str(sc.job("llama", "tp,pp").table("params"))


def test_what_is_on_the_host_is_no_share_of_the_peak():
    memory = sc.job("gpt2", "dp=8,zero=1", {"b": 1, "M": 1}, offload="optimizer").memory()
    shares = {row[0]: row[-1] for row in memory.sheet.rows}
    assert shares["optimizer on the host"] is None
    named = ("weight", "weight gradient", "master weight", "saved", "workspace")
    assert abs(sum(shares[name] for name in named) - 100) < 0.05


def test_a_global_batch_stays_when_numbers_come_later():
    run = sc.job("gpt2", "dp=4", system="a100-80gb", global_batch=64)
    built = sc.job("gpt2", "dp=4", {"b": 2}, system="a100-80gb", global_batch=64)
    assert run.bind(b=2).training.microbatches == built.training.microbatches == 8
    with pytest.raises(InputError, match="makes 16 microbatches, M=4 is given"):
        run.bind(M=4)
    with pytest.raises(InputError, match="a multiple of the 12 sequences"):
        run.bind(b=3)
    with pytest.raises(InputError, match="8 microbatches and M=4"):
        sc.job("gpt2", "dp=4", system="a100-80gb", microbatches=8).bind(M=4)


def test_a_table_of_memory_says_which_stage_holds_most():
    """The last stage of GPT-2 has the head; the table is of the first unless another is asked."""
    known = {"b": 1, "M": 8}
    shown = {
        (system, stage): str(sc.job("gpt2", "pp=4", known, system=system, stage=stage).memory())
        for system in ("h100", None)
        for stage in ("first", "last")
    }
    said = "stage last holds more than stage first: --stage last"
    assert [said in text for text in shown.values()] == [True, False, False, False]
    assert "a machine says which stage holds most" in shown[None, "first"]
    ends = sc.job("gpt3-175b", "pp=2", {**known, "M": 4}, layout="ends=1/3", stage="last")
    assert "layout ends=1/3, 47 of 96 blocks" in str(ends.memory())


@pytest.mark.parametrize("number_later", [False, True])
def test_chunks_without_blocks_are_refused(number_later):
    """12 blocks in 5 chunks on each of 4 stages: 20 places, of which the ends lack 4 each."""
    known = {"b": 1, "M": 8}
    numbers = known if number_later else {**known, "v": 5}
    own = sc.job("gpt2", "pp=4", numbers, schedule="interleaved")
    with pytest.raises(InputError, match=r"at the end: -3 is less than 0.* than a chunk has"):
        (own.bind(v=5) if number_later else own).memory()


def test_no_more_blocks_run_again_than_there_are():
    assert sc.job("gpt2", recompute="full/12").total("saved") > 0
    said = "blocks of the model: n_layers = 12 is less than 13: recompute full/13 keeps"
    for refused in (sc.Job.memory, sc.Job.table):
        with pytest.raises(InputError, match=said):
            refused(sc.job("gpt2", recompute="full/13"))
    with pytest.raises(InputError, match=said):
        sc.job("gpt", recompute="full/13").bind(n_layers=12).total("saved")


def test_what_a_script_tries_first():
    """A peak, a step and a plain number have one way in; text has the name of the other."""
    own = sc.job("gpt2", "tp=2", {"b": 1, "M": 1}, system="h100")
    assert own.memory().total("peak") == own.memory().peak
    assert own.time().total("mfu") == own.time().number("mfu")
    with pytest.raises(InputError, match="peak is one number: neither a phase nor a path"):
        own.memory().total("peak", phase="forward")
    with pytest.raises(UnknownNameError, match="unknown cost 'peak'"):
        own.table().total("peak")
    assert own.value(1) == 1
    assert own.value(Fraction(1, 3)) == Rational(1, 3)
    with pytest.raises(InputError, match=r"\.total\('params'\) gives a cost by name"):
        own.value("params")


def test_rows_of_memory_refuse_numbers_that_do_not_divide():
    with pytest.raises(DivisibilityError, match=r"axis h \(12\) is not divisible by mesh axis tp"):
        sc.job("gpt2", "tp=5", {"b": 1}).memory_rows  # noqa: B018 - what refuses is asked for
    assert sc.job("gpt2", "tp").bind(tp=4).memory_rows.total("weight") != 0


@pytest.mark.parametrize("name", ["mistral", "gemma2", "gpt_oss"])
def test_a_window_is_a_number_to_give(name):
    """No op runs over the keys that a query sees at most, and yet costs have their symbol."""
    one, other = (
        sc.job(name, "", {"l": 64, "W": width}, conventions="model-flop-causal")
        for width in (16, 64)
    )
    assert one.total("flops_fwd") != other.total("flops_fwd")
    assert "W" not in {symbol.name for symbol in one.total("flops_fwd").free_symbols}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("table gpt2 --columns flops_fwd,params", False),
        ("table gpt2 --columns params,saved", True),
        ("formula params gpt2", False),
        ("formula saved gpt2", True),
        ("tree gpt2 --of flops", False),
        ("scale flops gpt2", False),
        ("comm gpt2 --strategy tp=2", False),
        ("time gpt2 --set b=1,M=1", False),
        ("time gpt2 --set b=1,M=1 --offload saved", True),
        ("roofline gpt2 --set b=1", False),
        ("sensitivity gpt2 --of params --set b=1", False),
        ("sensitivity gpt2 --of memory --set b=1,M=1", True),
        ("memory gpt2", True),
    ],
)
def test_saved_bytes_are_told_as_unchecked_where_they_are_shown(line, told):
    result = CliRunner().invoke(main, line.split())
    assert result.exit_code == 0, result.output
    assert ("saved bytes not checked" in result.output) is told
