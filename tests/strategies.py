"""Hypothesis strategies of declarations and placements, shared by the laws."""

from dataclasses import dataclass

from hypothesis import strategies as st
from sympy import Integer

from symbolic_cost.ops.einsum import Einsum, einsum
from symbolic_cost.ops.graph import Model, Part
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.placement import Placement

AXES = "abcd"
MESH = ("x", "y")


def model_of(ops, sizes, repeat=1):
    """One part of the ops, called "part"."""
    exact = {axis: Integer(size) for axis, size in sizes.items()}
    return Model("model", (Part("part", tuple(ops), Integer(repeat)),), exact)


@dataclass(frozen=True)
class Contracted:
    """A random contraction and its axes' sizes."""

    op: Einsum
    sizes: dict[str, int]

    @property
    def model(self) -> Model:
        return model_of([self.op], self.sizes)


@dataclass(frozen=True)
class Placed:
    """A random contraction whose axes are split."""

    op: Op
    sizes: dict[str, int]
    placement: Placement

    @property
    def model(self) -> Model:
        return model_of([self.op], self.sizes)


@st.composite
def patterns(draw, *, biases=True, marks=("", "*", "!")):
    """Patterns of contractions: every axis stands in two or more of two or three operands."""
    operands = draw(st.integers(2, 3))
    axes = AXES[: draw(st.integers(1, len(AXES)))]
    places = st.lists(st.integers(0, operands), min_size=2, max_size=operands + 1, unique=True)
    homes = {axis: draw(places) for axis in axes}
    tensors = [
        " ".join(draw(st.permutations([axis for axis in axes if place in homes[axis]])))
        for place in range(operands + 1)
    ]
    kinds = [draw(st.sampled_from(marks)) for _ in range(operands)]
    inputs = ", ".join(f"{kinds[i]}t{i}[{tensors[i]}]" for i in range(operands))
    bias = ""
    if biases and draw(st.booleans()):
        result = tensors[operands].split()
        kept = draw(st.lists(st.sampled_from(result), unique=True)) if result else []
        bias = f" + *bias[{' '.join(kept)}]"
    return f"{inputs}{bias} -> result[{tensors[operands]}]"


@st.composite
def contractions(draw, **options):
    """Contractions of small sizes."""
    op = einsum("op", draw(patterns(**options)))
    sizes = {axis: draw(st.integers(1, 4), label=axis) for axis in op.axes}
    return Contracted(op, sizes)


@st.composite
def placements_of(draw, spaces):
    """One or two mesh axes, each splitting at most one axis of every space."""
    degrees = {mesh: draw(st.integers(2, 3)) for mesh in MESH[: draw(st.integers(1, 2))]}
    axes = sorted({axis for space in spaces for axis in space})
    split: dict[str, tuple[str, ...]] = {}
    for mesh in degrees:
        for axis in draw(st.permutations(axes))[: draw(st.integers(0, len(axes)))]:
            others = [other for other, meshes in split.items() if mesh in meshes]
            if not any(axis in space and set(others) & set(space) for space in spaces):
                split[axis] = (*split.get(axis, ()), mesh)
    return Placement(degrees, split)


@st.composite
def placed_contractions(draw, **options):
    """Contractions under a placement, sizes divisible."""
    op = einsum("op", draw(patterns(**options)))
    placement = draw(placements_of([op.axes]))
    sizes = {
        axis: draw(st.integers(1, 2)) * int(placement.degree(placement.meshes(axis)))
        for axis in op.axes
    }
    return Placed(op, sizes, placement)
