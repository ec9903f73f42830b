"""Profiles of modules: the BERT-base and the Megatron GPT-2 printed by the Flops Profiler.

The models are declared like all others and counted under the profiler's conventions; a tree of
modules says which ops each module runs. Latencies are inputs: they were measured.

Source: flops-profiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sympy import Expr

from symbolic_cost.errors import InputError, unknown
from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.module_profile.printed import PRINTED

bert, gpt2 = PRINTED["bert"], PRINTED["gpt2"]

PUBLISHED_INPUTS: Mapping[str, Any] = {name: one.inputs for name, one in PRINTED.items()}
"""Inputs of both profiles."""


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Compute every number of one profile or both, as printed.

    Args:
        inputs: "bert" and "gpt2", each as the shape of that name takes them; or those of one
            alone, a BERT if there are token types T.

    Raises:
        InputError: every problem of the inputs.
    """
    if {"b", "l", "e"} <= set(inputs):
        return (bert if "T" in inputs else gpt2).evaluate(inputs)
    lost = [unknown("profile", name, PRINTED) for name in inputs if name not in PRINTED]
    if lost:
        raise InputError(lost)
    return {name: PRINTED[name].evaluate(given) for name, given in inputs.items()}


def reproduce() -> list[Comparison]:
    """Compare every printed number of both profiles with its computed value."""
    return [
        replace(row, key=f"{name}|{row.key}")
        for name, one in PRINTED.items()
        for row in one.reproduce()
    ]


def formulas() -> dict[str, Expr]:
    """Return the formula of every count of a module by the key of its number."""
    return {
        f"{name}|{key}": expr
        for name, one in PRINTED.items()
        for key, expr in one.formulas().items()
    }
