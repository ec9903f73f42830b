"""An engine: a model on the ranks of one copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from functools import cached_property
from typing import Any

from sympy import Expr, Integer

from symbolic_cost.axes import At, Role
from symbolic_cost.conventions.presets import STANDARD
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import Problems, looked_up, quote
from symbolic_cost.models.inference import Declare
from symbolic_cost.models.quantized import as_stored as held_as_stored
from symbolic_cost.models.shape import DECODE, LONGEST_STEP, TRAINING, Shape
from symbolic_cost.ops.conv import Conv
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.scan import Recurrent, Scan
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.records import dataclass
from symbolic_cost.serving.precisions import CACHES, STORED, VALUE, WEIGHTS, WIDE, Decoding, Reading
from symbolic_cost.systems.kernel_records import kernels
from symbolic_cost.systems.kernels import Kernels
from symbolic_cost.systems.machines import Machine

_RANKS = ("tp", "pp", "dp", "ep")


@dataclass(frozen=True)
class Engine:
    """A model on the ranks of one copy of it.

    Args:
        declare: makes the model for a shape.
        strategy: degrees as numbers; tp, pp, and dp with ep where attention is data-parallel.
        weights: precision of weights, one of `WEIGHTS`.
        cache: precision of keys and values, one of `CACHES`; states have 16 bits.
        latent: makes the model as it decodes, where that differs.
        drafted: tokens that every step checks besides its own.
        shared: tokens at the start of every prompt that all have in common.
        reading: how their cache is read.
        decoding: how keys and values are read that query heads share.
        borrows: how tensors begin that another engine on the same ranks holds; none unless given.
        memo: what is derived; engines on other ranks that are replaced from this one share it.

    Raises:
        InputError: every name that is unknown, and what of the strategy does not serve.
    """

    name: str
    declare: Declare
    strategy: Strategy
    machine: Machine
    weights: str = "bf16"
    cache: str = "bf16"
    latent: Declare | None = field(default=None, compare=False)
    drafted: int = 0
    shared: int = 0
    reading: Reading = Reading.EACH
    decoding: Decoding = Decoding.GROUPED
    borrows: str = ""
    memo: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check names, and that the model is one that generates from a cache."""
        problems = Problems()
        problems.attempt(looked_up, "precision of weights", self.weights, WEIGHTS)
        problems.attempt(looked_up, "precision of the cache", self.cache, CACHES)
        problems.texts += [
            f"strategy: {name} does not serve; {', '.join(_RANKS)} do"
            for name in self.strategy.degrees
            if name not in _RANKS
        ]
        if not 0 <= self.drafted < LONGEST_STEP:
            accepted = f"an integer from 0 to {LONGEST_STEP - 1} is accepted"
            problems.texts.append(f"drafted = {quote(self.drafted)}: {accepted}")
        if self.kernels.wide not in WIDE:
            problems.texts.append(
                f"system {self.machine.name}: units of 16 bits serve, {' or '.join(WIDE)}; it has "
                f"{', '.join(self.machine.matrix)}"
            )
        if self.decoding is Decoding.PER_HEAD and self.kernels.second is None:
            name = self.machine.name
            problems.texts.append(f"decoding: no second-level cache of {name} is on record")
        if self.strategy.zero:
            problems.texts.append(
                "strategy: zero does not serve; there are no states to keep apart"
            )
        problems.texts += _not_served(self.name, self.declare(TRAINING), self.declare(DECODE))
        if self.weights == STORED:
            problems.attempt(held_as_stored, self.declare(TRAINING))
        problems.refuse()

    @cached_property
    def kernels(self) -> Kernels:
        """Rates of kernels."""
        own = kernels(self.machine)
        return replace(own, sixteen="fp16") if self.weights == "fp16" else own

    @property
    def units(self) -> str:
        """Precision that the products of layers run in."""
        return self.kernels.units(WEIGHTS[self.weights][1])

    @cached_property
    def chooses(self) -> bool:
        """Whether queries choose among all positions those that attention to latents goes to."""
        if self.latent is None:
            return False
        model = self.latent(TRAINING)
        keys = {axis.name for axis in model.placed(At(Role.KEY_TOKEN))}
        ops = (op for part in model.parts for op in part.ops if op.kind == "choice")
        # Of compressed positions those chosen are laid out anew, under an axis of their own.
        return any(keys.intersection(op.inputs[0].axes, op.outputs[0].axes) for op in ops)

    def way(self, shape: Shape) -> Declare:
        """Return what makes the model for a shape: kernels that choose run on latents alone."""
        if self.latent is not None and (shape.by_steps or self.chooses):
            return self.latent
        return self.declare

    @property
    def ranks(self) -> Expr:
        """Ranks of the engine."""
        return self.strategy.ranks

    @property
    def stages(self) -> Expr:
        """Pipeline stages: so many microbatches are in flight."""
        return self.strategy.degree("pp")

    @cached_property
    def conventions(self) -> Conventions:
        """Bytes of weights and values; nothing is kept for a backward pass.

        In few bits are the matrices of the layers; tables, norms, biases and the head are not.
        """
        size, _ = WEIGHTS[self.weights]
        others = None if size == VALUE else VALUE
        nothing = Integer(0)
        sizes = replace(
            STANDARD.sizes,
            value=VALUE,
            weight=size,
            others=others,
            statistic=nothing,
            moment=nothing,
        )
        return replace(STANDARD, name=f"serving, {self.weights} weights", sizes=sizes)


def _not_served(name: str, whole: Model, step: Model) -> Iterator[str]:
    """Say which blocks mix positions and keep nothing: these cannot go on from a token."""
    ops = [op for part in step.parts for op in part.ops]
    if any(isinstance(op, Recurrent) for op in ops):
        yield (
            f"model {name}: serving is known for a cache or a state that ops of a step join; "
            "a recurrence is one kernel over all steps"
        )
        return
    keeping = {part.path for part in step.parts if any(op.caches() for op in part.ops)}
    if not keeping:
        yield f"model {name}: serving is known for models with a cache or a state; it has none"
        return
    for part in whole.parts:
        if part.is_block and _mixes(part) and part.path not in keeping:
            yield (
                f"model {name}: serving is known for blocks with a cache or a state; "
                f"{part.path} has none"
            )


def _mixes(part: Part) -> bool:
    """Return whether a part carries something from one position to another."""
    return any(op.core or isinstance(op, Scan | Recurrent | Conv) for op in part.ops)
