"""Inputs under the names of the run's configuration, in its groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sympy import Expr, Symbol, floor

from symbolic_cost import symbols
from symbolic_cost.errors import unknown
from symbolic_cost.published.inputs import Count, Index, Inputs, Latency, Rate
from symbolic_cost.published.lstm_roofline.slips import SLIPS
from symbolic_cost.symbols import exact, named

Kind = Literal[-1, 1, 2]
"""Kernel parallelism of a part: none, column-row (CR), row-column (RC)."""

NONE, CR, RC = -1, 1, 2


class Model(Inputs):
    """The language model; num_non_linear and num_add do not enter any number."""

    batch_size: Count = 512
    vocab_size: Count = 800000
    num_layers: Count = 2
    layer_size: Count = 19968
    projection: Count = 2048
    seq_len: Count = 20
    num_gates: Count = 4
    num_non_linear: Index = 5
    num_add: Index = 8


class Arch(Inputs):
    """Launch overhead [s] and size of an element [byte]."""

    kernel_launch_overhead_s: Latency = 37e-6
    precision_bytes: Rate = 4


class Tech(Inputs):
    """Energies [J per bit or FLOP], capacities [byte], bandwidths [byte/s] and a latency [s]."""

    DRAM_energy_per_bit_J: Rate = 6e-12
    L2_energy_per_bit_J: Rate = 5e-15
    shared_mem_energy_per_bit_J: Rate = 1e-15
    core_energy_per_flop_J: Rate = 119e-13
    internode_energy_per_bit_J: Rate = 10e-12
    HBM_stack_capacity_B: Rate = 4 * 2**30
    HBM_stack_bw_Bps: Rate = 225 * 2**30
    L2_bank_capacity_B: Rate = 32 * 2**10
    L2_bank_bw_Bps: Rate = 4000 * 2**30
    shared_mem_bank_capacity_B: Rate = 32 * 2**10
    shared_mem_bank_bw_Bps: Rate = 4000 * 2**30
    line_latency_s: Latency = 16e-7


class Power(Inputs):
    """The power budget [W] and its shares; without a share there is no L2."""

    TDP_W: Rate = 300
    core: Rate = 0.2592
    DRAM: Rate = 0.2592
    L2: Latency = 0.16896000000000005
    shared_mem: Rate = 0.20275200000000007
    IB: Latency = 0.2


class CodeConstants(Inputs):
    """What was not configured: utilisations, a latency [s], FLOP per output of a product."""

    th_scale: Rate = 0.7
    mem_scale: Rate = 0.7
    mem_latency_s: Latency = 50e-9
    include_projection_in_time: bool = False
    algorithmic_bytes_only: bool = False
    epilogue_flop: Index = 15
    epilogue_flop_per_tile: Index = 5


class Schedule(Inputs):
    """Degrees and kinds of parallelism."""

    topology: Literal["ring", "mesh"] = "ring"
    dp: Count = 1
    lp: Count = 1
    hlp: Count = 1
    kp_hidden_dim1: Count = 1
    kp_hidden_dim2: Count = 1
    kp_hidden_type: Kind = -1
    kp_softmax_dim1: Count = 1
    kp_softmax_dim2: Count = 1
    kp_softmax_type: Kind = -1
    kp_embedding_dim1: Count = 1
    kp_embedding_dim2: Count = 1
    kp_embedding_type: Kind = -1
    kp_projection_dim1: Count = 1
    kp_projection_dim2: Count = 1
    kp_projection_type: Kind = -1


class TimeLimit(Inputs):
    """What the time of a step is to be compared with."""

    data_scale: Rate = 100
    tokens_per_unit_data_scale: Rate = 768648884
    batch_size: Count = 32
    seq_len: Count = 20
    day_limit: Rate = 1
    num_epochs: Count = 1


@dataclass(frozen=True, slots=True)
class Structure:
    """What decides which definitions a model has; everything else is a number in them.

    Args:
        kinds: of the kernel parallelism by part.
        mesh: whether degrees get links of their own.
        projected: whether the projection counts in the total time.
        algorithmic: whether products move their matrices once and have no epilogue.
        slips: that are kept.
    """

    kinds: tuple[tuple[str, int], ...]
    mesh: bool
    projected: bool
    algorithmic: bool
    slips: frozenset[str]

    def kind(self, part: str) -> int:
        """Return the kind of a part's kernel parallelism."""
        return dict(self.kinds)[part]


PARTS = ("hidden", "softmax", "embedding", "projection")


class Run(Inputs):
    """One run.

    Attributes:
        mode: "as printed" keeps the slips, "corrected" repairs them.
        slips: those that are kept instead of all or none.
    """

    model: Model = Model()
    arch: Arch = Arch()
    tech: Tech = Tech()
    power: Power = Power()
    code_constants: CodeConstants = CodeConstants()
    schedule: Schedule = Schedule()
    time_limit: TimeLimit = TimeLimit()
    mode: Literal["as printed", "corrected"] = "as printed"
    slips: list[str] | None = None

    def contradictions(self) -> list[str]:
        """Say what has no links, which slips there are not, and that a day is too short."""
        problems = [unknown("slip", name, SLIPS) for name in self.slips or () if name not in SLIPS]
        if self._apart and not self._linked:
            problems.append(
                f"{', '.join(self._apart)}: devices exchange data, but have no links: topology "
                "'mesh' gives links to dp, lp and kernel-parallel dimensions above 1"
            )
        limit = self.time_limit
        tokens = exact(limit.data_scale) * exact(limit.tokens_per_unit_data_scale)
        if floor(tokens / (limit.batch_size * limit.seq_len)) < 1:
            problems.append("time_limit: the data are less than one batch")
        return problems

    @property
    def _apart(self) -> list[str]:
        """What makes devices exchange data."""
        found = self.schedule
        kinds = [f"kp_{part}_type" for part in PARTS if part != "embedding"]
        return [
            *(
                f"{name} = {getattr(found, name)}"
                for name in ("dp", "lp")
                if getattr(found, name) > 1
            ),
            *(f"{name} = {getattr(found, name)}" for name in kinds if getattr(found, name) != -1),
        ]

    @property
    def _linked(self) -> bool:
        found = self.schedule
        dims = [getattr(found, f"kp_{part}_dim{place}") for part in PARTS for place in (1, 2)]
        return found.topology == "mesh" and max(found.dp, found.lp, *dims) > 1 and self.power.IB > 0

    @property
    def structure(self) -> Structure:
        """What decides which definitions the model has."""
        found, constants = self.schedule, self.code_constants
        kept = SLIPS if self.mode == "as printed" else ()
        return Structure(
            kinds=tuple((part, getattr(found, f"kp_{part}_type")) for part in PARTS),
            mesh=found.topology == "mesh",
            projected=constants.include_projection_in_time,
            algorithmic=constants.algorithmic_bytes_only,
            slips=frozenset(kept if self.slips is None else self.slips),
        )

    def numbers(self, *, glossary: bool | None = None) -> dict[str, Expr]:
        """Return the number of every input by the name of its symbol.

        Args:
            glossary: those whose symbols the glossary has, or those that it lacks; all if None.
        """
        found = {
            term(group, name).name: exact(number)
            for group, numbers in self
            if isinstance(numbers, Inputs)
            for name, number in numbers
            if not isinstance(number, str | bool)
        }
        return {
            name: number
            for name, number in found.items()
            if glossary is None or glossary == (name in symbols.GLOSSARY)
        }


_SYMBOLS = {
    "batch_size": symbols.B,
    "vocab_size": symbols.V,
    "num_layers": symbols.n_layers,
    "layer_size": symbols.e,
    "seq_len": symbols.l,
    "kernel_launch_overhead_s": symbols.t_k,
    "precision_bytes": symbols.s,
    "line_latency_s": symbols.alpha,
    "mem_latency_s": symbols.alpha_m,
    "dp": symbols.dp,
}


def term(group: str, name: str) -> Symbol:
    """Return the symbol of an input: of the glossary, or a name."""
    if name in _SYMBOLS and group != "time_limit":
        return _SYMBOLS[name]
    return named(f"{group}.{name}")
