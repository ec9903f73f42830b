"""How a model is trained, as far as memory is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sympy import Expr, Integer

from symbolic_cost import symbols
from symbolic_cost.checking import accepts, described
from symbolic_cost.conventions.questions import Conventions, Saved
from symbolic_cost.errors import Problems, quote, unknown
from symbolic_cost.lazy import Recent
from symbolic_cost.ledger import Quantity
from symbolic_cost.ops.recompute import KEEP_ALL, Recompute
from symbolic_cost.parallel.layout import layout as named_layout
from symbolic_cost.parallel.part_memory import STATES
from symbolic_cost.parallel.pipeline import Pipeline
from symbolic_cost.parallel.schedules import schedule
from symbolic_cost.parallel.software import Software
from symbolic_cost.parallel.states import optimizer, precision
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class Training:
    """How a model is trained, as far as memory is concerned.

    Args:
        recompute: what backward computes again.
        microbatches: of one step and pipeline.
        offload: quantities kept in the memory of the host.
        chunks: model chunks per stage, for schedules that leave it open.
        layout: how many blocks each stage holds: "even", "uneven", "ends=1", "ends=0/3".
        saved: what is kept of inputs that are gathered for use; None leaves it to the conventions.
            Shards are gathered again in backward.
        shares: of what is offloaded, how much is on the host, as terms where that is open; all of
            it where nothing is said.
        software: what of a framework decides what lives for a while.
    """

    precision: str = "bf16-mixed"
    optimizer: str = "adam"
    recompute: Recompute = KEEP_ALL
    schedule: str = "1f1b"
    microbatches: Expr = symbols.M
    offload: frozenset[str] = frozenset()
    chunks: Expr = symbols.v
    layout: str = "even"
    saved: Saved | None = None
    shares: Mapping[str, Expr] = field(default_factory=dict)
    software: Software = Software()

    def hosted(self, quantity: Quantity) -> Expr:
        """Return the share of a quantity that is on the host."""
        name = quantity.value
        return self.shares.get(name, Integer(1)) if name in self.offload else Integer(0)

    @property
    def pipeline(self) -> Pipeline:
        """How the stages work together."""
        blocks = named_layout(self.layout)
        return Pipeline(self.schedule, self.microbatches, self.chunks, blocks)

    def __post_init__(self) -> None:
        """Refuse names that are none, and numbers that are no count."""
        problems = Problems()
        problems.texts += [
            f"Training: {name} = {quote(value)}: {described(hint)} is accepted"
            for name, value, hint in (
                ("recompute", self.recompute, Recompute),
                ("offload", self.offload, frozenset[str]),
                ("chunks", self.chunks, Expr | int),
                ("layout", self.layout, str),
                ("saved", self.saved, Saved | None),
            )
            if not accepts(hint, value)
        ]
        problems.refuse()
        for look_up, name in (
            (precision, self.precision),
            (optimizer, self.optimizer),
            (schedule, self.schedule),
            (named_layout, self.layout),
        ):
            problems.attempt(look_up, name)
        accepted = [quantity.value for quantity in (*STATES, Quantity.SAVED)]
        strange = sorted(name for name in self.offload if name not in accepted)
        problems.texts += [unknown("offload", name, accepted) for name in strange]
        number = symbols.exact(self.microbatches)
        if number.is_extended_positive is False:
            problems.texts.append(f"microbatches = {quote(number)}: a positive number is accepted")
        problems.refuse()
        object.__setattr__(self, "microbatches", number)

    def conventions_of(self, conventions: Conventions) -> Conventions:
        """Return conventions with what the training and its software keep; alike for the same."""
        key = (id(conventions), self.saved, self.software)
        return _COUNTED.of(key, lambda: (conventions, self._kept(conventions)))[1]

    def _kept(self, conventions: Conventions) -> Conventions:
        own = self.software.counted(conventions)
        return own if self.saved in (None, own.saved) else replace(own, saved=self.saved)

    def counted(self, conventions: Conventions) -> Conventions:
        """Return the same with the bytes of the precision; of the same answers one object."""
        key = (id(conventions), self.saved, self.software, self.precision)
        make = precision(self.precision).applied
        return _COUNTED.of(key, lambda: (conventions, make(self.conventions_of(conventions))))[1]


_COUNTED: Recent[tuple[Conventions, Conventions]] = Recent(64)
"""By the id of what they are made of, which lives as long."""
