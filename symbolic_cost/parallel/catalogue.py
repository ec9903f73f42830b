"""What each parallel strategy splits: one entry per name, in mesh order, innermost first.

A strategy that is a placement is an entry here and nothing else. Its mesh axes take degrees, and
each of them splits axes of the model; axes that a model does not have are left out. Where ops run
under axes of their own, `rewrite` names them; where data moves in steps, `step` says which.

For example, to split the head width, which leaves scores to be summed over ranks:

    "width": Entry(
        meaning="head width over ranks",
        meshes={"width": symbols.s1},
        places={"width": ("d",)},
    ),
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sympy import Symbol

from symbolic_cost import symbols
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.axes import HEADS, INNER
from symbolic_cost.parallel.rules import (
    exchange_heads,
    keep_key_shards,
    three_dimensions,
    two_dimensions,
)
from symbolic_cost.parallel.steps import Step, broadcast_panels, send_round


@dataclass(frozen=True)
class Entry:
    """One strategy.

    Args:
        meaning: one line.
        meshes: its mesh axes, each with the symbol of its degree.
        places: axes of the model by the mesh axis that splits them.
        inmost: axes that its mesh axes split inside of the blocks that others make.
        stored: mesh axes whose ranks keep shards of weights, gradients and states.
        needs: strategies that must be there as well.
        excludes: strategies that cannot be there as well.
        because: why not.
        requires: axes that the model must have.
        lacks: axes that the model must not have, by the reason.
        rewrite: gives ops axes of their own.
        step: turns a collective into steps.
        source: key of a reference.
    """

    meaning: str
    meshes: Mapping[str, Symbol] = field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    inmost: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    because: str = ""
    requires: tuple[str, ...] = ()
    lacks: Mapping[str, str] = field(default_factory=dict)
    rewrite: Callable[[Model], Model] | None = None
    step: Step | None = None
    source: str = "definition"


_CORE = tuple(f"{axis}_core" for axis in HEADS)
_POSITIONS = ("r", "l", "z", "l_core")
_SEQUENCES = ("b", "u")
_PLANES = ("b", "b_plane", "b_inner")
_ONE_TENSOR = "a model has one tensor-parallel scheme"
_ONE_KEYS = "keys and values are gathered in one way"
_NO_EXPERTS = {"f_m": "experts are placed by ep, not by a tensor grid"}

STRATEGIES: dict[str, Entry] = {
    "tp": Entry(
        meaning="tensor parallel: heads, MLP width and vocabulary",
        meshes={"tp": symbols.m1},
        places={"tp": (*INNER, *_CORE, "f_m", "f_s")},
    ),
    "sp": Entry(
        meaning="Megatron sequence parallel: residual positions over the tensor-parallel ranks",
        places={"tp": ("r",)},
        needs=("tp",),
        source="korthikanti-2022",
    ),
    "2d": Entry(
        meaning="SUMMA: features over m1, positions over m2, weights over both",
        meshes={"m1": symbols.m1, "m2": symbols.m2},
        places={"m1": ("e", *INNER), "m2": ("r", "l")},
        stored=("m2",),
        excludes=("tp", "ulysses", "ring"),
        because=_ONE_TENSOR,
        lacks=_NO_EXPERTS,
        rewrite=two_dimensions,
        step=broadcast_panels,
        source="xu-2021",
    ),
    "2.5d": Entry(
        meaning="SUMMA on m1 x m2 for each of m3 layers; sequences over m2 and m3",
        meshes={"m1": symbols.m1, "m2": symbols.m2, "m3": symbols.m3},
        places={"m1": ("e", *INNER), "m2": ("b",), "m3": ("b",)},
        stored=("m2",),
        excludes=("tp", "2d", "ulysses", "ring"),
        because=_ONE_TENSOR,
        lacks=_NO_EXPERTS,
        rewrite=two_dimensions,
        step=broadcast_panels,
        source="wang-2021",
    ),
    "3d": Entry(
        meaning="inner features over m1, residual features over m2, sequences over all in turn",
        meshes={"m1": symbols.m1, "m2": symbols.m2, "m3": symbols.m3},
        places={
            "m1": (*INNER, "b"),
            "m2": ("e", "b_inner"),
            "m3": _PLANES,
        },
        stored=("m3",),
        excludes=("tp", "2d", "2.5d", "ulysses", "ring"),
        because=_ONE_TENSOR,
        lacks=_NO_EXPERTS,
        rewrite=three_dimensions,
        source="bian-2021",
    ),
    "ulysses": Entry(
        meaning="positions outside, heads inside the attention core",
        meshes={"ulysses": symbols.s1},
        places={"ulysses": (*_POSITIONS[:-1], *_CORE)},
        inmost=_CORE,
        rewrite=exchange_heads,
        source="jacobs-2023",
    ),
    "cp": Entry(
        meaning="context parallel: positions; keys and values are gathered",
        meshes={"cp": symbols.cp},
        places={"cp": _POSITIONS},
        source="grattafiori-2024",
    ),
    "ring": Entry(
        meaning="ring attention: positions; keys and values go round",
        meshes={"ring": symbols.cp},
        places={"ring": _POSITIONS},
        excludes=("cp",),
        because=_ONE_KEYS,
        rewrite=keep_key_shards,
        step=send_round,
        source="liu-2023",
    ),
    "ep": Entry(
        meaning="expert parallel: experts over some of the data-parallel ranks",
        meshes={"ep": symbols.ep},
        places={"ep": ("b", "x")},
        requires=("x",),
        needs=("dp",),
    ),
    "dp": Entry(
        meaning="data parallel: sequences",
        meshes={"dp": symbols.dp},
        places={"dp": (*_SEQUENCES, *_PLANES[1:])},
    ),
    "replicas": Entry(
        meaning="hybrid sharding: groups of data-parallel ranks that keep the same shards",
        meshes={"replicas": symbols.dr},
        places={"replicas": (*_SEQUENCES, *_PLANES[1:])},
        needs=("dp",),
    ),
    "pp": Entry(
        meaning="pipeline: blocks in stages",
        meshes={"pp": symbols.pp},
    ),
}
"""Every strategy by its name, in the order of the mesh: tensor, context, data, pipeline."""

DATA_AXES = ("ulysses", "cp", "ring", "ep", "dp")
"""Mesh axes whose ranks hold the same weights, which ZeRO keeps in shards."""
