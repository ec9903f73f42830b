"""Which layers of a decoder slide and which are mixtures of experts: one rule for both ways.

A configuration gives the number of layers, a family with symbols none; both count by these rules.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sympy import Expr, Integer, floor

from symbolic_cost import symbols


@dataclass(frozen=True)
class Windows:
    """Layers that slide, where a configuration does not list them.

    Args:
        period: of so many layers the last is full; every layer slides if 0.
        width: keys that a query sees, unless given.
        switched: whether layers slide from a given one on, and only if that is switched on.
    """

    period: int = 1
    width: int | None = None
    switched: bool = False

    def slides(self, layer: int) -> bool:
        """Return whether a layer, counted from 0, slides.

        With a period of 6, layers 0 to 4 slide and layer 5 does not.
        """
        return self.period == 0 or (layer + 1) % self.period != 0

    def full(self, layers: Expr, number: int | None = None) -> Expr:
        """Return how many of some layers are full; `number` tells whether periods fill them."""
        if self.period == 0:
            return Integer(0)
        periods = layers / self.period
        return periods if number is None or number % self.period == 0 else floor(periods)


NEVER = Windows()
"""No layer slides."""


class Sparse(StrEnum):
    """Which layers are mixtures of experts."""

    NEVER = "none"
    ALWAYS = "all"
    AFTER_FIRST = "all after a given number"
    EVERY_NTH = "every n-th, but for listed ones"


@dataclass(frozen=True)
class Kind:
    """Layers of one kind.

    Args:
        sliding: whether queries see a window.
        sparse: whether the perceptron is a mixture of experts.
    """

    sliding: bool
    sparse: bool
    count: Expr


def symbolic_kinds(windows: Windows, sparse: Sparse, layers: Expr) -> tuple[Kind, ...]:
    """Return the kinds of layers of a family whose number of layers is open.

    Layers that are switched on slide in no family unless a configuration says so.
    """
    if sparse is Sparse.AFTER_FIRST:
        dense = symbols.n_dense
        return (Kind(sliding=False, sparse=False, count=dense), _sparse(layers - dense))
    slides = windows.width is not None and not windows.switched
    full = windows.full(layers) if slides else layers
    counts = {True: layers - full, False: full}
    return tuple(
        Kind(sliding, sparse is not Sparse.NEVER, count)
        for sliding, count in counts.items()
        if count != 0
    )


def numbered_kinds(
    windows: Windows, sliding: Iterable[bool], sparse: Iterable[bool]
) -> tuple[tuple[Kind, ...], dict[str, int]]:
    """Return the kinds of layers of a configuration, and the numbers of the symbols in them.

    Args:
        windows: the family's rule.
        sliding: for every layer, whether it slides.
        sparse: for every layer, whether it is a mixture of experts.
    """
    found = Counter(zip(sliding, sparse, strict=True))
    layers, total = symbols.n_layers, found.total()
    numbers = {"n_layers": total}
    counts: dict[tuple[bool, bool], Expr] = {kind: Integer(n) for kind, n in found.items()}
    if len(found) == 1:
        counts = dict.fromkeys(found, layers)
    elif found.keys() == {(False, False), (False, True)}:
        counts = {(False, False): symbols.n_dense, (False, True): layers - symbols.n_dense}
        numbers["n_dense"] = found[False, False]
    elif len({is_sparse for _, is_sparse in found}) == 1:
        full, slides = sorted(found)
        exact = windows.full(layers, total) if windows.period else layers
        if exact.subs(layers, total) != found[full]:
            exact = Integer(found[full])
        counts = {slides: layers - exact, full: exact}
    return tuple(Kind(*kind, counts[kind]) for kind in found), numbers


def _sparse(count: Expr) -> Kind:
    return Kind(sliding=False, sparse=True, count=count)
