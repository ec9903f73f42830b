"""Matrix products through the memory levels of a machine.

Every level but the innermost hands tiles to the one inside it, so that what it moves depends on
the capacity there. Tiles are squares that fill the capacity, or triples that a user chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sympy import Expr

from symbolic_cost.errors import InputError
from symbolic_cost.ledger import Units
from symbolic_cost.systems.machines import Machine
from symbolic_cost.systems.rooflines import Times
from symbolic_cost.systems.tiles import Reloads, Tile, largest_square, square

Count = Callable[[Tile, Expr, Expr, Expr], Reloads]
"""How often a product m k by k n moves its matrices: `Tile.reloads`, or a bound of it."""


def square_tiles(machine: Machine, element: Expr) -> tuple[Tile, ...]:
    """Return the largest square tiles that fit into each cache, outermost first.

    Args:
        machine: with its caches.
        element: size of an element [byte].
    """
    return tuple(square(largest_square(cache.capacity.value, element)) for cache in machine.caches)


def product_times(
    machine: Machine,
    sizes: tuple[Expr, Expr, Expr],
    element: Expr,
    *,
    precision: str = "bf16",
    tiles: Sequence[Tile] | None = None,
    count: Count = Tile.reloads,
) -> Times:
    """Return what a matrix product takes of the units and of every memory level [s].

    The memory moves tiles of the outermost cache; each cache of known bandwidth moves tiles of the
    next one inside it.

    Args:
        machine: with its caches, outermost first.
        sizes: m, k and n of a product m k by k n.
        element: size of an element [byte].
        precision: in which the units compute.
        tiles: of each cache, outermost first; the largest squares unless given.
        count: `Tile.reloads`, or its smooth bounds `Tile.fewest` and `Tile.most`.

    Raises:
        InputError: as many tiles as caches are not given, or tiles do not fit.
        UnknownNameError: the machine has no such precision.
    """
    m, k, n = sizes
    chosen = square_tiles(machine, element) if tiles is None else tuple(tiles)
    _check(machine, chosen, element)
    traffic = [count(tile, m, k, n).traffic(m, k, n, element) for tile in chosen]
    whole = element * (m * k + k * n + m * n)
    device = machine.device(precision)
    levels = [
        moved / cache.bandwidth.value
        for cache, moved in zip(machine.caches, traffic[1:], strict=False)
        if cache.bandwidth is not None
    ]
    return Times(
        compute=device.compute_time(Units.MATRIX, 2 * m * k * n),
        memory=device.memory_time(traffic[0] if traffic else whole),
        levels=tuple(levels),
        latency=device.latency,
        launch=device.launch,
    )


def _check(machine: Machine, tiles: tuple[Tile, ...], element: Expr) -> None:
    if len(tiles) != len(machine.caches):
        raise InputError(
            f"{machine.name} has {len(machine.caches)} caches and {len(tiles)} tiles are given: "
            "give one of each, outermost first"
        )
    problems = []
    for tile, cache in zip(tiles, machine.caches, strict=True):
        needed, capacity = tile.occupied(element), cache.capacity.value
        if (needed - capacity).is_positive:  # undecided while symbols are left
            problems.append(
                f"tiles of {cache.name} need {needed} bytes; its capacity is {int(capacity)}"
            )
    if problems:
        raise InputError(problems)
