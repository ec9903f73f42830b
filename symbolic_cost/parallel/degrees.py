"""What is refused of the degrees of a strategy, one by one and together."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Expr, Integer

from symbolic_cost.errors import quote, unknown
from symbolic_cost.parallel.catalogue import DATA_AXES, STRATEGIES, Entry
from symbolic_cost.symbols import exact

Degrees = tuple[Expr | int, ...]

KEY_COPIES = "kv"
"""Mesh axis of the ranks that hold the same key/value heads."""

MOST_RANKS = 2**24
"""Degrees above this are taken for mistakes."""

EXAMPLE = "write for example 'tp=8,sp,pp=4,dp=16,zero=1'"


def degree_problems(
    degrees: Mapping[str, Degrees], zero: int, panels: Expr | int, copies: Expr | int
) -> list[str]:
    """Refuse names, degrees and options of a strategy, one by one, then what they make together."""
    problems = [unknown("strategy", name, STRATEGIES) for name in degrees if name not in STRATEGIES]
    known = {name: STRATEGIES[name] for name in STRATEGIES if name in degrees}
    for name, entry in known.items():
        problems += _single_problems(name, degrees[name], entry)
        problems += _combination_problems(name, entry, degrees)
    if zero not in range(4) or isinstance(zero, bool):
        problems.append(f"zero={quote(zero)}: accepted levels are 0, 1, 2 and 3")
    elif zero and known.keys().isdisjoint(DATA_AXES):
        problems.append(f"zero={zero} needs one of {', '.join(DATA_AXES)}: {EXAMPLE}")
    if not _is_degree(panels):
        problems.append(f"panels={quote(panels)}: a positive integer or a symbol is accepted")
    if panels != 1 and known.keys().isdisjoint(("2d", "2.5d")):
        problems.append(f"panels={quote(panels)}: only 2d and 2.5d move operands in panels")
    return problems or [*_expert_problems(degrees), *_copy_problems(copies, degrees)]


def reshard_problems(reshard: int, zero: int) -> list[str]:
    """Refuse what weights are said to be after forward."""
    if reshard not in (0, 1) or isinstance(reshard, bool):
        fewer = f"reshard={quote(reshard)}: shards over fewer ranks after forward are not counted"
        said = "1, for weights that stay whole, is accepted, or none, for shards over all ranks"
        return [f"{fewer}; {said}"]
    if reshard and zero != SHARDED:
        return [f"reshard={reshard} needs zero={SHARDED}: other levels keep weights whole"]
    return []


SHARDED = 3
"""Level of ZeRO at which weights are gathered for use."""


def _single_problems(name: str, degrees: Degrees, entry: Entry) -> list[str]:
    """Refuse degrees of one name that are not as many as its mesh axes, or not numbers."""
    written = "x".join(map(str, degrees))
    if len(degrees) != len(entry.meshes):
        return [
            f"{name}={written}: {len(degrees)} degrees are given, {name} takes {len(entry.meshes)}"
        ]
    return [
        f"{name}={written}: {degree} is not a positive integer up to {MOST_RANKS} or a symbol"
        for degree in degrees
        if not _is_degree(degree)
    ]


def _is_degree(degree: object) -> bool:
    """Tell whether a degree is a positive integer within bounds, or a symbol of one."""
    if isinstance(degree, Expr) and not degree.is_number:
        return degree.is_integer is True and degree.is_positive is True
    is_count = isinstance(degree, int | Integer) and not isinstance(degree, bool)
    return is_count and bool(0 < degree <= MOST_RANKS)  # type: ignore[operator]


def _expert_problems(degrees: Mapping[str, Degrees]) -> list[str]:
    """Refuse experts over data-parallel ranks that do not come out whole."""
    if "ep" not in degrees:
        return []
    experts, data = exact(degrees["ep"][0]), exact(degrees["dp"][0])
    if not (experts.is_Integer and data.is_Integer) or data % experts == 0:
        return []
    return [f"ep={experts} does not divide dp={data}: experts are placed on data-parallel ranks"]


def _combination_problems(name: str, entry: Entry, degrees: Mapping[str, Degrees]) -> list[str]:
    """Refuse a name without the others that it needs, or beside one that it excludes."""
    problems = [f"{name} needs {other}: {EXAMPLE}" for other in entry.needs if other not in degrees]
    problems += [
        f"{name} and {other} do not go together: {entry.because}"
        for other in entry.excludes
        if other in degrees
    ]
    return problems


def _copy_problems(copies: Expr | int, degrees: Mapping[str, Degrees]) -> list[str]:
    """Refuse copies of key/value heads that the tensor-parallel ranks do not make."""
    if copies == 1:
        return []
    ranks = exact(degrees["tp"][0]) if "tp" in degrees else Integer(1)
    if not (_is_degree(copies) or (isinstance(copies, Expr) and _is_degree(ranks / copies))):
        return [f"{KEY_COPIES}={quote(copies)}: a positive integer is accepted"]
    whole = not ranks.is_Integer or ranks % copies == 0
    if "tp" in degrees and whole:
        return []
    return [f"{KEY_COPIES}={quote(copies)}: a divisor of the degree of tp is accepted"]
