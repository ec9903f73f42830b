"""A GPT-2 of Megatron-LM with weights partitioned over ranks, four sequences of 1024 tokens.

The document that printed the profile says a batch of 1024, which is the one of a whole step.
Parameters are not the model's: every partitioned table or factor of a product shows one element.

Source: flops-profiler, README.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from sympy import Expr, Integer

from symbolic_cost.models.gpt import GPT
from symbolic_cost.published.contract import Comparison
from symbolic_cost.published.inputs import Count, Inputs, indivisible
from symbolic_cost.published.module_profile.counted import VERSION_2021, counted
from symbolic_cost.published.module_profile.figures import figures
from symbolic_cost.published.module_profile.figures import formulas as formulas_of
from symbolic_cost.published.module_profile.latencies import Run
from symbolic_cost.published.module_profile.modules import megatron_modules
from symbolic_cost.published.module_profile.printed import grouped, read_printed
from symbolic_cost.published.module_profile.profile import Profile, profile
from symbolic_cost.published.module_profile.text import profile_text
from symbolic_cost.symbols import n_layers

_PRINTED = read_printed("gpt2")

PUBLISHED_INPUTS: Mapping[str, Any] = {**_PRINTED.inputs, "latencies": _PRINTED.latencies()}
"""Sizes, facts of the run, and the latency of every module by the key of its number."""


class Shape(Inputs):
    """Sizes of a GPT-2 (n heads, L layers), the run, and latencies by the key of the number.

    `params` says in words how parameters are kept.
    """

    b: Count
    l: Count
    e: Count
    f: Count
    n: Count
    L: Count
    V: Count
    train_batch: Count
    world: Count = 1
    mp: Count = 1
    params: str = ""
    latencies: dict[str, str | float] = Field(default_factory=dict)

    def contradictions(self) -> list[str]:
        """Say that heads do not divide the width, or devices the world."""
        return [
            *indivisible("e", self.e, "n", self.n),
            *indivisible("world", self.world, "mp", self.mp),
        ]


def evaluate(inputs: Mapping[str, Any]) -> Mapping[str, str]:
    """Compute every number of the profile as printed, by key.

    Args:
        inputs: b, l, e, f, n (heads), L (layers), V; train_batch, world, mp; params, how parameters
            are kept in words; latencies, by the key of the number.

    Raises:
        InputError: every problem of the inputs.
    """
    return {figure.key: figure.text for figure in figures(_profile(inputs))}


def report(inputs: Mapping[str, Any]) -> str:
    """Write the profile as text.

    Raises:
        InputError: every problem of the inputs.
    """
    return profile_text(_profile(inputs), step=10)


def reproduce() -> list[Comparison]:
    """Compare every printed number with its computed value."""
    return _PRINTED.compared(figures(_profile(PUBLISHED_INPUTS)))


def formulas() -> dict[str, Expr]:
    """Return the formula of every count of a module by the key of its number."""
    model = GPT().model()
    return formulas_of(counted(model, megatron_modules(n_layers), VERSION_2021, partitioned=True))


def _profile(inputs: Mapping[str, Any]) -> Profile:
    shape = Shape.accepted(inputs)
    model = GPT(
        b=shape.b, l=shape.l, e=shape.e, f=shape.f, h=shape.n, V=shape.V, n_layers=shape.L
    ).model()
    return profile(
        model,
        modules=megatron_modules(Integer(shape.L)),
        version=VERSION_2021,
        latencies=grouped(shape.latencies),
        run=Run(world=shape.world, mp=shape.mp, batch=shape.train_batch),
        partitioned=True,
    )
