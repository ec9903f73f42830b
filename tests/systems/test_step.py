"""The step: sums by hand, limits, derivatives and independent counts."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
from sympy import Integer, Rational

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Phase, Quantity
from symbolic_cost.models.catalog import model
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.orders import Pass
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.stages import Stage
from symbolic_cost.parallel.timeline import timeline
from symbolic_cost.systems.machines import Efficiencies, Figure
from symbolic_cost.systems.overlap import FULL, partial
from symbolic_cost.systems.records import machine
from symbolic_cost.systems.step import RESULTS, STEP_PARTS, Methods, step_time

RATES = {
    "F_m": 312 * 10**12,
    "F_v": 39 * 10**12,
    "beta_m": 2 * 10**12,
    "n_d": 8,
    "beta_d": 240 * 10**9,
    "beta": 20 * 10**9,
    "alpha_d": 5e-6,
    "alpha": 1e-5,
    "t_k": 5e-6,
}
SIZES = {"n_layers": 16, "b": 16, "l": 1024, "e": 4096, "f": 16384, "h": 32, "V": 51200, "P": 1024}
DEGREES = {"m1": 4, "dp": 4, "pp": 4, "M": 8, "v": 2}


@cache
def made(strategy="tp,sp,dp,pp", recompute="none", schedule="1f1b", zero="", **overlaps):
    policies = {mesh: partial(Integer(share)) for mesh, share in overlaps.items()}
    return step_time(
        model("gpt3-13b"),
        parse_strategy(strategy + zero),
        machine("symbolic"),
        Training(recompute=recompute_policy(recompute), schedule=schedule),
        Methods(overlaps=policies),
    )


def at(expr, **changes):
    """Put numbers for symbols."""
    values = {**RATES, **SIZES, **DEGREES, **changes}
    return expr.xreplace({s: Rational(str(values[s.name])) for s in expr.free_symbols})


def numbers(step, **changes):
    values = {**RATES, **SIZES, **DEGREES, **changes}
    return step.chain.evaluate({s.name: values[s.name] for s in step.chain.symbols})


def test_parts_add_up_to_the_step():
    found = numbers(made())
    assert found["step"] == sum(found[name] for name in STEP_PARTS)
    assert found["microbatches"] == 8 * max(found[f"{stage}.microbatch"] for stage in Stage)
    results = set(RESULTS) - {"samples per second"}
    assert all(found[name].is_Rational and found[name] > 0 for name in results)


@pytest.mark.parametrize(
    ("name", "sizes", "throughput", "amount"),
    [
        ("gpt3-13b", {"b": 4, "l": 2048}, "tokens per second", 4 * 2048),
        # a source and a target
        ("t5-small", {"b": 4, "l": 512, "l_t": 128}, "tokens per second", 4 * (512 + 128)),
        ("lstm-medium", {"b": 4, "l": 35}, "tokens per second", 4 * 35),
        # patches of an image are no tokens
        ("vit-b-16", {"b": 4}, "samples per second", 4),
        ("resnet-50", {"b": 4}, "samples per second", 4),
    ],
)
def test_throughput_is_of_what_a_model_takes(name, sizes, throughput, amount):
    declared = model(name)
    chain = step_time(declared, parse_strategy(""), machine("h100")).chain
    known = chain.evaluate({**declared.bindings, **sizes, "M": 8})
    assert known[throughput] * known["step"] == 8 * amount
    assert sum(name.endswith("per second") for name in chain.definitions) == 1


def test_one_rank_by_hand():
    """Every op takes the longer of computing and memory, after its launch."""
    step = made(strategy="")
    found = numbers(step)
    table = step.table[Stage.FIRST]
    total = 0
    groups = {}
    for row in table:
        if row.quantity in {Quantity.FLOP, Quantity.READ, Quantity.WRITE}:
            key = row.path, row.phase
            sums = groups.setdefault(key, [row.kind, at(row.count), 0, 0])
            sums[2 if row.quantity is Quantity.FLOP else 3] += at(row.expr)
    for kind, count, flop, traffic in groups.values():
        rate = RATES["F_m"] if kind == "einsum" else RATES["F_v"]
        total += count * (max(flop / rate, traffic / Integer(RATES["beta_m"])) + Rational(5, 10**6))
    assert found["microbatches"] == 8 * total
    assert found["bubble"] == found["exposed"] == found["gradients"] == found["weights"] == 0


def test_free_memory_links_and_launches_leave_the_flop():
    """With infinitely fast memory and links the step is FLOP over peak: HFU is nearly one."""
    step = made(strategy="tp,dp", recompute="full")
    fast = {"beta_m": 10**30, "beta": 10**30, "beta_d": 10**30, "F_v": 10**30}
    still = {"alpha": 1e-30, "alpha_d": 1e-30, "t_k": 1e-30}
    found = numbers(step, **fast, **still)
    assert float(found["hfu"]) == pytest.approx(1, rel=1e-3)
    assert float(found["mfu"] / found["hfu"]) == pytest.approx(3 / 4, abs=0.02)


def test_recomputation_counts_in_hfu_alone():
    plain, again = numbers(made()), numbers(made(recompute="full"))
    assert plain["mfu"] == plain["hfu"]
    assert again["hfu"] > again["mfu"]
    assert again["step"] > plain["step"]
    assert again["model FLOP"] == plain["model FLOP"]


def test_mfu_as_counted_by_korthikanti():
    """korthikanti-2022, Equations 7 and 8: 72 B n l e^2 (1 + l/6e + V/12en), selective l/3e."""
    found = numbers(made(recompute="selective"))
    b, l, e, n, V = (SIZES[name] for name in ("b", "l", "e", "n_layers", "V"))
    base = 72 * b * n * l * e**2
    head = Rational(V, 12 * e * n)
    assert found["model FLOP"] == base * (1 + Rational(l, 6 * e) + head)
    hardware = base * (1 + Rational(l, 6 * e) + Rational(l, 18 * e) + head)
    assert found["hardware FLOP"] == hardware
    ranks = DEGREES["m1"] * DEGREES["dp"] * DEGREES["pp"]
    assert found["mfu"] == 8 * found["model FLOP"] / (ranks * RATES["F_m"] * found["step"])


@pytest.mark.parametrize("name", ["1f1b", "gpipe", "interleaved"])
def test_bubble_is_what_a_clock_finds(name):
    """Tasks of the mean stage on four stages, each as soon as its inputs are there."""
    found = numbers(made(schedule=name))
    forward, backward, weights = (
        Fraction(str(found[f"mean.{work}"])) for work in ("forward", "backward", "weight gradients")
    )
    times = {
        Pass.FORWARD: forward,
        Pass.BACKWARD: backward + weights,
        Pass.BACKWARD_INPUT: backward,
        Pass.BACKWARD_WEIGHT: weights,
    }
    events = timeline(name, DEGREES["pp"], DEGREES["M"], DEGREES["v"], times)
    whole = max(event.end for event in events)
    assert Fraction(str(found["bubble"])) == whole - DEGREES["M"] * (forward + backward + weights)


def test_two_and_three_stages():
    for stages in (1, 2, 3):
        step = made(strategy=f"pp={stages}")
        assert len(step.stages) == min(stages, 3)
        found = numbers(step, n_layers=12)
        assert bool(found["bubble"] > 0) is (stages > 1)


@pytest.mark.parametrize(
    "strategy",
    ["2d=2x2,pp=4", "2.5d=2x2x2", "3d=2x2x2", "ring=4", "ulysses=4,dp=2,zero=1", "cp=2,zero=3"],
)
def test_every_tensor_scheme_has_a_step(strategy):
    """More ranks with free links take the work's share; the links make it slower."""
    step = made(strategy=strategy)
    free = {"beta": 10**30, "beta_d": 10**30, "alpha": 1e-30, "alpha_d": 1e-30}
    found, quick = numbers(step), numbers(step, **free)
    assert quick["step"] < found["step"]
    assert float(quick["exposed"]) < 1e-9 < float(found["exposed"])


def test_overlap_hides_communication():
    open_, half, hidden = (
        numbers(made(**kwargs)) for kwargs in ({}, {"tp": 0}, {"tp": 1, "dp": 1, "pp": 1})
    )
    assert open_["step"] == half["step"]
    assert hidden["exposed"] < open_["exposed"]
    assert hidden["step"] < open_["step"]


def test_zero_changes_where_weights_move():
    plain, one, three = (
        numbers(made(strategy="tp,dp", zero=z)) for z in ("", ",zero=1", ",zero=3")
    )
    assert plain["weights"] == 0 < one["weights"]
    assert three["weights"] == 0
    assert three["microbatches"] > one["microbatches"]
    assert one["optimizer"] < plain["optimizer"]


def test_optimizer_moves_all_that_it_keeps():
    """bf16-mixed Adam: 4-byte gradient, master, two moments read, all but the gradient written."""
    found = numbers(made(strategy=""))
    step = made(strategy="")
    parameters = step.table[Stage.FIRST].total(Quantity.PARAMETER)
    parameters = at(parameters)
    assert found["optimizer"] == parameters * (4 + 2 * 12 + 2) / Integer(RATES["beta_m"])
    assert found["clipping"] == parameters * 3 * 4 / Integer(RATES["beta_m"])


@pytest.mark.parametrize("by", ["beta", "beta_d", "beta_m", "F_m", "alpha", "t_k"])
def test_derivatives_agree_with_differences(by):
    step = made(recompute="full", zero=",zero=1")
    values = {**RATES, **SIZES, **DEGREES}
    values = {s.name: values[s.name] for s in step.chain.symbols}
    found = step.chain.derivative("step", by).evaluate(values)
    size = Rational(str(values[by])) / 10**7
    after = step.chain.evaluate({**values, by: Rational(str(values[by])) + size})
    difference = (after["step"] - found["step"]) / size
    assert float(found[f"d step/d {by}"]) == pytest.approx(float(difference), rel=1e-5)


def test_exact_and_compiled_evaluation_agree():
    step = step_time(
        model("gpt3-175b"), parse_strategy("tp=8,sp,pp=8,dp=2,zero=1"), machine("h100")
    )
    values = {**model("gpt3-175b").bindings, "b": 2, "M": 32}
    found = step.chain.evaluate(values)
    assert found["step"].is_Rational
    compiled = step.chain.compiled("step", "mfu")(values)
    assert float(compiled["step"]) == pytest.approx(float(found["step"]), rel=1e-12)


def test_rows_of_a_stage_are_its_microbatch():
    step = made()
    rows = step.rows(Stage.LAST)
    found = numbers(step)
    work = at(rows.total(Quantity.TIME))
    assert work + found["last.backward.sent"] == found["last.microbatch"]
    exposed = rows.select(where=lambda row: row.kind.startswith("exposed"))
    assert {row.kind for row in exposed} >= {"exposed all-gather", "exposed reduce-scatter"}
    assert {row.phase for row in rows} <= set(Phase)


def test_collectives_within_a_domain_are_faster():
    small = numbers(made(strategy="tp"), m1=4, n_d=8)
    across = numbers(made(strategy="tp"), m1=4, n_d=2)
    assert small["exposed"] < across["exposed"]


def test_efficiencies_of_the_machine_count():
    record = machine("transformer-tables")
    halves = Efficiencies(matrix=Figure(Rational(1, 2)), memory=Figure(Rational(1, 2)))
    slow = replace(record, efficiencies=halves)
    training = Training(precision="fp16-mixed")
    plain, half = (
        step_time(GPT().model(), parse_strategy(""), made, training) for made in (record, slow)
    )
    softmax = "block.attention.core.softmax.forward.memory"
    assert numbers(half)[softmax] == 2 * numbers(plain)[softmax]
    fc1 = "block.mlp.fc1.forward.compute"
    assert numbers(half)[fc1] == 2 * numbers(plain)[fc1]
    assert numbers(half)["mfu"] < numbers(plain)["mfu"]


def test_refusals():
    with pytest.raises(InputError, match="bf16, of which v100 has no rate"):
        step_time(GPT().model(), parse_strategy(""), machine("v100"))
    with pytest.raises(InputError, match="unknown schedule"):
        step_time(GPT().model(), parse_strategy(""), machine("h100"), Training(schedule="2f1b"))


def test_full_overlap_policy_object():
    step = step_time(
        GPT().model(), parse_strategy("tp=4"), machine("h100"), None, Methods(overlaps={"tp": FULL})
    )
    open_ = step_time(GPT().model(), parse_strategy("tp=4"), machine("h100"))
    assert numbers(step)["step"] < numbers(open_)["step"]


def test_the_bubble_is_that_of_the_mean_stage():
    """1F1B: (pp - 1) passes of a stage in the mean, of four with two alike (narayanan-2021)."""
    numbers = {"b": 1, "l": 128, "M": 8}
    time = sc.job("gpt2", "pp=4", numbers, system="a100-80gb", stack="roofline").time()
    passes = ("forward", "backward", "weight gradients")
    alike = {"first": 1, "middle": 2, "last": 1}
    work = sum(
        times * time.number(f"{stage}.{one}") for stage, times in alike.items() for one in passes
    )
    assert time.number("first.forward") != time.number("last.forward")
    assert 4 * time.number("bubble") == 3 * work
