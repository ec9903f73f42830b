"""What a step computes and moves: units, updates weight by weight, exposed time, MFU, hosts."""

from dataclasses import replace
from functools import cache

import pytest
from sympy import Add, Integer, Mul, Rational, expand

from symbolic_cost.conventions.answers import ADDITIONS_OF_RING
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.ledger import CollectiveKind, Phase, Quantity, Units
from symbolic_cost.models.bound import bound
from symbolic_cost.models.catalog import model
from symbolic_cost.models.config import from_config
from symbolic_cost.ops.derive import cost
from symbolic_cost.parallel.memory import Training, memory_table
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.sharded import OPTIMIZER, States
from symbolic_cost.parallel.stages import Stage
from symbolic_cost.parallel.states import optimizer, precision
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.symbols import symbol
from symbolic_cost.systems.machines import SYMBOLIC, Figure
from symbolic_cost.systems.overlap import FULL, overlap
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.step import Methods, step_time

H100 = machine("h100")
SIZES = {
    "b": 16,
    "l": 1024,
    "e": 512,
    "f": 2048,
    "h": 16,
    "k": 8,
    "q": 32,
    "V": 4096,
    "n_layers": 8,
    "P": 1024,
    "E": 8,
    "E_t": 2,
    "f_m": 256,
    "M": 4,
}


def values(chain, **changes):
    sizes = {**SIZES, **changes}
    return chain.evaluate({s.name: sizes[s.name] for s in chain.symbols})


def number(expr, **changes):
    sizes = {**SIZES, **changes}
    return expr.xreplace({s: Integer(sizes[s.name]) for s in expr.free_symbols})


# -------------------------------------------------------------------------------------- units


@pytest.mark.parametrize(
    ("name", "segment"),
    [("lstm", "cell"), ("resnet-18", "conv"), ("gpt", "fc1"), ("llama", "scores")],
)
def test_products_run_on_matrix_units(name, segment):
    """A recurrent cell and a convolution are products, whatever their class is called."""
    step = step_time(model(name), parse_strategy(""), SYMBOLIC)
    rates = {symbol("F_m"), symbol("F_v")}
    timed = [
        step.chain.definitions[op.compute.name].free_symbols & rates
        for op in step.stages[0].ops
        if segment in op.path and op.phase == "forward" and op.compute.is_Symbol
    ]
    assert timed
    assert all(used == {symbol("F_m")} for used in timed)


COUNTED = replace(STANDARD, reduction_additions=ADDITIONS_OF_RING)
"""The standard, with the additions that a reduction makes."""


def test_elementwise_ops_and_sums_over_ranks_run_elsewhere():
    table = strategy_table(model("gpt"), parse_strategy("tp,sp,dp"), COUNTED)
    units = {row.kind: row.units for row in table.select(Quantity.FLOP) if row.collective is None}
    assert units["softmax"] is units["gelu"] is Units.VECTOR
    sums = [row for row in table.select(Quantity.FLOP) if row.collective is not None]
    assert sums
    assert {row.units for row in sums} == {None}


def test_the_additions_of_a_reduction_take_no_time():
    with_sums, without = (
        step_time(model("gpt"), parse_strategy("tp=4"), SYMBOLIC, None, Methods(conventions=rules))
        for rules in (COUNTED, STANDARD)
    )
    assert with_sums.chain == without.chain
    added = [
        strategy_table(model("gpt"), parse_strategy("tp=4"), rules).total(Quantity.FLOP)
        for rules in (COUNTED, STANDARD)
    ]
    assert added[0] != added[1]


@pytest.mark.parametrize("name", ["lstm", "resnet-18", "mamba"])
def test_every_kind_of_model_has_a_step(name):
    """Convolutions and recurrent cells at the matrix rate: the step is no shorter than that."""
    declared = model(name)
    step = step_time(declared, parse_strategy(""), SYMBOLIC)
    assert "step" in step.chain.definitions
    matrix = strategy_table(declared, parse_strategy(""), STANDARD).select(
        Quantity.FLOP, where=lambda row: row.units is Units.MATRIX
    )
    assert len(matrix)


# ------------------------------------------------------------------------------------ updates


def states(name, text, policy="bf16-mixed", chosen="adam"):
    strategy = parse_strategy(text)
    own = strategy.model(on_every_rank(model(name), strategy))
    rules = precision(policy).applied(STANDARD)
    return (
        States(
            own, strategy.placement(own), rules, precision(policy), optimizer(chosen), strategy.mesh
        ),
        own,
        strategy,
    )


def ranks_of(weight, strategy):
    """Over how many ranks a weight is cut where it is used, told from its axes alone."""
    degrees = {name: int(strategy.degree(name)) for name in ("tp", "ep", "dp")}
    tp = degrees["tp"] if set(weight.axes) & {"h", "k", "f", "f_m", "v"} else 1
    ep = degrees["ep"] if "x" in weight.axes else 1
    data = degrees["ep"] * degrees["dp"] // ep  # ranks that hold the same part
    return tp, ep, data


def step_rows(found):
    """Yield what clipping and the optimizer cost at the end of a step, weight by weight."""
    split = set()
    for part, weights in found.model.learned:
        update = found.update(part.path, weights)
        split |= update.split
        yield from (replace(row, count=part.repeat) for row in update.rows)
    norm = found.norm(split)
    if norm is not None:
        yield norm


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("name", "text"),
    [("llama", "tp=2,dp=8"), ("mixtral", "tp=2,dp=8,ep=4"), ("mixtral", "dp=4,ep=4")],
)
def test_the_optimizer_moves_the_sum_over_all_weights(name, text, zero):
    """bf16-mixed Adam reads 4 and three times 4 bytes per element of a shard, writes 12 and 2.

    Expert weights are cut by ep where they are used and once more by the ranks that share them.
    """
    found, own, strategy = states(name, f"{text},zero={zero}" if zero else text)
    bytes_moved = 0
    for part in own.parts:
        for op in part.ops:
            for weight in op.weights:
                if weight.tensor.startswith("@") and part.path != "embedding":
                    continue
                tp, ep, data = ranks_of(weight, strategy)
                size = Mul(*(own.sizes[axis] for axis in weight.axes))
                shards = tp * ep * (data if zero else 1)
                bytes_moved += number(part.repeat * size) * Rational(4 + 2 * 12 + 2, shards)
    traffic = (Quantity.READ, Quantity.WRITE)
    rows = [r for r in step_rows(found) if r.kind == OPTIMIZER and r.quantity in traffic]
    assert number(Add(*(row.total for row in rows))) == bytes_moved


@pytest.mark.parametrize(
    "policy", ["bf16-mixed", pytest.param("fp32", marks=pytest.mark.slow), "fp8-deepseek"]
)
@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("name", "text"),
    [("llama", "tp=2,dp=4,pp=2"), ("mixtral", "dp=8,ep=4"), ("llama", "cp=2,dp=2")],
)
def test_states_of_all_ranks_are_the_whole_times_the_copies(name, text, zero, policy):
    """Shards of every state add up to the state; what is no shard is there once per data rank."""
    strategy = parse_strategy(f"{text},zero={zero}" if zero else text)
    training = Training(precision=policy)
    whole = memory_table(model(name), parse_strategy(""), STANDARD, training)
    stages = [Stage.FIRST, Stage.LAST][: int(strategy.degree("pp"))]
    tables = [
        memory_table(on_every_rank(model(name), strategy), strategy, STANDARD, training, stage=s)
        for s in stages
    ]
    ranks = strategy.ranks / strategy.degree("pp")
    level = {"weight": 3, "weight_gradient": 2, "master_weight": 1, "optimizer": 1}
    for quantity, least in level.items():
        held = number(Add(*(ranks * table.total(quantity) for table in tables)))
        expected = 0
        for row in whole.select(quantity):
            axes, tp, ep = cut_axes(name, row), strategy.degree("tp"), strategy.degree("ep")
            copies = 1 if axes & {"h", "k", "f", "f_m", "v"} else tp
            data = ranks / tp / (ep if "x" in axes else 1)
            expected += number(row.total) * copies * (1 if zero >= least else data)
        assert held == expected, quantity


@cache
def weights_of(name):
    declared = model(name)
    return {
        tensor: set(weight.axes)
        for part in declared.parts
        for op in part.ops
        for weight in op.weights
        for tensor in (weight.tensor, f"d{weight.tensor}")
    }


def cut_axes(name, row):
    return weights_of(name)[row.tensor]


def test_clipping_and_optimizer_have_rows_of_their_own():
    found, *_ = states("gpt", "tp=2,dp=2,pp=2,zero=1")
    rows = tuple(step_rows(found))
    assert {row.phase for row in rows} == {Phase.STEP}
    assert {row.kind for row in rows} == {"gradient_norm", "gradient_scale", "optimizer"}
    (norm,) = (row for row in rows if row.collective is not None)
    assert norm.collective.meshes == ("tp", "dp", "pp")  # shards of a gradient, stages
    assert norm.collective.message == 4
    whole = Add(*(row.total for row in rows if row.quantity is Quantity.FLOP))
    parameters = cost(model("gpt"), STANDARD).total(Quantity.PARAMETER)
    one, *_ = states("gpt", "")
    alone = Add(*(row.total for row in step_rows(one) if row.quantity is Quantity.FLOP))
    assert expand(alone - (2 + 1 + 14) * parameters) == 0
    assert whole != alone


def test_muon_orthogonalises_on_matrix_units():
    """Five times 4 n^2 m + 2 n^3 for a matrix n m: 5 (4 + 2) e^3 for a square one."""
    found, *_ = states("gpt", "", chosen="muon")
    rows = [row for row in step_rows(found) if row.units is Units.MATRIX]
    (square,) = (row for row in rows if row.path.endswith("attention.proj"))
    assert number(square.expr) == 5 * 6 * 512**3


def test_muon_orthogonalises_the_matrix_of_every_expert():
    found, *_ = states("mixtral", "", chosen="muon")
    rows = [row for row in step_rows(found) if row.units is Units.MATRIX]
    (up,) = (row for row in rows if row.path.endswith("experts.up"))
    narrow, wide = sorted((SIZES["e"], SIZES["f_m"]))
    assert number(up.expr) == 5 * SIZES["E"] * (4 * narrow**2 * wide + 2 * narrow**3)


# ------------------------------------------------------------------------------- overlap, time


def test_gathers_of_weights_are_exposed():
    """ZeRO-1 gathers what it updated; unless that is hidden, the step waits for it."""
    strategy = parse_strategy("dp=8,zero=1")
    found = values(step_time(on_every_rank(model("gpt"), strategy), strategy, H100).chain)
    assert found["weights"] > 0
    assert found["exposed"] == found["microbatches.exposed"] + found["gradients"] + found["weights"]
    hidden = step_time(
        on_every_rank(model("gpt"), strategy), strategy, H100, None, Methods(overlaps={"dp": FULL})
    )
    assert values(hidden.chain)["weights"] < found["weights"]


def test_two_partial_overlaps_of_one_op():
    """Gathers of weights over dp and reductions over tp hide in the same op, each its share."""
    overlaps = {"tp": overlap("partial=0.8"), "dp": overlap("partial=0.5")}
    strategy = parse_strategy("tp=2,dp=2,zero=3")
    declared = on_every_rank(model("gpt"), strategy)
    found = values(step_time(declared, strategy, H100, None, Methods(overlaps=overlaps)).chain)
    plain = values(step_time(declared, strategy, H100).chain)
    assert found["microbatches.exposed"] < plain["microbatches.exposed"]
    assert found["microbatches.exposed"] >= plain["microbatches.exposed"] / 5


@pytest.mark.parametrize("name", ["ring", "ulysses"])
def test_what_is_said_of_cp_goes_for_all_positions(name):
    strategy = parse_strategy(f"{name}=2")
    steps = [
        values(step_time(model("gpt"), strategy, H100, None, Methods(overlaps=overlaps)).chain)
        for overlaps in ({}, {"cp": FULL}, {name: FULL})
    ]
    assert steps[1] == steps[2]
    assert steps[1]["exposed"] < steps[0]["exposed"]


def test_one_rank_issues_no_collectives():
    step = step_time(model("gpt"), parse_strategy("tp"), SYMBOLIC)
    alone = step_time(model("gpt"), parse_strategy(""), SYMBOLIC)
    issued = Add(*(op.issued for op in step.stages[0].ops))
    without = Add(*(op.issued for op in alone.stages[0].ops))
    assert issued.xreplace({symbol("m1"): Integer(1)}) == without
    assert issued.xreplace({symbol("m1"): Integer(2)}) > without


def test_an_idle_device_waits_in_the_first_pass_that_is_issued():
    """Gradients of inputs and weights are issued together; the wait is before them."""
    slow = replace(H100, efficiencies=replace(H100.efficiencies, host=Figure(Integer(1))))
    found = values(step_time(model("gpt"), parse_strategy(""), slow).chain)
    names = [name for name in found if name.endswith(".idle")]
    assert names == ["first.forward.idle", "first.backward.idle"]
    gradients = found["first.weight gradients.busy"] + found["first.weight gradients.exposed"]
    assert found["first.weight gradients"] == gradients
    works = [found[f"first.{name}"] for name in ("backward.busy", "backward.exposed")]
    assert found["first.backward"] == sum(works) + found["first.backward.idle"]


LLAMA = {
    "model_type": "llama",
    "hidden_size": 512,
    "intermediate_size": 1024,
    "vocab_size": 4096,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


def test_mfu_leaves_out_what_a_fused_kernel_computes_again():
    """Flash attention makes its scores again in backward: in hfu and in the time, never in mfu."""
    found = {
        core: values(
            step_time(
                bound(from_config({**LLAMA, "attn_implementation": core})),
                parse_strategy(""),
                H100,
            ).chain
        )
        for core in ("eager", "flash_attention_2")
    }
    eager, flash = found.values()
    assert flash["model FLOP"] == eager["model FLOP"] == eager["hardware FLOP"]
    scores = 2 * SIZES["b"] * 16 * 32 * SIZES["l"] ** 2 * 4
    assert flash["hardware FLOP"] == flash["model FLOP"] + scores


# ---------------------------------------------------------------------------------- grid, ZeRO


def test_a_grid_sums_over_data_ranks_once_per_step():
    """m2 keeps shards and adds every microbatch; dp adds what is left of it once."""
    for zero in (0, 1):
        text = f"2d=2x4,dp=2,zero={zero}" if zero else "2d=2x4,dp=2"
        table = strategy_table(model("gpt"), parse_strategy(text), STANDARD)
        sums = table.select(Quantity.COMMUNICATION, phase=Phase.BACKWARD_WEIGHT, path="block")
        per_group = {row.collective.meshes: row.per_step for row in sums if "fc1.w" in row.tensor}
        assert per_group == {("m2",): False, ("dp",): True}


def test_a_second_data_rank_changes_no_algorithm_of_a_grid():
    """For the same work per rank dp = 2 adds one gather and one sum, and nothing else."""
    tables = []
    for dp in (1, 2):
        strategy = parse_strategy(f"2d=2x4,dp={dp},zero=2")
        declared = on_every_rank(model("gpt"), strategy)
        tables.append(strategy_table(declared, strategy, STANDARD))
    grids = [
        [
            (row.path, row.phase, row.tensor, row.collective.kind, number(row.expr))
            for row in table.select(Quantity.COMMUNICATION)
            if row.collective.meshes != ("dp",)
            # the tied table's gradient turns in the shards that data ranks keep
            and row.collective.kind is not CollectiveKind.ALL_TO_ALL
        ]
        for table in tables
    ]
    assert grids[0] == grids[1]


def test_gradients_have_one_size_everywhere():
    """What comm moves, memory holds and time sends are the same bytes per element."""
    strategy = parse_strategy("dp=4")
    declared = on_every_rank(model("gpt"), strategy)
    rules = precision("bf16-mixed").applied(STANDARD)
    moved = strategy_table(declared, strategy, rules).select(
        Quantity.COMMUNICATION, phase=Phase.BACKWARD_WEIGHT
    )
    held = memory_table(declared, strategy, STANDARD).total(Quantity.WEIGHT_GRADIENT)
    messages = Add(*(row.count * row.collective.message for row in moved))
    timed = step_time(declared, strategy, H100).chain.definitions
    sent = timed["first.gradients.dp.all-reduce.message"]
    assert expand(messages - held) == expand(sent - held) == 0


# ------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize(("mesh", "hides"), [("dp", True), ("cp", False)])
def test_the_outermost_mesh_axis_of_a_group_decides(mesh, hides):
    """Gradients are summed over cp and dp together: what is said of dp goes for that sum."""
    strategy = parse_strategy("cp=2,dp=2")
    declared = on_every_rank(model("gpt"), strategy)
    plain, other = (
        values(step_time(declared, strategy, H100, None, Methods(overlaps=overlaps)).chain)
        for overlaps in ({}, {mesh: FULL})
    )
    assert bool(other["gradients"] < plain["gradients"]) is hides
    assert other["gradients"] > 0 or hides
