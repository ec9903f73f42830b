"""What each parallel strategy splits: one entry per name, in mesh order, innermost first.

A strategy that is a placement is an entry here and nothing else. Its mesh axes take degrees, and
each of them splits the axes of some roles; axes that a model does not have are left out. Where ops
run under axes of their own, `rewrite` names them; where data moves in steps, `step` says which.

For example, to split the head width, which leaves scores to be summed over ranks:

    "width": Entry(
        meaning="head width over ranks",
        meshes={"width": symbols.s1},
        places={"width": (At(Role.WIDTH),)},
        leaves=(PERCEPTRONS,),
    ),

`leaves` names the work that all ranks of a mesh axis repeat. Whatever else has weights, multiplies
matrices or scans positions and is not divided makes the strategy refuse the model.
"""

from collections.abc import Callable, Mapping
from dataclasses import field

from sympy import Symbol

from symbolic_cost import symbols
from symbolic_cost.axes import At, Role
from symbolic_cost.checking import checked
from symbolic_cost.ops.graph import Model
from symbolic_cost.parallel.coverage import (
    BATCH_FREE,
    LATENTS,
    PATCHES,
    POOLED,
    RESIDUAL,
    SINGLE_HEADS,
    Exempt,
)
from symbolic_cost.parallel.rules import (
    exchange_heads,
    keep_key_shards,
    three_dimensions,
    two_dimensions,
    whole_experts,
)
from symbolic_cost.parallel.steps import Step, broadcast_panels, send_round
from symbolic_cost.records import dataclass


@checked
@dataclass(frozen=True)
class Entry:
    """One strategy.

    Args:
        meshes: its mesh axes, each with the symbol of its degree.
        places: roles of the axes that each mesh axis splits.
        inmost: places where its mesh axes split inside of the blocks that others make.
        leaves: work that its ranks repeat.
        stored: mesh axes whose ranks keep shards of weights, gradients and states.
        needs: strategies that must be there as well.
        excludes: strategies that cannot be there as well.
        requires: places of which the model must have an axis.
        lacks: places of which the model must have none, by the reason.
        rewrite: gives ops axes of their own.
        step: turns a collective into steps.
    """

    meaning: str
    meshes: Mapping[str, Symbol] = field(default_factory=dict)
    places: Mapping[str, tuple[At, ...]] = field(default_factory=dict)
    inmost: tuple[At, ...] = ()
    leaves: tuple[Exempt, ...] = ()
    stored: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    because: str = ""
    requires: tuple[At, ...] = ()
    lacks: Mapping[At, str] = field(default_factory=dict)
    rewrite: Callable[[Model], Model] | None = None
    step: Step | None = None
    source: str = "definition"


_INSIDE = (At(Role.HEAD), At(Role.INNER, ("",)), At(Role.VOCABULARY))
_OUTER_HEADS = (At(Role.HEAD, ("",)), At(Role.INNER), At(Role.VOCABULARY))
_CORE_HEADS = (At(Role.HEAD, ("core",)),)
_POSITIONS = (At(Role.TOKEN, ("residual", "posted", "query", "routed", "core")),)
_OUTER_POSITIONS = At(Role.TOKEN, ("residual", "posted", "query", "routed"))
_SEQUENCES = (At(Role.BATCH, ("", "routed")),)
_PLANES = (At(Role.BATCH, ("", "plane", "inner")),)
_ROUTED = At(Role.EXPERT, ("",))
_ONE_TENSOR = "a model has one tensor-parallel scheme"
_ONE_KEYS = "keys and values are gathered in one way"
_NO_EXPERTS = {_ROUTED: "experts are placed by ep, not by a tensor grid"}

STRATEGIES: dict[str, Entry] = {
    "tp": Entry(
        meaning="tensor parallel: heads, MLP width and vocabulary",
        meshes={"tp": symbols.m1},
        places={"tp": _INSIDE},
        leaves=(RESIDUAL, LATENTS, POOLED, SINGLE_HEADS),
        source="shoeybi-2019",
    ),
    "sp": Entry(
        meaning="Megatron sequence parallel: residual positions over the tensor-parallel ranks",
        places={"tp": (At(Role.TOKEN, ("residual", "posted")),)},
        needs=("tp",),
        source="korthikanti-2022",
    ),
    "spread": Entry(
        meaning="whole experts over tensor-parallel ranks as well: each sends its own positions",
        places={"tp": (_ROUTED,)},
        needs=("tp", "sp", "ep"),
        requires=(_ROUTED,),
        rewrite=whole_experts,
        source="megatron-moe",
    ),
    "2d": Entry(
        meaning="SUMMA: features over m1, positions over m2, weights over both",
        meshes={"m1": symbols.m1, "m2": symbols.m2},
        places={
            "m1": (At(Role.HIDDEN), *_OUTER_HEADS),
            "m2": (At(Role.TOKEN, ("residual", "query", "patch")),),
        },
        leaves=(LATENTS, POOLED),
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
        places={
            "m1": (At(Role.HIDDEN), *_OUTER_HEADS),
            "m2": (At(Role.BATCH, ("",)),),
            "m3": (At(Role.BATCH, ("",)),),
        },
        leaves=(LATENTS, POOLED, BATCH_FREE),
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
            "m1": (*_OUTER_HEADS, At(Role.BATCH, ("",))),
            "m2": (At(Role.HIDDEN), At(Role.BATCH, ("inner",))),
            "m3": _PLANES,
        },
        leaves=(LATENTS, POOLED, BATCH_FREE),
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
        places={"ulysses": (_OUTER_POSITIONS, *_CORE_HEADS)},
        inmost=_CORE_HEADS,
        leaves=(POOLED, PATCHES),
        rewrite=exchange_heads,
        source="jacobs-2023",
    ),
    "cp": Entry(
        meaning="context parallel: positions; keys and values are gathered",
        meshes={"cp": symbols.cp},
        places={"cp": _POSITIONS},
        leaves=(POOLED, PATCHES),
        source="grattafiori-2024",
    ),
    "ring": Entry(
        meaning="ring attention: positions; keys and values go round",
        meshes={"ring": symbols.cp},
        places={"ring": _POSITIONS},
        leaves=(POOLED, PATCHES),
        excludes=("cp",),
        because=_ONE_KEYS,
        rewrite=keep_key_shards,
        step=send_round,
        source="liu-2023",
    ),
    "ep": Entry(
        meaning="expert parallel: experts over some of the data-parallel ranks",
        meshes={"ep": symbols.ep},
        places={"ep": (At(Role.BATCH, ("",)), _ROUTED)},
        leaves=(BATCH_FREE,),
        requires=(_ROUTED,),
        needs=("dp",),
        source="lepikhin-2020",
    ),
    "dp": Entry(
        meaning="data parallel: sequences",
        meshes={"dp": symbols.dp},
        places={"dp": (*_SEQUENCES, At(Role.BATCH, ("plane", "inner")))},
        leaves=(BATCH_FREE,),
    ),
    "replicas": Entry(
        meaning="hybrid sharding: groups of data-parallel ranks that keep the same shards",
        meshes={"replicas": symbols.dr},
        places={"replicas": (*_SEQUENCES, At(Role.BATCH, ("plane", "inner")))},
        leaves=(BATCH_FREE,),
        needs=("dp",),
    ),
    "pp": Entry(meaning="pipeline: blocks in stages", meshes={"pp": symbols.pp}),
}
"""Every strategy by its name, in the order of the mesh: tensor, context, data, pipeline."""

DATA_AXES = ("ulysses", "cp", "ring", "ep", "dp")
"""Mesh axes whose ranks hold the same weights, which ZeRO keeps in shards."""

GATHERING = ("sp", "cp")
"""Strategies that gather the inputs of products, of which a rank could keep its shard alone."""
