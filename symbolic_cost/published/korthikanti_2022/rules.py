"""Formulas of the outputs, derived from the declared GPT."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import NamedTuple

from sympy import Expr, Integer, Rational, expand

from symbolic_cost.conventions.presets import MEGATRON_2022, MODEL_FLOP
from symbolic_cost.ledger import CostTable, Phase, Quantity
from symbolic_cost.models.gpt import GPT
from symbolic_cost.ops.derive import cost
from symbolic_cost.ops.graph import Model, Part, Place
from symbolic_cost.ops.recompute import FULL, KEEP_ALL, SELECTIVE, Recompute
from symbolic_cost.parallel.strategy import parse_strategy
from symbolic_cost.symbols import B, F_m, R, T_step, b, e, l, m1, pp


class Technique(NamedTuple):
    """One row of Table 2: a strategy and what is recomputed."""

    strategy: str
    recompute: Recompute


TECHNIQUES = {
    "none": Technique("", KEEP_ALL),
    "tensor": Technique("tp", KEEP_ALL),
    "tensor + sequence": Technique("tp,sp", KEEP_ALL),
    "tensor + selective recomputation": Technique("tp", SELECTIVE),
    "tensor + sequence + selective": Technique("tp,sp", SELECTIVE),
    "full recomputation": Technique("tp", FULL),
}
"""The rows of Table 2 in order."""

RECOMPUTED_PASSES = 3
"""How often Eq 8 counts the attention core that runs again in backward.

Its forward pass alone runs again, once; Eq 8 doubles the core's share in forward and both
gradients. `hfu_percent_once` is what counting it once gives.
"""

_MODEL = GPT(f=4 * e)


@cache
def block_table(technique: str) -> CostTable:
    """Derive what one block costs under a technique of Table 2."""
    strategy, recompute = TECHNIQUES[technique]
    parts = (Part("block", _MODEL.block(), place=Place.BLOCK),)
    model = Model("gpt-block", parts, _MODEL.sizes(), axes=_MODEL.model().axes)
    placement = parse_strategy(strategy).placement(model)
    return cost(model, MEGATRON_2022, placement, recompute)


def saved(technique: str) -> Expr:
    """Return the activations that one block keeps under a technique of Table 2 [byte]."""
    return block_table(technique).total(Quantity.SAVED)


@cache
def rules() -> dict[str, Expr]:
    """Return the formula of every output in FLOP, bytes, and ratios."""
    sequence = saved("tensor + sequence")
    core = sequence - saved("tensor + sequence + selective")
    model, again = _flop(_trained())
    block_model, block_again = _flop(_trained().select(path="block").once())
    hardware = expand(model + RECOMPUTED_PASSES * again)
    return {
        "5as/h": expand(core * m1 / (b * l * e)),
        "selective saving %": expand(core) / expand(sequence),
        "selective FLOP overhead %": RECOMPUTED_PASSES * block_again / block_model,
        "sbhp (2 bytes, 2**30)": saved("full recomputation") * pp,
        "model_flop": model,
        "hardware_flop": hardware,
        "mfu_percent": model / (R * F_m * T_step),
        "hfu_percent": hardware / (R * F_m * T_step),
        "hfu_percent_once": expand(model + again) / (R * F_m * T_step),
    }


PERCENT = Rational(1, 100)
UNITS = {
    "selective saving %": PERCENT,
    "selective FLOP overhead %": PERCENT,
    "sbhp (2 bytes, 2**30)": Integer(2**30),
    "mfu_percent": PERCENT,
    "hfu_percent": PERCENT,
    "hfu_percent_once": PERCENT,
}
"""Unit of an output, where it is not one FLOP, byte or ratio."""


def computed(name: str, numbers: Mapping[Expr, Expr]) -> Expr:
    """Return an output in its unit, with numbers for symbols."""
    return rules()[name].xreplace(numbers) / UNITS.get(name, Integer(1))


def throughput_increase(full: Fraction, present: Fraction) -> Fraction:
    """Return by how much the throughput grows [percent]."""
    return 100 * (full / present - 1)


@cache
def _trained() -> CostTable:
    """Derive the FLOP of the whole model, the attention core recomputed."""
    return cost(_MODEL.model(), MODEL_FLOP, recompute=SELECTIVE)


def _flop(table: CostTable) -> tuple[Expr, Expr]:
    """Return the FLOP of B sequences without recomputation, and those of recomputation."""
    flop = table.select(Quantity.FLOP).map(lambda expr: expr.xreplace({b: B}))
    again = expand(flop.total(phase=Phase.RECOMPUTE))
    return expand(flop.total() - again), again
