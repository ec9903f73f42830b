"""Parts and models: ops in order, with repetition as a factor.

Inside a part, tensors go from op to op by name. A layer is declared with short names and put
into its place by `scope`, which prefixes paths and tensor names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sympy import Expr, Integer

from symbolic_cost.errors import InputError, PatternError, shown
from symbolic_cost.ops.op import Op


@dataclass(frozen=True)
class Part:
    """Ops that run one after the other, `repeat` times.

    Args:
        path: dotted place in the model.
        ops: in order; tensors are linked by name.
        repeat: how often the part occurs, one after the other.
    """

    path: str
    ops: tuple[Op, ...]
    repeat: Expr = Integer(1)

    def __post_init__(self) -> None:
        """Check that every tensor is used with the axes it was made with."""
        made: dict[str, tuple[str, ...]] = {}
        problems = []
        for op in self.ops:
            for operand in op.inputs:
                axes = made.setdefault(operand.tensor, operand.axes)
                if axes != operand.axes:
                    problems.append(
                        f"{self.path}.{op.path}: tensor {operand.tensor!r} was made as "
                        f"[{' '.join(axes)}] and is used as [{' '.join(operand.axes)}]: "
                        "declare a view between them"
                    )
            for operand in op.outputs:
                if operand.tensor in made:
                    problems.append(
                        f"{self.path}.{op.path}: tensor {operand.tensor!r} exists already"
                    )
                made[operand.tensor] = operand.axes
        if problems:
            raise PatternError(problems)


@dataclass(frozen=True)
class Model:
    """Parts and the sizes of their axes.

    Args:
        name: of the model.
        parts: in the order in which they run.
        sizes: size by axis.
        padded: axes that are padded to a multiple of the degree that splits them (vocabulary).
        means: axes whose size is a mean, which need not be whole (tokens per expert).
        bindings: numbers of a preset, by symbol name.
        source: key of a reference.
    """

    name: str
    parts: tuple[Part, ...]
    sizes: Mapping[str, Expr]
    padded: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    bindings: Mapping[str, int] = field(default_factory=dict)
    source: str = "definition"

    def __post_init__(self) -> None:
        """Refuse sizes that are none: zero, negative or complex numbers, and those of no number."""
        problems = [
            f"model {self.name!r}: axis {axis} has size {shown(length)}: "
            "a positive number or a symbol is accepted"
            for axis, length in self.sizes.items()
            if not _is_size(length)
        ]
        if problems:
            raise InputError(problems)

    @property
    def axes(self) -> tuple[str, ...]:
        """Every axis of every op once."""
        found = (axis for part in self.parts for op in part.ops for axis in op.axes)
        return tuple(dict.fromkeys(found))


def _is_size(length: object) -> bool:
    """Whether an expression may be positive; a mean may be a fraction, a cache may be empty."""
    if not isinstance(length, Expr):
        return False
    return length.is_finite is not False and length.is_extended_nonnegative is not False


def scope(path: str, ops: Iterable[Op], **names: str) -> tuple[Op, ...]:
    """Put ops below `path`; tensors are prefixed with it, but for those renamed by `names`.

    >>> from symbolic_cost.ops.elementwise import pointwise
    >>> (op,) = scope("mlp", (pointwise("act", "u[b f] -> a[b f]", "gelu"),), u="hidden")
    >>> op.path, op.inputs[0].tensor, op.outputs[0].tensor
    ('mlp.act', 'hidden', 'mlp.a')
    """
    return tuple(op.renamed(path, names) for op in ops)
