"""What runs where: the axes that every mesh axis splits, the parts and the ranks of every stage."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from symbolic_cost.axes import MEANINGS
from symbolic_cost.emit.sheet import Cell, Column, Sheet, headed
from symbolic_cost.errors import InputError
from symbolic_cost.jobs.setup import Setup
from symbolic_cost.parallel.catalogue import STRATEGIES
from symbolic_cost.parallel.groups import MOST_RANKS, arranged, offsets, rank_groups
from symbolic_cost.parallel.orders import stage_kind

_SHOWN = 8
"""Replicas of a stage whose ranks are listed."""

_COPIES = "nothing: its ranks share key/value heads"

_LISTED = 4
"""Ranks of a group that are listed one by one."""


def mesh_sheet(work: Setup) -> Sheet:
    """Tabulate the mesh axes, innermost first: ranks, what they split, and where a group lies."""
    mesh, node = numbered_mesh(work), _node(work)
    total = prod(mesh.values())
    used = [STRATEGIES[name] for name in work.strategy.degrees]
    meanings = {axis: entry.meaning for entry in used for axis in entry.meshes}
    rows: list[tuple[Cell, ...]] = []
    for name, ranks in mesh.items():
        group = reach = ""
        if total <= MOST_RANKS:
            first = rank_groups(mesh, name, node)[0]
            group = _spread(first.ranks)
            reach = f"over {len(first.nodes)} nodes" if first.crosses_nodes else "inside a node"
        rows.append((name, ranks, meanings.get(name, _COPIES), group, reach))
    columns = headed("mesh axis, ranks>, splits, first group of ranks, lies")
    title = f"Mesh of {total} rank{'s' * (total > 1)}, {node} in a node"
    return Sheet(title, columns, tuple(rows))


def axes_sheet(work: Setup) -> Sheet:
    """Tabulate the axes that are split: size, over which mesh axes, and size on one rank."""
    own, mesh = work.divided.split_model, numbered_mesh(work)
    rows: list[tuple[Cell, ...]] = []
    for name, over in work.divided.placement.axes.items():
        role = own.axes[name].role
        size = work.value(own.sizes[name])
        ranks = prod(mesh.get(one, 1) for one in over)
        rows.append((name, MEANINGS[role], own.sizes[name], size, " x ".join(over), size / ranks))
    columns = headed("axis, meaning, size, value>, split over, on one rank>")
    placed = work.divided.placement
    notes = tuple(
        f"{what.replace('_', ' ')}: in shards over {' x '.join(over)}"
        for what, over in placed.stored.items()
    )
    if placed.whole:
        notes += (f"weight from forward through backward: whole over {' x '.join(placed.whole)}",)
    return Sheet(f"Axes of {own.name} that are split", columns, tuple(rows), notes)


def stages_sheet(work: Setup) -> Sheet:
    """Tabulate the stages of the pipeline: their parts, and the ranks of each replica."""
    mesh = numbered_mesh(work)
    stages = mesh.get("pp", 1)
    inner = [name for name in mesh if name not in ("pp", "dp", "ep", "replicas")]
    outer = [name for name in mesh if name in ("dp", "ep", "replicas")]
    starts, members = offsets(mesh, outer), offsets(mesh, inner)
    bases, shown = offsets(mesh, ["pp"] if "pp" in mesh else []), starts[:_SHOWN]
    rows: list[tuple[Cell, ...]] = []
    for stage in range(stages):
        base = bases[stage]
        held = ", ".join(
            part.path if count == 1 else f"{count} x {part.path}"
            for part in work.divided.share(stage_kind(stage, stages)).parts
            for count in [work.value(part.repeat)]
        )
        cells = (_spread(tuple(sorted(base + s + m for m in members))) for s in shown)
        rows.append((str(stage + 1), held, *cells))
    names = [f"replica {number + 1}" for number in range(len(shown))]
    columns = (Column("stage"), Column("holds"), *map(Column, names))
    notes = (f"{len(starts)} replicas in all",) * (len(starts) > len(shown))
    return Sheet("Ranks of every stage", columns, tuple(rows), notes)


def numbered_mesh(work: Setup, asking: str = "what runs where needs") -> dict[str, int]:
    """Return the ranks of every mesh axis, innermost first."""
    mesh = {}
    for name, degree in arranged(work.placed.mesh, work.methods.order).items():
        known = work.value(degree)
        if not known.is_Integer:
            raise InputError(f"{asking} numbers: give {name} a degree, as in {name}=2")
        mesh[name] = int(known)
    return mesh


def _node(work: Setup) -> int:
    """Return the ranks of a node: those of the machine's first link, else eight."""
    links = () if work.machine is None else work.machine.links
    ranks = links[0].ranks if links else None
    return int(ranks.value) if ranks is not None and ranks.value.is_Integer else 8


def _spread(ranks: tuple[int, ...]) -> str:
    """Return ranks as text: the first and last of a run, else with the distance between them.

    >>> _spread((0, 1, 2, 3)), _spread((0, 8, 16)), _spread((5,))
    ('0 to 3', '0, 8, 16', '5')
    """
    if len(ranks) == 1:
        return str(ranks[0])
    steps = {after - before for before, after in pairwise(ranks)}
    if steps == {1}:
        return f"{ranks[0]} to {ranks[-1]}"
    if len(steps) == 1 and len(ranks) > _LISTED:
        return f"{ranks[0]}, {ranks[1]}, ... {ranks[-1]}"
    return ", ".join(map(str, ranks))
