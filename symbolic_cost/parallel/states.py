"""What training keeps per parameter: precision policies and optimizers, as data."""

from collections.abc import Mapping
from dataclasses import field
from fractions import Fraction
from functools import cached_property
from typing import Any

from sympy import Expr, Integer, Rational

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import looked_up
from symbolic_cost.reading import package_data
from symbolic_cost.records import dataclass, replace
from symbolic_cost.symbols import exact


@dataclass(frozen=True)
class Precision:
    """Bytes per element of everything that training keeps; states.toml explains the fields."""

    name: str
    meaning: str
    source: str
    value: int
    weight: int | str
    gradient: int
    master: int
    moment: int
    units: str = ""
    gathered: int | None = None
    reduced: int | None = None
    factor: int | str | None = None
    others: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Take the beginning of the name for the units that products run on."""
        object.__setattr__(self, "units", self.units or self.name.partition("-")[0])

    @cached_property
    def of_others(self) -> "Precision":
        """The same for weights that are no hidden matrices, which low precision leaves alone."""
        return replace(self, **self.others, others={})

    def applied(self, conventions: Conventions) -> Conventions:
        """Return the conventions with the element sizes of this policy."""
        sizes = replace(
            conventions.sizes,
            value=Integer(self.value),
            weight=exact(Fraction(self.weight)),
            weight_gradient=Integer(self.gradient),
            gathered=None if self.gathered is None else Integer(self.gathered),
            reduced=None if self.reduced is None else Integer(self.reduced),
            others=exact(Fraction(self.of_others.weight)) if self.others else None,
            factor=None if self.factor is None else exact(Fraction(self.factor)),
        )
        name = f"{conventions.name}, {self.name}"
        return replace(conventions, name=name, sizes=sizes)


_DATA = package_data("parallel/states.toml")

PRECISIONS: Mapping[str, Precision] = {
    name: Precision(name, **record) for name, record in _DATA["precisions"].items()
}
"""Every precision policy by name."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Moments that an optimizer keeps; states.toml explains the fields."""

    name: str
    meaning: str
    source: str
    moments: int
    matrix: int
    factored: bool = False
    block: int = 0
    flop: int = 0
    products: int = 0
    copies: int = 0

    @property
    def copied(self) -> Expr:
        """Share of the moments that are made anew where each op runs on all weights."""
        return Rational(self.copies, self.moments or 1)

    @property
    def moment(self) -> Expr | None:
        """Bytes of one moment, scales of blocks included; as the precision says if None."""
        return 1 + Rational(4, self.block) if self.block else None


OPTIMIZERS: Mapping[str, Optimizer] = {
    name: Optimizer(name, **record) for name, record in _DATA["optimizers"].items()
}
"""Every optimizer by name."""


def precision(name: str) -> Precision:
    """Return a precision policy by name."""
    return looked_up("precision", name, PRECISIONS)


def optimizer(name: str) -> Optimizer:
    """Return an optimizer by name."""
    return looked_up("optimizer", name, OPTIMIZERS)
