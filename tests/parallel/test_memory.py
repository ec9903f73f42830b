"""Memory per rank against published closed forms."""

import pytest
from sympy import Integer, Rational, ceiling, expand, oo

import symbolic_cost as sc
from symbolic_cost.conventions.presets import MEGATRON_2022, STANDARD
from symbolic_cost.errors import InputError, UnknownNameError
from symbolic_cost.extrema import Max
from symbolic_cost.ledger import Phase, Place, Quantity
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.memory import Training, memory_table
from symbolic_cost.parallel.moments import moments, peak
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.states import OPTIMIZERS, PRECISIONS
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.program import lowered
from symbolic_cost.references import REFERENCES
from symbolic_cost.symbols import V, b, dp, e, h, l, m1, n_layers, pp, v

BLOCK = GPT(f=4 * e)
PSI = n_layers * (12 * e**2 + 13 * e) + V * e + l * e + 2 * e


def same(one, other):
    return expand(one - other) == 0


def table(strategy="", policy="none", model=BLOCK, conventions=MEGATRON_2022, **rest):
    stage = rest.pop("stage", Stage.MIDDLE if "pp" in strategy else Stage.FIRST)
    training = Training(recompute=recompute_policy(policy), **{"microbatches": oo, **rest})
    return memory_table(model.model(), parse_strategy(strategy), conventions, training, stage=stage)


def block(rows):
    return rows.total(Quantity.SAVED, path="block") / n_layers


@pytest.mark.parametrize(
    ("strategy", "policy", "printed"),
    [
        ("", "none", b * l * e * (34 + 5 * h * l / e)),
        ("tp", "none", b * l * e * (10 + 24 / m1 + 5 * h * l / (e * m1))),
        ("tp,sp", "none", b * l * e / m1 * (34 + 5 * h * l / e)),
        ("", "selective", 34 * b * l * e),
        ("tp", "selective", b * l * e * (10 + 24 / m1)),
        ("tp,sp", "selective", 34 * b * l * e / m1),
        ("", "full", 2 * b * l * e),
    ],
)
def test_activations_per_layer(strategy, policy, printed):
    """korthikanti-2022, Table 2 and Equations 1 to 6."""
    assert same(block(table(strategy, policy)), printed)


def test_first_stage_holds_all_layers():
    """korthikanti-2022, Equation 5 and the interleaved schedule of section 4.2.3."""
    per_layer = b * l * e / m1 * (34 + 5 * h * l / e)
    first = table("tp,sp,pp", stage=Stage.FIRST).total(Quantity.SAVED, path="block")
    assert same(first, per_layer * n_layers)
    last = table("tp,sp,pp", stage=Stage.LAST).total(Quantity.SAVED, path="block")
    assert same(last, per_layer * n_layers / pp)
    chunked = table("tp,sp,pp", stage=Stage.FIRST, schedule="interleaved")
    assert same(
        chunked.total(Quantity.SAVED, path="block"),
        expand(per_layer * n_layers * (1 + (pp - 1) / (pp * v))),
    )


def test_extras_of_the_first_stage():
    """korthikanti-2022, section 4.3: masks of the embedding, head and loss of one stage."""
    first = table("tp,sp,pp", stage=Stage.FIRST).total(Quantity.SAVED, path="embedding")
    assert same(first, b * l * e * pp / m1)
    alone = table("tp,sp", stage=Stage.FIRST)
    assert same(alone.total(Quantity.SAVED, path="head"), 4 * b * l * (e / m1 + ceiling(V / m1)))


def test_zero_bubble_h1_keeps_inputs_of_weight_gradients():
    """qi-2024, Table 1: what weight gradients wait for is 32 bytes per position and width."""
    plain = table("pp", stage=Stage.MIDDLE).total(Quantity.SAVED, path="block")
    split = table("pp", stage=Stage.MIDDLE, schedule="zb-h1").total(Quantity.SAVED, path="block")
    assert same(split - plain, 32 * b * l * e * n_layers / pp)


def test_what_waits_for_weight_gradients_is_a_shard_where_it_is_gathered_again():
    """korthikanti-2022: under sequence parallelism inputs are kept in shards.

    Inputs 2 (e + e + e + f), gradients of results 2 (3 e + f) over m1; those of the row-parallel
    products 4 e were gathered by the pass before.
    """
    plain = table("tp,sp,pp", stage=Stage.MIDDLE).total(Quantity.SAVED, path="block")
    late = table("tp,sp,pp", stage=Stage.MIDDLE, schedule="zb-h1")
    split = late.total(Quantity.SAVED, path="block")
    waiting = (2 * (3 * e + 4 * e) + 2 * (3 * e + 4 * e)) / m1 + 4 * e
    assert same(split - plain, waiting * b * l * n_layers / pp)


@pytest.mark.parametrize(
    ("zero", "per_parameter"),
    [
        (0, Integer(16)),
        (1, 4 + 12 / dp),
        (2, 2 + 14 / dp),
        (3, 16 / dp),
    ],
)
def test_states_of_zero(zero, per_parameter):
    """rajbhandari-2019, section 5."""
    strategy = f"dp,zero={zero}" if zero else "dp"
    found = table(strategy, precision="fp16-mixed", stage=Stage.FIRST)
    assert same(moments(found)["between steps"], PSI * per_parameter)


def test_hand_counted_states():
    """Bytes per parameter of precision and optimizer, between steps."""
    numbers = {
        ("fp32", "sgd"): 8,
        ("fp32", "momentum"): 12,
        ("fp32", "adam"): 16,
        ("bf16", "adam"): 8,
        ("bf16-mixed", "adam"): 18,
        ("bf16-mixed", "lion"): 14,
        ("bf16-mixed", "adam-8bit"): 12 + Rational(8, 2048),
    }
    for (precision, optimizer), expected in numbers.items():
        found = table(precision=precision, optimizer=optimizer, stage=Stage.FIRST)
        assert same(moments(found)["between steps"], PSI * expected), (precision, optimizer)


@pytest.mark.parametrize(
    ("precision", "of_matrices", "of_others"),
    [
        ("fp8-hybrid", 20, 18),
        ("fp8-deepseek", 13, 14),
        ("fp8-linear", 16, 16),
        ("mxfp8", 14 + Rational(33, 16), 16),
        ("nvfp4", 14 + Rational(25, 8), 16),
    ],
)
def test_few_bits_are_of_hidden_matrices(precision, of_matrices, of_others):
    """Tables, norms, biases and the head have no copies in few bits."""
    found = moments(table(precision=precision, stage=Stage.FIRST))["between steps"]
    assert same(found, of_others * PSI + (of_matrices - of_others) * 12 * n_layers * e**2)


def test_optimizers_that_tell_matrices_apart():
    hidden = 12 * n_layers * e**2
    muon = table(precision="fp32", optimizer="muon", stage=Stage.FIRST)
    assert same(muon.total(Quantity.OPTIMIZER), 8 * PSI - 4 * hidden)
    factored = table(precision="fp32", optimizer="adafactor", stage=Stage.FIRST)
    # rows and columns of qkv, proj, fc1 and fc2, and of the tables of words and positions
    sums = n_layers * (e + 3 * e + e + e + e + 4 * e + 4 * e + e) + V + l + 2 * e
    tables = (V + l) * e
    assert same(factored.total(Quantity.OPTIMIZER), 4 * (PSI - hidden - tables + sums))


@pytest.mark.parametrize(("strategy", "held"), [("", 8), ("dp=8,ep=4", 2), ("dp=8,ep=4,zero=1", 1)])
def test_every_expert_has_rows_and_columns_of_its_own(strategy, held):
    """Of gate, up and down of 32 layers, in single precision."""
    job = sc.job("mixtral-8x7b", strategy, optimizer="adafactor", precision="fp32")
    rows = job.memory_rows.select(where=lambda row: "experts" in row.path)
    sums = 4 * 32 * 3 * 8 * (4096 + 14336)
    ranks = 8 if strategy else 1
    assert ranks * job.value(rows.total(Quantity.OPTIMIZER)) == (held if strategy else 1) * sums


def test_every_fourth_block():
    once = table(policy="full").total(Quantity.SAVED, path="block")
    fourth = table(policy="full/4")
    kept = fourth.total(Quantity.SAVED, path="block")
    assert same(kept.xreplace({n_layers: Integer(24)}), once.xreplace({n_layers: Integer(6)}))
    inner = b * l * e * (34 + 5 * h * l / e)
    small = {b: 1, l: 1024, e: 1024, h: 16, V: 64}
    for blocks, together in ((24, 4), (3, 3)):
        numbers = {**small, n_layers: blocks}
        more = in_backward(fourth, numbers) - in_backward(table(policy="full"), numbers)
        assert more == (together - 1) * inner.xreplace(numbers)


def in_backward(rows, numbers):
    """The most that a backward pass holds beyond what is kept for it."""
    (row,) = rows.select(Quantity.WORKSPACE, path="backward")
    return row.expr.xreplace(numbers)


def test_uneven_groups_of_blocks_are_counted_whole():
    """The first of seven keeps its input: 14 of 96 blocks, of which the last group has five."""
    once = table(policy="full").total(Quantity.SAVED, path="block")
    seventh = table(policy="full/7").total(Quantity.SAVED, path="block")
    whole = seventh.xreplace({n_layers: Integer(96)})
    assert same(whole, once.xreplace({n_layers: Integer(14)}))


def test_blocks_in_a_row_are_of_one_chunk():
    """Eight blocks in four chunks of a stage: every fourth kept is one of each two."""
    numbers = {n_layers: Integer(32), pp: Integer(4), v: Integer(4)}
    each, fourth = (
        table("pp", policy, schedule="interleaved").total(Quantity.SAVED, path="block")
        for policy in ("full", "full/4")
    )
    assert same(2 * fourth.xreplace(numbers), each.xreplace(numbers))


def test_moments():
    found = table(conventions=STANDARD, policy="selective", precision="fp16-mixed")
    at = moments(found)
    assert list(at) == ["between steps", "end of forward", "backward", "optimizer step"]
    numbers = {b: 1, l: 1024, e: 1024, h: 16, n_layers: 24, V: 50257}
    values = {name: expr.xreplace(numbers) for name, expr in at.items()}
    assert values["between steps"] < values["end of forward"] < values["backward"]
    # the step copies two-byte gradients to four bytes
    psi = PSI.xreplace(numbers)
    assert values["optimizer step"] - values["between steps"] == 4 * psi
    assert peak(found).xreplace(numbers) == Max(*values.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "others"), [("first", {"E_t": 1, "f_m": 128}), ("middle", {"f": 512})]
)
def test_workspace_is_of_blocks_that_the_stage_holds(stage, others):
    """Of 61 blocks on 16 stages the first holds the 3 dense ones alone, and the middle none."""
    job = sc.job("deepseek-v3", "tp=8,pp=16,ep=8,dp=8", global_batch=1024, stage=stage)
    own, changed = (one.memory().total("workspace") for one in (job, job.bind(**others)))
    assert own == changed
    if stage == "first":
        assert own == 6 * 4096 * (7168 - 18432 // 8)


def test_gathered_weights_of_zero_3():
    """A block is gathered into a buffer of its own, beside the shard that a rank keeps."""
    whole, shards = (
        table(f"dp=8,zero={stage}", stage=Stage.FIRST, precision="fp16-mixed") for stage in (2, 3)
    )
    numbers = {b: 1, h: 16, n_layers: 24, e: 1024, V: 1000, l: 128}
    block_weights = 2 * (12 * 1024**2 + 13 * 1024)
    more = in_backward(shards, numbers) - in_backward(whole, numbers)
    assert more == block_weights


@pytest.mark.parametrize(("policy", "groups"), [("full", 24), ("full/7", 4), ("full/24", 1)])
def test_blocks_that_run_again_in_a_row_are_gathered_again(policy, groups):
    """Of each group all but the last block, whose backward follows: 24 in groups of seven are 4."""
    strategy = parse_strategy("dp=8,zero=3")
    found = strategy_table(GPT().model(), strategy, STANDARD, recompute_policy(policy))
    again = found.select(Quantity.COMMUNICATION, phase=Phase.RECOMPUTE).total()
    forward = found.select(Quantity.COMMUNICATION, phase=Phase.FORWARD, path="block").total()
    there = {n_layers: Integer(24)}
    assert same(again.xreplace(there), forward.xreplace(there) * Rational(24 - groups, 24))


def on_host(row):
    return row.place is Place.HOST


def test_offload_moves_rows_to_the_host():
    found = table(offload=frozenset({"optimizer"}), precision="fp16-mixed", stage=Stage.FIRST)
    assert same(moments(found)["between steps"], 8 * PSI)
    assert same(found.select(Quantity.OPTIMIZER, where=on_host).total(), 8 * PSI)


@pytest.mark.parametrize("microbatches", [1, 2])
def test_gradients_on_the_host_make_no_room_before_they_are_there(microbatches):
    """Backward begins with what forward ends with, and needs more."""
    run = {"numbers": {"b": 8, "l": 1024}, "microbatches": microbatches, "precision": "bf16"}
    run |= {"system": "h100", "stack": "torchtitan"}
    here, there = (
        moments(sc.job("gpt2", offload=offload, **run).memory().rows)
        for offload in ((), "weight_gradient")
    )
    values = sc.job("gpt2", **run).values
    most, least, forward = (
        lowered(of).exact(values)[name]
        for of, name in ((here, "backward"), (there, "backward"), (there, "end of forward"))
    )
    assert least > forward
    # The most of the first microbatch is at the head, before there is any gradient of a weight.
    gradients = sc.job("gpt2", **run).memory().total("weight_gradient")
    assert most - least == (gradients if microbatches > 1 else 0)


def test_refusals():
    with pytest.raises(InputError, match="unknown offload 'optimiser': did you mean optimizer"):
        Training(offload=frozenset({"optimiser"}))
    with pytest.raises(InputError, match="unknown precision"):
        table(precision="bf17")
    with pytest.raises(InputError, match="unknown optimizer"):
        table(optimizer="adamm")
    with pytest.raises(InputError, match="not a positive integer"):
        recompute_policy("full/0")
    with pytest.raises(UnknownNameError, match="unknown recompute policy"):
        recompute_policy("selective/2")


def test_sources_are_known():
    for entry in (*PRECISIONS.values(), *OPTIMIZERS.values()):
        assert entry.source in REFERENCES


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        # panels of the input of fc2 and of a weight of the perceptron
        ("2d=2x2,panels=4", {"m1": 2 * 8 * 32 * 128 // 4, "m2": 2 * 32 * 64 // 4}),
        # planes of the inputs of fc1 and of fc2, a weight of the perceptron
        ("3d=2x2x2", {"m1": 2 * 4 * 64 * 16, "m2": 2 * 4 * 64 * 64, "m3": 2 * 16 * 64}),
    ],
)
def test_workspace_of_grids(strategy, expected):
    numbers = {b: 8, l: 64, e: 32, h: 4, V: 64, n_layers: 2}
    rows = table(strategy, precision="fp16-mixed").select(Quantity.WORKSPACE)
    sizes = {row.path: row.expr.xreplace(numbers) for row in rows}
    assert {mesh: sizes[f"{mesh}_buffers"] for mesh in expected} == expected


@pytest.mark.slow
@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("offload", [(), ("saved",)])
def test_blocks_that_a_stage_lacks_need_no_workspace(recompute, offload):
    """The first of 16 stages has three dense blocks: experts of any width are elsewhere."""
    peaks = set()
    for width in (2048, 8192):
        numbers = {"b": 1, "l": 4096, "f_m": width, "M": 32}
        run = {"recompute": recompute, "offload": offload, "system": "h100"}
        peaks.add(sc.job("deepseek-v3", "pp=16,ep=8,dp=8", numbers, **run).memory().peak)
    assert len(peaks) == 1


def test_no_maximum_is_multiplied_by_zero(monkeypatch):
    """SymPy asks whether it is finite, which took from 1 to 40 s, by the order of its hashes."""
    asked = []
    monkeypatch.setattr(Max, "is_finite", property(asked.append))
    job = sc.job("llama-3-8b", "dp=8,zero=3", {"b": 1, "M": 1}, system="h100", stack="fsdp")
    assert job.memory().peak == 71388624896
    assert not asked
