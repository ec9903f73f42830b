"""Parts and models: ops in order, with repetition as a factor.

Inside a part, tensors go from op to op by name. A layer is declared with short names and put
into its place by `scope`, which prefixes paths and tensor names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sympy import Expr, Integer

from symbolic_cost.axes import At, Axis, Glossary
from symbolic_cost.errors import PatternError
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
        """Check that paths tell ops apart and tensors keep the axes they were made with."""
        made: dict[str, tuple[str, ...]] = {}
        uses = Counter(op.path for op in self.ops)
        problems = [
            f"{self.path}.{path}: {times} ops have this path, so their rows cannot be told apart"
            for path, times in uses.items()
            if times > 1
        ]
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
        axes: the glossary, which gives every axis its role; without one, placements by name are
            all that can be asked.

    Raises:
        PatternError: an axis of an op that the glossary lacks.
    """

    name: str
    parts: tuple[Part, ...]
    sizes: Mapping[str, Expr]
    padded: tuple[str, ...] = ()
    means: tuple[str, ...] = ()
    bindings: Mapping[str, int] = field(default_factory=dict)
    source: str = "definition"
    axes: Glossary = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        """Check that every axis of every op has a role, where there is a glossary."""
        problems = [
            f"model {self.name!r}: axis {name!r} of {where} is not in the glossary of axes"
            for name, where in self._first_uses().items()
            if self.axes and name not in self.axes
        ]
        if problems:
            raise PatternError(problems)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """Every axis of every op once."""
        return tuple(self._first_uses())

    def placed(self, *places: At) -> tuple[Axis, ...]:
        """Return the axes that some places mean, in the order of the places."""
        known = [self.axes[name] for name in self.axis_names if name in self.axes]
        return tuple(axis for place in places for axis in known if axis in place)

    def _first_uses(self) -> dict[str, str]:
        """Return the path of the op that uses an axis first, by the axis."""
        uses: dict[str, str] = {}
        for part in self.parts:
            for op in part.ops:
                for axis in op.axes:
                    uses.setdefault(axis, f"{part.path}.{op.path}")
        return uses


def scope(path: str, ops: Iterable[Op], **names: str) -> tuple[Op, ...]:
    """Put ops below `path`; tensors are prefixed with it, but for those renamed by `names`.

    >>> from symbolic_cost.ops.elementwise import pointwise
    >>> (op,) = scope("mlp", (pointwise("act", "u[b f] -> a[b f]", "gelu"),), u="hidden")
    >>> op.path, op.inputs[0].tensor, op.outputs[0].tensor
    ('mlp.act', 'hidden', 'mlp.a')
    """
    return tuple(op.renamed(path, names) for op in ops)
