"""Software stacks: rates by kind of kernel, links, gathers by block, and the interval of a step."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import geometric_mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import CollectiveKind, Phase
from symbolic_cost.reading import package_data
from symbolic_cost.symbols import p
from symbolic_cost.systems.chain import Chain
from symbolic_cost.systems.kernel_records import kernels, nearest
from symbolic_cost.systems.links import Measured, outer_links
from symbolic_cost.systems.network import Hop, Link
from symbolic_cost.systems.pricing import KINDS, OF_CLUSTER, SLOWNESS
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.spread import COMPUTING, doubts, ends
from symbolic_cost.systems.stacks import ASSUMED, ROOFLINE, stack, stack_names, usual

RECORD = package_data("systems/stacks.toml")
ONE = Integer(1), Integer(1)


def kernel_rates(part):
    return package_data("systems/kernels.toml")["measured"]["h100"][part]


def gpt2(**options):
    return sc.job("gpt2", "dp=2", {"b": 1, "M": 2}, **{"system": "h100", **options})


@pytest.fixture(scope="module")
def timed():
    return gpt2(stack="megatron-core").time()


@pytest.mark.parametrize("name", [name for name in stack_names() if name != ROOFLINE])
def test_every_fact_has_a_source(name):
    facts = {k: v for k, v in RECORD["stacks"][name].items() if isinstance(v, dict)}
    assert {fact["source"] for fact in facts.values()} <= {*RECORD["sources"], ASSUMED}
    assert stack(name).attention in RECORD["generations"]


def test_names_that_are_none_are_refused_with_the_closest():
    with pytest.raises(
        InputError, match="unknown stack 'megatrn-core': did you mean megatron-core"
    ):
        gpt2(stack="megatrn-core")


def test_a_stack_that_does_not_run_on_a_machine_is_refused():
    with pytest.raises(InputError) as refused:
        gpt2(stack="torchtitan", system="tpu-v4")
    said = str(refused.value)
    assert said.startswith("stack torchtitan runs on gpus, and tpu-v4 is a tpu: ")
    assert "maxtext" in said
    assert ROOFLINE in said


@pytest.mark.slow
def test_where_xla_compiles_no_host_issues_op_by_op():
    """A step is one program there, whatever is named; where nothing is, `unknown-xla` says so."""
    run = gpt2(system="h100").replace(system="tpu-v5e")
    assert run.methods.stack.name == "unknown-xla"
    small = sc.job("resnet-50", "dp=8", system="tpu-v5e", global_batch=64)
    hosted = small.replace(stack="unknown").time()
    assert float(small.time().step) < float(hosted.step) / 2
    assert "host" in hosted.doubt
    assert "host" not in small.time().doubt
    assert gpt2(system="h100").methods.stack.name == "unknown"
    with pytest.raises(InputError, match="stack deepseek runs on gpus"):
        gpt2(stack="deepseek", system="tpu-v4")


def test_a_stack_needs_a_machine_with_kernels():
    with pytest.raises(InputError, match="unknown machine with kernels on record 'symbolic'"):
        gpt2(stack="fsdp", system="symbolic")


def test_where_nothing_is_said(tmp_path):
    own = tmp_path / "mine.toml"
    text = (Path(sc.__path__[0]) / "systems/data/h100.toml").read_text()
    own.write_text(text.replace('name = "h100"', 'name = "mine"'))
    assert usual(machine("h100")) == "unknown"
    assert usual(machine("symbolic")) == usual(machine("lstm-roofline")) == usual(None) == ROOFLINE
    assert gpt2(system=str(own)).methods.stack is None
    for fitted in ({"cluster": {"runs": 3}}, {"kernels": {"matrix": {}}}):  # by `calibrate`
        assert usual(replace(machine("h100"), **fitted)) == "unknown"
    assert gpt2(system=None).replace(system="h100").methods.stack.name == "unknown"
    assert gpt2(stack="nemo").replace(system="b200").methods.stack.name == "nemo"
    assert gpt2(stack=ROOFLINE).replace(strategy="dp=4").methods.stack is None


def test_a_product_takes_what_its_kernel_does():
    """The second product of an MLP: 1024 x 3072 x 768 in 16 bits."""
    answer = gpt2(stack="nemo").time()
    (op,) = [
        op
        for op in answer.timed.step.stages[0].ops
        if op.path == "block.mlp.fc2" and op.phase == "forward"
    ]
    own = package_data("systems/kernels.toml")["measured"]["h100"]["products"]["bf16"]
    m, n, k = 1024, 768, 3072
    flop = 2 * m * n * k * (1 + own["area"] / (m * n)) * (1 + own["length"] / k)
    compute = flop / (own["share"] * 0.86 * 989.4e12)
    bias = 2 * n
    moved = (2 * (m * k + k * n + m * n) + bias) / 3.35e12
    compute, memory = compute + own["cold"] * moved, moved / own["memory"]
    took = float(answer.timed.number(op.busy))
    assert math.isclose(took, own["call"] + max(compute, memory), rel_tol=0.01)


@pytest.mark.slow
def test_a_sequence_within_one_chunk_has_no_products_between_chunks():
    steps = []
    for l in (64, 128):
        job = sc.job("qwen3-next-80b-a3b", "", {"b": 1, "l": l, "M": 1}, system="h100")
        answer = job.time()
        (gain,) = [
            op
            for stage in answer.timed.step.stages
            for op in stage.ops
            if op.path == "linear.block.mixer.gain" and op.phase == "forward"
        ]
        steps.append(answer.timed.number(gain.busy))
    call = Fraction(str(kernel_rates("products")["bf16"]["call"]))
    assert steps[0] == 0 < call < steps[1]


def test_sides_that_are_not_aligned_take_longer():
    sizes = {"b": 1, "M": 1, "e": 1440, "f": 5760, "h": 8, "V": 512, "l": 128, "n_layers": 1}

    def products(e):
        own = {**sizes, "e": e, "f": 4 * e}
        answer = sc.job("gpt", "tp=8", own, system="a100-80gb", stack="megatron-2021").time()
        ops = answer.timed.step.stages[0].ops
        (op,) = [op for op in ops if op.path == "block.mlp.fc1" and op.phase == "forward"]
        return float(answer.timed.number(op.compute)) / e**2

    assert products(1440) > 1.2 * products(1536)


def _attended(width, runs):
    """Return what all products of attention compute in forward, per element of width [s]."""
    sizes = {
        "b": 1,
        "M": 1,
        "e": 16 * width,
        "f": 4096,
        "h": 16,
        "V": 512,
        "l": 2048,
        "n_layers": 1,
    }
    answer = sc.job("gpt", "tp=1", sizes, system="a100-80gb", stack=runs).time()
    ops = [op for op in answer.timed.step.stages[0].ops if op.phase == "forward"]
    core = [op for op in ops if op.path.startswith("block.attention.core") and op.compute != 0]
    return sum(float(answer.timed.number(op.compute)) for op in core) / width


def test_heads_that_are_no_whole_loads_are_multiplied_in_single_precision():
    """100 elements are 12.5 times 16 bytes: 312/19.5 of the time, without a line's misalignment."""
    apart, loaded, aligned = (_attended(width, "megatron-2021") for width in (100, 104, 128))
    assert 1.2 < loaded / aligned < 1.35
    assert 11 < apart / loaded * 1.25 < 16.5
    assert _attended(100, "megatron-core") < 1.5 * _attended(128, "megatron-core")


@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_an_all_gather_in_one_domain(ranks):
    own = kernels(machine("h100")).calls
    share, hop = outer_links()
    hops = (Hop(Link("nvlink", Integer(450 * 10**9)), Integer(ranks)),)
    took = Measured(own, share, hop).time(CollectiveKind.ALL_GATHER, Integer(2**29), hops, ONE)
    sent = 2**29 * (ranks - 1 + float(own.copy_share)) / ranks / (float(own.gathering) * 450e9)
    faster = min(sent / float(own.small), float(own.large) + sent) if ranks > 1 else 0
    call = float(own.call) * (ranks > 1)
    assert math.isclose(
        float(took), call + (ranks - 1) * float(own.hop) + faster, rel_tol=1e-9, abs_tol=1e-15
    )


def test_the_slowest_tier_sets_the_pace_and_trees_take_fewer_hops():
    own = Measured(kernels(machine("h100")).calls, *outer_links())
    links = Link("nvlink", Integer(450 * 10**9)), Link("infiniband", Integer(50 * 10**9))

    def took(nodes, size):
        hops = tuple(Hop(link, Integer(n)) for link, n in zip(links, (8, nodes), strict=True))
        return float(own.time(CollectiveKind.ALL_REDUCE, Integer(size), hops, ONE))

    whole = 2**33
    inner = (
        2 * whole * (7 / 8 + float(own.calls.copy_share) / 32) / (float(own.calls.reducing) * 450e9)
    )
    outer = 2 * whole / 8 * 3 / 4 / (float(own.outer) * 50e9)
    assert math.isclose(took(4, whole), max(inner, outer), rel_tol=0.01)
    assert took(64, 8) > took(65, 8)  # 126 hops of a ring, 14 of a tree


@pytest.mark.parametrize(("ranks", "count"), [(2, 2), (8, 4), (64, 7)])
def test_an_all_to_all_sends_to_all_at_once(ranks, count):
    """Its hops grow with the doublings of the ranks, not with their number; none among one."""
    own = kernels(machine("b200")).calls
    link = Link("nvlink", Integer(900 * 10**9))
    whole = Measured(own, *outer_links())
    for took in (
        whole.time(CollectiveKind.ALL_TO_ALL, Integer(0), (Hop(link, Integer(ranks)),), ONE),
        own.time(CollectiveKind.ALL_TO_ALL, Integer(0), Integer(ranks), link),
    ):
        assert float(took - own.call) == pytest.approx(count * float(own.hop))
    alone = whole.time(CollectiveKind.ALL_TO_ALL, Integer(8), (Hop(link, Integer(1)),), ONE)
    assert alone == 0


@pytest.mark.parametrize("kind", [CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_TO_ALL])
@pytest.mark.parametrize("ranks", [1, 2, 64, 65, 128, 129])
def test_ranks_given_first_are_ranks_given_later(ranks, kind):
    """Rings up to 64 ranks and trees beyond, whose hops are a rounded logarithm."""
    own = Measured(kernels(machine("h100")).calls, *outer_links())

    def took(count):
        hops = (Hop(Link("nvlink", Integer(450 * 10**9)), count),)
        return own.time(kind, Integer(2**20), hops, ONE)

    later = Chain({"took": took(p)}).evaluate({"p": ranks})["took"]
    assert later == took(Integer(ranks))


@pytest.mark.parametrize(("ranks", "reached"), [(2, 19.4), (4, 4.75), (8, 1.25)])
def test_all_ranks_share_the_bridges_of_a_host(ranks, reached):
    """The bandwidth that all-gathers of 64 MiB reach on l40s [GB/s], as measured."""
    own, link = kernels(machine("l40s")).calls, Link("pcie", Integer(32 * 10**9))
    size = Integer(2**26)
    took = own.time(CollectiveKind.ALL_GATHER, size, Integer(ranks), link)
    assert float(size * (ranks - 1) / ranks / took) / 1e9 == pytest.approx(reached, rel=0.15)
    hops = (Hop(link, Integer(ranks)),)
    whole = Measured(own, *outer_links())
    assert float(whole.time(CollectiveKind.ALL_GATHER, size, hops, ONE)) == pytest.approx(
        float(took)
    )
    sent = [
        whole.time(CollectiveKind.SEND_RECEIVE, size, (Hop(link, Integer(n)),), ONE)
        for n in (2, ranks)
    ]
    assert sent[0] == sent[1]


def test_attention_waits_for_rows_and_for_its_tensors():
    """GPT-2's on h100, 12 heads 64 wide over 1024 tokens: its time as the form says."""
    answer = gpt2(stack="nemo").time()
    ops = answer.timed.step.stages[0].ops
    (op,) = [o for o in ops if "attention.core" in o.path and o.phase == "forward" and o.compute]
    own = package_data("systems/kernels.toml")["measured"]["h100"]["attention"]
    heads, wide, tokens = 12, 64, 1024
    narrow = (1 + own["width"] / wide) / (1 + own["width"] / 128)
    idle = 1 + own["rows"] / (heads * tokens)
    flop = 4 * heads * wide * tokens * tokens / 2 * (1 + own["length"] / tokens) * narrow * idle
    traffic = 2 * 4 * heads * wide * tokens + 4 * heads * tokens
    took = flop / (own["share"] * 0.86 * 989.4e12) + traffic / (own["moving"] * 3.35e12)
    assert math.isclose(float(answer.timed.number(op.busy)), own["call"] + took, rel_tol=0.03)


def test_attention_computes_in_the_precision_of_the_job():
    """Single precision at its own peak, but for what moves; 16 bits beside narrower products."""
    took = {}
    for precision in ("fp32", "bf16-mixed", "fp8-hybrid"):
        answer = gpt2(stack="nemo", precision=precision).bind(l=32768).time()
        (first, *_) = (
            op
            for op in answer.timed.step.stages[0].ops
            if op.path.endswith("attention.core") and op.phase == "forward" and op.compute != 0
        )
        took[precision] = float(answer.timed.number(first.compute))
    peaks = machine("h100").matrix
    ratio = float(peaks["bf16"].value / peaks["fp32"].value)
    assert math.isclose(took["fp32"] / took["bf16-mixed"], ratio, rel_tol=0.05)
    assert took["fp8-hybrid"] == took["bf16-mixed"]


def test_gathers_go_by_block_beside_the_block_before():
    job = sc.job(
        "gpt2", "dp=8,zero=3", {"b": 4, "M": 1}, system="h100", stack="fsdp", precision="bf16-mixed"
    )
    known = job.time().timed.numbers
    block = float(known["block.forward.all-gather.dp.message"])
    e, f = 768, 3072
    weights = 4 * e * e + 4 * e + 2 * e * f + f + e + 4 * e
    assert block == 2 * weights
    gather, busy = (float(known[f"block.forward.{name}"]) for name in ("all-gather.dp", "busy"))
    assert gather < busy
    steal = float(stack("fsdp").steal)
    waits = gather + steal * 11 * gather
    parts = float(known["first.forward.exposed"])
    assert waits <= parts < 12 * gather


def test_machines_without_kernels_take_those_of_the_nearest():
    assert nearest(machine("h200")) == "h100"
    near = {"mi300x": "h100", "mi355x": "b200", "mi250x": "a100-80gb", "l40s": "l40s"}
    assert {name: nearest(machine(name)) for name in near} == near
    assert "nearest by its formats" in kernels(machine("mi300x")).note
    assert "efficiencies of its record" in kernels(machine("tpu-v5p")).note
    with pytest.raises(InputError, match="machine with kernels on record"):
        kernels(machine("symbolic"))


def test_the_interval_holds_the_step_and_is_wider_where_less_is_known(timed):
    loose, step = gpt2().time(), float(timed.step)
    assert timed.low < step < timed.high
    assert loose.high / float(loose.step) > timed.high / step
    shares = timed.timed.interval.shares
    assert math.isclose(sum(share for _, share in shares), 1)
    assert timed.doubt.startswith(shares[0][0].kind)
    assert gpt2(stack=ROOFLINE).time().low is None


def test_an_interval_is_that_of_every_kind_moved_alone(timed):
    chain, known = timed.timed.step.chain, timed.timed.numbers
    values = {symbol.name: known[symbol.name] for symbol in chain.symbols}
    step, moved = float(timed.step), []
    for doubt, _ in timed.timed.interval.shares:
        sizes = doubt.moves or {doubt.kind: doubt.spread}
        if set(sizes) <= set(KINDS):
            off = {f"{SLOWNESS}.{k}": _exact(math.exp(1.2816 * one)) for k, one in sizes.items()}
            other = {**chain.definitions, **off}
            slower = float(replace(chain, definitions=other).evaluate(values)["step"])
            moved.append(math.log(slower / step))
        else:
            moved.append(1.2816 * doubt.spread)
    assert math.isclose(timed.high, step * math.exp(math.hypot(*moved)), rel_tol=1e-6)


def test_boxes_of_one_name_compute_alike_until_their_kernels_are_measured(timed):
    (boxes,) = (one for one, _ in timed.timed.interval.shares if one.kind == COMPUTING)
    assert boxes.moves == dict.fromkeys(OF_CLUSTER[COMPUTING], boxes.spread)
    rates = timed.timed.setting.timing.rates
    own = replace(rates.kernels.machine, kernels={"products": {}})
    own = doubts(replace(rates, kernels=replace(rates.kernels, machine=own)))
    assert COMPUTING not in [one.kind for one in own]
    assert any("clock" in words for one in own for words in one.reasons)
    record_alone = gpt2(stack="maxtext", system="tpu-v5e").time()
    assert COMPUTING not in [one.kind for one, _ in record_alone.timed.interval.shares]


def test_an_interval_of_a_wide_spread_begins_above_nothing():
    """A step known to a factor of e lies between a quarter of it and four times as much."""
    low, high, _ = ends(10.0, [(9.0, 11.0)], spread=1.0)
    assert 2 < low < 3
    assert 35 < high < 45


def test_a_host_that_waits_for_every_kernel_adds_all_of_its_time():
    """Forward of two stacks alike but for that: longer by the host's time per kernel and call."""
    plain, blocks = (
        gpt2(stack=f"megatron-deepspeed{name}").bind(b=16, M=4).time().timed
        for name in ("", "-blocking")
    )
    (stage,) = plain.step.stages
    ops = [op for op in stage.ops if op.phase is Phase.FORWARD]
    host = blocks.setting.timing.device.host
    late = host * sum(stage.counts[op.path] * op.issued for op in ops)
    late = float(late.xreplace({one: blocks.numbers[one.name] for one in late.free_symbols}))
    alone, waited = (float(one.numbers[f"{stage.stage}.forward"]) for one in (plain, blocks))
    assert 0.005 < late < alone
    assert math.isclose(waited - alone, late)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    name=st.sampled_from(["mi300x", "mi355x", "b300", "h100"]),
    by=st.lists(st.integers(10, 40), min_size=4, max_size=4),
)
def test_no_machine_is_slower_at_higher_rates(name, by):
    """Peaks, memory and links, each 1 to 4 times as fast: 5.3 TB/s and twice as many of mi300x."""
    own = machine(name)

    def up(figure, tenths):
        return replace(figure, value=figure.value * Integer(tenths) / 10)

    links = zip(own.links, (*by[2:], *by), strict=False)
    faster = replace(
        own,
        matrix={unit: up(figure, by[0]) for unit, figure in own.matrix.items()},
        bandwidth=up(own.bandwidth, by[1]),
        links=tuple(replace(link, bandwidth=up(link.bandwidth, n)) for link, n in links),
    )
    assert kernels(faster).origin == kernels(own).origin
    job = sc.job("gpt2", "tp=2,dp=16", {"b": 4, "M": 2}, system=own, stack="megatron-core")
    assert float(job.replace(system=faster).time().step) <= float(job.time().step) * (1 + 1e-12)


def _exact(number):
    whole = Fraction(number).limit_denominator(10**12)
    return Integer(whole.numerator) / Integer(whole.denominator)


def test_a_table_has_the_stack_and_both_ends(timed):
    text = str(timed)
    for part in ("step, low", "step, high", "stack megatron-core", "most uncertain: "):
        assert part in text
    from symbolic_cost.emit.sheet import render

    text = json.dumps(json.loads(render(timed.sheet, "json")))
    assert "step, low" in text
    assert "step, high" in text


@pytest.mark.slow
def test_a_sweep_prices_as_a_job_does():
    job = gpt2(stack="torchtitan-compiled")
    swept = sc.sweep(job, {"b": [1, 2]}, columns=("step",))
    steps = [float(job.bind(b=b).time().step) for b in (1, 2)]
    assert [float(step) for step in swept["step"]] == pytest.approx(steps, rel=1e-9)


def test_a_roofline_that_is_named_means_the_record_and_no_stack_reads_it():
    plain = gpt2(stack=ROOFLINE)
    named = gpt2(roofline="launched maximum")
    assert named.methods.stack is None
    assert named.time().step == plain.replace(roofline="launched maximum").time().step
    assert named.time().step != plain.time().step
    assert gpt2().replace(roofline="ridge").methods.stack is None
    assert gpt2(roofline="ridge").replace(roofline="maximum").methods.stack == gpt2().methods.stack
    with pytest.raises(InputError, match="roofline 'ridge' is not read under stack 'fsdp'"):
        gpt2(roofline="ridge", stack="fsdp")


@pytest.mark.parametrize(
    ("precision", "gradient", "weight"),
    [
        ("bf16-gradients", 2, 2),
        ("bf16-accelerate", 2, 2),
        ("bf16-deepspeed", 2, 2),  # reduced in 16 bits, though six bytes are held
        ("fp8-hybrid", 4, 2),  # both 8-bit copies are cast from the 16 bits that arrive
        pytest.param("mxfp8", 2, 2, marks=pytest.mark.slow),
        pytest.param("nvfp4", 2, 2, marks=pytest.mark.slow),
        pytest.param("fp8-deepseek", 4, 1, marks=pytest.mark.slow),
    ],
)
def test_what_moves_is_what_arrives(precision, gradient, weight):
    """Bytes of an element in communication and in time, whatever else of it is held."""
    job = sc.job(
        *("gpt2", "dp=8,zero=1", {"b": 1}),
        system="b200",
        stack="megatron-core",
        precision=precision,
        microbatches=2,
    )
    params, time = job.total("params"), job.time()
    matrices = 12 * 12 * 768**2  # these are in few bits; the rest of gpt2 is in 16
    for name, phase, size in (
        ("gradients.dp.reduce-scatter", "backward_weight", gradient * params),
        ("weights.dp.all-gather", "step", weight * matrices + 2 * (params - matrices)),
    ):
        assert time.number(f"first.{name}.message") == size
        sent = job.communication().total("communication", phase=phase)
        assert sent == size * Fraction(7, 8)


def test_what_no_datasheet_tells_is_the_mean_of_the_measured_machines():
    measured = package_data("systems/kernels.toml")["measured"]
    calls = [record["collectives"]["call"] for record in measured.values()]
    far, near = (kernels(machine(name)) for name in ("mi300x", "h100"))
    assert far.origin == "h100"
    assert float(far.calls.call) == pytest.approx(geometric_mean(calls), rel=1e-3)
    assert replace(far.calls, call=near.calls.call) == near.calls
    assert kernels(machine("h200")).calls == near.calls


def test_passes_that_wait_for_instructions_find_slower_memory_busy():
    """As many instructions per byte on l40s take less of its time per byte than of a100's."""
    fast, slow = (kernels(machine(name)) for name in ("a100-80gb", "l40s"))
    assert set(slow.passes.values()) == {fast.passes["addition"]}
    rates = (float(k.passes["norm"] * k.machine.bandwidth.value) for k in (fast, slow))
    assert sum(1 for rate in rates if rate < 0.864e12) == 2


@pytest.mark.parametrize(("schedule", "waits"), [("1f1b", True), ("interleaved", False)])
def test_sends_are_hidden_between_chunks_alone(schedule, waits):
    """Megatron-Core refuses overlap_p2p_comm where every stage is one chunk."""
    run = sc.job(
        "llama-3-8b",
        "tp=2,pp=4",
        {"b": 1} if waits else {"b": 1, "v": 2},
        system="h100",
        stack="megatron-core",
        global_batch=16,
        schedule=schedule,
    )
    hidden = run.replace(overlap="pp=full")
    assert (float(hidden.time().step) < float(run.time().step)) is waits


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        ({"collectives": {"gathering": 0.5}}, "'hop' is missing"),
        (
            {"collectives": {**kernel_rates("collectives"), "copy": 1}},
            "unknown rate of kernels 'copy'",
        ),
        ({"products": {"bf16": {"share": 0.5}}}, "'area' is missing"),
        ({"passes": {"nrm": 0.5}}, "unknown kind of pass 'nrm'"),
    ],
)
def test_rates_that_are_missing_or_no_rates_are_refused(rates, told):
    """Of a record that a user wrote."""
    with pytest.raises(InputError, match=told):
        kernels(replace(machine("h100"), kernels=rates))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "precision", "gathering", "reducing"),
    [
        ("llm-foundry", "bf16-mixed", 0, (2 + 2) + (2 + 4) + (4 + 4)),  # joined, cast, divided
        ("llm-foundry-2022", "bf16-mixed", 0, (2 + 2) + (2 + 2)),  # reduced in 16 bits: no cast
        ("llm-foundry", "fp32", 0, (4 + 4) + (4 + 4)),  # the same in 32
        ("torchtitan", "bf16-mixed", 2 + 2, 2 + 4),  # copied out; cast on its way in
        ("torchtitan", "bf16", 2 + 2, 2 + 2),  # reduced as they are made
        ("torchtitan", "fp32", 4 + 4, 4 + 4),
    ],
)
def test_units_of_fsdp_are_copied_from_and_to_their_messages(runs, precision, gathering, reducing):
    """Bytes per weight of a block that PyTorch moves beside what goes over the wire."""
    job = sc.job(
        *("gpt2", "dp=8,zero=3", {"b": 1}),
        system="h100",
        stack=runs,
        precision=precision,
        microbatches=2,
    )
    weights = 12 * 768**2 + 13 * 768
    rate = kernel_rates("passes")["addition"] * float(machine("h100").bandwidth.value)
    time = job.time()
    for name, size in (("forward", gathering), ("weight gradients", reducing)):
        took = float(time.number(f"block.{name}.copied")) if size else 0
        assert took == pytest.approx(size * weights / rate)
    alone = job.replace(strategy="dp=1").time().timed.numbers
    assert not any(name.endswith(".copied") for name in alone)
