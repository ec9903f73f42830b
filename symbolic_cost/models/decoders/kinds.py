"""Which layers of a decoder slide and which are mixtures of experts: one rule for both ways.

A configuration gives the number of layers, a family with symbols none; both count by these rules.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from sympy import Expr, Integer, ceiling, floor

from symbolic_cost import symbols
from symbolic_cost.ops.part import Place
from symbolic_cost.records import dataclass


@dataclass(frozen=True)
class Windows:
    """Layers that slide, where a configuration does not list them.

    Args:
        period: of so many layers the last is full; every layer slides if 0.
        width: keys that a query sees, unless given.
        switched: whether layers slide from a given one on, and only if that is switched on.
        full_at: place of the full layer in a period, from 0; the last unless given.
    """

    period: int = 1
    width: int | None = None
    switched: bool = False
    full_at: int = -1

    def slides(self, layer: int) -> bool:
        """Return whether a layer, counted from 0, slides.

        With a period of 6, layers 0 to 4 slide and layer 5 does not.
        """
        return self.period == 0 or (layer - self.full_at) % self.period != 0

    def full(self, layers: Expr, number: int | None = None) -> Expr:
        """Return how many of some layers are full; `number` tells whether periods fill them."""
        if self.period == 0:
            return Integer(0)
        periods = layers / self.period
        if number is None or number % self.period == 0:
            return periods
        return ceiling(periods) if self.full_at == 0 else floor(periods)


NEVER = Windows()
"""No layer slides."""


class Sparse(StrEnum):
    """Which layers are mixtures of experts."""

    NEVER = "none"
    ALWAYS = "all"
    AFTER_FIRST = "all after a given number"
    EVERY_NTH = "every n-th, but for listed ones"


FULL, SLIDES, UNTURNED = "full_attention", "sliding_attention", "unrotated_attention"
CHUNKED = "chunked_attention"
DENSE, EXPERTS, NONE = "dense", "sparse", ""

MOST_LAYERS = 10**5
"""More than any model has."""


@dataclass(frozen=True)
class Kind:
    """Layers of one kind.

    Args:
        mixer: what brings positions together, as `layer_types` names it; empty without one.
        layer: what follows it: DENSE, EXPERTS or NONE.
        place: among the layers; kinds that alternate are taken in the mean.
        layers: which they are, where kinds alternate.
    """

    mixer: str
    layer: str
    count: Expr
    place: Place = Place.BLOCK
    layers: tuple[int, ...] = ()

    @property
    def sparse(self) -> bool:
        """Whether the perceptron is a mixture of experts."""
        return self.layer == EXPERTS


def symbolic_kinds(windows: Windows, sparse: Sparse, layers: Expr) -> tuple[Kind, ...]:
    """Return the kinds of layers of a family whose number of layers is open.

    Layers that are switched on slide in no family unless a configuration says so.
    """
    if sparse is Sparse.AFTER_FIRST:
        dense = symbols.n_dense
        return (Kind(FULL, DENSE, dense, Place.LEADING), Kind(FULL, EXPERTS, layers - dense))
    slides = windows.width is not None and not windows.switched
    full = windows.full(layers) if slides else layers
    counts = {SLIDES: layers - full, FULL: full}
    layer = DENSE if sparse is Sparse.NEVER else EXPERTS
    return tuple(Kind(mixer, layer, count) for mixer, count in counts.items() if count != 0)


def numbered_kinds(
    windows: Windows, mixers: Iterable[str], layers: Iterable[str]
) -> tuple[tuple[Kind, ...], dict[str, int]]:
    """Return the kinds of layers of a configuration, and the numbers of the symbols in them.

    Args:
        windows: the family's rule.
        mixers: of every layer.
        layers: what follows the mixer, in every layer.
    """
    ordered = tuple(zip(mixers, layers, strict=True))
    tally = Counter(ordered)
    depth, total = symbols.n_layers, tally.total()
    numbers = {"n_layers": total}
    counts: dict[tuple[str, str], Expr] = {kind: Integer(n) for kind, n in tally.items()}
    if len(tally) == 1:
        counts = dict.fromkeys(tally, depth)
    elif tally.keys() == {(FULL, DENSE), (FULL, EXPERTS)}:
        counts = {(FULL, DENSE): symbols.n_dense, (FULL, EXPERTS): depth - symbols.n_dense}
        numbers["n_dense"] = tally[FULL, DENSE]
    elif len(tally) == 2 and {mixer for mixer, _ in tally} == {FULL, SLIDES}:  # noqa: PLR2004
        full, slides = sorted(tally)
        if full[1] == slides[1]:
            exact = windows.full(depth, total) if windows.period else depth
            if exact.subs(depth, total) != tally[full]:
                exact = Integer(tally[full])
            counts = {slides: depth - exact, full: exact}
    places = dict.fromkeys(tally, Place.BLOCK)
    if len(tally) > 1 and ordered[0] not in ordered[tally[ordered[0]] :]:
        places[ordered[0]] = Place.LEADING
    found: dict[tuple[str, str], list[int]] = {kind: [] for kind in tally}
    for layer, kind in enumerate(ordered if len(tally) > 1 else ()):
        found[kind].append(layer)
    kinds = (Kind(*kind, counts[kind], places[kind], tuple(found[kind])) for kind in tally)
    return tuple(kinds), numbers
