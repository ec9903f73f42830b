"""Models from exported graphs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from sympy import Expr

from symbolic_cost import symbols
from symbolic_cost.errors import InputError, PatternError
from symbolic_cost.models.traced.acts import PART, Nature, Tensor
from symbolic_cost.models.traced.archive import read_archive
from symbolic_cost.models.traced.blocks import parts
from symbolic_cost.models.traced.emit import Emitter
from symbolic_cost.models.traced.forest import Apart, Forest
from symbolic_cost.models.traced.graph import Graph
from symbolic_cost.models.traced.onnx import onnx_graph
from symbolic_cost.models.traced.patterns import patterns
from symbolic_cost.models.traced.placing import Draft
from symbolic_cost.models.traced.program import graph
from symbolic_cost.models.traced.roles import Roles
from symbolic_cost.models.traced.rules import (  # noqa: F401 - they register rules
    cells,
    convolutions,
    forms,
    letters,
    losses,
    permuting,
    products,
)
from symbolic_cost.models.traced.splits import split_products
from symbolic_cost.models.traced.trace import Trace
from symbolic_cost.ops.declare import Glossary, Model, Part, Role
from symbolic_cost.ops.trained import key_of, training_only
from symbolic_cost.records import dataclass, replace


@dataclass(frozen=True)
class AxisFound:
    """An axis of an imported model.

    Args:
        reason: why it has its role.
    """

    name: str
    role: Role
    size: Expr
    reason: str


@dataclass(frozen=True)
class Traced:
    """An imported model, and what to know of it.

    Args:
        axes: with the reasons of their roles.
        dims: which dimension of which input each dynamic size is.
        notes: what was assumed, and how often.
    """

    model: Model
    axes: tuple[AxisFound, ...]
    dims: Mapping[str, str]
    notes: Mapping[str, int]


def traced(source: str | Path | bytes, name: str = "") -> Traced:
    """Read a model that torch.export.save wrote, or an ONNX file.

    Args:
        source: a .pt2 or .onnx file, or the bytes of a .pt2 file.
        name: of the model.

    Raises:
        InputError: the archive or the graph is refused; every operator that is not known.
    """
    own = name or Path(str(source)).stem
    if isinstance(source, str | Path) and str(source).endswith(".onnx"):
        read, notes = onnx_graph(source, name)
        imported = of_graph(read, own, "onnx")
        return replace(imported, notes={**notes, **imported.notes})
    return of_graph(graph(read_archive(source, name)), own)


def of_graph(read: Graph, name: str, source: str = "torch-export") -> Traced:
    """Return the model of a graph; with axes of their own for every op where they contradict.

    Args:
        read: the graph.
        name: of the model.
        source: key of the reference to what wrote it.

    Raises:
        InputError: they contradict within an op.
    """
    try:
        return following(read, name, source=source)
    except PatternError as error:
        try:
            imported = following(read, name, Apart(), source)
        except PatternError as within:
            raise InputError(
                f"{name}: axes could not be followed through the graph: {within.problems[0]}"
            ) from None
        notes = {f"axes could not be followed through the graph ({error.problems[0]})": 1}
        return replace(imported, notes={**notes, **imported.notes})


def following(
    read: Graph, name: str, forest: Forest | None = None, source: str = "torch-export"
) -> Traced:
    """Return the model of a graph.

    Args:
        read: the graph.
        name: of the model.
        forest: how axes are followed through it; from op to op unless given.
        source: key of the reference to what wrote it.

    Raises:
        PatternError: axes contradict each other.
    """
    axes = Forest() if forest is None else forest
    trace = _walked(read, axes)
    roles = Roles(trace)
    emitter = Emitter(trace, roles)
    drafts = emitter.run()
    outputs = [ref.tensor for ref in map(trace.value, read.outputs) if ref is not None]
    if any(emitter.loss(tensor) for tensor in outputs[:1]):
        trace.notes["a cross-entropy over the vocabulary is added for training"] += 1
    drafts = [*_taken(drafts, outputs), *_with_unused_weights(trace, drafts, emitter)]
    listed = parts(drafts, outputs, read_of(drafts, outputs), folds=not isinstance(axes, Apart))
    sizes, numbers = _sizes(emitter, listed)
    listed, layers = _depth(listed)
    glossary: Glossary = {n: named for n, (named, _) in emitter.axes.items()}
    means = tuple(n for n, (_, axis) in emitter.axes.items() if axis in axes.means)
    padded = tuple(n for n, named in glossary.items() if named.role is Role.VOCABULARY)
    numbers |= layers
    model = Model(name, tuple(listed), sizes, padded, means, numbers, source=source, axes=glossary)
    trace.notes.update(read.notes)
    if read.frozen:
        trace.notes["weights without a gradient in the file: not trained"] += len(read.frozen)
    weights = [(p, weight) for p in model.parts for op in p.ops for weight in op.weights]
    learning = frozenset(key_of(p, weight) for p, weight in weights if weight.needs_gradient)
    if not all(weight.needs_gradient for _, weight in weights):
        model = training_only(model, learning)
    told = tuple(
        AxisFound(n, named.role, sizes[n], roles.of(axis).reason)
        for n, (named, axis) in emitter.axes.items()
    )
    return Traced(model, told, read.dims, trace.notes)


def _walked(read: Graph, axes: Forest) -> Trace:
    """Return the acts of a graph; of a product that is used in parts alone, those of the parts."""
    try:
        known = patterns(read)
    except (LookupError, TypeError, AttributeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{read.place}: nodes are not as their operators take them ({said})"
        ) from None
    trace = Trace(read, axes, known.replaced, known.cores, known.masked)
    trace.run()
    split_products(trace)
    return trace


def _taken(drafts: Sequence[Draft], outputs: Sequence[Tensor]) -> list[Draft]:
    """Return drafts without views that nothing takes: caches cut to a window, gathered in vain."""
    taken, rest = set(outputs), []
    for draft in reversed(drafts):
        if draft.maker != "view" or any(tensor in taken for tensor, _ in draft.outputs):
            taken.update(tensor for tensor, _ in (*draft.inputs, *draft.biases))
            rest.append(draft)
    return rest[::-1]


def read_of(drafts: Sequence[Draft], outputs: Sequence[Tensor]) -> set[Tensor]:
    """Return the tensors that reach a result, the loss or what all layers share.

    The rest runs forward, and nothing flows back through it: boxes where classes are the result.
    """
    read = set(outputs)
    for draft in reversed(drafts):
        results = [tensor for tensor, _ in draft.outputs]
        if results and all(tensor.constant and not tensor.shared for tensor in results):
            continue  # no gradient flows into what is detached
        # What is written into parts of one tensor: what reads it names the last of them alone.
        ends = draft.path.startswith("loss.") or draft.options.get("written")
        if ends or any(t in read or t.shared for t in results):
            read |= {*results, *(tensor for tensor, _ in draft.inputs)}
    return read


def _with_unused_weights(trace: Trace, drafts: Sequence[Draft], emitter: Emitter) -> list[Draft]:
    used = {
        t.weight.partition(PART)[0] for draft in drafts for t, _ in (*draft.inputs, *draft.biases)
    }
    operands = []
    for weight, value in trace.graph.parameters.items():
        if weight in used:
            continue
        dims = trace.forest.dims(trace.graph.values[value].sizes)
        axes = emitter.apart(dims)
        nature = Nature.FROZEN if weight in trace.graph.frozen else Nature.PLAIN
        kept, copy = (Tensor(dims, weight=weight, nature=nature), axes), (Tensor(dims), axes)
        about = {"function": "copy"}
        operands.append(Draft("pointwise", f"{weight}.held", (kept,), (), (copy,), about))
        trace.notes["weights that no op uses: kept, not computed with"] += 1
    return operands


_SYMBOLS = {
    Role.HIDDEN: symbols.e,
    Role.INNER: symbols.f,
    Role.WIDTH: symbols.q,
    Role.VOCABULARY: symbols.V,
}


def _sizes(emitter: Emitter, listed: Sequence[Part]) -> tuple[dict[str, Expr], dict[str, int]]:
    """Return the size of every axis, and the numbers of the symbols in them.

    The axis of a role that most ops have gets the glossary's symbol; others are numbers.
    """
    uses: Counter[str] = Counter()
    for part in listed:
        for op in part.ops:
            uses.update(dict.fromkeys(op.axes, int(part.repeat)))
    sizes = {name: axis.size for name, (_, axis) in emitter.axes.items()}
    named: dict[Role, str] = {}
    for name, _ in uses.most_common():
        role = emitter.axes[name][0].role
        if sizes[name].is_Integer:
            named.setdefault(role, name)
    numbers: dict[str, int] = {}
    for role, symbol in _SYMBOLS.items():
        if role in named:
            numbers[symbol.name] = int(sizes[named[role]])
            sizes[named[role]] = symbol
    head, group = named.get(Role.HEAD), named.get(Role.GROUP)
    if head is not None and group is None:
        numbers["h"], sizes[head] = int(sizes[head]), symbols.h
    elif head is not None and group is not None:
        numbers |= {"k": int(sizes[head]), "h": int(sizes[head] * sizes[group])}
        sizes |= {head: symbols.k, group: symbols.h / symbols.k}
    return sizes, numbers


def _depth(listed: Sequence[Part]) -> tuple[list[Part], dict[str, int]]:
    """Return parts, the one that occurs most often n_layers times."""
    most = max((int(part.repeat) for part in listed), default=1)
    longest = [part for part in listed if part.repeat == most]
    if most == 1 or len(longest) != 1:
        return list(listed), {}
    named = replace(longest[0], repeat=symbols.n_layers)
    return [named if part is longest[0] else part for part in listed], {"n_layers": most}
