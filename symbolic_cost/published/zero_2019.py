"""ZeRO: model states per device, the largest model that fits, and the volume of a step.

Bytes per parameter come from the states that mixed-precision Adam keeps under each ZeRO level;
volumes from the collectives that the levels bring.

Source: rajbhandari-2019, sections 3, 5, 7 and Tables 1 and 2.
"""

from collections.abc import Iterator, Mapping
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import cache
from typing import Any

from sympy import Expr, Integer, cancel

from symbolic_cost import symbols
from symbolic_cost.conventions.presets import MODEL_FLOP
from symbolic_cost.layers import mlp
from symbolic_cost.ledger import Quantity
from symbolic_cost.numeric.binding import value
from symbolic_cost.ops.declare import Model, Part, einsum
from symbolic_cost.parallel.memory import Training, memory_table
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.parallel.part_memory import STATES
from symbolic_cost.parallel.table import strategy_table
from symbolic_cost.published.contract import (
    Comparison,
    compared,
    last_digit,
    not_recomputed,
    printed_data,
    records,
)
from symbolic_cost.published.inputs import Count, Inputs, Rate
from symbolic_cost.symbols import dp, exact
from symbolic_cost.units import SI

PUBLISHED_INPUTS: Mapping[str, Any] = printed_data("inputs.toml")["zero_2019"]
"""The paper's running example (Figure 1 and Table 1)."""

LEVELS = {"baseline": 0, "P_os": 1, "P_os+g": 2, "P_os+g+p": 3}
"""ZeRO level by the paper's name."""

_ADAM = 12
"""Bytes of Adam's states per parameter: master copy, mean and mean square."""

_MODEL = Model(
    "one-matrix",
    (Part("layer", (einsum("linear", "x[b e], *w[e f] -> y[b f]"),)),),
    {"b": symbols.b, "e": symbols.e, "f": symbols.f},
    source="rajbhandari-2019",
    axes=mlp.AXES,
)
"""Every parameter costs the same, so one matrix stands for all."""


class Run(Inputs):
    """One model of psi parameters on data-parallel devices.

    Adam keeps K bytes of states per parameter; a device has device_gb of memory [GB]; mp is the
    model-parallel degree.
    """

    psi: Rate
    nd: Count
    K: Rate = _ADAM
    device_gb: Rate = 32
    mp: Count = 1


@cache
def bytes_per_parameter(name: str) -> tuple[Expr, Expr]:
    """Return bytes per parameter of weights with gradients, and of Adam's states, in dp [byte]."""
    strategy = parse_strategy(f"dp,zero={LEVELS[name]}")
    table = memory_table(_MODEL, strategy, MODEL_FLOP, Training(precision="fp16-mixed"))
    held = {quantity: table.total(quantity) / _parameters() for quantity in STATES}
    weights = held[Quantity.WEIGHT] + held[Quantity.WEIGHT_GRADIENT]
    return weights, held[Quantity.MASTER_WEIGHT] + held[Quantity.OPTIMIZER]


@cache
def volume(name: str) -> Expr:
    """Return elements per parameter that one process sends in a step, many processes [element]."""
    table = strategy_table(_MODEL, parse_strategy(f"dp,zero={LEVELS[name]}"), MODEL_FLOP)
    sent = table.total(Quantity.COMMUNICATION) / _parameters()
    # Ring algorithms send (dp - 1)/dp of it.
    return cancel(sent / MODEL_FLOP.sizes.weight_gradient * dp / (dp - 1))


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compute model states, the largest model and the volume of a step, by the paper's names.

    Args:
        inputs: psi, nd; optionally K, device_gb, mp.

    Returns:
        "baseline", "P_os", "P_os+g", "P_os+g+p": model states per device [GB]; below
        "max_params_billion" the largest model; below "volume_elements" what a process sends.
    """
    run = Run.accepted(inputs)
    psi = _fraction(exact(run.psi))
    per_parameter = {name: _per_parameter(run, name) for name in LEVELS}
    devices = run.mp * _fraction(exact(run.device_gb))
    return {name: float(psi * size / SI["G"]) for name, size in per_parameter.items()} | {
        "max_params_billion": {name: float(devices / size) for name, size in per_parameter.items()},
        "volume_elements": {name: float(psi * _fraction(volume(name))) for name in LEVELS},
    }


def reproduce() -> list[Comparison]:
    """Compare Tables 1 and 2; measured sizes are listed without a value."""
    return [*_table_1(), *_table_2()]


def _table_1() -> Iterator[Comparison]:
    """Compare states per device; some cells are truncated in print."""
    table = printed_data("zero_2019")["table 1"]
    for size, rows in table["rows"].items():
        psi = Fraction(size[:-1]) * SI[{"B": "G", "T": "T"}[size[-1]]]
        for nd, cells in zip(table["nd"], rows, strict=True):
            run = Run(psi=float(psi), nd=nd)
            for name, cell in zip(table["columns"], cells, strict=True):
                states = psi * _per_parameter(run, name) / SI["G"]
                yield _rounded_or_truncated(f"table 1.{size}.nd={nd}.{name}", cell, states)


def _rounded_or_truncated(key: str, printed: str, states: Fraction) -> Comparison:
    exactly = Decimal(states.numerator) / states.denominator
    for how, note in ((ROUND_HALF_UP, ""), (ROUND_DOWN, "truncated in print")):
        computed = exactly.quantize(last_digit(printed), how)
        if computed == Decimal(printed):
            return Comparison(key, printed, str(computed), match=True, note=note)
    return compared(key, printed, states)


def _table_2() -> Iterator[Comparison]:
    """Compare the largest models; those on several devices are multiples of the first row."""
    table = printed_data("zero_2019")["table 2"]
    for row in records(table):
        run = Run(psi=1, nd=row["gpus"] // row["mp"])
        for name in table["columns"][2:]:
            key = f"table 2.mp={row['mp']}.{name}"
            if name.startswith("measured"):
                yield not_recomputed(key, row[name], "measured")
                continue
            one_device = round(Fraction(32) / _per_parameter(run, name), 1)
            number, unit = row[name][:-1], row[name][-1]
            largest = row["mp"] * one_device / {"B": 1, "T": 1000}[unit]
            comparison = compared(key, number, largest)
            note = "" if row["mp"] == 1 else "mp times the rounded size of one device"
            yield Comparison(key, row[name], comparison.computed + unit, comparison.match, note)


def _per_parameter(run: Run, name: str) -> Fraction:
    weights, states = bytes_per_parameter(name)
    scale = _fraction(exact(run.K)) / _ADAM
    bound = {dp: Integer(run.nd)}
    return _fraction(weights.xreplace(bound)) + scale * _fraction(states.xreplace(bound))


def _parameters() -> Expr:
    return symbols.e * symbols.f


def _fraction(expr: Expr) -> Fraction:
    return Fraction(value(expr))
