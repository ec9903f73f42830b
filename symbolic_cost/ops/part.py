"""Parts of a model: ops in order, with repetition as a factor.

Inside a part, tensors go from op to op by name. A layer is declared with short names and put
into its place by `scope`, which prefixes paths and tensor names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cached_property

from sympy import Expr, Integer

from symbolic_cost.algebra import mul
from symbolic_cost.checking import Names, checked
from symbolic_cost.errors import PatternError, refuse
from symbolic_cost.ops.op import Op
from symbolic_cost.ops.pattern import Operand, is_tied
from symbolic_cost.records import dataclass, replace

OUTSIDE = "outside"
"""Source of what no part of the model makes."""

_BEFORE: Mapping[str, str] = {"x": ""}


class Place(Names):
    """Where a part stands in a model, which decides the pipeline stage that holds it."""

    END = "before or after the blocks, or it follows the head"
    BLOCK = "one of the blocks that stages divide"
    LEADING = "such a block, before all others"


@checked
@dataclass(frozen=True)
class Part:
    """Ops that run one after the other, `repeat` times.

    Args:
        path: dotted place in the model.
        ops: in order; tensors are linked by name.
        repeat: how often the part occurs, one after the other.
        takes: ports: by the name of a tensor that comes from outside, the path of the part whose
            result it is; empty for the part before, OUTSIDE for an input of the model.
            Constants and tensors shared by the model ("@") need no port.
        place: where it stands; a repeated part is a block unless said otherwise.
        joins: path of a later part into whose result its own is put: images among the tokens.
        saved_before: of what comes from outside, what a part before keeps for backward already.
        share: of the microbatches that its stage runs, how many pass it: half where they enter at
            both ends of a pipeline.
        chunks: of a stage, among which its repetitions are divided: blocks in a row are of one.
        layers: which layers its repetitions are, counted from 0, where kinds of them alternate and
            their order is known.
        module: of an exported graph, that its ops are in; its path may be a name of ours.
    """

    path: str
    ops: tuple[Op, ...]
    repeat: Expr = Integer(1)
    takes: Mapping[str, str] = field(default_factory=lambda: _BEFORE)
    place: Place | None = None
    joins: str = ""
    saved_before: tuple[str, ...] = ()
    share: Expr = Integer(1)
    chunks: Expr = Integer(1)
    layers: tuple[int, ...] = ()
    module: str = ""

    @cached_property
    def runs(self) -> Expr:
        """How often it runs per microbatch of its stage, in the mean."""
        return mul(self.repeat, self.share)

    @property
    def stands(self) -> Place:
        """Where it stands, said or not."""
        return self.place or (Place.BLOCK if self.is_block else Place.END)

    @property
    def is_block(self) -> bool:
        """Whether the stages of a pipeline divide it."""
        return self.repeat != 1 if self.place is None else self.place is not Place.END

    @cached_property
    def live(self) -> bool:
        """Whether gradients flow back through some of its ops."""
        return any(op.live for op in self.ops)

    @cached_property
    def results(self) -> tuple[Operand, ...]:
        """What it hands on: tensors that none of its ops takes."""
        taken = {operand.tensor for op in self.ops for operand in op.inputs}
        results = (operand for op in self.ops for operand in op.outputs)
        return tuple(o for o in results if o.tensor not in taken and not is_tied(o))

    @property
    def stream(self) -> str:
        """The port of what one repetition hands on to the next: the first."""
        return next(iter(self.takes), "")

    @cached_property
    def inputs(self) -> Mapping[str, Operand]:
        """What it takes from outside, by name; constants aside."""
        inputs: dict[str, Operand] = {}
        results: set[str] = set()
        for op in self.ops:
            for operand in op.inputs:
                if not (operand.tensor in results or operand.constant or is_tied(operand)):
                    inputs.setdefault(operand.tensor, operand)
            results |= {operand.tensor for operand in op.outputs}
        return inputs

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The ports of all that it hands on: the stream, and what else another result is as.

        Of a block of image and prompt these are both, unlike what an encoder made.
        """
        left = [result.axes for result in self.results]
        streams: list[str] = []
        for name in sorted(self.inputs, key=lambda name: name != self.stream):
            axes = self.inputs[name].axes
            if axes in left:
                left.remove(axes)
            elif name != self.stream:
                continue
            streams.append(name)
        return tuple(streams)

    def __post_init__(self) -> None:
        """Check that paths tell ops apart and tensors keep the axes they were made with."""
        written: dict[str, tuple[str, ...]] = {}
        uses = Counter(op.path for op in self.ops)
        problems = [
            f"{self.path}.{path}: {times} ops have this path, so their rows cannot be told apart"
            for path, times in uses.items()
            if times > 1
        ]
        for op in self.ops:
            for operand in op.inputs:
                axes = written.setdefault(operand.tensor, operand.axes)
                if axes != operand.axes:
                    problems.append(
                        f"{self.path}.{op.path}: tensor {operand.tensor!r} was made as "
                        f"[{' '.join(axes)}] and is used as [{' '.join(operand.axes)}]: "
                        "declare a view between them"
                    )
            for operand in op.outputs:
                if operand.tensor in written:
                    problems.append(
                        f"{self.path}.{op.path}: tensor {operand.tensor!r} exists already"
                    )
                written[operand.tensor] = operand.axes
        made = sorted(operand.tensor for op in self.ops for operand in op.outputs)
        problems += [
            f"{self.path}: tensor {name!r} has no producer and is no port of the part: its ops "
            f"make {', '.join(made) or 'nothing'}, its ports are {', '.join(self.takes)}; "
            f'takes={{{name!r}: ""}} is a port for what the part before hands on'
            for name in self.inputs
            if name not in self.takes
        ]
        refuse(problems, PatternError)


def unlinked_repeats(part: Part) -> Iterator[str]:
    """Say where a repeated part cannot take, as its first input, what it hands on."""
    entry = part.inputs.get(part.stream)
    if part.repeat == 1 or entry is None or part.takes[part.stream] == OUTSIDE:
        return
    if all(result.axes != entry.axes for result in part.results):
        yield (
            f"part {part.path!r} is repeated, takes {text_of(entry)} and hands on "
            f"{', '.join(map(text_of, part.results)) or 'nothing'}"
        )


def text_of(operand: Operand) -> str:
    """Write a tensor with its axes, as in a pattern."""
    return f"{operand.tensor}[{' '.join(operand.axes)}]"


def fragment(path: str, ops: Iterable[Op], repeat: Expr = Integer(1)) -> Part:
    """Return a part that stands alone: what its ops do not make comes from outside the model."""
    taken = tuple(ops)
    written = {operand.tensor for op in taken for operand in op.outputs}
    inputs = (o for op in taken for o in op.inputs if o.tensor not in written)
    names = (o.tensor for o in sorted(inputs, key=lambda o: o.constant))
    return Part(path, taken, repeat, dict.fromkeys(names, OUTSIDE))


def scope(path: str, ops: Iterable[Op], **names: str) -> tuple[Op, ...]:
    """Put ops below `path`; tensors are prefixed with it, but for those renamed by `names`.

    >>> from symbolic_cost.ops.elementwise import pointwise
    >>> (op,) = scope("mlp", (pointwise("act", "u[b f] -> a[b f]", "gelu"),), u="hidden")
    >>> op.path, op.inputs[0].tensor, op.outputs[0].tensor
    ('mlp.act', 'hidden', 'mlp.a')
    """
    return tuple(op.renamed(path, names) for op in ops)


def retitled(ops: Iterable[Op], names: Mapping[str, str]) -> tuple[Op, ...]:
    """Return ops whose axes have other names.

    For example a layer of source positions r, l, t becomes one of target positions o, m, u.

    Args:
        ops: declared ones.
        names: new ones, by axis; other axes keep theirs.
    """

    def axes(old: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(axis, axis) for axis in old)

    def operand(old: Operand) -> Operand:
        return replace(old, axes=axes(old.axes))

    return tuple(op.mapped(operand, axes) for op in ops)
