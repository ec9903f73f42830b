"""What training keeps per parameter: precision policies and optimizers, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sympy import Expr, Integer, Rational

from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.errors import looked_up


@dataclass(frozen=True, slots=True)
class Precision:
    """Bytes per element of everything that training keeps.

    Args:
        name: of the policy.
        meaning: one line.
        source: key of a reference.
        value: of activations.
        weight: of weights, casts for computation included.
        gradient: of gradients as they are accumulated and reduced.
        master: of the copy that the optimizer updates; zero where it updates the weights.
        moment: of one moment of the optimizer.
    """

    name: str
    meaning: str
    source: str
    value: int
    weight: int
    gradient: int
    master: int
    moment: int

    def applied(self, conventions: Conventions) -> Conventions:
        """Return the conventions with the element sizes of this policy."""
        sizes = replace(
            conventions.sizes,
            value=Integer(self.value),
            weight=Integer(self.weight),
            weight_gradient=Integer(self.gradient),
        )
        name = f"{conventions.name}, {self.name}"
        return replace(conventions, name=name, sizes=sizes)


_PRECISIONS = (
    Precision("fp32", "single precision throughout", "definition", 4, 4, 4, 0, 4),
    Precision("bf16", "16 bits throughout, no master copy", "definition", 2, 2, 2, 0, 2),
    Precision(
        "fp16-mixed", "16-bit gradients, single-precision states", "rajbhandari-2019", 2, 2, 2, 4, 4
    ),
    Precision(
        "bf16-mixed", "single-precision gradients and states", "megatron-report", 2, 2, 4, 4, 4
    ),
    Precision(
        "fp8-hybrid",
        "bf16-mixed with 8-bit copies of the weights, as they are and transposed",
        "transformer-engine",
        2,
        4,
        4,
        4,
        4,
    ),
    Precision(
        "fp8-deepseek",
        "8-bit weights, single-precision gradients and master copy, bf16 moments",
        "deepseek-2024",
        2,
        1,
        4,
        4,
        2,
    ),
)

PRECISIONS: Mapping[str, Precision] = {policy.name: policy for policy in _PRECISIONS}
"""Every precision policy by name."""


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Moments that an optimizer keeps.

    Args:
        name: of the optimizer.
        meaning: one line.
        source: key of a reference.
        moments: per parameter.
        matrix: per parameter of a hidden matrix.
        factored: of a matrix only sums of its rows and columns are kept.
        moment: bytes of one moment, scales of blocks included; as the precision says unless given.
        flop: per parameter and step, from its formula with every operation one FLOP, square root
            and division as well.
        products: steps that orthogonalise a hidden matrix, three matrix products each.
    """

    name: str
    meaning: str
    source: str
    moments: int
    matrix: int
    factored: bool = False
    moment: Expr | None = None
    flop: int = 0
    products: int = 0


_BLOCK = 2048  # elements of a quantised moment that share a single-precision scale

_OPTIMIZERS = (
    Optimizer("sgd", "no state", "definition", 0, 0, flop=2),
    Optimizer("momentum", "one moment", "definition", 1, 1, flop=4),
    Optimizer("adam", "mean and mean square", "kingma-2014", 2, 2, flop=14),
    Optimizer("adafactor", "mean square, factored", "shazeer-2018", 1, 1, factored=True, flop=9),
    Optimizer(
        "adam-8bit",
        f"8-bit moments with a scale per {_BLOCK}",
        "dettmers-2021",
        2,
        2,
        moment=1 + Rational(4, _BLOCK),
        flop=18,
    ),
    Optimizer(
        "muon",
        "orthogonalised momentum for hidden matrices, Adam for the rest",
        "jordan-2024",
        2,
        1,
        flop=14,
        products=5,
    ),
)

OPTIMIZERS: Mapping[str, Optimizer] = {entry.name: entry for entry in _OPTIMIZERS}
"""Every optimizer by name."""


def precision(name: str) -> Precision:
    """Return a precision policy by name.

    Raises:
        UnknownNameError: no such policy; the closest are offered.
    """
    return looked_up("precision", name, PRECISIONS)


def optimizer(name: str) -> Optimizer:
    """Return an optimizer by name.

    Raises:
        UnknownNameError: no such optimizer; the closest are offered.
    """
    return looked_up("optimizer", name, OPTIMIZERS)
