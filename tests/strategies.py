"""Hypothesis strategies of declarations and placements, shared by the laws."""

from dataclasses import dataclass

from hypothesis import strategies as st
from sympy import Integer

from symbolic_cost.ops.einsum import Einsum, einsum
from symbolic_cost.ops.elementwise import pointwise
from symbolic_cost.ops.graph import Model
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.part import fragment
from symbolic_cost.ops.placement import Placement
from symbolic_cost.ops.view import split, view

AXES = "abcd"
MESH = ("x", "y")


def model_of(ops, sizes, repeat=1):
    """One part of the ops, called "part"."""
    exact = {axis: Integer(size) for axis, size in sizes.items()}
    return Model("model", (fragment("part", tuple(ops), Integer(repeat)),), exact)


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


@dataclass(frozen=True)
class Graph:
    """Random linked ops under a placement, sizes divisible."""

    ops: tuple[Op, ...]
    sizes: dict[str, int]
    placement: Placement

    @property
    def model(self) -> Model:
        return model_of(self.ops, self.sizes)

    def _repr_pretty_(self, printer, _):
        lines = [f"{op.kind} {op.pattern.text}" for op in self.ops]
        printer.text(f"{lines}, {dict(self.placement.degrees)}, {dict(self.placement.axes)}")


FAMILIES = ("ai", "bj", "ck", "d")
"""Axes of one size have one or two names: a view renames one to the other."""

OTHER = {name: family[1 - i] for family in FAMILIES[:3] for i, name in enumerate(family)}


@st.composite
def chains(draw, most=5):
    """Linked contractions, sums, functions and views; any tensor may be used again."""
    names = [draw(st.sampled_from(family)) for family in FAMILIES]
    first = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
    source = draw(st.sampled_from(["x", "!x"]))
    tensors = {source: tuple(first)}
    ops = []
    for place in range(draw(st.integers(2, most))):
        source = draw(st.sampled_from(sorted(tensors)))
        declare = draw(st.sampled_from([_view, _product, _product, _parts, _pair, _sum, _function]))
        op = declare(draw, f"op{place}", source, tensors)
        ops.append(op)
        tensors |= {operand.tensor: operand.axes for operand in op.outputs}
    return tuple(ops)


def _named(name, tensors):
    return f"{name}[{' '.join(tensors[name])}]"


def _view(draw, name, source, tensors):
    axes = tensors[source]
    kept = [
        OTHER[axis] if axis in OTHER and OTHER[axis] not in axes and draw(st.booleans()) else axis
        for axis in axes
    ]
    return view(name, f"{_named(source, tensors)} -> {name}[{' '.join(kept)}]")


def _parts(draw, name, source, tensors):
    """Two parts of a tensor along d, which has two places and is not split."""
    axes = tensors[source]
    if "d" not in axes:
        return _function(draw, name, source, tensors)
    kept = " ".join(axis for axis in axes if axis != "d")
    return split(name, f"{_named(source, tensors)} -> {name}[{kept}], {name}.other[{kept}]")


def _product(draw, name, source, tensors):
    """A tensor and a weight: axes are kept, summed, or new."""
    axes = tensors[source]
    summed = [axis for axis in axes if draw(st.booleans())]
    kept = [axis for axis in axes if axis not in summed]
    families = [family for family in FAMILIES if not set(family) & set(axes)]
    room = families[: 3 - len(kept)]
    made = [draw(st.sampled_from(family)) for family in room if draw(st.booleans())]
    shared = [axis for axis in kept if draw(st.integers(0, 4)) == 0]
    result = draw(st.permutations(kept + made))
    biased = draw(st.booleans())
    bias = f" + *b[{' '.join(axis for axis in result if draw(st.booleans()))}]" if biased else ""
    weight = f"*w[{' '.join(summed + made + shared)}]{bias}"
    return einsum(name, f"{_named(source, tensors)}, {weight} -> {name}[{' '.join(result)}]")


def _pair(draw, name, source, tensors):
    """Two tensors: a shared axis is kept or summed, another is kept."""
    other = draw(st.sampled_from(sorted(tensors)))
    both = set(tensors[source]) & set(tensors[other])
    axes = dict.fromkeys(tensors[source] + tensors[other])
    result = [axis for axis in axes if axis not in both or draw(st.booleans())]
    if other == source or len(result) > 3:
        return _function(draw, name, source, tensors)
    operands = f"{_named(source, tensors)}, {_named(other, tensors)}"
    return einsum(name, f"{operands} -> {name}[{' '.join(result)}]")


def _sum(draw, name, source, tensors):
    """Two tensors, the second repeated along the axes that it lacks."""
    fitting = [other for other in sorted(tensors) if set(tensors[other]) <= set(tensors[source])]
    other = draw(st.sampled_from(fitting))
    operands = f"{_named(source, tensors)}, {_named(other, tensors)}"
    made = f"{name}[{' '.join(tensors[source])}]"
    return pointwise(name, f"{operands} -> {made}", draw(st.sampled_from(["add", "mul"])))


def _function(_, name, source, tensors):
    made = f"{name}[{' '.join(tensors[source])}]"
    return pointwise(name, f"{_named(source, tensors)} -> {made}", "gelu")


def spaces_of(op):
    """The index space of an op; those of both sides of a view."""
    if op.kind == "view":
        return [operand.axes for operand in (*op.inputs, *op.outputs)]
    return [op.axes]


@st.composite
def graphs(draw, most=5):
    """Linked ops under a placement that every one of them allows."""
    ops = draw(chains(most=most))
    whole = {axis for op in ops for axis in op.whole_axes}
    spaces = [[a for a in space if a not in whole] for op in ops for space in spaces_of(op)]
    placement = draw(placements_of(spaces))
    size = int(placement.degree(tuple(placement.degrees)))
    sizes = {axis: 2 if axis in whole else size for op in ops for axis in op.axes}
    return Graph(ops, sizes, placement)
