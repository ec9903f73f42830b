"""Training runs of GPT models on two tiers of links: their step times, many at once.

The step of every run with one way of training is one chain in sizes, degrees and rates; it is
compiled once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from symbolic_cost import symbols
from symbolic_cost.errors import refuse
from symbolic_cost.models.decoders.gpt import GPT
from symbolic_cost.ops.recompute import recompute_policy
from symbolic_cost.parallel.memory import Training
from symbolic_cost.parallel.microbatch import on_every_rank
from symbolic_cost.parallel.parsing import parse_strategy
from symbolic_cost.program.evaluator import Evaluator
from symbolic_cost.records import dataclass
from symbolic_cost.symbols import exact
from symbolic_cost.systems.machines import SYMBOLIC, Efficiencies, Figure, Machine
from symbolic_cost.systems.step import Methods, step_time

VOCABULARY_BLOCK = 128
"""Tokens to multiples of which every tensor-parallel rank's share of the vocabulary is padded."""

_MOST_STAGES = 3
"""Stages above this number differ from three in their number alone."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a run trains.

    Args:
        split: whether residual activations are split over the tensor-parallel ranks (sp).
        chunks: model chunks per pipeline stage; more than one interleave.
        scattered: whether tensor-parallel ranks send parts of the same activations.
    """

    recompute: str = "full"
    split: bool = False
    chunks: int = 1
    scattered: bool = False
    precision: str = "fp16-mixed"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a GPT with f = 4 e.

    Args:
        l: sequence length [tokens].
        V: vocabulary before padding.
        global_batch: of a step [sequences].
        micro_batch: of one rank [sequences].
    """

    e: int
    h: int
    n_layers: int
    l: int
    V: int
    global_batch: int
    micro_batch: int
    tp: int
    dp: int
    pp: int

    def problems(self) -> Iterator[str]:
        """Say which numbers do not go together."""
        for name, size, by, degree in (
            ("h", self.h, "tp", self.tp),
            ("e", self.e, "h", self.h),
            ("n_layers", self.n_layers, "pp", self.pp),
            ("global_batch", self.global_batch, "micro_batch dp", self.micro_batch * self.dp),
        ):
            if size % degree:
                yield f"{name} = {size} is not divisible by {by} = {degree}"

    @property
    def vocabulary(self) -> int:
        """Padded vocabulary."""
        block = VOCABULARY_BLOCK * self.tp
        return -(-self.V // block) * block

    def values(self) -> dict[str, float]:
        """Return the number of every size and degree by the name of its symbol."""
        return {
            "e": self.e,
            "f": 4 * self.e,
            "h": self.h,
            "n_layers": self.n_layers,
            "l": self.l,
            "P": self.l,
            "V": self.vocabulary,
            "b": self.micro_batch,
            "M": self.global_batch // (self.micro_batch * self.dp),
            "m1": self.tp,
            "dp": self.dp,
            "pp": self.pp,
        }


def rates(machine: Machine, precision: str = "fp16") -> dict[str, float]:
    """Return what a machine of two tiers reaches, by the name of the symbol.

    Raises:
        InputError: the machine has another number of tiers than two, or a table of efficiencies.
    """
    problems = []
    if len(machine.links) != 2:  # noqa: PLR2004 - the tiers that there are symbols for
        names = ", ".join(link.name for link in machine.links)
        problems.append(f"machine {machine.name!r} has links {names}; two tiers are accepted")
    if machine.efficiencies.products:
        problems.append(
            f"machine {machine.name!r} has a table of matmul efficiencies; a curve is accepted"
        )
    refuse(problems)
    device, (inside, outside) = machine.device(precision), machine.network().tiers
    reached = machine.efficiencies
    figures = {
        "F_m": device.matrix * reached.matrix.value,
        "n_half": reached.half.value,
        "F_v": device.vector,
        "beta_m": device.memory,
        "alpha_m": device.latency,
        "t_k": device.launch,
        "t_h": device.host,
        "n_d": inside.ranks,
        "beta_d": inside.link.bandwidth,
        "alpha_d": inside.link.latency,
        "beta": outside.link.bandwidth,
        "alpha": outside.link.latency,
    }
    return {name: float(value) for name, value in figures.items()}


def step_seconds(
    runs: Sequence[Run], reached: Mapping[str, float], way: Way | None = None
) -> NDArray[np.float64]:
    """Return the step time of every run [s]."""
    seconds = np.zeros(len(runs))
    for stages in {min(run.pp, _MOST_STAGES) for run in runs}:
        places = [place for place, run in enumerate(runs) if min(run.pp, _MOST_STAGES) == stages]
        chain = _compiled(way or Way(), stages)
        seconds[places] = chain(_arrays((runs[place] for place in places), reached))["step"]
    return seconds


def _arrays(runs: Iterable[Run], reached: Mapping[str, float]) -> dict[str, NDArray[np.float64]]:
    sizes = [run.values() for run in runs]
    arrays = {name: np.array([size[name] for size in sizes], dtype=float) for name in sizes[0]}
    return arrays | {name: np.full(len(sizes), rate) for name, rate in reached.items()}


@cache
def _compiled(way: Way, stages: int) -> Evaluator:
    """Compile the step of one way of training; three stages stand for any larger number."""
    pipeline = {1: "", 2: ",pp=2"}.get(stages, ",pp")
    strategy = parse_strategy(f"tp{',sp' if way.split else ''},dp{pipeline}")
    training = Training(
        precision=way.precision,
        recompute=recompute_policy(way.recompute),
        schedule="interleaved",
        chunks=exact(way.chunks),
    )
    model = on_every_rank(GPT().model(), strategy)
    methods = Methods(scattered=way.scattered, softmax=_BATCHES)
    step = step_time(model, strategy, _REACHED, training, methods)
    return step.chain.compiled("step")


_BATCHES = exact(4)
"""Batches of scores that Megatron-LM's kernel of softmax takes at once.

Source: megatron-softmax.
"""

_REACHED = replace(
    SYMBOLIC,
    efficiencies=Efficiencies(
        half=Figure(symbols.n_half), launch=Figure(symbols.t_k), host=Figure(symbols.t_h)
    ),
)
"""A machine whose symbols stand for what is reached."""
