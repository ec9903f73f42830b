"""Tensors of a checkpoint, by data type, and what its model declares beside."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property
from math import prod

from symbolic_cost.models.bound import bound
from symbolic_cost.ops.graph import Model
from symbolic_cost.records import dataclass

_BUFFERS = re.compile(
    r"(rotary_emb\.inv_freq|running_(mean|var)|num_batches_tracked|position_ids|\.masked_bias"
    r"|^rope_freqs\.weight|^rope_factors_(long|short)\.weight|relative_position_index)$"
)
"""Tensors that are stored and are no parameters."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that is stored.

    Args:
        dtype: as the file names it.
        size: what it takes [byte].
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    size: int

    @property
    def count(self) -> int:
        """Number of its elements."""
        return prod(self.shape)

    @property
    def parameter(self) -> bool:
        """Whether it is no buffer."""
        return _BUFFERS.search(self.name) is None


@dataclass(frozen=True)
class Header:
    """The tensors of a checkpoint."""

    place: str
    tensors: tuple[Tensor, ...]

    @cached_property
    def parameters(self) -> tuple[Tensor, ...]:
        """Tensors that are no buffers."""
        return tuple(tensor for tensor in self.tensors if tensor.parameter)

    @property
    def count(self) -> int:
        """Number of all parameters."""
        return sum(tensor.count for tensor in self.parameters)

    @property
    def size(self) -> int:
        """What all tensors take [byte]."""
        return sum(tensor.size for tensor in self.tensors)

    @property
    def dtypes(self) -> Mapping[str, tuple[int, int]]:
        """Elements and bytes of every data type, the largest first."""
        elements, sizes = Counter[str](), Counter[str]()
        for tensor in self.tensors:
            elements[tensor.dtype] += tensor.count
            sizes[tensor.dtype] += tensor.size
        return {dtype: (elements[dtype], size) for dtype, size in sizes.most_common()}

    @property
    def summary(self) -> str:
        """Elements and bytes of every data type, as a sentence."""
        return ", ".join(
            f"{dtype} {count} elements {size} bytes" for dtype, (count, size) in self.dtypes.items()
        )

    def packed(self) -> bool:
        """Tell whether several parameters stand in one element, or scales stand beside them."""
        return any(
            tensor.dtype in ("I32", "U8", "I8", "U32", "F4", "F8_E8M0")
            or tensor.name.endswith(("_scale", "_scale_inv", ".scales", ".absmax"))
            for tensor in self.parameters
        )


def numbered(names: Iterable[str]) -> str:
    """Return names with the numbers of layers left out: "layers.*.weight (32 of them)"."""
    counted: dict[str, list[str]] = {}
    for name in names:
        counted.setdefault(re.sub(r"\.\d+(?=\.|$)", ".*", name), []).append(name)
    return ", ".join(
        f"{short} ({len(ones)} of them)" if len(ones) > 1 else ones[0]
        for short, ones in counted.items()
    )


def difference(header: Header, model: Model, declared: int) -> str:
    """Say by name which tensors only one of both has; empty if all parameters are accounted for.

    Args:
        header: of the checkpoint.
        model: as declared, its sizes bound.
        declared: its parameters.
    """
    if header.packed():
        return "quantised: several parameters stand in one element; not compared"
    if header.count == declared:
        return ""
    missing = Counter(_weights(model))
    left = []
    for tensor in header.parameters:
        if missing[tensor.count] > 0:
            missing[tensor.count] -= 1
        else:
            left.append(tensor.name)
    parts = [f"{header.count} parameters are stored, {declared} declared"]
    if left:
        parts.append(f"without a declared weight of as many elements: {numbered(left)}")
    gone = ", ".join(f"{times} of {count}" for count, times in missing.items() if times > 0)
    return "; ".join([*parts, *([f"declared and not stored: {gone} elements"] if gone else [])])


def _weights(model: Model) -> dict[int, int]:
    sized = bound(model)
    counts: Counter[int] = Counter()
    for part in sized.parts:
        weights = {
            operand.tensor: operand.axes
            for op in part.ops
            for operand in (*op.pattern.inputs, *op.pattern.biases)
            if operand.is_weight
        }
        for axes in weights.values():
            counts[prod(int(sized.sizes[axis]) for axis in axes)] += int(part.repeat)
    return counts
