"""Named answers to how work takes time; the numbers of a machine are put to them later."""

from collections.abc import Mapping
from dataclasses import field

from sympy import Expr, Integer

from symbolic_cost.conventions.presets import MODEL_FLOP, STANDARD
from symbolic_cost.conventions.questions import Conventions
from symbolic_cost.records import dataclass
from symbolic_cost.systems.collectives import COLLECTIVES, Collectives
from symbolic_cost.systems.overlap import Overlap
from symbolic_cost.systems.rooflines import MAXIMUM, Roofline
from symbolic_cost.systems.stacks import Stack


@dataclass(frozen=True)
class Methods:
    """Named answers to how work takes time.

    Args:
        overlaps: what of a communication is exposed, by mesh axis ("tp", "cp", "dp", "pp"), and of
            what moves between device and host ("host").
        scattered: whether tensor-parallel ranks, which hold the same activations unless these are
            split (sp), send a part each to the next stage and gather them there (narayanan-2021,
            section 4.1).
        softmax: batches of scores that its kernel takes at once, where no stack says it.
        stack: software whose kernels run; None for the efficiencies of the machine's record.
        order: mesh axes, innermost first: neighbours on the first have neighbouring ranks. Empty
            for the order of the catalogue.
        strides: ranks between neighbours on a mesh axis, as terms, where their order is open.
        conventions: answers to the counting questions for what runs and takes time.
        counted: those for what is reported, the model FLOP of an MFU.
    """

    roofline: Roofline = MAXIMUM
    collectives: Collectives = COLLECTIVES["hierarchical ring"]
    overlaps: Mapping[str, Overlap] = field(default_factory=dict)
    scattered: bool = False
    softmax: Expr = Integer(1)
    order: tuple[str, ...] = ()
    strides: Mapping[str, Expr] = field(default_factory=dict)
    stack: Stack | None = None
    conventions: Conventions = STANDARD
    counted: Conventions = MODEL_FLOP
