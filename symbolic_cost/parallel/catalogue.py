"""What each parallel strategy splits: one entry per name, in mesh order, innermost first.

A strategy that is a placement is an entry here and nothing else. Its mesh axes take degrees, and
each of them splits axes of the model; axes that a model does not have are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sympy import Symbol

from symbolic_cost import symbols


@dataclass(frozen=True)
class Entry:
    """One strategy.

    Args:
        meaning: one line.
        meshes: its mesh axes, each with the symbol of its degree.
        places: axes of the model by the mesh axis that splits them.
        needs: a strategy that must be there as well.
        excludes: strategies that cannot be there as well, by the reason.
    """

    meaning: str
    meshes: Mapping[str, Symbol] = field(default_factory=dict)
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    excludes: Mapping[str, str] = field(default_factory=dict)


_FEATURES = ("h", "k", "f", "v")
_POSITIONS = ("r", "l")

STRATEGIES: dict[str, Entry] = {
    "tp": Entry(
        meaning="tensor parallel: heads, MLP width and vocabulary",
        meshes={"tp": symbols.m1},
        places={"tp": _FEATURES},
    ),
    "sp": Entry(
        meaning="Megatron sequence parallel: residual positions over the tensor-parallel ranks",
        places={"tp": ("r",)},
        needs=("tp",),
    ),
    "cp": Entry(
        meaning="context parallel: positions; keys and values are gathered",
        meshes={"cp": symbols.cp},
        places={"cp": _POSITIONS},
    ),
    "dp": Entry(
        meaning="data parallel: sequences",
        meshes={"dp": symbols.dp},
        places={"dp": ("b",)},
    ),
    "pp": Entry(
        meaning="pipeline: blocks in stages",
        meshes={"pp": symbols.pp},
    ),
}
"""Every strategy by its name, in the order of the mesh: tensor, context, data, pipeline."""

DATA_AXES = ("cp", "dp")
"""Mesh axes whose ranks hold the same weights, which ZeRO keeps in shards."""
