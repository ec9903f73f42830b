"""Parts of a model from drafts: blocks that repeat are found by their place in a list of modules.

Ops of "model.layers.3" are one block; blocks that are the same up to their number are one part,
with how often it occurs. What a part takes from another comes through ports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import is_

from sympy import Integer

from symbolic_cost.models.traced.acts import Tensor
from symbolic_cost.models.traced.build import UnusedWeight, op
from symbolic_cost.models.traced.placing import Draft, block_of
from symbolic_cost.ops.declare import Op, unread
from symbolic_cost.ops.part import OUTSIDE, Part, Place
from symbolic_cost.ops.pattern import Operand, Pattern
from symbolic_cost.ops.view import View
from symbolic_cost.records import dataclass, field, replace


@dataclass(eq=False)
class Segment:
    """Drafts that follow each other in one block, or outside of all.

    Args:
        block: list of modules and place in it.
        sources: segment that makes what it takes, by name of the port.
    """

    block: tuple[str, int] | None
    drafts: list[Draft] = field(default_factory=list)
    ops: tuple[Op, ...] = ()
    sources: dict[str, Segment | None] = field(default_factory=dict)
    part: str = ""

    @cached_property
    def prefix(self) -> str:
        """Path of the block, or of what all drafts are in; with a dot, if there is one."""
        if self.block is not None:
            return f"{self.block[0]}.{self.block[1]}."
        paths = [draft.path.split(".") for draft in self.drafts]
        common = paths[0][:-1]
        for path in paths:
            while path[: len(common)] != common:
                common = common[:-1]
        return "".join(f"{name}." for name in common)


def parts(
    drafts: Sequence[Draft], outputs: Iterable[Tensor], read: set[Tensor], *, folds: bool = True
) -> list[Part]:
    """Return the parts of a model.

    Args:
        drafts: in order.
        outputs: what the model hands on.
        read: tensors that reach these.
        folds: whether equal blocks are one part.
    """
    segments = _segments(drafts)
    _declare(segments, set(outputs), read)
    return _folded(segments, folds=folds)


def _segments(drafts: Sequence[Draft]) -> list[Segment]:
    """Return drafts in runs of one block."""
    segments: list[Segment] = []
    for draft in drafts:
        block = block_of(draft.path)
        if not segments or segments[-1].block != block:
            segments.append(Segment(block))
        segments[-1].drafts.append(draft)
    return segments


def _declare(segments: Sequence[Segment], outputs: set[Tensor], read: set[Tensor]) -> None:
    """Make the ops of all segments, and note where their inputs come from."""
    maker = {t: s for s in segments for d in s.drafts for t, _ in d.outputs}
    uses = Counter(
        t.weight for s in segments for d in s.drafts for t, _ in (*d.inputs, *d.biases) if t.weight
    )
    outside = {
        t
        for s in segments
        for d in s.drafts
        for t, _ in d.inputs
        if not t.weight and maker.get(t) not in (None, s)
    }
    for segment in segments:
        _Namer(segment, maker, uses).declare(outside | outputs, read)


class _Namer:
    """Names the tensors and ops of a segment."""

    def __init__(self, segment: Segment, maker: dict[Tensor, Segment], uses: Counter[str]) -> None:
        self._segment, self._maker, self._uses = segment, maker, uses
        self._paths: Counter[str] = Counter()
        self._products: Counter[str] = Counter()
        self._names: dict[object, str] = {}
        self._axes: dict[Tensor, tuple[str, ...]] = {}

    def declare(self, wanted: set[Tensor], read: set[Tensor]) -> None:
        """Make the ops; what is wanted outside and taken inside is handed on by a view.

        Through what no result reads, nothing flows back.
        """
        ops: list[Op] = []
        taken = {t for draft in self._segment.drafts for t, _ in draft.inputs}
        for draft in self._segment.drafts:
            path = self._path(draft.path)
            for i, (tensor, axes) in enumerate(draft.outputs):
                own = path if len(draft.outputs) == 1 else f"{path}.{i}"
                self._names[tensor] = tensor.shared or own
                self._axes[tensor] = axes
            declared = op(replace(draft, core=self._core(draft)), path, self._name)
            held = isinstance(declared, UnusedWeight) or any(
                tensor in read for tensor, _ in draft.outputs
            )
            ops += (declared,) if held else unread((declared,))
        for tensor, axes in self._axes.items():
            if not tensor.shared and tensor in wanted and tensor in taken:
                ops.append(self._handed(tensor, axes))
        self._segment.ops = tuple(ops)

    def _core(self, draft: Draft) -> str:
        """Return the attention core that an op is of, a number for every call of one module."""
        core = draft.core.removeprefix(self._segment.prefix)
        if core and draft.options.get("pairs"):
            self._products[core] += 1  # scores first, the sum of values after them
        call = (self._products[core] + 1) // 2
        return f"{core}_{call}" if call > 1 else core

    def _handed(self, tensor: Tensor, axes: tuple[str, ...]) -> Op:
        name = self._names[tensor]
        inputs, outputs = (Operand(name, axes),), (Operand(f"{name}.out", axes),)
        return View(
            self._path(f"{self._segment.prefix}hand_on"), Pattern("hand on", inputs, (), outputs)
        )

    def _path(self, full: str) -> str:
        path = full.removeprefix(self._segment.prefix)
        for leaf in (".linear", ".embedding", ".layer_norm"):
            path = path.removesuffix(leaf) or path
        self._paths[path] += 1
        return path if self._paths[path] == 1 else f"{path}_{self._paths[path]}"

    def _name(self, tensor: Tensor, axes: tuple[str, ...]) -> str:
        if tensor.weight:
            own = tensor.weight.startswith(self._segment.prefix) and self._uses[tensor.weight] == 1
            return tensor.weight.removeprefix(self._segment.prefix) if own else f"@{tensor.weight}"
        if tensor.shared:
            return tensor.shared
        if tensor in self._names:
            return self._names[tensor]
        source = self._maker.get(tensor)
        if source is None and tensor.constant:
            key = (tensor, axes)
            kind = "given" if tensor.is_input else "constant"
            return self._names.setdefault(
                key, f"{kind}{1 + sum(n.startswith(kind) for n in self._names.values())}"
            )
        number = len(self._segment.sources) + 1
        name = "x" if number == 1 else f"x{number}"
        self._segment.sources[name] = source
        self._names[tensor] = name
        return name


def _folded(segments: Sequence[Segment], *, folds: bool) -> list[Part]:
    """Return the parts of segments: equal blocks of one list together."""
    kinds: dict[object, list[Segment]] = {}
    learning = _learning(segments)
    for place, segment in enumerate(segments):
        key: object = place
        if segment.block is not None and folds:
            own = tuple(
                ""
                if source is not None and source.block and source.block[0] == segment.block[0]
                else id(source)
                for source in list(segment.sources.values())[1:]
            )
            learn = tuple(source in learning for source in segment.sources.values())
            key = (segment.block[0], segment.ops, tuple(segment.sources), own, learn)
        kinds.setdefault(key, []).append(segment)
    names: Counter[str] = Counter()
    several = Counter(group[0].block[0] for group in kinds.values() if group[0].block)
    for group in kinds.values():
        path = _path(group[0], several, segments)
        names[path] += 1
        for segment in group:
            segment.part = path if names[path] == 1 else f"{path}_{names[path]}"
    groups = list(kinds.values())
    listed = [_part(group) for group in groups]
    shallow = {
        group[0].block[0]
        for group, part in zip(groups, listed, strict=True)
        if group[0].block and _changes(part)
    }
    ahead = _leading(groups, segments)
    for i, group in enumerate(groups):
        if group[0].block and group[0].block[0] in shallow:
            listed[i] = replace(listed[i], place=Place.END)
        elif i == ahead:
            listed[i] = replace(listed[i], place=Place.LEADING)
    return listed


def _learning(segments: Sequence[Segment]) -> set[Segment | None]:
    """Return the segments that learn or stand behind one that does; none where all learn.

    A frozen block behind the first that learns hands gradients on, one before it does not.
    """
    weights = {s: [weight for op in s.ops for weight in op.weights] for s in segments}
    if all(weight.needs_gradient for own in weights.values() for weight in own):
        return set()
    learning: set[Segment | None] = set()
    for segment in segments:
        learns = any(weight.needs_gradient for weight in weights[segment])
        if learns or not learning.isdisjoint(segment.sources.values()):
            learning.add(segment)
    return learning


def _changes(part: Part) -> bool:
    """Tell whether a module of a list hands on other axes than it takes.

    Such a list is no depth that a pipeline divides: convolutions before an encoder, a perceptron.
    """
    taken = set(part.inputs[part.stream].axes) if part.stream in part.inputs else set()
    return part.repeat == 1 and all(set(result.axes) != taken for result in part.results)


def _leading(groups: Sequence[Sequence[Segment]], segments: Sequence[Segment]) -> int | None:
    """Return which blocks stand before all of other kinds, if any: dense layers before mixtures."""
    blocks = [segment for segment in segments if segment.block is not None]
    kinds = [i for i, group in enumerate(groups) if group[0].block is not None]
    lists = {segment.block[0] for segment in blocks if segment.block is not None}
    if len(lists) != 1 or len(kinds) == 1:
        return None
    return kinds[0] if all(map(is_, groups[kinds[0]], blocks)) else None


def _path(segment: Segment, several: Counter[str], segments: Sequence[Segment]) -> str:
    if segment.block is not None:
        listed, place = segment.block
        return listed if several[listed] == 1 else f"{listed}.{place}"
    ends = {id(segments[0]): "entry", id(segments[-1]): "head"}
    return ends.get(id(segment), "between")


def _part(group: Sequence[Segment]) -> Part:
    first = group[0]
    takes = {
        name: OUTSIDE if source is None else source.part for name, source in first.sources.items()
    }
    place = Place.END if first.block is None else Place.BLOCK
    module = first.block[0] if first.block else first.prefix.removesuffix(".")
    times = Integer(len(group))
    return Part(first.part, first.ops, times, takes or {"x": ""}, place, module=module)
