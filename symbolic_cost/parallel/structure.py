"""Structure: what of a strategy decides which rows there are, and not only their numbers.

Degrees are numbers that may stay symbols, but the class of a degree is structure: a mesh axis of
one rank splits nothing, sends nothing and gives no op axes of its own, and a pipeline has one
stage, two that differ, or middle ones between these. For example `tp=1,sp,dp=16,ep=16,pp=2,zero=1`
has the structure of `ep` ranks that hold all data, in two stages: tp and sp are gone, the dp ranks
that are left beside ep are one. A degree without a number is taken for two or more, that of a
pipeline for three or more; `Structure.assumptions` says so.
"""

from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.conditions import Least
from symbolic_cost.errors import PlacementError
from symbolic_cost.lazy import Recent
from symbolic_cost.parallel.catalogue import DATA_AXES, STRATEGIES
from symbolic_cost.parallel.orders import Stage
from symbolic_cost.parallel.strategy import Strategy
from symbolic_cost.records import dataclass, replace

_ENDS = 2
"""Stages of a pipeline that are unlike those between them."""


@dataclass(frozen=True)
class Structure:
    """The class of each degree of a strategy."""

    strategy: Strategy

    @cached_property
    def reduced(self) -> Strategy:
        """The same ranks without the names that split nothing."""
        degrees = self.strategy.degrees
        names = {name for name, ranks in degrees.items() if any(rank != 1 for rank in ranks)}
        names |= {need for name in names for need in STRATEGIES[name].needs}
        for name, ranks in degrees.items():
            if not ranks and names.issuperset(STRATEGIES[name].needs):
                names.add(name)
        zero = self.strategy.zero if names & set(DATA_AXES) else 0
        in_panels = any(STRATEGIES[name].stored for name in names)
        panels = self.strategy.panels if in_panels else 1
        left = {name: degrees[name] for name in degrees if name in names}
        copies = self.strategy.copies if "tp" in left else 1
        shared = () if copies == 1 else self.strategy.shared
        reshard = self.strategy.reshard if zero else 0
        return Strategy(left, zero, panels, copies, shared, reshard)

    @cached_property
    def symbolic(self) -> Strategy:
        """The same structure with a symbol for every degree of which only the class matters."""
        degrees = {
            name: tuple(
                _symbol(name, rank, symbol)
                for rank, symbol in zip(ranks, STRATEGIES[name].meshes.values(), strict=True)
            )
            for name, ranks in self.strategy.degrees.items()
        }
        if "ep" in degrees and self.strategy.mesh["dp"] == 1:
            degrees["dp"] = degrees["ep"]
        return replace(self.strategy, degrees=degrees)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages of the pipeline that differ from each other."""
        stages = self.strategy.degree("pp")
        if stages == 1:
            return (Stage.FIRST,)
        return (Stage.FIRST, Stage.LAST) if stages == _ENDS else tuple(Stage)

    def alike(self, stage: Stage) -> Expr:
        """Return how many stages are like one of `stages`."""
        return self.strategy.degree("pp") - _ENDS if stage is Stage.MIDDLE else Integer(1)

    def checked(self, stage: Stage) -> Stage:
        """Return a stage that the pipeline has; one that is alone is the first and the last.

        Raises:
            PlacementError: the pipeline has no such stage.
        """
        if stage is Stage.LAST or stage in self.stages:
            return stage
        accepted = ", ".join(dict.fromkeys((*self.stages, Stage.LAST)))
        pp = self.strategy.degree("pp")
        raise PlacementError(
            f"stage {stage}: a pipeline of pp = {pp} has none; accepted are {accepted}"
        )

    @property
    def assumptions(self) -> tuple[Least, ...]:
        """What is taken for granted of degrees without a number."""
        return tuple(
            Least(
                f"ranks of {mesh}",
                degree,
                Integer(_ENDS + 1 if mesh == "pp" else 2),
                _BECAUSE[mesh == "pp"],
            )
            for mesh, degree in self.reduced.mesh.items()
            if degree.free_symbols
        )


def structure(strategy: Strategy) -> Structure:
    """Return the structure of a strategy, the same of the same one."""
    return _STRUCTURES.of(id(strategy), lambda: Structure(strategy))


_STRUCTURES: Recent[Structure] = Recent(64)
"""By the id of the strategy, which lives as long."""

_BECAUSE = {
    False: "the rows are those of a degree without a number, which is taken for 2 or more: "
    "give the strategy its number",
    True: "a pipeline without a number has a first, middle and last stage: "
    "give the strategy its number",
}


def _symbol(name: str, rank: Expr, symbol: Expr) -> Expr:
    """Return the symbol of a degree unless its number is a class of its own."""
    alone = rank == 1 or (name == "pp" and rank == _ENDS)
    return rank if alone else symbol
