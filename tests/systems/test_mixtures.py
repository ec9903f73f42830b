"""Messages of experts, whole experts over tensor-parallel ranks, tori, casts, and boxes."""

from fractions import Fraction

import pytest
from sympy import Integer, Rational

from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.jobs.job import job
from symbolic_cost.jobs.recipes import settings
from symbolic_cost.jobs.recorded import recorded_runs
from symbolic_cost.ledger import CollectiveKind, Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.numeric.binding import bind
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.systems.kernel_fit import CASTING, products
from symbolic_cost.systems.kernel_records import clock, kernels
from symbolic_cost.systems.links import _sent
from symbolic_cost.systems.network import Hop, Link
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.routing import Routing
from symbolic_cost.systems.stacks import slower_host

NUMBERS = {"b": 1, "l": 4096}


def sent(copies, *ranks):
    hops = tuple(Hop(Link(str(n), Integer(1)), Integer(one)) for n, one in enumerate(ranks))
    size = Integer(800)
    routing = Routing(Integer(copies))
    return [float(s) for s in _sent(CollectiveKind.ALL_TO_ALL, size, hops, routing)]


def test_copies_for_one_rank_go_once():
    """8 copies of 100 byte to 8 ranks reach 8 (1 - (7/8)^8) = 5.25 of them, 7 in 8 elsewhere."""
    reached = 8 * (1 - (7 / 8) ** 8)
    assert sent(8, 8) == pytest.approx([100 * reached * 7 / 8])
    assert sent(1, 8) == [800 * 7 / 8]


def test_copies_cross_to_a_domain_once():
    """Of 4 domains of 8 ranks 3.6 are reached, over the outer link; inside all ranks' shares go."""
    inner, outer = sent(8, 8, 4)
    assert outer == pytest.approx(100 * 4 * (1 - (3 / 4) ** 8) * 3 / 4)
    assert inner == pytest.approx(100 * 32 * (1 - (31 / 32) ** 8) * 7 / 8)
    assert outer < sent(1, 8, 4)[1] / 2


def exchanged(text):
    """Exchanges of the experts in forward [byte], and weights and FLOP of a rank."""
    own, strategy = model("qwen3-30b-a3b"), parse_strategy(text)
    table = bind(
        strategy_table(on_every_rank(own, strategy), strategy, STANDARD),
        {**own.bindings, **NUMBERS, **strategy.bindings()},
    )
    moves = {
        (row.collective.kind, row.path, row.collective.meshes): row.collective.message
        for row in table.select("communication", phase="forward")
        if ".mlp." in row.path and "shares" not in row.path
    }
    return moves, table.total(Quantity.WEIGHT), table.total(Quantity.FLOP)


def test_whole_experts_on_tensor_parallel_ranks():
    """Each rank sends its own positions to whole experts: one exchange, and nothing gathered."""
    shared, weights, flop = exchanged("tp=2,sp,ep=4,dp=4")
    spread, own_weights, own_flop = exchanged("tp=2,sp,spread,ep=4,dp=4")
    sends = CollectiveKind.ALL_TO_ALL
    assert {meshes for kind, _, meshes in shared if kind is sends} == {("ep",)}
    assert {(kind, meshes) for kind, _, meshes in spread} == {(sends, ("tp", "ep"))}
    assert sum(spread.values()) == sum(size for (kind, *_), size in shared.items() if kind is sends)
    assert len(shared) > len(spread)
    assert own_weights == weights
    assert own_flop == pytest.approx(int(flop), rel=1e-3)  # sums over fewer ranks, copies of fewer


def test_a_torus_has_short_rings():
    """4096 chips of 16 x 16 x 16: 45 steps; a ring of all has 4095."""
    link = Link("ici", Integer(1), Integer(1), Integer(3))
    assert float(link.around(Integer(4096))) == pytest.approx(46)
    assert Link("ring", Integer(1)).around(Integer(4096)) == 4096
    assert machine("tpu-v5p").network().tiers[0].link.dimensions == 3


def test_the_same_chip_runs_at_the_clock_of_its_power():
    assert clock(500 / 700) == Rational(845, 1000)
    b300, b200 = kernels(machine("b300")), kernels(machine("b200"))
    assert float(b300.rate("fp8").share / b200.rate("fp8").share) == pytest.approx(
        (1.1) ** 0.5, 1e-3
    )
    assert (
        kernels(machine("v100")).rate("bf16").share
        == kernels(machine("a100-80gb")).rate("bf16").share
    )


def test_a_precision_without_kernels_is_that_of_the_narrowest():
    """Halves are times: at twice the peak of fp8 a result must be twice as large."""
    own = kernels(machine("gb200-nvl72"))
    assert own.rate("fp4").share == own.rate("fp8").share
    assert own.rate("fp4").area == 2 * own.rate("fp8").area


def timed(precision, stack):
    one = job(
        "qwen3-30b-a3b", "ep=8,dp=8", NUMBERS, system="b200", stack=stack, precision=precision,
        global_batch=64,
    )  # fmt: skip
    return one.time()


def step(precision, stack):
    return float(timed(precision, stack).step)


@pytest.mark.slow
def test_what_a_stack_says_of_experts():
    """Graphs and grouped experts are faster, and what a dispatcher sends once is less."""
    graphed, plain = (step("mxfp8", name) for name in ("nemo-graphed", "nemo"))
    assert graphed < plain <= step("mxfp8", "megatron-core")


def _copying(stack, strategy):
    """Return the time of the copies of a block's tokens [s]."""
    one = job("qwen3-30b-a3b", strategy, NUMBERS, system="b200", stack=stack, global_batch=128)
    answer = one.time()
    (op,) = [
        op
        for op in answer.timed.step.stages[0].ops
        if op.path == "block.mlp.copies" and op.phase == "forward"
    ]
    return float(answer.timed.number(op.busy))


@pytest.mark.slow
def test_tokens_that_come_by_rank_are_put_in_the_order_of_experts():
    """8 copies of 4096 tokens of 2048 are read and written once more; not those of one expert."""
    once, twice = (_copying(name, "ep=8,dp=8") for name in ("nemo", "megatron-core"))
    share = kernels(machine("b200")).passes["rotation"]
    moved = 2 * 8 * 4096 * 2048 * 2 / (share * machine("b200").bandwidth.value)
    assert twice - once == pytest.approx(float(moved))
    alone = [_copying(name, "ep=128,dp=128") for name in ("nemo", "megatron-core")]
    assert alone[0] == alone[1]


@pytest.mark.slow
def test_the_host_issues_the_product_of_every_expert():
    """16 experts of a rank are 96 products of 60 us in a block, more than the device takes."""
    scoped, plain = (step("mxfp8", name) for name in ("nemo-scoped", "nemo"))
    blocks, microbatches = 48, 8
    assert scoped > 96 * 60e-6 * blocks * microbatches > step("mxfp8", "nemo-dropping")
    assert scoped < plain


@pytest.mark.slow
def test_the_host_waits_for_the_routing():
    """33.5 kernels of 60 us, 16 experts' products and casts, take longer than they run."""
    answer = timed("mxfp8", "nemo-scoped")
    stage = answer.timed.step.stages[0]
    mine = [op for op in stage.ops if ".experts." in op.path and op.phase == "forward"]
    number = answer.timed.setup.value
    issued, busy = (
        sum(float(number(answer.timed.number(getattr(op, name)))) for op in mine)
        for name in ("issued", "busy")
    )
    waits = float(answer.timed.numbers["block.forward.synced"])
    assert waits == pytest.approx(issued * 60e-6 - busy)
    assert waits > 0
    assert "block.forward.synced" not in timed("mxfp8", "nemo-graphed").timed.numbers


def test_a_processor_issues_ops_more_slowly():
    assert slower_host(machine("gb200-nvl72")) == Rational(166, 100)
    assert slower_host(machine("b200")) == 1


def test_rematerialisation_leaves_out_what_backward_does_not_need(tmp_path):
    path = tmp_path / "runs.csv"
    line = "a,trillium,256,MaxText,gpt2,1024,1,1,256,3,1,256,full,bf16,,,9"
    path.write_text(f"{HEADER}\n{line}\n")
    (run,) = recorded_runs(path).expressed
    regions = run.job.training.recompute.regions(run.job.model)
    assert run.job.training.recompute.name == "needed"
    assert regions["block.mlp.fc2"] is None
    assert regions["block.mlp.fc1"] is not None


def test_what_is_cast_is_no_part_of_a_product():
    """4096 x 8192 elements of 5 byte at half of 3.35 TB/s, and two calls more."""
    form = products(machine("h100"), "fp8")
    at = [0.7, 1e5, 100, 0.7, 5e-6, 0.5]
    sizes = {"m": 4096, "n": 4096, "k": 8192}
    inside, apart = (form.time(at, {**sizes, "kernel": name}) for name in (CASTING, "cublas"))
    assert inside - apart == pytest.approx(1e-5 + 5 * 4096 * 8192 / (0.5 * 3.35e12))


@pytest.mark.parametrize(("precision", "whole"), [("bf16", True), ("fp8", False)])
def test_products_in_16_bits_compute_whole_tiles_of_rows(precision, whole):
    """2049 rows of a large product take as long as 2176 in 16 bits."""
    form, sizes = products(machine("h100"), precision), {"n": 8192, "k": 8192, "kernel": ""}
    first = [each[0] for each in form.start.values()]
    took = [form.time(first, {**sizes, "m": m}) for m in (2048, 2049, 2176)]
    assert took[0] < took[1]
    assert (took[1] == pytest.approx(took[2], rel=1e-3)) == whole


def test_gradients_of_microbatches_are_added():
    """A pass of its own reads 2 and 4 byte, writes 4: 10 byte of every weight."""
    took = []
    for name in ("megatron-2021", "fsdp"):
        numbers = {"b": 1, "M": 2}
        gpt2 = job("gpt2", "dp=2", numbers, system="a100-80gb", stack=name, precision="bf16-mixed")
        answer = gpt2.time()
        (op,) = (
            op
            for op in answer.timed.step.stages[0].ops
            if (op.path, op.phase) == ("block.mlp.fc2", "backward_weight")
        )
        took.append(float(answer.timed.number(op.busy)))
    own = kernels(machine("a100-80gb"))
    passed = float(own.call) + 10 * 768 * 3072 / float(own.passes["addition"]) / 2.039e12
    assert took[0] - took[1] == pytest.approx(passed, rel=0.05)


HEADER = (
    "id,system,gpus,framework,model,seq,pp,ep,dp,zero,micro_batch,global_batch,recompute,precision,"
    "date,system_note,measured_step_s"
)


def test_a_recipe_says_what_a_row_leaves_out(tmp_path):
    path = tmp_path / "runs.csv"
    line = (
        "a,gb300-nvl72,256,Megatron-Bridge,deepseek-v3,4096,2,32,128,1,1,4096,{},mxfp8,NeMo {},,9"
    )
    for said, release, policy, name in (
        ("recipe default", "26.04", "mla_up_proj", "nemo"),
        ("recipe default", "26.06", "none", "nemo-graphed-fp8"),
        ("full", "26.06", "full", "nemo-graphed-fp8"),
    ):
        path.write_text(f"{HEADER}\n{line.format(said, release)}\n")
        (run,) = recorded_runs(path).expressed
        assert run.job.training.recompute.name == policy
        assert run.job.methods.stack.name == name
        assert run.job.training.layout == "ends=0/3"
        assert any(part.path == "prediction.block" for part in run.job.model.parts)
    assert settings({"framework": "torchtitan", "model": "deepseek-v3"}) == {}
    flash = {"model": "deepseek-v4-flash", "system": "gb200-nvl72", "precision": "mxfp8"}
    said = {"recompute": "mla_up_proj", "stack": "nemo-graphed"}
    assert settings({"framework": "Megatron-Bridge", **flash}) == said


def test_a_box_has_its_own_power_and_memory(tmp_path):
    path = tmp_path / "runs.csv"
    note = '"H100 96GB 2.4 TB/s, 500 W limit"'
    line = f"a,h100,8,torchtitan,llama-3-8b,4096,1,1,8,3,1,8,selective op (each),bf16,,{note},1"
    path.write_text(f"{HEADER}\n{line}\n")
    (run,) = recorded_runs(path).expressed
    assert run.job.machine.efficiencies.clock.value == Rational(845, 1000)
    assert run.job.machine.bandwidth.value == Fraction(24, 10) * 10**12
    assert run.job.training.recompute.name == "selective-op"
