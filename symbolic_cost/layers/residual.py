"""The residual branch: y = x + layer(x), with its norms and its dropout.

Axes: b sequences, r residual positions, e embedding, unless others are given.
"""

from __future__ import annotations

from enum import Flag, StrEnum, auto
from typing import Protocol

from symbolic_cost.layers.chain import Step, chain
from symbolic_cost.layers.norm import Norm
from symbolic_cost.ops.declare import Op, dropout, pointwise, scope
from symbolic_cost.records import dataclass, replace


class Layer(Protocol):
    """What maps x[b r e] to y[b r e]."""

    def ops(self) -> tuple[Op, ...]:
        """Declare the layer."""


class Placing(StrEnum):
    """Where the norms of a residual branch stand."""

    PRE = "before the layer"
    POST = "after the residual sum"
    SANDWICH = "before and after the layer"
    RESULT = "after the layer"
    NONE = "nowhere"


class Outcome(Flag):
    """What happens to what the layer gives, before it is added."""

    NONE = 0
    SCALE = auto()
    """It is scaled by a learned factor per feature."""
    DROP = auto()
    """It is dropped out."""
    CARRY = auto()
    """What it is added to is scaled by a learned factor per feature."""


@dataclass(frozen=True)
class Branch:
    """Norms and dropout of a residual branch.

    Args:
        after: norm of what the layer gives, where it is another than that before the layer.
        outcome: what happens to what the layer gives.
        axes: of the residual stream.
    """

    norm: Norm = Norm.LAYER
    placing: Placing = Placing.PRE
    outcome: Outcome = Outcome.NONE
    after: Norm | None = None
    axes: str = "b r e"

    @property
    def drops(self) -> bool:
        """Whether what the layer gives is dropped out."""
        return Outcome.DROP in self.outcome

    def having(self, outcome: Outcome, *, on: bool) -> Branch:
        """Return the branch where this happens to what the layer gives, or does not."""
        return replace(self, outcome=self.outcome | outcome if on else self.outcome & ~outcome)

    def around(
        self, path: str, layer: tuple[Op, ...], x: str = "x", y: str = "y", **outside: str
    ) -> tuple[Op, ...]:
        """Declare y = x + layer(x).

        Args:
            path: of the ops.
            layer: maps x to y.
            x: name of what goes in.
            y: name of what comes out.
            outside: tensors that the layer takes from elsewhere, by their names in it.
        """
        before = self.placing in {Placing.PRE, Placing.SANDWICH}
        post = self.placing is Placing.POST
        taken = f"{path}.entry" if before else x
        summed = f"{path}.post" if post else y
        return (
            *(scope(path, (self.normed("norm"),), x=x, y=taken) if before else ()),
            *scope(path, layer, x=taken, y=f"{path}.outcome", **outside),
            *scope(path, chain("outcome", self._links(), "sum"), x=x, sum=summed),
            *(scope(path, (self.normed("norm"),), x=summed, y=y) if post else ()),
        )

    def beside(self, path: str, layer: tuple[Op, ...], x: str, y: str) -> tuple[Op, ...]:
        """Declare a layer whose branch is added later, with another."""
        if not self.drops:
            return scope(path, layer, x=x, y=y)
        drop = dropout("dropout", f"outcome[{self.axes}] -> y[{self.axes}]")
        return (*scope(path, layer, x=x, y=f"{path}.outcome"), *scope(path, (drop,), y=y))

    def normed(self, name: str, x: str = "x", y: str = "y") -> Op:
        """Declare a norm of the residual stream."""
        row = self.axes.rpartition(" ")[2]
        return self.norm.op(name, f"{x}[{self.axes}]", f"{y}[{self.axes}]", row=row)

    def _links(self) -> list[Step]:
        axes = f"[{self.axes}]"
        links: list[Step] = []
        if self.placing in {Placing.SANDWICH, Placing.RESULT}:
            own = replace(self, norm=self.after or self.norm)
            links.append(lambda a, b: own.normed("norm_after", a, b))
        if Outcome.SCALE in self.outcome:
            weight = f"*scale[{self.axes.split()[-1]}]"
            scaled = f"{{}}{axes}, {weight} -> {{}}{axes}"
            links.append(lambda a, b: pointwise("layer_scale", scaled.format(a, b), "mul"))
        if self.drops:
            links.append(lambda a, b: dropout("dropout", f"{a}{axes} -> {b}{axes}"))
        carried = f", *carry[{axes.rsplit(maxsplit=1)[-1]}" if Outcome.CARRY in self.outcome else ""
        add = f"x{axes}{carried}, {{}}{axes} -> {{}}{axes}"
        links.append(lambda a, b: pointwise("residual", add.format(a, b), "add"))
        return links
