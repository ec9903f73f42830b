"""BERT-base, a forward pass of four sequences of 128 tokens.

The document that printed the profile says one sequence; 4 and 128 are the only batch and length
that give its numbers.

Source: flops-profiler, README.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from sympy import Expr, Integer

from symbolic_cost.models.bert import BERT, Heads
from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.inputs import Count, Inputs, indivisible
from symbolic_cost.published.module_profile.counted import VERSION_2023, counted
from symbolic_cost.published.module_profile.figures import figures
from symbolic_cost.published.module_profile.figures import formulas as formulas_of
from symbolic_cost.published.module_profile.modules import bert_modules
from symbolic_cost.published.module_profile.printed import grouped, read_printed
from symbolic_cost.published.module_profile.profile import Profile, profile
from symbolic_cost.published.module_profile.text import profile_text
from symbolic_cost.symbols import n_layers

_PRINTED = read_printed("bert")

PUBLISHED_INPUTS: Mapping[str, Any] = {**_PRINTED.inputs, "latencies": _PRINTED.latencies()}
"""Sizes, and the latency of every module by the key of its number."""


class Shape(Inputs):
    """Sizes of a BERT (n heads, L layers), and latencies by the key of the printed number.

    `tensor` says in words what was profiled.
    """

    b: Count
    l: Count
    e: Count
    f: Count
    n: Count
    L: Count
    V: Count
    P: Count
    T: Count
    tensor: str = ""
    latencies: dict[str, str | float] = Field(default_factory=dict)

    def contradictions(self) -> list[str]:
        """Say that the heads do not divide the width."""
        return indivisible("e", self.e, "n", self.n)


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, str]:
    """Compute every number of the profile as printed, by key.

    Args:
        inputs: b, l, e, f, n (heads), L (layers), V, P, T; tensor, what was profiled in words;
            latencies, by the key of the number.

    Raises:
        InputError: every problem of the inputs.
    """
    return {figure.key: figure.text for figure in figures(_profile(inputs))}


def report(inputs: Mapping[str, Any]) -> str:
    """Write the profile as text.

    Raises:
        InputError: every problem of the inputs.
    """
    return profile_text(_profile(inputs), step=3)


def reproduce() -> list[Comparison]:
    """Compare every printed number with its computed value."""
    return _PRINTED.compared(figures(_profile(PUBLISHED_INPUTS)))


def formulas() -> dict[str, Expr]:
    """Return the formula of every count of a module by the key of its number."""
    model = BERT(heads=Heads.POOLER).model()
    return formulas_of(counted(model, bert_modules(n_layers), VERSION_2023))


def _profile(inputs: Mapping[str, Any]) -> Profile:
    shape = Shape.accepted(inputs)
    model = BERT(
        b=shape.b,
        l=shape.l,
        e=shape.e,
        f=shape.f,
        h=shape.n,
        V=shape.V,
        P=shape.P,
        T=shape.T,
        n_layers=shape.L,
        heads=Heads.POOLER,
    ).model()
    modules = bert_modules(Integer(shape.L))
    return profile(model, modules=modules, latencies=grouped(shape.latencies))
