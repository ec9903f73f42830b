"""What products and attention run in, on machines that lack some precisions."""

import pytest
from sympy import Integer

import symbolic_cost as sc
from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Phase, Quantity, Row
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.serving.declared import declaring
from symbolic_cost.serving.engine import Engine
from symbolic_cost.serving.notes import assumptions
from symbolic_cost.serving.precisions import WEIGHTS, WIDE
from symbolic_cost.serving.pricing import PRODUCTS
from symbolic_cost.serving.spread import spreads
from symbolic_cost.systems.kernel_records import kernels
from symbolic_cost.systems.prices import rates
from symbolic_cost.systems.records import machine, machine_names
from symbolic_cost.units import Unit

SERVING = [name for name in machine_names() if name not in ("symbolic", "lstm-roofline")]


def told(system, **options):
    """Return the best plan's throughput and what is said of it."""
    plans = sc.serve_plan(
        "gpt2", system, 1, prompt=200, answer=50, strategy="tp=1", chunk="none", **options
    )
    return plans.best[0].tokens, "\n".join(assumptions(plans, rates(system)))


@pytest.mark.parametrize("system", SERVING)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_products_run_in_units_that_the_machine_has(system, weights):
    own = kernels(machine(system))
    runs = own.units(WEIGHTS[weights][1])
    assert runs in own.machine.matrix
    assert own.wide in WIDE
    assert float(own.product(PRODUCT, runs, Integer(2))) > 0


def row(quantity, tensor, size):
    unit = Unit.FLOP if quantity is Quantity.FLOP else Unit.BYTE
    return Row("fc", "einsum", Phase.FORWARD, quantity, unit, Integer(size), tensor=tensor)


PRODUCT = (
    row(Quantity.FLOP, "y", 2 * 4096**3),
    row(Quantity.READ, "x", 2 * 4096**2),
    row(Quantity.READ, "w", 4096**2),
    row(Quantity.WRITE, "y", 2 * 4096**2),
)


def test_narrow_products_without_any_on_record_run_at_the_shares_of_wide_ones():
    """2 x 4096^3 FLOP on tpu-v7 in 8 bits: the same share of a peak that is twice as high."""
    own = kernels(machine("tpu-v7"))
    wide, narrow = (float(own.product(PRODUCT, name, Integer(2), {"w"})) for name in WIDE_NARROW)
    assert narrow == pytest.approx(wide / 2)


WIDE_NARROW = ("bf16", "fp8")


def test_a_machine_without_bf16_runs_fp16_and_says_so():
    asked, said = told("v100", weights="bf16")
    wide, plain = told("v100", weights="fp16")
    assert asked == wide
    assert "v100 has no bf16 units: products and attention run in fp16" in said
    assert "run in" not in plain


@pytest.mark.parametrize(
    ("system", "options", "said"),
    [
        ("tpu-v7", {"weights": "fp8"}, "in fp8, the head and attention in bf16; of fp8 none are"),
        ("h100", {"weights": "fp8"}, "products of layers run in fp8, the head and attention in"),
        ("a40", {"weights": "fp8"}, "a40 has no fp8 units: fp8 weights are widened as they are"),
        ("h100", {"weights": "int4"}, "int4 weights are widened as they are read, products and"),
        ("gaudi3", {"weights": "fp16"}, "gaudi3 has no fp16 units: products and attention run in"),
        ("a100-80gb", {"cache": "fp8"}, "fp8 keys and values are widened as they are read"),
    ],
)
def test_what_runs_is_said_where_it_is_not_what_is_asked_for(system, options, said):
    assert said in told(system, **options)[1]


def test_a_machine_without_units_of_16_bits_is_refused():
    with pytest.raises(InputError, match="units of 16 bits serve, bf16 or fp16; it has fp32"):
        told("lstm-roofline")


def test_intervals_are_those_of_the_products_that_run():
    """Products in fp8 that an A40 runs in bf16 are as well known as products in bf16."""
    declare, _ = declaring("gpt2")
    wide, narrow = (
        spreads(Engine("gpt2", declare, Strategy(), machine("a40"), weights))[PRODUCTS]
        for weights in WIDE_NARROW
    )
    assert wide == narrow
