"""What of a framework decides what lives for a while, beside what a step keeps."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.part import Part
from symbolic_cost.ops.pattern import is_tied
from symbolic_cost.records import dataclass, replace

IN_PLACE = "in place"
_OF_LOGITS = (IN_PLACE, "beside")
LOSS, _AS_LOGITS = "cross_entropy", "cross_entropy_values"


class Making(StrEnum):
    """How a microbatch's gradient of a weight comes to those before it."""

    FUSED = "fused"
    """The product adds to what is there."""
    RETURNED = "returned"
    """The same, and an unused gradient is returned to autograd: one for all weights of a shape."""
    APART = "apart"
    """It is made, then added."""
    CAST = "cast"
    """It is made with the others of its unit, then added to what is there in a wider type."""
    REDUCED = "reduced"
    """It is made, and reduced over ranks with the others of its unit: FSDP."""

    @property
    def adds(self) -> bool:
        """Whether products add to the gradients that are there."""
        return self in (Making.FUSED, Making.RETURNED)


_MAKING_WORDS = {
    Making.FUSED: "added by their products",
    Making.RETURNED: "added by their products, which return unused ones",
    Making.APART: "made apart",
    Making.CAST: "made apart by unit",
    Making.REDUCED: "made whole by unit",
}


@dataclass(frozen=True, slots=True)
class Software:
    """What of a framework decides what lives beside weights, states and kept activations.

    Args:
        loss: "fused" where its gradient takes the place of what it kept, "apart" where PyTorch's
            ops make one of the likelihoods and one of the logits; where logits are kept as they
            are, "in place" if their gradient takes their place, else "beside".
        gradients: "kept" from step to step, or "made" by the first microbatch of each.
        making: of a microbatch's gradient of a weight.
        updates: of the optimizer: "fused", or "foreach": op by op on all weights.
        ends: what of FSDP's units is no block: "apart", part by part, or all of it the "root".
        joined: names of ops of one scope that are one kernel, group by group.
        remade: ends of paths of ops that are one kernel, whose backward makes what is inside again.
        absorbed: ends of paths of ops that run inside the kernels of their neighbours.
    """

    loss: str = "fused"
    gradients: str = "kept"
    making: Making = Making.FUSED
    updates: str = "fused"
    ends: str = "apart"
    joined: tuple[tuple[str, ...], ...] = ()
    remade: tuple[tuple[str, ...], ...] = ()
    absorbed: tuple[str, ...] = ()

    @property
    def units(self) -> str:
        """Units that are no block; empty where weights are not gathered by unit."""
        return self.ends if self.making is Making.REDUCED else ""

    @property
    def by_op(self) -> bool:
        """Whether every op of the optimizer runs on all weights before the next."""
        return self.updates == "foreach"

    @property
    def description(self) -> str:
        """What is assumed of it, in words; for the notes of a table of memory."""
        units = f" (ends {self.units})" if self.units else ""
        joined = ", ".join(" with ".join(names) for names in self.joined)
        kernels = f", one kernel {joined}" if joined else ""
        return (
            f"loss {self.loss}, gradients of weights {self.gradients}, those of a microbatch "
            f"{_MAKING_WORDS[self.making]}{units}, optimizer {self.updates}{kernels}"
        )

    def merged(self, model: Model) -> Iterator[str]:
        """Say which ops of a model are one kernel, or run in others' kernels."""
        paths = [op.path for part in model.parts for op in part.ops]
        for ends in self.remade:
            own = [path for path in paths if path.endswith(ends)]
            if own:
                again = "whose backward makes what is inside again"
                yield f"{own[0]} to {own[-1]}: one kernel, {again}"
        inside = dict.fromkeys(path for path in paths if path.endswith(self.absorbed))
        if inside:
            yield f"{', '.join(inside)}: inside the kernels beside"

    def counted(self, conventions: Conventions) -> Conventions:
        """Return conventions with what its kernels keep for backward."""
        kept = {LOSS: _AS_LOGITS} if self.loss in _OF_LOGITS else {}
        if not any((kept, self.joined, self.remade, self.absorbed)):
            return conventions
        kept_as = {**conventions.kept_as, **kept}
        return replace(
            conventions,
            kept_as=kept_as,
            joined=self.joined,
            remade=self.remade,
            absorbed=self.absorbed,
        )


def gathered_again(model: Model, ends: str) -> frozenset[str]:
    """Return the paths of the parts whose weights FSDP gathers again for backward.

    Those of the root stay whole, and of units "apart" those behind the blocks, and what shares a
    weight with these.
    """
    if ends == "root":
        return frozenset(part.path for part in model.parts if part.is_block)
    last = max((place for place, part in enumerate(model.parts) if part.is_block), default=-1)
    behind = {name for part in model.parts[last + 1 :] for name in tied_names(part)}
    before = model.parts[: last + 1]
    return frozenset(p.path for p in before if p.is_block or behind.isdisjoint(tied_names(p)))


def tied_names(part: Part) -> set[str]:
    """Return the weights that a part may share with others."""
    return {weight.tensor for op in part.ops for weight in op.weights if is_tied(weight)}
