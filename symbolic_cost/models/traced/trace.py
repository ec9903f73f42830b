"""What a graph does, in acts: products, functions, lookups, copies over tensors with axes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from symbolic_cost.errors import InputError
from symbolic_cost.models.traced.acts import CHOSEN, Act, Nature, Ref, Tensor, Use, names_in, put
from symbolic_cost.models.traced.aliases import Aliases
from symbolic_cost.models.traced.forest import Axis, Dims, Forest
from symbolic_cost.models.traced.graph import Graph, Name, Node, Size, refuse_unknown

_MISREAD = (TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError)
"""What arguments raise that are not what an operator takes."""

Rule = Callable[["Trace"], None]
RULES: dict[str, Rule] = {}
"""What the node at hand means, by the name of its operator."""


def rule(*targets: str) -> Callable[[Rule], Rule]:
    """Register what operators mean."""

    def add(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(targets, function))
        return function

    return add


class Trace:
    """Goes through a graph and writes down its acts.

    Args:
        graph: to be read.
        forest: its axes.
        replaced: nodes that stand for several, by their number; None for those they stand for.
        cores: products of attention by number of the node: "scores" or "attend".
        masked: attention, by number of the node, that a causal mask keeps a part of.
    """

    def __init__(
        self,
        graph: Graph,
        forest: Forest,
        replaced: Mapping[int, Rule | None],
        cores: Mapping[int, str],
        masked: set[int],
    ) -> None:
        self.graph, self.forest = graph, forest
        self.acts: list[Act] = []
        self.notes: Counter[str] = Counter()
        self._replaced, self.cores, self.masked = replaced, cores, masked
        self._refs: dict[str, Ref] = {}
        self.aliases = Aliases(graph)
        self._names: Counter[str] = Counter()
        self.used: set[str] = set()
        self.folded: set[str] = set()
        self.slots: list[Axis] = []
        self.node: Node = Node(-1, "", "", {}, (), "", "")
        shared: dict[str, Tensor] = {}
        for value, name in graph.weights.items():
            sizes = graph.values[value].sizes
            nature = Nature.FROZEN if name in graph.frozen else Nature.PLAIN
            tensor = shared.setdefault(name, Tensor(forest.dims(sizes), weight=name, nature=nature))
            self._refs[value] = Ref(tensor, tensor.dims)
        for value in graph.inputs:
            self._refs[value] = self.constant(value, Nature.GIVEN)

    def run(self) -> None:
        """Go through all nodes.

        Raises:
            InputError: every operator that is not known, with its shapes.
        """
        strange: Counter[str] = Counter()
        places: dict[str, str] = {}
        for node in self.graph.nodes:
            meaning = self._replaced.get(node.index, RULES.get(node.target))
            self.node = node
            if node.index in self._replaced and meaning is None:
                continue
            if meaning is None and self._is_constant(node):
                self._uncosted(node)
                continue
            if meaning is None:
                strange[self._node_text(node)] += 1
                places.setdefault(self._node_text(node), node.path)
                self.opaque()
                continue
            try:
                meaning(self)
            except _MISREAD as error:
                raise InputError(self._misread(node, error)) from None
            self._check(node)
        refuse_unknown(self.graph.place, strange, places)

    def _uncosted(self, node: Node) -> None:
        """Note what computes numbers from inputs alone, without a gradient, and is not known."""
        results = (self.graph.values.get(name) for name in node.outputs)
        if self.node.args and any(one is not None and one.floating for one in results):
            taken = [name for arg in node.args.values() for name in names_in(arg)]
            if any(self.graph.values[name.text].floating for name in taken):
                self.notes[f"{node.target} of numbers without a gradient: not costed"] += 1

    def _misread(self, node: Node, error: Exception) -> str:
        where = f"{self.graph.place}: {node.target} in {node.path or 'the model'}"
        return f"{where}: its arguments are not understood ({type(error).__name__}: {error})"

    def _check(self, node: Node) -> None:
        """Refuse a result whose dimensions are not as long as the graph says."""
        for name in node.outputs:
            ref, value = self._refs.get(name), self.graph.values.get(name)
            if ref is None or value is None:
                continue
            flats = [self.forest.flat(dim) for dim in ref.dims]
            lengths = [self.forest.length(flat) for flat in flats]
            means = any(axis in self.forest.means for flat in flats for axis in flat)
            if not means and lengths != [self.forest.count(size) for size in value.sizes]:
                shown = " ".join(str(size) for size in value.sizes)
                raise InputError(
                    f"{self.graph.place}: {node.target} in {node.path or 'the model'}: shapes "
                    f"contradict each other: {name} is said to be [{shown}]"
                )

    def _is_constant(self, node: Node) -> bool:
        names = [name for arg in node.args.values() for name in names_in(arg)]
        return all(
            self.ref(name).tensor.constant and not self.ref(name).tensor.weight for name in names
        )

    def _node_text(self, node: Node) -> str:
        shapes = [
            f"[{', '.join(map(str, self.graph.values[name.text].sizes))}]"
            for arg in node.args.values()
            for name in names_in(arg)
            if name.text in self.graph.values
        ]
        return f"{node.target} of {', '.join(shapes) or 'nothing'}"

    # References.

    def constant(self, value: str = "", nature: Nature = Nature.PLAIN) -> Ref:
        """Return a reference to a value without a gradient; unless named, the node's result."""
        entry = self.graph.values[value or self.node.outputs[0]]
        dims = self.forest.dims(entry.sizes)
        holds = Nature.PLAIN if entry.floating else Nature.INDICES
        return Ref(Tensor(dims, nature=Nature.CONSTANT | nature | holds), dims)

    def ref(self, name: Name) -> Ref:
        """Return what a name stands for; what no act made is a constant."""
        if name.text not in self._refs:
            if name.text not in self.graph.values:
                raise InputError(f"{self.graph.place}: nothing makes the value {name.text!r}")
            maker = self.aliases.makers.get(name.text)
            if maker is not None and maker.index >= self.node.index >= 0:
                raise InputError(
                    f"{self.graph.place}: {self.node.target} in {self.node.path} takes the value "
                    f"{name.text!r} before it is made: a graph has no cycles"
                )
            self._refs[name.text] = self.constant(name.text)
        return self._refs[name.text]

    def batch(self) -> set[Axis]:
        """Return the axes of the first dimensions of what the user gives."""
        inputs = [self._refs[name] for name in self.graph.inputs]
        return {axis for ref in inputs if ref.dims for axis in self.forest.flat(ref.dims[0])}

    def value(self, value: str) -> Ref | None:
        """Return what a value stands for, if it was made."""
        return self._refs.get(value)

    def arg(self, name: str, place: int | None = None) -> Any:  # noqa: ANN401 - any argument
        """Return an argument of the node at hand, tensors as references."""
        value = self.node.args.get(name)
        if value is None and place is not None:
            value = self.node.args.get(str(place))
        if isinstance(value, Name):
            return self.ref(value)
        if isinstance(value, list) and any(isinstance(item, Name) for item in value):
            return [self.ref(item) if isinstance(item, Name) else item for item in value]
        return value

    def tensors(self) -> list[Ref]:
        """Return all tensors that the node at hand takes."""
        names = (name for arg in self.node.args.values() for name in names_in(arg))
        return [self.ref(name) for name in names]

    def sizes(self, place: int = 0) -> tuple[Size, ...]:
        """Return the sizes of a result of the node at hand."""
        return self.graph.values[self.node.outputs[place]].sizes

    def floating(self, place: int = 0) -> bool:
        """Tell whether a result of the node at hand holds numbers."""
        return self.graph.values[self.node.outputs[place]].floating

    def bind(self, ref: Ref, place: int = 0, *, written: bool = True) -> None:
        """Let a result of the node at hand, or what it changes in place, stand for a reference."""
        if place < len(self.node.outputs):
            self._refs[self.node.outputs[place]] = ref
        if self.node.changes:
            self._refs[self.node.changes] = ref
            if written and not ref.tensor.constant:
                self._write_through(self.node, ref)

    def _write_through(self, node: Node, ref: Ref) -> None:
        """Let what shares memory with what a node changes in place have the change as well."""
        root, others = self.aliases.written(node.changes, node)
        base = self.ref(Name(root))
        if not others or base.tensor.weight:
            return
        if root != node.changes:
            self._refs[root] = self._joined(base, ref)
        seen = {root, node.changes, *node.outputs}
        for name in others:
            self._again(name, seen)
        self.node = node

    def _again(self, name: str, seen: set[str]) -> None:
        """Take a view once more, of what its memory holds by now."""
        maker = self.aliases.makers.get(name)
        if name in seen or maker is None:
            return
        seen.add(name)
        source = self.aliases.source(name)
        self._again(source, seen)
        if maker.changes:
            self._refs[name] = self._refs[source]
        else:
            self.node = maker
            RULES[maker.target](self)

    def _joined(self, base: Ref, part: Ref) -> Ref:
        """Return a tensor with what was written into a part of it."""
        length, rank = self.forest.length, len(base.dims)
        before = [] if base.tensor.constant else [base]
        own = (((),) * (rank - len(part.dims)) + part.dims)[-rank:] if rank else ()
        dims = tuple(
            mine if mine and length(mine) == length(whole) else whole
            for mine, whole in zip(own, base.dims, strict=True)
        )
        first = rank - len(part.dims)
        for i, dim in enumerate(own if before and first >= 0 else ()):
            if dim and self.unify(base, i, part, i - first):
                dims = put(dims, i, base.dims[i])
        want = tuple(
            d if m and length(m) == length(d) else m
            for m, d in zip(part.dims, dims[first:], strict=False)
        )
        taken: list[Ref | Use] = [*before, Use(part, want if first >= 0 else part.dims)]
        return self.pointwise("copy", taken, dims, options={"written": True})

    # Acts.

    def name(self, suffix: str = "") -> str:
        """Return a name for an op of the node at hand, below its module."""
        own = suffix or self.node.target.partition(".")[2].strip("_").lower()
        return ".".join(filter(None, (self.node.path, own)))

    def act(self, kind: str, taken: Iterable[Ref | Use], dims: Dims, suffix: str = "",
            **more: Any) -> Ref:  # fmt: skip  # noqa: ANN401 - fields of an act
        """Write an act with one result, and return the result; references are used as they are."""
        uses = tuple(one if isinstance(one, Use) else Use(one, one.dims) for one in taken)
        constant = all(use.ref.tensor.constant for use in uses)
        tensor = Tensor(dims, nature=Nature.CONSTANT if constant else Nature.PLAIN)
        self.write(Act(kind, self.name(suffix), uses, (tensor,), **more))
        return Ref(tensor, dims)

    def pointwise(self, function: str, taken: Iterable[Ref | Use], dims: Dims, suffix: str = "",
                  **more: Any) -> Ref:  # fmt: skip  # noqa: ANN401 - fields of an act
        """Write a function of elements."""
        return self.act("pointwise", taken, dims, suffix, function=function, **more)

    def lookup(self, table: Ref, rows: Dims, dims: Dims, nature: Nature = CHOSEN) -> Ref:
        """Write rows of a weight, by indices."""
        return self.act("lookup", [Ref(Tensor(rows, nature=nature), rows), table], dims)

    def write(self, act: Act) -> None:
        """Write an act."""
        self.acts.append(act)
        self.used |= {use.ref.tensor.weight for use in act.uses} - {""}

    def opaque(self) -> None:
        """Copy what goes in to a result of which nothing is known but its shape.

        Dimensions of the same size at the same place are the same; others are new.
        """
        sources = [ref for ref in self.tensors() if not ref.tensor.constant]
        for place, name in enumerate(self.node.outputs):
            if not name or name not in self.graph.values:
                continue
            if not self.floating(place) or not sources:
                self.bind(self.constant(name), place)
                continue
            dims = self.aligned(sources[0], self.sizes(place))
            self.bind(self.pointwise("copy", sources, dims), place)

    def unify(self, one: Ref, place: int, other: Ref, at: int) -> bool:
        """Make dimensions of two tensors the same, unless one of them had an axis twice then."""
        mine, theirs = self.forest.flat(one.dims[place]), self.forest.flat(other.dims[at])
        if set(theirs) & self._others(one, place) or set(mine) & self._others(other, at):
            return False
        return self.forest.unify(mine, theirs)

    def _others(self, ref: Ref, place: int) -> set[Axis]:
        return set(self.forest.axes(put(ref.dims, place % len(ref.dims))))

    def aligned(self, ref: Ref, sizes: tuple[Size, ...]) -> Dims:
        """Return dimensions of these sizes, those of a reference where it has them in place.

        Of a reference of another rank, the first alone is in its place.
        """
        forest = self.forest
        kept = ref.dims if len(ref.dims) == len(sizes) else ref.dims[:1]
        new = forest.dims(sizes)
        same = [
            dim if forest.fits(dim, size) else made
            for dim, size, made in zip(kept, sizes, new, strict=False)
        ]
        return (*same, *new[len(same) :])
